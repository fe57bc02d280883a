/* complete.h -- completes what was read, and checks it whole */

#pragma once

#include "conf/loader.h"

/* Adds [listen default] if there is no other, [region default] and every default; then checks what
 * one line alone cannot show. Errors go to loader_complain(). */
void complete(struct loader *l);
