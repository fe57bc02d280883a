/* age.h -- how long ago something was, in a table's few columns */

#pragma once

#define AGE_MAX 24

/* "4s", "3m", "2h", "5d" since an RFC 3339 UTC time; "" when it is none. Returns buf. */
const char *age_since(char buf[AGE_MAX], const char *time);
