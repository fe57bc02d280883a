"""guest.py DEVICE WHAT ROUNDS COUNT -- in the VM: prints the figures of one RDMA device as JSON

WHAT is bandwidth, of files of 64 MiB and as many writes of 1 MiB, or latency, of COUNT small writes.
"""

import json
import pathlib
import sys

import daemon
import ours
import others

DEVICE, WHAT, ROUNDS, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
NAME, ADDRESS = {"rxe": ("rxe0", "10.9.0.1"), "siw": ("siw0", "10.9.1.1")}[DEVICE]
VERBS = {"fabric": "verbs", "address": ADDRESS}
MEBIBYTES = 64
FILE = pathlib.Path("/dev/shm/file")
# Longer than anything pauses here: both sides of ib_write_lat spin, too.
SPIN = {"arrival": {"spin": "1s"}}


def bandwidth():
    figures = {"ib_write_bw": others.write_bw(NAME, ADDRESS, MEBIBYTES)}
    figures["discard"] = ours.into_discard(FILE, **VERBS)
    figures["memory, new"], figures["memory"] = ours.into_memory(FILE, **VERBS)
    figures["seam 1 MiB"] = ours.fabric(1 << 20, 1, "verbs", ADDRESS)
    return figures


def latency():
    figures = {"ib_write_lat": others.write_lat(NAME, ADDRESS, COUNT)}
    figures["seam ping-pong"] = ours.fabric_latency(1, "verbs", ADDRESS)
    figures["arrival"], figures["small transfer"] = ours.small_writes(COUNT, **VERBS, **SPIN)
    return figures


def main():
    FILE.write_bytes(daemon.pattern(MEBIBYTES << 20))
    measure = {"bandwidth": bandwidth, "latency": latency}[WHAT]
    rounds = []
    for number in range(ROUNDS):
        print(f"{DEVICE} {WHAT}: round {number + 1} of {ROUNDS}", file=sys.stderr, flush=True)
        rounds.append({f"{DEVICE} {name}": figure for name, figure in measure().items()})
    json.dump(rounds, sys.stdout)


if __name__ == "__main__":
    main()
