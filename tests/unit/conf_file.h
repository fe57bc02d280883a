/* conf_file.h -- configurations under test, in a directory of their own, as seen by a host and user
 * of the test's choice; for programs linked with $(CONF_WRAPS)
 */

#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "conf/conf.h"

#define TEN     "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* What the host is called (testhost), and who the user is (1000). */
extern const char *host_name;
extern uid_t user;

/* What the last conf_load() printed. */
extern char *printed;
extern size_t printed_len;

/* Group setup and teardown: a directory to be in, with an empty conf.d. */
int conf_file_enter(void **state);
int conf_file_leave(void **state);

void write_file(const char *path, const void *bytes, size_t len);
/* conf_load() into printed; load_text() writes x.conf first; load_good() fails the test on any
 * mistake. */
int load(const char *path, struct conf **ret);
int load_text(const char *text, struct conf **ret);
struct conf *load_good(const char *text);
