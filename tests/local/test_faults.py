"""Ends of all kinds in the middle of things: who survives is clean, and the next transfer works."""

import signal
import subprocess
import time

import pytest
from conftest import HELLO, Flow, hold, receiving

from daemon import until

pytestmark = pytest.mark.usefixtures("nothing_left")


def works(writer, target, hello):
    writer.rwctl("write", "b", hello)
    assert target.dump() == HELLO


def test_writer_killed(pair, hello):
    writer, target = pair
    flow = Flow(writer, target)
    writer.kill()
    status, said = flow.end()
    assert status == 3, said
    until(lambda: target.status()["connections"] == 0, what="the target to notice")
    assert receiving(target) == []
    writer.start()
    works(writer, target, hello)


def test_target_killed(pair, hello):
    writer, target = pair
    flow = Flow(writer, target)
    target.kill()
    status, said = flow.end()
    assert status == 1 and "rwctl: b (127.0.0.1:" in said, said
    until(lambda: writer.status()["connections"] == 0, what="the writer to be clean")
    target.start()
    works(writer, target, hello)


@pytest.mark.parametrize("sign, status", [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_rwctl_ended(pair, hello, sign, status):
    """The transfer ends on both sides, the daemons go on."""
    writer, target = pair
    flow = Flow(writer, target)
    flow.process.send_signal(sign)
    assert flow.end()[0] == status
    until(lambda: writer.status()["transfers"] == 0 and not receiving(target), what="the transfer to end")
    assert all(region["lastArrival"] is None for region in target.regions())
    works(writer, target, hello)


def test_deadline(pair, hello):
    writer, target = pair
    stream = hold(writer, target, "--timeout", "1s")
    assert stream.wait(timeout=30) == 4
    until(lambda: writer.status()["transfers"] == 0 and not receiving(target), what="the transfer to end")
    works(writer, target, hello)


def test_target_restarted_under_a_transfer(pair, tmp_path):
    """The connection is made again, with no word to rwctl but that."""
    writer, target = pair
    writer.configure(limits={"reconnect": "1min"})
    writer.rwctl("reload")
    data = bytes(range(256)) * 4096
    stream = hold(writer, target, "--name", "again")
    target.kill()
    target.start()
    until(lambda: receiving(target), what="the stream to be sent again")
    out, errors = stream.communicate(data, timeout=60)
    assert stream.returncode == 0, errors.decode()
    assert target.dump() == bytes(2 << 20) + data
    assert writer.status()["reconnects"] == 1


def test_target_restarted(pair, hello):
    writer, target = pair
    writer.rwctl("write", "b", hello)
    boot = target.status()["bootId"]
    target.stop()
    target.start()
    assert target.status()["bootId"] != boot
    works(writer, target, hello)


@pytest.mark.parametrize("who", ["writer", "target"])
def test_stopped_with_time_to_finish(pair, hello, who):
    """SIGTERM lets a running transfer end, and takes no new one."""
    writer, target = pair
    stopping = {"writer": writer, "target": target}[who]
    stopping.configure(limits={"stop": "30s"})
    stopping.rwctl("reload")
    stream = hold(writer, target, "--name", "last")
    stopping.process.terminate()
    until(lambda: stopping.status()["state"] == "stopping", what="it to be stopping")
    assert writer.refused("write", "b", hello)
    out, errors = stream.communicate(b"the rest", timeout=60)
    assert stream.returncode == 0, errors.decode()
    assert b"last -> b: arrived, 2097160 bytes" in out
    assert stopping.process.wait(timeout=30) == 0
    stopping.start()
    works(writer, target, hello)


@pytest.mark.parametrize("who", ["writer", "target"])
def test_stopped_for_good(pair, hello, who):
    """... but no longer than [limits] stop, here 2 s."""
    writer, target = pair
    stopping = {"writer": writer, "target": target}[who]
    flow = Flow(writer, target)
    began = time.monotonic()
    stopping.stop()
    assert 1 < time.monotonic() - began < 15
    status, said = flow.end()
    assert status == 1, said
    stopping.start()
    works(writer, target, hello)


def test_stopped_twice(pair, hello):
    """A second SIGTERM ends the wait."""
    writer, target = pair
    writer.configure(limits={"stop": "1h"})
    writer.rwctl("reload")
    flow = Flow(writer, target)
    writer.process.terminate()
    until(lambda: writer.status()["state"] == "stopping", what="it to be stopping")
    writer.stop()
    status, said = flow.end()
    assert status == 1, said
    writer.start()
    works(writer, target, hello)


def test_stopped_when_idle(pair):
    for daemon in pair:
        began = time.monotonic()
        daemon.stop()
        assert time.monotonic() - began < 10
        assert not daemon.socket.exists()
        daemon.start()


def test_connection_that_is_idle_is_closed(pair, hello):
    writer, target = pair
    for daemon in pair:
        daemon.configure(limits={"idle": "1s"})
        daemon.rwctl("reload")
    works(writer, target, hello)
    until(lambda: writer.status()["connections"] == target.status()["connections"] == 0, what="the end of it")
    assert [region["state"] for region in target.regions()] == ["lingering"]
    works(writer, target, hello)


@pytest.mark.parametrize("first", [0, 2 << 20], ids=["before its first byte", "later"])
def test_stream_may_pause(pair, first):
    """For longer than [limits] stall and idle, as long as its writer shows that it lives."""
    writer, target = pair
    for daemon in pair:
        daemon.configure(limits={"stall": "1s", "idle": "1s"})
        daemon.rwctl("reload")
    stream = writer.stream("b")
    stream.stdin.write(bytes(first))
    stream.stdin.flush()
    until(lambda: receiving(target), what="the stream to be on its way")
    with pytest.raises(subprocess.TimeoutExpired):
        stream.wait(timeout=3)
    out, errors = stream.communicate(b"and on it goes", timeout=60)
    assert stream.returncode == 0, errors.decode()
    assert f"arrived, {first + 14} bytes" in out.decode()


@pytest.mark.parametrize("who", ["writer", "target"])
def test_daemon_that_hangs(pair, hello, who):
    """The kernel still answers for it, but its beats are missing: the other one ends the connection."""
    writer, target = pair
    for daemon in pair:
        daemon.configure(limits={"beat": "200ms", "dead": "2s"})
        daemon.rwctl("reload")
    hanging, other = (writer, target) if who == "writer" else (target, writer)
    flow = Flow(writer, target)
    hanging.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: other.status()["connections"] == 0, what="the other one to notice")
    finally:
        hanging.process.send_signal(signal.SIGCONT)
    assert flow.end()[0] == 1
    works(writer, target, hello)
