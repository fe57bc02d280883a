/* main.c -- rwriterd: the daemon with the fabrics that this build has */

#include "config.h"

#include "daemon/daemon.h"
#include "fabric/fabric.h"

int
main(int argc, char **argv)
{
	return daemon_main(argc, argv, fabric_builtin);
}
