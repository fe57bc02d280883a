"""guest.py DEVICE WHAT ROUNDS COUNT -- in the VM: prints the figures of one RDMA device as JSON

WHAT is bandwidth, of files of 64 MiB and as many writes of 1 MiB, or latency, of COUNT small writes.
"""

import json
import pathlib
import sys

import daemon
import ours
import others
from process import measure_all, named, one

DEVICE, WHAT, ROUNDS, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
NAME, ADDRESS = {"rxe": ("rxe0", "10.9.0.1"), "siw": ("siw0", "10.9.1.1")}[DEVICE]
VERBS = {"fabric": "verbs", "address": ADDRESS}
MEBIBYTES = 64
FILE = pathlib.Path("/dev/shm/file")
# Longer than anything pauses here: both sides of ib_write_lat spin, too.
SPIN = {"arrival": {"spin": "1s"}}


MEASUREMENTS = {
    "bandwidth": [
        (one("ib_write_bw"), lambda: others.write_bw(NAME, ADDRESS, MEBIBYTES)),
        (one("discard"), lambda: ours.into_discard(FILE, **VERBS)),
        (named("memory, new", "memory"), lambda: ours.into_memory(FILE, **VERBS)),
        (one("seam 1 MiB"), lambda: ours.fabric(1 << 20, 1, "verbs", ADDRESS)),
    ],
    "latency": [
        (one("ib_write_lat"), lambda: others.write_lat(NAME, ADDRESS, COUNT)),
        (one("seam ping-pong"), lambda: ours.fabric_latency(1, "verbs", ADDRESS)),
        (named("arrival", "small transfer"), lambda: ours.small_writes(COUNT, **VERBS, **SPIN)),
    ],
}


def main():
    FILE.write_bytes(daemon.pattern(MEBIBYTES << 20))
    rounds = measure_all(ROUNDS, f"{DEVICE}, {WHAT}", MEASUREMENTS[WHAT])
    json.dump([{f"{DEVICE} {name}": figure for name, figure in figures.items()} for figures in rounds], sys.stdout)


if __name__ == "__main__":
    main()
