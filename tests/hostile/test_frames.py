"""Frames that no peer may send. Each ends its connection, by the Terminate that the standards have for it,
compared byte by byte; and it changes nothing."""

import struct

import iwarp
import pytest
import rwp
from conftest import INNOCENT, ends_in_order, region_is_as_before
from iwarp import fpdu, terminate, terminate_about, untagged, write

from daemon import until

SIZE = 65536
ANY = b"something"


class Place:
    """Where the stranger may write: STag, address, and with a distance from there."""

    def __init__(self, writer):
        self.stag, self.at = writer.grant[rwp.RKEY], writer.grant[rwp.GRANT_ADDRESS]
        assert writer.grant[rwp.SIZE_TLV] == SIZE


def is_struck_down(target, writer, words):
    """words: the Terminate's segment, of which the payload is compared."""
    said = writer.connection.last_words()
    assert said is not None, "no Terminate"
    assert said.hex(" ") == words[iwarp.UNTAGGED_HEADER :].hex(" ")
    until(lambda: not [p for p in target.peers() if p["claimedName"] == "stranger"], what="its connection to end")
    region_is_as_before(target, writer)


# Tagged segments that are wrong in what they name: (DDP's code, segment)
MISPLACED = {
    "unknown STag": (0, lambda p: write(p.stag ^ 0x5A5A5A00, p.at, ANY)),
    "wrong key": (0, lambda p: write(p.stag ^ 0x01, p.at, ANY)),
    "STag zero": (0, lambda p: write(0, p.at, ANY)),
    "all bits": (0, lambda p: write(0xFFFFFFFF, p.at, ANY)),
    "one too many": (1, lambda p: write(p.stag, p.at + SIZE - 16, bytes([0xEE] * 17))),
    "one too early": (1, lambda p: write(p.stag, p.at - 1, bytes([0xEE] * 17))),
    "behind the end": (1, lambda p: write(p.stag, p.at + SIZE, b"x")),
    "far away": (1, lambda p: write(p.stag, p.at ^ 1 << 61, ANY)),
    "offset zero": (1, lambda p: write(p.stag, 0, ANY)),
    "wraps around": (3, lambda p: write(p.stag, 2**64 - 8, bytes([0xEE] * 16))),
    "wraps to the region": (3, lambda p: write(p.stag, 2**64 - 1, bytes([0xEE] * 60000))),
}


@pytest.mark.parametrize("case", MISPLACED)
@pytest.mark.parametrize("last", [True, False], ids=["last", "more"])
def test_misplaced(target, stranger, case, last):
    code, make = MISPLACED[case]
    segment = bytearray(make(Place(stranger)))
    if not last:
        segment[0] &= ~iwarp.LAST
    stranger.connection.send(bytes(segment))
    is_struck_down(target, stranger, terminate_about(1, 1, code, bytes(segment)))


def test_other_connections_memory(target, stranger, canary):
    """A valid STag, and a valid address: but of the canary."""
    segment = write(canary.grant[rwp.RKEY], canary.grant[rwp.GRANT_ADDRESS], ANY)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 1, 2, segment))


def test_other_connections_records(target, stranger, canary):
    segment = write(canary.reply.rkey, canary.reply.addr, bytes(64))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 1, 2, segment))


def memory_that_was(connect, target, how):
    """A write to memory that a peer had: with an arrival it lingers, and an operator may have released it."""
    gone = connect(name="gone")
    gone.hello()
    number = gone.grant[rwp.REGION_ID]
    if how != "empty":
        gone.one(ANY)
        gone.result()
    if how == "released":
        target.call("Release", id=number)
        gone.connection.last_words()
    else:
        gone.bye()
    until(lambda: not [p for p in target.peers() if p["claimedName"] == "gone"], what="its end")
    assert (how == "lingering") == (number in [r["id"] for r in target.regions()])
    return number, write(gone.grant[rwp.RKEY], gone.grant[rwp.GRANT_ADDRESS], b"x")


@pytest.mark.parametrize("how", ["empty", "lingering", "released"])
def test_memory_of_a_connection_that_has_ended(target, stranger, connect, how):
    number, segment = memory_that_was(connect, target, how)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 1, 0, segment))
    if how == "lingering":
        assert target.memory(number)[: len(ANY)] == ANY


def test_second_part_of_a_message_overruns(target, stranger):
    """What came before in its own segment was legal, and stays."""
    place = Place(stranger)
    stranger.connection.send(write(place.stag, place.at + SIZE - 16, bytes(8), last=False))
    segment = write(place.stag, place.at + SIZE - 8, bytes([0xEE] * 9))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 1, 1, segment))


# ---- lengths ----

SHORT = {
    "0": b"",
    "1": b"\xc1",
    "2": b"\xc1\x40",
    "tagged header less 3": write(1, 0)[:-3],
    "tagged header less 1": write(1, 0)[:-1],
    "untagged header less 1": iwarp.send(b"")[:-1],
    "untagged header less 4": iwarp.send(b"")[:-4],
    "Read Request less 1": iwarp.read_request(1, 1, 0, 1, 1)[:-1],
    "Read Request without all": untagged(iwarp.READ_REQUEST, 1, 1),
    "Terminate without cause": untagged(iwarp.TERMINATE, 2, 1, b"\x20\x02\x00"),
}


@pytest.mark.parametrize("case", SHORT)
def test_short_length(target, stranger, case):
    stranger.connection.send(SHORT[case])
    is_struck_down(target, stranger, terminate(2, 0, 3))


def test_shortest_length_that_is_legal(stranger):
    assert len(write(1, 0)) == 14
    stranger.connection.send(write(1, 0))
    stranger.one(ANY)
    assert stranger.result()[0].length == rwp.ARRIVED


def test_longest_length_that_is_legal(connect, target):
    data = bytes(range(256)) * 255 + bytes(range(241))
    writer = connect()
    writer.hello()
    writer.transfer += 1
    segment = write(writer.grant[rwp.RKEY], writer.grant[rwp.GRANT_ADDRESS], data)
    assert len(segment) == 65535
    writer.connection.send(segment)
    fields = {"transfer": 1, "grant": writer.grant[rwp.GENERATION], "length": len(data)}
    writer.put(rwp.ONE, {rwp.NAME: "big"}, data_crc=iwarp.crc32c(data), **fields)
    assert writer.result()[0].length == rwp.ARRIVED


# ---- CRC ----


@pytest.mark.parametrize("byte", [2, 3, 7, 15, 16, 20, -8, -5, -4, -1])
def test_wrong_crc(target, stranger, byte):
    """One bit of the frame is turned: in the header, the payload, the padding, the CRC."""
    place = Place(stranger)
    frame = bytearray(fpdu(write(place.stag, place.at, b"seventeen letters")))
    frame[byte] ^= 0x10
    stranger.connection.raw(bytes(frame))
    is_struck_down(target, stranger, terminate(2, 0, 2))


def test_no_crc(target, stranger):
    """It was agreed on."""
    place = Place(stranger)
    stranger.connection.send(write(place.stag, place.at, ANY), crc=False)
    is_struck_down(target, stranger, terminate(2, 0, 2))


def test_crc_the_wrong_way_round(target, stranger):
    place = Place(stranger)
    frame = fpdu(write(place.stag, place.at, ANY))
    stranger.connection.raw(frame[:-4] + frame[:-5:-1])
    is_struck_down(target, stranger, terminate(2, 0, 2))


# ---- versions, operations, queues ----


@pytest.mark.parametrize("version", [0, 2, 3])
def test_version_of_ddp(target, stranger, version):
    place = Place(stranger)
    stranger.connection.send(write(place.stag, place.at, ANY, ddp=version))
    is_struck_down(target, stranger, terminate(1, 1, 4))


@pytest.mark.parametrize("version", [0, 2, 3])
def test_version_of_ddp_untagged(target, stranger, version):
    stranger.connection.send(untagged(iwarp.SEND, 0, 1, ANY, ddp=version))
    is_struck_down(target, stranger, terminate(1, 2, 6))


@pytest.mark.parametrize("version", [0, 2, 3])
def test_version_of_rdmap(target, stranger, version):
    place = Place(stranger)
    stranger.connection.send(write(place.stag, place.at, ANY, rdmap=version))
    is_struck_down(target, stranger, terminate(0, 2, 5))


@pytest.mark.parametrize("opcode", range(8, 16))
@pytest.mark.parametrize("form", ["tagged", "untagged"])
def test_unknown_operation(target, stranger, opcode, form):
    """Those of RFC 7306 (atomics, immediate data) among them."""
    place = Place(stranger)
    queue = {iwarp.ATOMIC_REQUEST: 1, iwarp.ATOMIC_RESPONSE: 3}.get(opcode, 0)
    if form == "tagged":
        segment = iwarp.tagged(opcode, place.stag, place.at, ANY)
    else:
        segment = untagged(opcode, queue, 1, bytes(52))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(0, 2, 6, segment))


@pytest.mark.parametrize("opcode", [1, 3, 4, 5, 6, 7])
def test_untagged_operation_in_a_tagged_segment(target, stranger, opcode):
    place = Place(stranger)
    segment = iwarp.tagged(opcode, place.stag, place.at, bytes(40))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(0, 2, 6, segment))


@pytest.mark.parametrize("opcode", [iwarp.WRITE, iwarp.READ_RESPONSE])
def test_tagged_operation_in_an_untagged_segment(target, stranger, opcode):
    segment = untagged(opcode, 0, 1, bytes(40))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(0, 2, 6, segment))


def test_response_to_no_read(target, stranger):
    place = Place(stranger)
    segment = iwarp.tagged(iwarp.READ_RESPONSE, place.stag, place.at, ANY)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(0, 2, 6, segment))


@pytest.mark.parametrize("opcode", [iwarp.SEND, iwarp.SEND_INVALIDATE, iwarp.SEND_EVENT, iwarp.SEND_EVENT_INVALIDATE])
def test_message(target, stranger, opcode):
    """Nobody posts receives. It is counted as what it is, though."""
    segment = iwarp.send(ANY, opcode=opcode)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 2, 2, segment))
    counts = {r["id"]: r["receiveCompletions"] for r in target.regions()}
    assert counts[stranger.grant[rwp.REGION_ID]] == 1


@pytest.mark.parametrize("opcode, queue", [(iwarp.SEND, 1), (iwarp.SEND, 3), (iwarp.SEND, 0xFFFFFFFF),
                                           (iwarp.TERMINATE, 0), (iwarp.READ_REQUEST, 0)])  # fmt: skip
def test_queue(target, stranger, opcode, queue):
    segment = untagged(opcode, queue, 1, bytes(28))
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 2, 1, segment))


def test_read(target, stranger):
    """Reads were not agreed on: IRD is 0."""
    place = Place(stranger)
    segment = iwarp.read_request(1, 0, 17, place.stag, place.at)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(0, 2, 7, segment))


def test_read_where_the_empty_one_was_agreed_on(target, connect):
    """Peer-to-peer set-up has made IRD 1, but memory is for writing. The Terminate quotes the request too."""
    writer = connect(name="stranger", ird=iwarp.PEER_TO_PEER, ord=iwarp.RTR_READ | 1)
    writer.connection.send(iwarp.read_request(1, 0, 0, 1, 0))
    assert writer.connection.receive().opcode == iwarp.READ_RESPONSE
    writer.hello()
    writer.one(INNOCENT)
    writer.result()
    place = Place(writer)
    segment = iwarp.read_request(1, 0, 17, place.stag, place.at, msn=2)
    writer.connection.send(segment)
    is_struck_down(target, writer, terminate(0, 1, 2, 0xE0, struct.pack(">H", len(segment)) + segment))


@pytest.mark.parametrize("msn, offset, code", [(2, 0, 3), (0, 0, 3), (1, 4, 4)])
def test_read_out_of_order(target, stranger, msn, offset, code):
    segment = untagged(iwarp.READ_REQUEST, 1, msn, bytes(28), offset=offset)
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 2, code, segment))


# ---- messages of several segments ----


@pytest.mark.parametrize("other, code", [("stag", 0), ("offset", 1), ("again", 1)])
def test_interleaved(target, stranger, other, code):
    """Between the segments of a tagged message comes another one."""
    place = Place(stranger)
    stranger.connection.send(write(place.stag, place.at, INNOCENT[:8], last=False))
    segment = {
        "stag": write(stranger.reply.rkey, stranger.reply.addr + 64, bytes(8)),
        "offset": write(place.stag, place.at + 4096, ANY),
        "again": write(place.stag, place.at, INNOCENT[:8]),
    }[other]
    stranger.connection.send(segment)
    is_struck_down(target, stranger, terminate_about(1, 1, code, segment))


def test_untagged_in_between_is_legal(target, stranger):
    place = Place(stranger)
    data = b"in two parts"
    stranger.connection.send(write(place.stag, place.at, data[:5], last=False))
    stranger.connection.send(iwarp.read_request(9, 0, 0, 0, 0))
    stranger.connection.send(write(place.stag, place.at + 5, data[5:]))
    answer = stranger.connection.receive()
    while answer.opcode == iwarp.WRITE:
        stranger.place(answer)
        answer = stranger.connection.receive()
    assert answer.opcode == iwarp.READ_RESPONSE
    assert target.memory(stranger.grant[rwp.REGION_ID])[: len(data)] == data


# ---- the end ----


def test_nothing_counts_after_a_terminate(target, stranger):
    place = Place(stranger)
    stranger.connection.raw(fpdu(terminate(2, 0, 2)) + fpdu(write(place.stag, place.at, b"too late")))
    ends_in_order(stranger)
    region_is_as_before(target, stranger)


@pytest.mark.parametrize(
    "words",
    [
        terminate_about(1, 1, 0, write(1, 2, ANY)),
        terminate(0xF, 0xF, 0xFF, 0xFF, bytes(200)),
        untagged(iwarp.TERMINATE, 2, 1, bytes.fromhex("1100030000 11") + write(1, 2)),
        terminate(1, 1, 0, 0xE0),
    ],
    ids=["about a write", "nonsense", "as Linux siw", "quotes nothing"],
)
def test_terminate_is_answered_by_the_end_only(target, stranger, words):
    stranger.connection.send(words)
    ends_in_order(stranger)
    region_is_as_before(target, stranger)


@pytest.mark.parametrize("size", [1, 2, 3, 15, 16, 17, 30, 40])
def test_end_within_a_frame(target, stranger, size):
    place = Place(stranger)
    stranger.connection.raw(fpdu(write(place.stag, place.at, bytes([0xEE] * 25)))[:size])
    stranger.connection.socket.shutdown(1)
    ends_in_order(stranger)
    region_is_as_before(target, stranger)


def test_noise(target, connect):
    """Bytes without any sense, in place of frames."""
    for seed in range(20):
        writer = connect(name="stranger")
        noise = bytes((seed * 7919 + i * i * 31 + (i >> 3)) & 0xFF for i in range(3000))
        writer.connection.raw(noise)
        writer.connection.socket.shutdown(1)
        writer.connection.last_words()


# ---- memory that is taken away while a frame comes ----


@pytest.fixture
def without_crc(make):
    """There payload is placed while it comes."""
    return make("c", region={"size": "64K"}, iwarp={"mpa-crc": "no"})


@pytest.mark.parametrize("crc", [True, False], ids=["crc", "without-crc"])
def test_region_is_released_within_a_frame(target, without_crc, crc):
    daemon = target if crc else without_crc
    with rwp.Writer((daemon.address, daemon.port), flags=iwarp.ENHANCED) as writer:
        writer.hello()
        place = Place(writer)
        frame = fpdu(write(place.stag, place.at, bytes([0xEE] * 60000)), crc=crc)
        writer.connection.raw(frame[:30000])
        daemon.call("Release", id=writer.grant[rwp.REGION_ID])
        writer.connection.raw(frame[30000:])
        writer.connection.last_words()
    until(lambda: daemon is target or daemon.status()["connections"] == 0, what="its end")
    assert writer.grant[rwp.REGION_ID] not in [region["id"] for region in daemon.regions()]


@pytest.mark.parametrize("case", ["one too many", "one too early", "unknown STag", "wraps around"])
def test_misplaced_without_crc(without_crc, case):
    """Here too nothing is placed before all of the frame has been checked."""
    code, make = MISPLACED[case]
    with rwp.Writer((without_crc.address, without_crc.port), name="stranger", flags=iwarp.ENHANCED) as writer:
        writer.hello()
        writer.one(INNOCENT)
        writer.result()
        segment = make(Place(writer))
        writer.connection.send(segment)
        is_struck_down(without_crc, writer, terminate_about(1, 1, code, segment))
