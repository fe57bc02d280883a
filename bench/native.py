"""native.py WORK ROUNDS SIZE CONGESTION -- what needs no RDMA device: prints the figures of so many rounds as JSON

WORK is a directory in memory for the files, SIZE that of the large one in MiB, CONGESTION the congestion control that
this machine uses where nobody asks for another. Everything in the table is measured once in each round, one after the
other, so that what is compared stands close together.
"""

import ctypes
import json
import mmap
import pathlib
import sys
import time

import daemon
import ours
import others
from process import measure_all, named, one

WORK, ROUNDS, SIZE = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) << 20
AS_SET_HERE = sys.argv[4]

SMALLER = min(SIZE, 256 << 20)
SECONDS = 2 if ROUNDS > 1 else 0.5  # of what runs for a time
COUNT = 1000 if ROUNDS > 1 else 300  # of what is done so many times

LARGE_FILE, SMALLER_FILE, TARGET, SPOOL = (WORK / name for name in ("large", "smaller", "target", "spool"))
MIB = "-b1048576"


def touch():
    """Filling new memory, and filling it again: the difference is what its pages cost on this machine."""
    with mmap.mmap(-1, SMALLER) as memory:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        times = [time.thread_time()]
        for value in 1, 2:
            ctypes.memset(address, value, SMALLER)
            times.append(time.thread_time())
    return [{"cpu": (after - before) / (SMALLER / 1e9)} for before, after in zip(times, times[1:])]


MEASUREMENTS = [
    (one("iperf3"), lambda: others.iperf3(SIZE)),
    (one("discard"), lambda: ours.into_discard(LARGE_FILE)),
    (one("discard, mpa-crc = no"), lambda: ours.into_discard(LARGE_FILE, iwarp={"mpa-crc": "no"})),
    (one("ucx put"), lambda: others.ucx_put(SIZE)),
    (named("memory, new", "memory, again"), lambda: ours.into_memory(LARGE_FILE)),
    (one("socat 1 MiB"), lambda: others.socat(LARGE_FILE, TARGET, MIB)),
    (one("spool"), lambda: ours.into_spool(LARGE_FILE, SPOOL)),
    (one("rsync"), lambda: others.rsync(LARGE_FILE, TARGET)),
    (one("256 MiB socat"), lambda: others.socat(SMALLER_FILE, TARGET)),
    (named("256 MiB memory, new", "256 MiB memory, again"), lambda: ours.into_memory(SMALLER_FILE)),
    (named("first touch of memory", "second touch of memory"), touch),
    (one("256 MiB socat 1 MiB"), lambda: others.socat(SMALLER_FILE, TARGET, MIB)),
    (one("seam 64 KiB"), lambda: ours.fabric(64 << 10, SECONDS)),
    (one("seam 1 MiB"), lambda: ours.fabric(1 << 20, SECONDS)),
    (one("iperf3 1 MiB"), lambda: others.iperf3(SIZE, "-l", "1M")),
    (one("iperf3 as set here"), lambda: others.iperf3(SIZE, "-C", AS_SET_HERE)),
    (one("TCP ping-pong"), lambda: others.tcp_latency(1)),
    (one("seam ping-pong"), lambda: ours.fabric_latency(SECONDS / 2)),
    (named("arrival", "small transfer"), lambda: ours.small_writes(COUNT)),
    (dict, lambda: ours.crowd(2 * SECONDS, 5)),
]


def main():
    SPOOL.mkdir()
    for file, size in (LARGE_FILE, SIZE), (SMALLER_FILE, SMALLER):
        file.write_bytes(daemon.pattern(size))
    json.dump(measure_all(ROUNDS, "natively", MEASUREMENTS), sys.stdout)


if __name__ == "__main__":
    main()
