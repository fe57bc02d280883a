/* contract_fake.c -- the contract over the fake, in all its moods */

#include "config.h"

#include "contract/contract.h"
#include "fake/fake.h"

int
main(void)
{
	int failed = contract_run("contract: fake", &fabric_fake, "127.0.0.1");

	fake.hints = fake.iwarp = true;
	failed += contract_run("contract: fake that is like siw", &fabric_fake, "::1");

	fake = FAKE_DEFAULTS;
	fake.depth = FABRIC_WRITES_MAX;
	fake.batch = 1;
	fake.turn_bytes = 3001;
	fake.late_established = fake.late_mem = 3;
	failed += contract_run("contract: fake that is slow", &fabric_fake, "127.0.0.1");
	return failed;
}
