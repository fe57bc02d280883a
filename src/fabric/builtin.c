/* builtin.c -- the fabrics of this build; apart from fabric.c so that tests link none of them */

#include "config.h"

#include <stddef.h>

#include "fabric/fabric.h"

const struct fabric_ops *const fabric_builtin[] = {&fabric_verbs, &fabric_iwarp, NULL};
