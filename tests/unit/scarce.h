/* scarce.h -- one allocation fails; for programs linked with $(SCARCE_WRAPS) */

#pragma once

#include <stdbool.h>

/* From here on the nth allocation fails, 0: none. In any thread, but only in what is linked
 * statically. */
void scarce_begin(unsigned nth);

/* None fails any more. Has one failed? */
bool scarce_end(void);
