"""More strangers than there is room for, and strangers without end. Beside them a real daemon's transfer
finishes, and when they have gone nothing of them is left."""

import contextlib
import socket
import time

import iwarp
import pytest
import rwp
from conftest import is_told

from daemon import pattern, until, until_like

CROWD, ROOM = 200, 64
SIZE = 8 << 20


@pytest.fixture(scope="module")
def target(standing):
    return standing(
        "b",
        region={"size": "64K"},
        limits={"connections": ROOM, "unproven": ROOM, "hello": "3s", "setup": "3s", "beat": "10s", "dead": "60s"},
    )


@pytest.fixture(scope="module")
def writer(standing, target):
    return standing("a", peers=[target])


@pytest.fixture
def running(target, writer, canary):
    """A transfer of another daemon that is under way during the test, and ends well after it."""
    data = pattern(SIZE)
    before = [target.footprint(), writer.footprint()]
    stream = writer.stream("b", "--size", f"{SIZE}")
    stream.stdin.write(data[: SIZE // 2])
    stream.stdin.flush()
    until(lambda: any(r["state"] == "receiving" and r["claimedName"] == "a" for r in target.regions()))
    yield stream
    stream.stdin.write(data[SIZE // 2 :])
    said, errors = stream.communicate(timeout=60)
    assert stream.returncode == 0, errors.decode()
    (region,) = [region["id"] for region in target.regions() if region["claimedName"] == "a"]
    assert target.dump(str(region)) == data
    writer.rwctl("disconnect", "b")
    until(lambda: writer.status()["connections"] == 0)
    target.rwctl("release", str(region))
    until_like(before, target, writer)


@pytest.fixture
def crowd(target):
    """A function that makes them, with all that is made of each; they go with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda make: [stack.enter_context(make()) for _ in range(CROWD)]


def busy(writer):
    """Rejected, with a word of when to come again."""
    reject = rwp.parse_reject(writer.setup.private)
    assert (reject.reason, reject.retry_after) == (rwp.BUSY, 1000)
    return reject.text


def connect(target):
    return rwp.Writer((target.address, target.port), name="stranger")


def test_too_many_without_hello(target, running, crowd):
    """HELLO never comes: as many as may be in the set-up at once wait for their end, the others hear that at once."""
    strangers = crowd(lambda: connect(target))
    rejected = [stranger for stranger in strangers if stranger.setup.flags & iwarp.REJECT]
    assert len(rejected) == CROWD - ROOM and target.status()["unproven"] == ROOM
    assert {busy(stranger) for stranger in rejected} == {"64 of 64 connections are being set up ([limits] unproven)"}
    for stranger in strangers:
        assert stranger.connection.last_words() is None
    assert target.status()["unproven"] == 0


def test_too_many_with_hello(target, running, crowd):
    """Those that are granted a region hold all the room that the canary and the transfer have left."""

    def come():
        stranger = connect(target)
        if not stranger.setup.flags & iwarp.REJECT:
            assert stranger.hello()[0].type == rwp.GRANT
        return stranger

    rejected = [stranger for stranger in crowd(come) if stranger.grant is None]
    assert len(rejected) == CROWD - ROOM + 2
    assert {busy(stranger) for stranger in rejected} == {"64 of 64 connections in use ([limits] connections)"}
    assert target.status()["connections"] == ROOM


def test_too_many_that_say_nothing_at_all(target, running, crowd):
    """TCP, and no word of MPA: those that came first make room."""
    silent = crowd(lambda: socket.create_connection((target.address, target.port), 30))
    with connect(target) as stranger:
        assert stranger.hello()[0].type == rwp.GRANT
        stranger.bye()
    for connection in silent[: CROWD - ROOM]:
        assert connection.recv(1) == b""
    for connection in silent:
        assert connection.recv(1) == b""


def test_slow_hello(target, running):
    """It comes, byte by byte, and does not put off its deadline."""
    with connect(target) as stranger:
        began = time.monotonic()
        data = rwp.record(rwp.HELLO, 1)
        with pytest.raises((iwarp.Ended, OSError)):
            for byte in range(1000):
                stranger.write_tail(rwp.RING + byte % 56, data[byte % 56 : byte % 56 + 1])
                with contextlib.suppress(TimeoutError):
                    stranger.turn(timeout=0.05)
        assert 2 < time.monotonic() - began < 20


def test_slow_request(target, running):
    """The same, before there is a connection of RWP at all."""
    request = iwarp.setup_frame(iwarp.REQUEST, rwp.request(1, 0))
    with socket.create_connection((target.address, target.port), 0.05) as stranger:
        began, end = time.monotonic(), None
        for byte in request * 10:
            with contextlib.suppress(TimeoutError):
                stranger.send(bytes([byte]))
                end = stranger.recv(1)
                break
        assert end == b"" and 2 < time.monotonic() - began < 20


def test_records_without_end(make):
    """Records that are known to nobody are skipped for as long as there is credit, but they are no transfer: the
    connection is idle, and ends. Others have their turns meanwhile."""
    target = make("b", region={"size": "64K"}, limits={"idle": "1500ms"})
    with connect(target) as stranger, connect(target) as other:
        stranger.hello()
        other.hello()
        began, answered = time.monotonic(), 0
        with contextlib.suppress(iwarp.Ended, OSError):
            while rwp.NOTICE not in records(stranger):
                for _ in range(32):
                    stranger.put(200)
                other.one(b"a good one")
                assert other.result()[0].length == rwp.ARRIVED
                answered += 1
        assert 1 < time.monotonic() - began < 20 and answered > 3
        is_told(stranger, rwp.IDLE)


def records(writer):
    """The types of what lies in its mailbox and was not read yet."""
    slots = range(rwp.RING, rwp.RING + rwp.SLOT * rwp.MAILBOX_RECORDS, rwp.SLOT)
    return {writer.mailbox[slot] for slot in slots[writer.got :]}


def test_message_without_end(target, running):
    """Segments of one message that never says that it is the last one fill the region, and not more."""
    with connect(target) as stranger:
        stranger.hello()
        at, stag, size = (stranger.grant[kind] for kind in (rwp.GRANT_ADDRESS, rwp.RKEY, rwp.SIZE_TLV))
        for offset in range(0, size, 4096):
            stranger.connection.send(iwarp.write(stag, at + offset, bytes(4096), last=False))
        segment = iwarp.write(stag, at + size, bytes(1), last=False)
        stranger.connection.send(segment)
        words = stranger.connection.last_words()
    assert words == iwarp.terminate_about(1, 1, 1, segment)[iwarp.UNTAGGED_HEADER :]
