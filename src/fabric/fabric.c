/* fabric.c -- what all fabrics share */

#include "config.h"

#include "fabric/fabric.h"

static const char *const CAUSES[] = {
    [FABRIC_CAUSE_LOCAL] = "local",
    [FABRIC_CAUSE_REFUSED] = "refused",
    [FABRIC_CAUSE_PEER] = "peer",
    [FABRIC_CAUSE_REMOTE_ACCESS] = "remote access error",
    [FABRIC_CAUSE_TIMEOUT] = "timeout",
    [FABRIC_CAUSE_DEVICE] = "device",
    [FABRIC_CAUSE_PROTOCOL] = "protocol",
    [FABRIC_CAUSE_UNKNOWN] = "unknown",
};

const char *
fabric_cause_name(enum fabric_cause cause)
{
	return CAUSES[cause];
}
