/* contract.c -- runs the contract */

#include "config.h"

#include <stdio.h>

#include "base/text.h"
#include "contract/bench.h"
#include "contract/contract.h"

int
contract_run(const char *title, const struct fabric_ops *ops, const char *address)
{
	static const struct {
		const char *name;
		int (*run)(const char *title);
	} groups[] = {
	    {"connect", contract_connect},
	    {"write", contract_write},
	    {"end", contract_end},
	};
	struct sockaddr_storage sa;
	int failed = 0;

	if (text_parse_address(address, 0, &sa) < 0) {
		fprintf(stderr, "%s: not a numeric address\n", address);
		return 1;
	}
	bench_use(ops, &sa);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		char text[128];

		snprintf(text, sizeof(text), "%s: %s", title, groups[i].name);
		failed += groups[i].run(text);
	}
	return failed;
}
