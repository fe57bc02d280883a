/* contract_verbs.c -- the contract over verbs: contract_verbs ADDRESS, of an interface with a
 * device */

#include "config.h"

#include <stdio.h>

#include "contract/contract.h"

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
		return 2;
	}
	return contract_run(argv[1], &fabric_verbs, argv[1]);
}
