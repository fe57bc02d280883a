"""The minimal writer of rwriter-protocol(7), on a plain TCP socket, and what else a good writer may do."""

import os

import iwarp
import pytest
import rwp

HELLO = b"Hello RDMA Write!"


def arrived(writer, data):
    r, words = writer.result()
    assert words is None or r.length == rwp.ARRIVED, words[rwp.TEXT]
    assert (r.stream_off, r.region_off, r.data_crc) == (len(data), 0, iwarp.crc32c(data))


def test_hello(target, connect):
    writer = connect(name="by-hand")
    r, grant = writer.hello(size=len(HELLO))
    assert r.type == rwp.GRANT
    assert (grant[rwp.HOST], grant[rwp.SINK], grant[rwp.SIZE_TLV]) == ("b", 1, 65536)
    assert 0 < grant[rwp.SEGMENT] <= grant[rwp.IN_FLIGHT]
    writer.one(HELLO, name="hello.txt")
    arrived(writer, HELLO)

    assert target.dump("by-hand") == HELLO
    region = next(r for r in target.regions() if r["id"] == grant[rwp.REGION_ID])
    assert (region["claimedName"], region["fabric"], region["receiveCompletions"]) == ("by-hand", "iwarp", 0)
    assert region["lastArrival"]["name"] == "hello.txt"
    writer.bye()


@pytest.mark.parametrize(
    "flags, revision",
    [(iwarp.CRC | iwarp.ENHANCED, 2), (iwarp.CRC, 2), (iwarp.CRC, 1), (iwarp.ENHANCED, 2), (0, 1)],
    ids=["2-enhanced", "2-plain", "1", "2-without-crc", "1-without-crc"],
)
def test_revisions_of_mpa(target, connect, flags, revision):
    """The answer is of the same revision; CRCs are used though the writer does not ask for them."""
    writer = connect(flags=flags, revision=revision)
    assert (writer.setup.revision, writer.setup.flags) == (revision, flags | iwarp.CRC)
    writer.hello()
    writer.one(HELLO)
    arrived(writer, HELLO)
    writer.bye()


def test_private_data_may_be_padded(connect):
    writer = connect(private=rwp.request(rwp.Writer.MAILBOX_STAG, rwp.Writer.MAILBOX_BASE).ljust(508, b"\0"))
    assert writer.hello()[0].type == rwp.GRANT


@pytest.mark.parametrize("offered, chosen", [("write", "write"), ("read", "read"), ("both", "write")])
def test_peer_to_peer_setup(connect, offered, chosen):
    """Adapters begin with an empty frame of an agreed kind; the answer chooses exactly one."""
    bits = {"write": iwarp.RTR_WRITE, "read": iwarp.RTR_READ}
    both = bits["write"] | bits["read"]
    writer = connect(ird=iwarp.PEER_TO_PEER | 1, ord=bits.get(offered, both) | 1)
    assert writer.setup.ird & iwarp.PEER_TO_PEER and not writer.setup.ird & iwarp.RTR_SEND
    assert writer.setup.ord & both == bits[chosen]
    if chosen == "write":
        writer.connection.send(iwarp.write(1, 0))
    else:
        assert writer.setup.ird & iwarp.DEPTH >= 1
        writer.connection.send(iwarp.read_request(0x1234, 0x5678, 0, 1, 0))
        answer = writer.connection.receive()
        assert (answer.opcode, answer.stag, answer.to, answer.payload) == (iwarp.READ_RESPONSE, 0x1234, 0x5678, b"")
        assert answer.last
    writer.hello()
    writer.one(HELLO)
    arrived(writer, HELLO)
    writer.bye()


def test_reads_are_not_offered(connect):
    writer = connect(ird=4, ord=4)
    assert (writer.setup.ird, writer.setup.ord) == (0, 0)


def test_empty_read_is_answered(stranger):
    for msn in 1, 2, 3:
        stranger.connection.send(iwarp.read_request(msn, 0, 0, 7, 7, msn=msn))
        answer = stranger.connection.receive()
        while answer.opcode == iwarp.WRITE:
            stranger.place(answer)
            answer = stranger.connection.receive()
        assert (answer.opcode, answer.stag, answer.payload) == (iwarp.READ_RESPONSE, msn, b"")


@pytest.mark.parametrize("stag", [0, 1, 0xDEADBEEF])
def test_empty_write_names_any_memory(stranger, stag):
    stranger.connection.send(iwarp.write(stag, 2**64 - 1))
    stranger.one(HELLO)
    arrived(stranger, HELLO)


def test_padding_may_be_anything(stranger):
    """It is covered by the CRC, and else of no meaning."""
    grant = stranger.grant
    frame = iwarp.fpdu(iwarp.write(grant[rwp.RKEY], grant[rwp.GRANT_ADDRESS], b"x"))[:-4]
    assert frame[-3:] == bytes(3)
    frame = frame[:-3] + b"pad"
    stranger.connection.raw(frame + iwarp.crc32c(frame).to_bytes(4, "little"))
    stranger.one(HELLO)
    arrived(stranger, HELLO)


def test_segments(target, connect):
    """BEGIN, DATA ... END."""
    data = os.urandom(50_000)
    writer = connect(name="segments")
    writer.hello()
    writer.begin(length=len(data), name="many.bin")
    for at in range(0, len(data), 7000):
        writer.data(at, data[at : at + 7000])
    writer.end(data)
    arrived(writer, data)
    assert target.dump("segments") == data
    writer.bye()


def test_holes(target, connect):
    """Zeros, whatever lay there before."""
    data = os.urandom(30_000)
    writer = connect(name="holes")
    writer.hello()
    writer.one(data)
    arrived(writer, data)
    holes = data[:10_000] + bytes(10_000) + data[20_000:25_000] + bytes(5_000)
    writer.begin()
    writer.data(0, data[:10_000])
    writer.hole(10_000, stream_off=10_000)
    writer.data(20_000, data[20_000:25_000])
    writer.hole(5_000, stream_off=25_000)
    writer.end(holes)
    arrived(writer, holes)
    assert target.dump("holes") == holes
    writer.bye()


@pytest.mark.parametrize("length", [None, 0])
def test_empty_stream(connect, length):
    writer = connect()
    writer.hello()
    writer.begin(length=length)
    writer.end(b"")
    arrived(writer, b"")
    writer.one(b"")
    arrived(writer, b"")
    writer.bye()


def test_rings_go_round(target, connect):
    """More transfers than records fit into either ring; each also gets its credit."""
    writer = connect(name="round")
    writer.hello()
    for number in range(3 * writer.slots):
        data = b"transfer %d" % number
        writer.one(data, name="x" * (number % 200 + 1))
        arrived(writer, data)
    assert target.dump("round") == data
    writer.bye()


def test_transfers_may_be_pipelined(connect):
    """The next one begins before the result of the last has come."""
    writer = connect()
    writer.hello()
    for data in b"first", b"":
        writer.begin(length=len(data))
        if data:
            writer.data(0, data)
        writer.end(data)
    for writer.transfer, data in enumerate([b"first", b""], 1):
        arrived(writer, data)


def test_one_byte_at_a_time(target, connect):
    """TCP may cut the stream anywhere."""
    writer = connect(name="slow")
    whole = writer.connection.raw

    def dribble(data):
        for at in range(len(data)):
            whole(data[at : at + 1])

    writer.connection.raw = dribble
    writer.hello()
    writer.one(HELLO)
    arrived(writer, HELLO)
    assert target.dump("slow") == HELLO
    writer.bye()


def test_all_at_once(target, connect):
    """Many frames in one segment."""
    writer = connect(name="fast")
    writer.hello()
    sent, frames = writer.connection.raw, []
    writer.connection.raw = frames.append
    for number in range(20):
        writer.one(b"%d" % number)
        sent(b"".join(frames))
        frames.clear()
        arrived(writer, b"%d" % number)
    writer.connection.raw = sent
    assert target.dump("fast") == b"19"
    writer.bye()


def test_unknown_records_are_skipped(stranger):
    for type in 200, 100, 255:
        stranger.put(type)
    stranger.one(HELLO)
    arrived(stranger, HELLO)


def test_abort(stranger):
    stranger.begin()
    stranger.data(0, b"half of it")
    stranger.put(rwp.ABORT, transfer=stranger.transfer)
    r, words = stranger.result()
    assert r.length == words[rwp.CODE] == rwp.ABORTED
    stranger.one(HELLO)
    arrived(stranger, HELLO)


def test_lines_that_are_torn_are_ignored(stranger):
    stranger.write_tail(0, rwp.line(stranger.beat + 5, stranger.got, tag=0x12345678))
    stranger.one(HELLO)
    arrived(stranger, HELLO)
