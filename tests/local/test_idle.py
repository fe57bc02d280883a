"""A daemon with nothing to do sleeps."""

import time
from pathlib import Path

SECONDS = 3


def wake_ups(daemon):
    """How often a thread of the daemon has gone to sleep so far."""
    count = 0
    for status in Path(f"/proc/{daemon.process.pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                count += int(line.split()[1])
    return count


def while_waiting(*daemons):
    time.sleep(1)  # what was just done dies down
    before = [wake_ups(daemon) for daemon in daemons]
    time.sleep(SECONDS)
    return [wake_ups(daemon) - count for daemon, count in zip(daemons, before)]


def test_without_connections(make):
    target = make("b")
    assert while_waiting(target) == [0]


def test_without_what_it_asks_for(make):
    """Neither an RDMA device nor one of its addresses is there: the kernel will tell when they come."""
    listen = {"address": ["127.0.0.1", "192.0.2.77"]}
    target = make("b", fabric="auto", listen=listen, limits={"retry": "10ms"})
    down = [listener["detail"] for listener in target.status()["listeners"] if not listener["up"]]
    assert len(down) == 3 and "192.0.2.77 is not an address of this machine" in down
    assert while_waiting(target) == [0]


def test_after_a_connection(make, hello):
    target = make("b")
    writer = make("a", peers=[target])
    writer.rwctl("write", "b", hello)
    writer.rwctl("disconnect", "b")
    assert while_waiting(writer, target) == [0, 0]


def test_with_idle_connections(make, hello):
    """Only the beats, own ones and those of the peer."""
    beats = SECONDS * 4
    target = make("b", limits={"beat": "250ms"})
    writer = make("a", peers=[target], limits={"beat": "250ms"})
    writer.rwctl("write", "b", hello)
    for count in while_waiting(writer, target):
        assert beats / 2 <= count <= 3 * beats
