/* contract_iwarp.c -- the contract over iwarp: IPv4 and IPv6, with CRCs and without, among rwriters
 * (large FPDUs) and among strangers (an FPDU a segment) */

#include "config.h"

#include "contract/bench.h"
#include "contract/contract.h"

int
main(void)
{
	struct fabric_options no_crc = FABRIC_OPTIONS_DEFAULTS;
	int failed;

	no_crc.mpa_crc = false;
	failed = contract_run("contract: iwarp among strangers", &fabric_iwarp, "127.0.0.1");
	bench_mood(NULL, true);
	failed += contract_run("contract: iwarp, IPv6", &fabric_iwarp, "::1");
	bench_mood(&no_crc, true);
	failed += contract_run("contract: iwarp without CRCs", &fabric_iwarp, "127.0.0.1");
	return failed;
}
