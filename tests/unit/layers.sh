#!/bin/bash
# layers.sh -- scripts/layers accepts the source as it is, and catches each kind of violation
set -uo pipefail

root=$(realpath "$(dirname "$0")/../..")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cases=0
failed=0

verdict() { # status, title
	cases=$((cases + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $cases - $2"
	else
		echo "not ok $cases - $2"
		failed=1
	fi
}

# A tree of one file with one #include: is it complained about, by name and line?
refused() { # file, include
	local said
	rm -rf "$tree/src"
	mkdir -p "$tree/src/${1%/*}"
	printf '#include "config.h"\n#include %s\n' "$2" >"$tree/src/$1"
	said=$("$root/scripts/layers" "$tree" 2>&1)
	[ $? -eq 1 ] && [[ $said == "src/$1:2: "* ]]
	verdict $? "$1 must not include $2"
}

"$root/scripts/layers"
verdict $? "the source keeps to its floors and fences"

refused core/peer.c '"control/varlink.h"'
refused wire/rwp.c '"loop/loop.h"'
refused base/log.h '"core/core.h"'
refused rwctl/main.c '"wire/rwp.h"'
refused daemon/daemon.c '"rwctl/call.h"'
refused daemon/daemon.c '"daemon.h"'
refused extra/thing.c '"base/log.h"'
refused core/core.c '<event2/event.h>'
refused loop/work.c '<event2/event.h>'
refused core/region.c '<infiniband/verbs.h>'
refused daemon/daemon.c '<systemd/sd-daemon.h>'
refused wire/rwp.c '<isa-l/crc.h>'
refused core/core.c '<jansson.h>'
refused core/keyring.c '<openssl/evp.h>'
echo "1..$cases"
exit $failed
