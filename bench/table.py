"""table.py -- what is compared with what, and what the ratio should be

A figure is (measurement, what): the measurement is a name from native.py or guest.py, where {device} stands for each
device of the VM; what is one of the keys that the functions of ours.py and others.py return.
"""

from collections import namedtuple

# sense: whether the ratio should be at least, or at most, what is wanted; None: nobody asked for anything.
Ratio = namedtuple("Ratio", "title ours theirs sense wanted", defaults=(None, None))

AT_LEAST, AT_MOST = ">=", "<="

RATIOS = [
    ("Over TCP, fabric iwarp", [
        Ratio("discard / iperf3", ("discard", "rate"), ("iperf3", "rate"), AT_LEAST, 0.7),
        Ratio("discard / iperf3, core-seconds", ("discard", "cpu"), ("iperf3", "cpu"), AT_MOST, 1.6),
        Ratio("discard / ucx put", ("discard", "rate"), ("ucx put", "rate"), AT_LEAST, 2),
        Ratio("spool / socat 1 MiB", ("spool", "command"), ("socat 1 MiB", "rate"), AT_LEAST, 1),
        Ratio("spool / rsync", ("spool", "command"), ("rsync", "rate")),
        Ratio("discard, mpa-crc = no / iperf3", ("discard, mpa-crc = no", "rate"), ("iperf3", "rate")),
        Ratio("memory, new / iperf3", ("memory, new", "rate"), ("iperf3", "rate")),
        Ratio("memory, again / iperf3", ("memory, again", "rate"), ("iperf3", "rate")),
        Ratio("discard / iperf3 as set here", ("discard", "rate"), ("iperf3 as set here", "rate")),
        Ratio("256 MiB, memory, new / socat", ("256 MiB memory, new", "command"), ("256 MiB socat", "rate"),
              AT_LEAST, 3),
        Ratio("256 MiB, memory, new / socat 1 MiB", ("256 MiB memory, new", "command"), ("256 MiB socat 1 MiB", "rate"),
              AT_LEAST, 0.9),
        Ratio("256 MiB, memory, again / socat", ("256 MiB memory, again", "command"), ("256 MiB socat", "rate")),
        Ratio("256 MiB, memory, again / socat 1 MiB", ("256 MiB memory, again", "command"),
              ("256 MiB socat 1 MiB", "rate")),
        Ratio("seam, 64 KiB / iperf3", ("seam 64 KiB", "rate"), ("iperf3", "rate"), AT_LEAST, 0.7),
        Ratio("seam, 1 MiB / iperf3", ("seam 1 MiB", "rate"), ("iperf3", "rate"), AT_LEAST, 0.7),
        Ratio("seam, 1 MiB / iperf3 1 MiB", ("seam 1 MiB", "rate"), ("iperf3 1 MiB", "rate")),
        Ratio("seam ping-pong / TCP ping-pong", ("seam ping-pong", "latency"), ("TCP ping-pong", "latency")),
        Ratio("arrival / TCP ping-pong", ("arrival", "latency"), ("TCP ping-pong", "latency")),
    ]),
    ("Over {device}, in the VM", [
        Ratio("{device}: discard / ib_write_bw", ("{device} discard", "rate"), ("{device} ib_write_bw", "rate"),
              AT_LEAST, 0.9),
        Ratio("{device}: memory / ib_write_bw", ("{device} memory", "rate"), ("{device} ib_write_bw", "rate"),
              AT_LEAST, 0.9),
        Ratio("{device}: seam, 1 MiB / ib_write_bw", ("{device} seam 1 MiB", "rate"), ("{device} ib_write_bw", "rate")),
        Ratio("{device}: seam ping-pong / ib_write_lat", ("{device} seam ping-pong", "latency"),
              ("{device} ib_write_lat", "latency")),
        Ratio("{device}: arrival / ib_write_lat", ("{device} arrival", "latency"), ("{device} ib_write_lat", "latency"),
              AT_MOST, 1.5),
    ]),
]

# Wanted of a figure by itself.
ZERO = [("no wake-ups without connections", ("idle", "wake-ups"))]

# What a figure is counted in, and how it is printed.
Unit = namedtuple("Unit", "name scale digits")
UNITS = {
    "rate": Unit("GB/s", 1, 3),
    "command": Unit("GB/s", 1, 3),
    "cpu": Unit("core-s/GB", 1, 2),
    "writer's loop": Unit("core-s/GB", 1, 2),
    "target's loop": Unit("core-s/GB", 1, 2),
    "latency": Unit("us", 1e6, 1),
    "latency 99": Unit("us", 1e6, 1),
    "wake-ups": Unit("/s", 1, 2),
    "RSS": Unit("KiB", 1 / 1024, 1),
    "PSS": Unit("KiB", 1 / 1024, 1),
    "connections": Unit("/s", 1, 0),
}

DEVICES = ("rxe", "siw")
