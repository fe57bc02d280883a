"""How a connection begins, done wrongly: MPA's request, and the request of RWP in it."""

import time

import iwarp
import pytest
import rwp
from iwarp import CRC, ENHANCED, MARKERS, REJECT, REPLY, REQUEST, setup_frame

GOOD = rwp.request(0xC0FFEE, 0x1000)


@pytest.fixture
def raw(target):
    """A plain connection."""
    with iwarp.Connection((target.address, target.port)) as connection:
        yield connection


@pytest.mark.parametrize(
    "request_",
    [
        setup_frame(REPLY, GOOD),
        setup_frame(b"MPA ID Req Frams", GOOD),
        b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
        b"\x16\x03\x01" + bytes(100),
        setup_frame(REQUEST, GOOD, revision=0),
        setup_frame(REQUEST, GOOD, revision=3),
        setup_frame(REQUEST, GOOD, revision=255),
        setup_frame(REQUEST, bytes(509)),
        REQUEST + bytes([CRC | ENHANCED, 2, 0xFF, 0xFF]) + bytes(2000),
        REQUEST + bytes([CRC | ENHANCED, 2, 0, 3]) + bytes(3),
        setup_frame(REQUEST, GOOD) + b"x",
        setup_frame(REQUEST, GOOD) + iwarp.fpdu(iwarp.write(1, 0)),
    ],
    ids="reply-key wrong-key http tls revision-0 revision-3 revision-255 data-513 data-65535 enhanced-3 "
    "extra-byte extra-frame".split(),
)
def test_ends_without_an_answer(raw, request_):
    """Bad frames of the set-up: the connection is closed, and nothing is said (RFC 5044, 8)."""
    raw.raw(request_)
    with pytest.raises(iwarp.Ended, match="nothing"):
        raw.receive_setup()


@pytest.mark.parametrize("flags, revision", [(ENHANCED, 2), (0, 1)])
def test_markers_are_refused(raw, flags, revision):
    reply = raw_reply(raw, setup_frame(REQUEST, GOOD, flags=MARKERS | CRC | flags, revision=revision))
    assert reply.revision == revision and reply.flags & (MARKERS | REJECT | ENHANCED) == REJECT | flags
    assert raw.last_words() is None


def raw_reply(raw, request):
    raw.raw(request)
    return raw.receive_setup()


@pytest.mark.parametrize(
    "private, reason",
    [
        (b"", rwp.PROTOCOL),
        (b"hello", rwp.PROTOCOL),
        (bytes(56), rwp.PROTOCOL),
        (GOOD[:55], rwp.PROTOCOL),
        (rwp.request(1, 0, magic=b"RWP2"), rwp.PROTOCOL),
        (rwp.request(1, 0, length=55), rwp.PROTOCOL),
        (rwp.request(1, 0, length=57), rwp.PROTOCOL),
        (rwp.request(1, 0, versions=(2, 3)), rwp.VERSION),
        (rwp.request(1, 0, versions=(0, 0)), rwp.VERSION),
        (rwp.request(1, 0, flags=1), rwp.KEY),
        *((rwp.request(1, 0, flags=flag), rwp.UNSUPPORTED) for flag in (2, 4, 8, 0x80000000)),
    ],
    ids="empty text zeros cut magic short long newer older keyed seal doorbell join unknown".split(),
)
@pytest.mark.parametrize("revision", [1, 2])
def test_request_is_rejected(raw, revision, private, reason):
    """With a word of RWP's: why, and which versions are spoken."""
    reply = raw_reply(raw, setup_frame(REQUEST, private, flags=CRC | (ENHANCED if revision == 2 else 0), revision=revision))
    assert reply.flags & REJECT and len(reply.private) == 128
    reject = rwp.parse_reject(reply.private)
    assert (reject.reason, reject.versions) == (reason, (1, 1))
    assert reject.text
    assert raw.last_words() is None


def test_wider_range_of_versions(connect):
    assert connect(private=rwp.request(0xC0FFEE, 0x700000001000, versions=(0, 9))).reply.version == 1


def test_stalled_at_every_byte(target):
    """Whoever stops in the middle of the set-up is gone at its deadline (2 s), wherever he stops."""
    request = setup_frame(REQUEST, GOOD)
    began = time.monotonic()
    connections = []
    for size in range(len(request)):
        connections.append(iwarp.Connection((target.address, target.port)))
        connections[-1].raw(request[:size])
    assert target.status()["state"] == "ready"
    for connection in connections:
        with connection, pytest.raises(iwarp.Ended, match="nothing"):
            connection.receive_setup()
    assert time.monotonic() - began < 20


def test_silence_after_the_reply(connect):
    """No HELLO."""
    writer = connect()
    began = time.monotonic()
    with pytest.raises(iwarp.Ended):
        writer.get()
    assert 1 < time.monotonic() - began < 20


def test_half_a_hello(connect):
    writer = connect()
    writer.connection.raw(iwarp.fpdu(iwarp.write(writer.reply.rkey, writer.reply.addr, bytes(64)))[:40])
    with pytest.raises(iwarp.Ended):
        writer.get()


def test_many_who_come_and_go(target):
    """... in all moments of the set-up, more of them than may be half open."""
    request = setup_frame(REQUEST, GOOD)
    for number in range(300):
        with iwarp.Connection((target.address, target.port)) as connection:
            connection.raw(request[: number % (len(request) + 1)])
    assert target.status()["state"] == "ready"
