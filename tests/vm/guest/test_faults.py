"""Ends of all kinds in the middle of things: who survives is clean, and the next transfer works."""

import signal
import subprocess
import time

import pytest

from rwriter import BIN, is_clean, pattern, rdma_objects, settle, until

MEBIBYTE = 1 << 20
BIG = 128 * MEBIBYTE


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "big.bin"
    path.write_bytes(pattern(BIG))
    return path


@pytest.fixture
def pair(make, small):
    """A target and a writer that have done one transfer and closed their connection."""
    target = make("b", sections={"region default": {"max-size": "256M"}, "limits": {"stop": "2s"}})
    writer = make("a", peers=[target], sections={"limits": {"stop": "2s", "reconnect": "0"}})
    writer.rwctl("write", "b", small)
    settle(writer, target)
    return writer, target


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.txt"
    path.write_bytes(b"Hello RDMA Write!")
    return path


def receiving(target):
    return [region for region in target.regions() if region["state"] == "receiving"]


def start_big(writer, target, big):
    """A transfer that is in full flight."""
    running = subprocess.Popen(
        [BIN / "rwctl", "--socket", writer.socket, "write", "b", big],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: receiving(target), what="the transfer to be on its way")
    assert running.poll() is None
    return running


def test_writer_killed(pair, big, small, device):
    writer, target = pair
    before = rdma_objects(device)
    running = start_big(writer, target, big)
    writer.kill()
    until(lambda: target.json("status")["connections"] == 0, what="the target to notice")
    assert receiving(target) == []
    writer.start()
    assert running.wait(timeout=60) == 0  # rwctl has passed its file again
    writer.rwctl("write", "b", small)
    assert target.rwctl("dump-region").stdout == small.read_bytes()
    settle(writer, target)
    until(lambda: rdma_objects(device) == before, what="no RDMA object to be left behind")


def test_target_killed(pair, big, small, device):
    writer, target = pair
    before = rdma_objects(device)
    running = start_big(writer, target, big)
    target.kill()
    _, said = running.communicate(timeout=30)
    assert running.returncode == 1, said.decode()
    assert b"b (" in said

    until(lambda: is_clean(writer), what="the writer to be clean")
    target.start()
    writer.rwctl("write", "b", small)
    assert target.rwctl("dump-region").stdout == small.read_bytes()
    settle(writer, target)
    until(lambda: rdma_objects(device) == before, what="no RDMA object to be left behind")


def test_target_restarted(pair, small):
    writer, target = pair
    writer.rwctl("write", "b", small)
    boot = target.json("status")["bootId"]
    assert target.stop() == 0
    target.start()
    assert target.json("status")["bootId"] != boot
    writer.rwctl("write", "b", small)
    assert target.rwctl("dump-region").stdout == small.read_bytes()


def test_writer_gives_up(pair):
    """Ctrl-C on rwctl: the transfer ends on both sides, the daemons go on."""
    writer, target = pair
    stream = writer.stream("b")
    stream.stdin.write(pattern(MEBIBYTE))
    stream.stdin.flush()
    until(lambda: receiving(target), what="the stream to be on its way")
    stream.send_signal(signal.SIGINT)
    assert stream.wait(timeout=10) == 130
    until(lambda: writer.json("status")["transfers"] == 0 and not receiving(target), what="the transfer to end")


def test_deadline(pair):
    writer, target = pair
    stream = writer.stream("b", "--timeout", "1s")
    stream.stdin.write(b"and then nothing")
    stream.stdin.flush()
    assert stream.wait(timeout=20) == 4
    until(lambda: writer.json("status")["transfers"] == 0 and not receiving(target), what="the transfer to end")


@pytest.mark.parametrize("who", ["writer", "target"])
def test_stopped_in_mid_transfer(pair, who):
    """SIGTERM waits for running transfers as long as [limits] stop says, and no longer."""
    writer, target = pair
    stream = writer.stream("b")
    stream.stdin.write(pattern(MEBIBYTE))
    stream.stdin.flush()
    until(lambda: receiving(target), what="the stream to be on its way")
    began = time.monotonic()
    assert {"writer": writer, "target": target}[who].stop() == 0
    assert time.monotonic() - began < 8
    stream.communicate(timeout=20)
    assert stream.returncode == 1


def test_stopped_when_idle(pair):
    for daemon in pair:
        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < 3
        assert not daemon.socket.exists()


def test_bad_configuration_is_not_taken(pair, small):
    writer, target = pair
    good = target.file.read_text()
    target.file.write_text(good + "[region default]\nno-such-key = 1\n")
    said = target.refused("reload")
    assert f"{target.file}:" in said and "no-such-key" in said
    writer.rwctl("write", "b", small)
    target.file.write_text(good)
    target.rwctl("reload")


def test_reload_under_load(pair, small):
    """What has begun goes on to its end, whatever is new in the configuration."""
    writer, target = pair
    stream, data = writer.stream("b", "--size", "8M"), b""
    for turn in range(4):
        piece = pattern(MEBIBYTE)
        stream.stdin.write(piece)
        stream.stdin.flush()
        data += piece
        until(lambda: receiving(target), what="the stream to be on its way")
        for daemon in pair:
            daemon.configure({"limits": {"idle": f"{60 + turn}s"}, "region default": {"max-size": f"{200 + turn}M"}})
            daemon.rwctl("reload")
    out, errors = stream.communicate(timeout=60)
    assert stream.returncode == 0, errors.decode()
    assert b"arrived, 4194304 bytes" in out
    assert target.rwctl("dump-region").stdout == data
    writer.rwctl("write", "b", small)


def test_connection_ended_by_the_operator(pair, small):
    writer, target = pair
    writer.rwctl("write", "b", small)
    target.rwctl("disconnect", "a")
    until(lambda: target.json("status")["connections"] == 0, what="no connections")
    region = target.regions()[0]["id"]
    target.rwctl("release", str(region))
    assert region not in [r["id"] for r in target.regions()]
    writer.rwctl("write", "b", small)
