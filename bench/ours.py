"""ours.py -- rwriter, measured: each function does it once, with daemons that it starts itself

What they return is {what: figure}, as in others.py.
"""

import contextlib
import json
import os
import re
import socket
import statistics
import time

from process import children_cpu, living_cpu, memory, run, sleeps

import daemon

SMALL = 64  # bytes of a small write
IDLE = 64  # connections
AT_ONCE = 32  # of them are made; a user may have 64 control sockets
LIMITS = {"pinned-memory": "4G", "idle": "10min"}
OF_BOTH = ("arrival", "iwarp")  # sections that both daemons have


@contextlib.contextmanager
def daemons(fabric="iwarp", address="127.0.0.1", peers=1, **sections):
    """a, which writes to b under the names b0, b1 and so on: each is a connection of its own."""
    options = {"fabric": fabric, "address": address, "limits": LIMITS}
    b = daemon.Daemon("b", **options, **sections)
    b.start()
    a = daemon.Daemon("a", **options, **{key: value for key, value in sections.items() if key in OF_BOTH})
    for number in range(peers):
        a.add_peer(b, f"b{number}")
    a.configure()
    a.start()
    try:
        yield a, b
        a.stop()
        b.stop()
    finally:
        a.kill()
        b.kill()


# ---- files ----


def cpu(*processes):
    return children_cpu() + sum(living_cpu(one.process.pid) for one in processes)


def loop_cpu(one):
    """Of its loop alone, which is its main thread: one core cannot do more than that."""
    return living_cpu(f"{one.process.pid}/task/{one.process.pid}")


def write(a, b, file, region="default"):
    """One `rwctl write`. rate is what it tells itself, command that of the whole command."""
    size = file.stat().st_size
    used, loops, began = cpu(a, b), [loop_cpu(a), loop_cpu(b)], time.monotonic()
    said = a.rwctl("--json", "write", "--quiet", "--region", region, "b0", file).stdout
    seconds = time.monotonic() - began
    used = cpu(a, b) - used
    loops = [(loop_cpu(one) - before) / (size / 1e9) for one, before in zip((a, b), loops)]
    transfer = json.loads(said)["transfer"]
    assert transfer["resumed"] == transfer["sentAgain"] == 0, transfer
    return {
        "rate": size / transfer["durationNs"],
        "command": size / 1e9 / seconds,
        "cpu": used / (size / 1e9),
        "writer's loop": loops[0],
        "target's loop": loops[1],
    }


def warm_up(a, b, file, region):
    """A shorter file makes the connection, and touches the memory on its way."""
    shorter = file.with_name("shorter")
    if not shorter.exists():
        shorter.write_bytes(daemon.pattern(16 << 20))
    write(a, b, shorter, region)


def into_discard(file, **options):
    with daemons(**options, **{"region discard": {"sink": "discard"}}) as pair:
        warm_up(*pair, file, "discard")
        return write(*pair, file, "discard")


def into_memory(file, **options):
    """Into a region that is made for it, and again into the same."""
    with daemons(**options, region={"max-size": "1G"}) as pair:
        return write(*pair, file), write(*pair, file)


def into_spool(file, directory, **options):
    """Into an empty directory: a file that is there already would not be sent."""
    sections = {"region spool": {"sink": "spool", "directory": directory, "free": "0"}}
    try:
        with daemons(**options, **sections) as pair:
            warm_up(*pair, file, "spool")
            return write(*pair, file, "spool")
    finally:
        for stored in directory.iterdir():
            stored.unlink()


# ---- small writes ----


class Caller:
    """A control socket that stays open, so that a call costs neither a process nor a connection."""

    def __init__(self, owner):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(owner.socket))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, method, fds=(), **parameters):
        message = json.dumps({"method": f"io.rwriter.{method}", "parameters": parameters}).encode() + b"\0"
        socket.send_fds(self.socket, [message], fds)

    def answer(self):
        said = b""
        while not said.endswith(b"\0"):
            said += self.socket.recv(1 << 20)
        said = json.loads(said[:-1])
        assert "error" not in said, said
        return said["parameters"]

    def call(self, method, fds=(), **parameters):
        self.send(method, fds, **parameters)
        return self.answer()


def quantiles(times):
    cuts = statistics.quantiles(times, n=100)
    return {"latency": statistics.median(times), "latency 99": cuts[98]}


def round_trip(flight):
    """From the moment that a transfer's bytes and record go to the fabric to that of the target's answer: a line that
    says so, or the result."""
    at = {phase["phase"]: phase["atNs"] for phase in flight["phases"]}
    return (at.get("verify", at["result"]) - at["first byte"]) / 1e9


def small_writes(count, **options):
    """One small file after the other into memory. Half a round trip is what an arrival takes: the target sees the
    record, verifies the bytes and writes its answer, which the writer must see. The other is the whole transfer, from
    the call of rwctl to the result."""
    with daemons(**options) as (a, _), Caller(a) as caller, open(os.memfd_create("small"), "r+b", buffering=0) as file:
        file.write(bytes(SMALL))
        for _ in range(20):
            caller.call("Write", [file.fileno()], peer="b0", name="small")
        whole, halves = [], []
        for done in range(count):
            whole.append(caller.call("Write", [file.fileno()], peer="b0", name="small")["transfer"]["durationNs"] / 1e9)
            if done % 200 == 199 or done == count - 1:  # the daemon keeps the last 256
                flights = [f for f in caller.call("Explain")["flights"] if f["direction"] == "out"]
                halves += [round_trip(flight) / 2 for flight in flights[-(done % 200 + 1) :]]
        return quantiles(halves), quantiles(whole)


# ---- the seam ----


def fabric(size, seconds, name="iwarp", address="127.0.0.1"):
    bench = daemon.BIN / "bench" / "fabric_bench"
    said = run(bench, name, address, daemon.free_port(), seconds, size).said
    return {"rate": float(re.search(r"([\d.]+) GB/s", said)[1])}


def fabric_latency(seconds, name="iwarp", address="127.0.0.1"):
    """Half a round trip of flags of 8 bytes."""
    bench = daemon.BIN / "bench" / "fabric_bench"
    said = run(bench, name, address, daemon.free_port(), seconds, 0).said
    median, below = re.search(r"median ([\d.]+) us, 99 percent below ([\d.]+)", said).groups()
    return {"latency": float(median) / 1e6, "latency 99": float(below) / 1e6}


# ---- connections ----


def connect_all(a, file):
    """A small file to each peer, over a connection of its own: seconds until all have arrived."""
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Caller(a)) for _ in range(AT_ONCE)]
        began = time.monotonic()
        for begin in range(0, IDLE, AT_ONCE):
            for number, caller in enumerate(callers, begin):
                caller.send("Write", [file.fileno()], peer=f"b{number}", name="small")
            for caller in callers:
                caller.answer()
        return time.monotonic() - began


def disconnect_all(a, b):
    for number in range(IDLE):
        a.call("Disconnect", peer=f"b{number}")
    daemon.until(lambda: a.status()["connections"] == b.status()["connections"] == 0, what="the connections to end")


def woken(seconds, *processes):
    """How often a second the threads of each are woken."""
    time.sleep(1.5)  # what was just done dies down
    before = [sleeps(one.process.pid) for one in processes]
    time.sleep(seconds)
    return [(sleeps(one.process.pid) - count) / seconds for one, count in zip(processes, before)]


def crowd(seconds, rounds, **options):
    """IDLE connections: how fast they are made, what they cost when they are idle, and what is left without them."""
    tiny = {"size": "4K", "max-size": "4K", "linger": "0", "keep": "0"}
    with daemons(**options, peers=IDLE, region=tiny) as (a, b), open(os.memfd_create("small"), "r+b", 0) as file:
        file.write(bytes(SMALL))
        connect_all(a, file)
        disconnect_all(a, b)
        none = woken(seconds, a, b)
        empty = [memory(one.process.pid) for one in (a, b)]
        took = [connect_all(a, file)]
        full = [memory(one.process.pid) for one in (a, b)]
        many = woken(seconds, a, b)
        for _ in range(rounds - 1):
            disconnect_all(a, b)
            took.append(connect_all(a, file))
    grown = [[(now - then) / IDLE for now, then in zip(*pair)] for pair in zip(full, empty)]
    return {
        "connections": {"rate": IDLE / statistics.median(took)},
        "idle": {"wake-ups": sum(none)},
        "idle connection": {"wake-ups": sum(many) / IDLE},
        "memory of the writer": {"RSS": grown[0][0], "PSS": grown[0][1]},
        "memory of the target": {"RSS": grown[1][0], "PSS": grown[1][1]},
    }
