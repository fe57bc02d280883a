"""Records, lines and blobs that break the protocol, and HELLOs that are denied."""

import struct
import time

import iwarp
import pytest
import rwp
from conftest import ends_in_order, is_told

DATA = b"some bytes"


@pytest.fixture
def fresh(connect):
    """Connected, nothing said yet."""
    return connect(name="stranger")


@pytest.fixture
def granted(fresh):
    fresh.hello()
    return fresh


@pytest.fixture
def open_transfer(granted):
    granted.begin()
    granted.data(0, DATA)
    return granted


def still_works(writer):
    writer.one(DATA)
    r, _ = writer.result()
    assert r.length == rwp.ARRIVED


def fails(writer, code, goes_on=True):
    """The transfer gets a RESULT with that code; the connection goes on."""
    r, words = writer.result()
    assert (r.length, words[rwp.CODE]) == (code, code), words[rwp.TEXT]
    assert words[rwp.TEXT]
    if goes_on:
        still_works(writer)


# ---- before and with HELLO ----


@pytest.mark.parametrize("type", [*range(rwp.BEGIN, rwp.BYE), rwp.GRANT, rwp.RESULT, 0])
def test_something_before_hello(fresh, type):
    fresh.put(type, {rwp.NAME: "x"}, transfer=1, grant=1)
    is_told(fresh, rwp.PROTOCOL)


def echo(writer, boot_id=None, generation=None):
    reply = writer.reply
    return {
        rwp.ECHO: (boot_id or reply.boot_id)
        + struct.pack("<I", reply.generation if generation is None else generation)
    }


def is_denied(writer, code, **hello):
    r, words = writer.hello(**hello)
    assert (r.type, words[rwp.CODE]) == (rwp.DENY, code), words.get(rwp.TEXT)
    assert words[rwp.TEXT] and words[rwp.HOST] == "b"
    ends_in_order(writer)
    return words


def test_stale_boot_id(fresh):
    is_denied(fresh, rwp.STALE, tlvs=echo(fresh, boot_id=bytes(8)))


@pytest.mark.parametrize("distance", [-1, 1])
def test_stale_generation(fresh, distance):
    is_denied(fresh, rwp.STALE, tlvs=echo(fresh, generation=fresh.reply.generation + distance))


def test_meant_for_another_target(fresh):
    is_denied(fresh, rwp.STALE, tlvs={rwp.TARGET: "somebody-else"})


def test_meant_for_this_target(fresh):
    assert fresh.hello(tlvs={rwp.TARGET: "b"})[0].type == rwp.GRANT


def test_features_that_are_required(fresh):
    is_denied(fresh, rwp.UNSUPPORTED, tlvs={rwp.REQUIRED: 1})


def test_features_that_are_offered(fresh):
    r, grant = fresh.hello(tlvs={rwp.OFFERED: 2**64 - 1})
    assert r.type == rwp.GRANT and grant.get(rwp.Tlv(24, "<Q"), 0) == 0


def test_region_that_is_not_there(fresh):
    words = is_denied(fresh, rwp.REGION, tlvs={rwp.REGION_NAME: "nowhere"})
    assert "nowhere" in words[rwp.TEXT]


@pytest.mark.parametrize("size", [(1 << 30) + 1, 1 << 63, 2**64 - 1])
def test_too_much(fresh, size):
    words = is_denied(fresh, rwp.SIZE, size=size)
    assert (words[rwp.SIZE_TLV], words[rwp.LIMIT]) == (size, 1 << 30)


def hello_tlvs(writer):
    return {rwp.WRITER: "stranger", rwp.SIZE_TLV: 0} | echo(writer)


def encode(tlvs):
    return b"".join(rwp.tlv(name, value) for name, value in tlvs.items())


def without(tlvs, missing):
    return encode({name: value for name, value in tlvs.items() if name is not missing})


# What to make of the good TLVs of a HELLO.
BAD_HELLO_TLVS = {
    "none": lambda good: b"",
    "no WRITER": lambda good: without(good, rwp.WRITER),
    "no SIZE": lambda good: without(good, rwp.SIZE_TLV),
    "no ECHO": lambda good: without(good, rwp.ECHO),
    "twice": lambda good: encode(good) + rwp.tlv(rwp.SIZE_TLV, 0),
    "type 0": lambda good: encode(good) + rwp.raw_tlv(0, b"1234"),
    "padding": lambda good: encode(good) + rwp.raw_tlv(999, b"1")[:-1] + b"x",
    "beyond the end": lambda good: encode(good) + rwp.raw_tlv(999, b"1234", length=2000),
    "just beyond the end": lambda good: encode(good) + rwp.raw_tlv(999, b"1234", length=5),
    "number of 4": lambda good: without(good, rwp.SIZE_TLV) + rwp.raw_tlv(4, bytes(4)),
    "echo of 11": lambda good: without(good, rwp.ECHO) + rwp.raw_tlv(7, bytes(11)),
    "name of 65": lambda good: encode(good | {rwp.WRITER: "x" * 65}),
    "name with a control": lambda good: encode(good | {rwp.WRITER: "a\x1b[31m"}),
    "name with a NUL": lambda good: encode(good | {rwp.WRITER: "a\0b"}),
    "name not UTF-8": lambda good: without(good, rwp.WRITER) + rwp.raw_tlv(1, b"\xc0\xaf"),
    "name a surrogate": lambda good: without(good, rwp.WRITER) + rwp.raw_tlv(1, b"\xed\xa0\x80"),
    "half a header": lambda good: encode(good) + b"\x01\x00\x00\x00\x00\x00\x00",
}  # fmt: skip


def put_hello(writer, blob, **fields):
    """With a CRC that is right."""
    writer.seq = 1
    writer.write_tail(writer.blobs, blob)
    fields = {"blob_len": len(blob), "data_crc": iwarp.crc32c(blob)} | fields
    writer.write_record(rwp.record(rwp.HELLO, 1, **fields), 1)


@pytest.mark.parametrize("case", BAD_HELLO_TLVS)
def test_bad_tlvs(fresh, case):
    put_hello(fresh, rwp.blob(rwp.HELLO, 1, BAD_HELLO_TLVS[case](hello_tlvs(fresh))))
    is_told(fresh, rwp.PROTOCOL)


def test_tlv_that_must_be_understood(fresh):
    put_hello(fresh, rwp.blob(rwp.HELLO, 1, encode(hello_tlvs(fresh)) + rwp.raw_tlv(0x8000 | 999, b"1234")))
    r, words = fresh.get()
    assert (r.type, words[rwp.CODE]) == (rwp.DENY, rwp.UNSUPPORTED)
    ends_in_order(fresh)


def test_unknown_tlvs_are_skipped(fresh):
    put_hello(fresh, rwp.blob(rwp.HELLO, 1, encode(hello_tlvs(fresh)) + rwp.raw_tlv(999, b"whatever")))
    assert fresh.get()[0].type == rwp.GRANT


@pytest.mark.parametrize("offset", [0, 4, 8], ids=["kind", "length", "seq"])
def test_bad_header_of_a_blob(fresh, offset):
    blob = bytearray(rwp.blob(rwp.HELLO, 1, hello_tlvs(fresh)))
    blob[offset] += 8
    put_hello(fresh, bytes(blob))
    is_told(fresh, rwp.PROTOCOL)


@pytest.mark.parametrize(
    "fields",
    [
        {"blob_len": 0, "data_crc": 0},
        {"blob_len": 8},
        {"blob_len": 15},
        {"blob_len": 65535},
        {"blob_len": 2952},
        {"blob_off": 0xFFFFFFFF},
        {"blob_off": 0xFFFFFFF8},
        {"blob_off": 8192},
        {"blob_off": 8},
        {"data_crc": 0x12345678},
        {"tag": 0x12345678},
    ],
    ids=lambda fields: " ".join(f"{key} {value}" for key, value in fields.items()),
)
def test_bad_place_of_a_blob(fresh, fields):
    """The target writes nothing before the first valid record: it just ends."""
    put_hello(fresh, rwp.blob(rwp.HELLO, 1, hello_tlvs(fresh)), **fields)
    ends_in_order(fresh)


def test_blob_over_the_end_of_its_ring(fresh):
    ring = fresh.reply.length - fresh.blobs
    blob = rwp.blob(rwp.HELLO, 1, hello_tlvs(fresh))
    fresh.write_tail(fresh.reply.length - 8, blob[:8])
    put_hello(fresh, blob, blob_off=ring - 8)
    ends_in_order(fresh)


def test_hello_in_pieces(fresh):
    """Slowly, but within the deadline: the flag comes last."""
    blob = rwp.blob(rwp.HELLO, 1, hello_tlvs(fresh))
    data = rwp.record(rwp.HELLO, 1, blob_len=len(blob), data_crc=iwarp.crc32c(blob))
    for at in range(0, len(blob), 8):
        fresh.write_tail(fresh.blobs + at, blob[at : at + 8])
    for at in range(0, 64, 8):
        fresh.write_tail(rwp.RING + at, data[at : at + 8])
    assert fresh.get()[0].type == rwp.GRANT


@pytest.mark.parametrize("late", ["blob", "record"])
def test_flag_that_overtakes(fresh, late):
    """What its flag has overtaken is looked at again for a while."""
    blob = rwp.blob(rwp.HELLO, 1, hello_tlvs(fresh))
    data = rwp.record(rwp.HELLO, 1, blob_len=len(blob), data_crc=iwarp.crc32c(blob))
    if late == "record":
        fresh.write_tail(fresh.blobs, blob)
        fresh.write_tail(rwp.RING + 56, data[56:])
        fresh.write_tail(rwp.RING, data[:56])
    else:
        fresh.write_tail(rwp.RING, data)
        fresh.write_tail(fresh.blobs, blob)
    assert fresh.get()[0].type == rwp.GRANT


# ---- records ----


def test_second_hello(granted):
    granted.put(rwp.HELLO, hello_tlvs(granted))
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("type", range(rwp.GRANT, rwp.NOTICE + 1))
def test_record_that_has_no_place_here(granted, type):
    granted.put(type)
    is_told(granted, rwp.PROTOCOL)


def test_growing_is_reserved(granted):
    granted.put(rwp.GROW)
    is_told(granted, rwp.UNSUPPORTED)


@pytest.mark.parametrize("type", [0, 10, 64, 70, 127, 128, 255])
def test_unknown_record_that_must_be_understood(granted, type):
    granted.put(type, flags=rwp.MUST_UNDERSTAND)
    is_told(granted, rwp.UNSUPPORTED)


def test_wrong_tag(granted):
    """It is looked at again for 50 ms, not until the next beat (10 s)."""
    began = time.monotonic()
    granted.put(rwp.BYE, tag=0x12345678)
    is_told(granted, rwp.PROTOCOL)
    assert 0.04 < time.monotonic() - began < 5


def test_tag_with_more_than_a_crc(granted):
    """Its other bytes are zero."""
    data = bytearray(rwp.record(rwp.BYE, 2))
    data[50] = 1
    granted.write_record(bytes(data), 2)
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("seq", [3, 1, 66, 2**32 + 2, 2**64 - 1])
def test_sequence(granted, seq):
    granted.write_record(rwp.record(rwp.BYE, seq), 2)
    is_told(granted, rwp.PROTOCOL)


def test_record_in_another_slot_is_not_seen(granted):
    granted.write_record(rwp.record(rwp.BYE, 40), 40)
    still_works(granted)


@pytest.mark.parametrize("distance", [-1, 1])
@pytest.mark.parametrize("type", ["one", "begin", "data", "end"])
def test_other_grant(granted, type, distance):
    grant = granted.grant[rwp.GENERATION] + distance
    if type == "one":
        granted.one(DATA, grant=grant)
    elif type == "begin":
        granted.begin(grant=grant)
    else:
        granted.begin()
        granted.data(0, DATA, **{"grant": grant} if type == "data" else {})
        if type == "end":
            granted.end(DATA, grant=grant)
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("number", [0, 2, 2**32 - 1])
@pytest.mark.parametrize("type", ["one", "begin"])
def test_number_of_the_first_transfer(granted, type, number):
    getattr(granted, type)(**{"data": DATA} if type == "one" else {}, transfer=number)
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("number", [1, 3])
def test_number_of_the_next_transfer(granted, number):
    still_works(granted)
    granted.one(DATA, transfer=number)
    is_told(granted, rwp.PROTOCOL)


def test_transfer_within_another(open_transfer):
    open_transfer.begin()
    is_told(open_transfer, rwp.PROTOCOL)


@pytest.mark.parametrize("type", ["data", "end", "abort", "hole"])
def test_part_of_no_transfer(granted, type):
    granted.transfer = 1
    if type == "data":
        granted.data(0, DATA)
    elif type == "end":
        granted.end(DATA)
    else:
        granted.put({"abort": rwp.ABORT, "hole": rwp.HOLE}[type], transfer=1, grant=granted.grant[rwp.GENERATION])
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("number", [0, 2])
def test_part_of_another_transfer(open_transfer, number):
    open_transfer.data(len(DATA), DATA, transfer=number)
    is_told(open_transfer, rwp.PROTOCOL)


@pytest.mark.parametrize(
    "tlvs",
    [
        {rwp.NAME: "x" * 256},
        {rwp.NAME: "a\nb"},
        {rwp.NAME: "x", rwp.Tlv(49, "<I"): 1},
    ],
    ids=["name of 256", "name of two lines", "length of 4 bytes"],
)
@pytest.mark.parametrize("type", [rwp.BEGIN, rwp.ONE], ids=["begin", "one"])
def test_description(granted, type, tlvs):
    length = {"length": len(DATA), "data_crc": iwarp.crc32c(DATA)} if type == rwp.ONE else {}
    if type == rwp.ONE:
        granted.write_region(0, DATA)
    granted.put(type, tlvs, transfer=1, grant=granted.grant[rwp.GENERATION], **length)
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("type", ["one", "begin"])
def test_description_that_must_be_understood(granted, type):
    tlvs = {rwp.NAME: "x", rwp.Tlv(0x8000 | 500, "text"): "?"}
    if type == "one":
        granted.one(DATA, tlvs=tlvs)
        fails(granted, rwp.UNSUPPORTED)
    else:
        granted.begin(tlvs=tlvs)
        fails(granted, rwp.UNSUPPORTED, goes_on=False)
        granted.end(b"")
        still_works(granted)


def test_name_may_be_absent(granted):
    granted.one(DATA, tlvs={})
    assert granted.result()[0].length == rwp.ARRIVED


def test_check_of_a_one(granted):
    granted.write_region(0, DATA)
    blob = bytearray(rwp.blob(rwp.ONE, 2, {rwp.NAME: "x"}))
    blob[-1] ^= 1
    granted.write_tail(granted.blobs + granted.blob_at, bytes(blob))
    fields = {"transfer": 1, "grant": granted.grant[rwp.GENERATION], "length": len(DATA)}
    fields |= {"blob_len": len(blob), "blob_off": granted.blob_at, "data_crc": iwarp.crc32c(DATA)}
    granted.seq += 1
    granted.write_record(rwp.record(rwp.ONE, 2, **fields), 2)
    is_told(granted, rwp.PROTOCOL)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/shadow", "..", ".", "", "C:\\x", "-rf"])
def test_name_is_never_a_path(target, granted, name):
    """It arrives, as a label of bytes in memory."""
    granted.one(DATA, name=name)
    r, words = granted.get()
    if r.type == rwp.RESULT and r.length == rwp.ARRIVED:
        shown = {region["id"]: region["lastArrival"]["name"] for region in target.regions() if region["lastArrival"]}
        assert shown[granted.grant[rwp.REGION_ID]] in (name, None)
    else:
        assert name == "" and words[rwp.CODE] == rwp.PROTOCOL


# ---- payload: the transfer fails, the connection goes on ----


@pytest.mark.parametrize(
    "fields",
    [
        {"length": 0},
        {"length": 65537},
        {"length": (1 << 20) + 1},
        {"length": 2**32 - 1},
        {"region_off": 65536},
        {"region_off": 65536 - 5},
        {"region_off": 2**64 - 1},
        {"region_off": 2**64 - 5},
        {"stream_off": 1},
        {"stream_off": 9},
        {"stream_off": 2**64 - 1},
    ],
    ids=lambda fields: " ".join(f"{key} {value}" for key, value in fields.items()),
)
def test_wild_data(open_transfer, fields):
    open_transfer.data(len(DATA), DATA, **fields)
    fails(open_transfer, rwp.PROTOCOL, goes_on=False)
    open_transfer.end(DATA + DATA)
    still_works(open_transfer)


@pytest.mark.parametrize(
    "fields",
    [{"length": 2**32 - 1}, {"length": 65537}, {"region_off": 65536}, {"region_off": 2**64 - 1}],
    ids=lambda fields: " ".join(f"{key} {value}" for key, value in fields.items()),
)
def test_wild_one(granted, fields):
    granted.one(DATA, **fields)
    fails(granted, rwp.PROTOCOL)


def test_wrong_crc_of_a_one(granted):
    granted.one(DATA, data_crc=0x12345678)
    fails(granted, rwp.CHECKSUM)


def test_wrong_crc_of_a_data(granted):
    granted.begin()
    granted.data(0, DATA, data_crc=0x12345678)
    fails(granted, rwp.CHECKSUM, goes_on=False)
    granted.data(len(DATA), DATA)  # what is under way is consumed and ignored
    granted.end(DATA + DATA)
    still_works(granted)


@pytest.mark.parametrize("fields", [{"data_crc": 1}, {"stream_off": 9}, {"stream_off": 11}], ids=str)
def test_wrong_end(open_transfer, fields):
    open_transfer.end(DATA, **fields)
    fails(open_transfer, rwp.CHECKSUM)


@pytest.mark.parametrize("length", [1, 9])
def test_more_than_announced(granted, length):
    granted.begin(length=length)
    granted.data(0, DATA)
    fails(granted, rwp.PROTOCOL, goes_on=False)
    granted.end(DATA)
    still_works(granted)


def test_less_than_announced(granted):
    granted.begin(length=11)
    granted.data(0, DATA)
    granted.end(DATA)
    r, words = granted.result()
    assert r.length == words[rwp.CODE] and r.length in (rwp.CHECKSUM, rwp.PROTOCOL)
    still_works(granted)


def test_more_announced_than_granted(granted):
    granted.begin(length=65537)
    r, words = granted.result()
    assert r.length == words[rwp.CODE] == rwp.SIZE
    assert (words[rwp.SIZE_TLV], words[rwp.LIMIT]) == (65537, 65536)
    granted.end(b"")
    still_works(granted)


def test_hole(open_transfer):
    open_transfer.put(rwp.HOLE, transfer=1, grant=open_transfer.grant[rwp.GENERATION], length=1 << 20)
    fails(open_transfer, rwp.UNSUPPORTED, goes_on=False)
    open_transfer.end(DATA)
    still_works(open_transfer)


def test_payload_that_is_not_the_writers(target, granted, canary):
    """A record may speak of bytes that were never written: they are zeros, and nobody else's."""
    granted.transfer += 1
    zeros = bytes(1000)
    fields = {"transfer": 1, "grant": granted.grant[rwp.GENERATION], "length": len(zeros)}
    granted.put(rwp.ONE, {rwp.NAME: "zeros"}, data_crc=iwarp.crc32c(zeros), **fields)
    assert granted.result()[0].length == rwp.ARRIVED


# ---- lines ----


@pytest.mark.parametrize("consumed", [2, 1000, 2**64 - 1], ids=str)
def test_line_that_invents_records(granted, consumed):
    granted.put_line(consumed=consumed)
    is_told(granted, rwp.PROTOCOL)


def test_line_that_takes_back(granted):
    still_works(granted)
    granted.put_line(consumed=granted.got)
    granted.put_line(consumed=0)
    is_told(granted, rwp.PROTOCOL)


def test_lines_without_end(target, granted):
    """A flood of news costs the others nothing."""
    for _ in range(3000):
        granted.put_line()
    began = time.monotonic()
    assert target.status()["state"] == "ready"
    assert time.monotonic() - began < 10
    still_works(granted)


def test_records_without_credit(target, granted):
    """Written over those that the target has not taken yet."""
    frames = []
    granted.connection.raw, send = frames.append, granted.connection.raw
    for seq in range(2, 402):
        granted.write_record(rwp.record(200, seq), seq)
    granted.connection.raw = send
    send(b"".join(frames))
    is_told(granted, rwp.PROTOCOL)


def test_writer_that_falls_silent(make):
    """No new beat within the dead interval."""
    target = make("c", region={"size": "64K"}, limits={"beat": "100ms", "dead": "1s"})
    with rwp.Writer((target.address, target.port), name="silent") as writer:
        writer.hello()
        writer.beat_at = None
        began = time.monotonic()
        r, words = writer.get()
        assert (r.type, words[rwp.CODE]) == (rwp.NOTICE, rwp.TIMEOUT)
        assert 0.8 < time.monotonic() - began < 15


def test_beats_of_the_target(make):
    target = make("c", region={"size": "64K"}, limits={"beat": "100ms", "dead": "10s"})
    with rwp.Writer((target.address, target.port), name="listening") as writer:
        _, grant = writer.hello()
        assert (grant[rwp.BEAT], grant[rwp.DEAD]) == (100, 10000)
        beats = set()
        until = time.monotonic() + 20
        while len(beats) < 6 and time.monotonic() < until:
            writer.turn()
            beats.add(writer.last_line.beat)
        assert len(beats) == 6 and sorted(beats) == list(range(min(beats), min(beats) + 6))
        writer.bye()
