"""How a connection is greeted: what is no HELLO, HELLOs that break the protocol, and those that are denied."""

import struct

import iwarp
import pytest
import rwp
from conftest import ends_in_order, is_told

from daemon import until


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


def test_unknown_tlv_that_must_be_understood(fresh):
    put_hello(fresh, rwp.blob(rwp.HELLO, 1, encode(hello_tlvs(fresh)) + rwp.raw_tlv(0x8000 | 999, b"1234")))
    is_told(fresh, rwp.UNSUPPORTED, type=rwp.DENY)


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


def test_goodbye_instead_of_waiting(make):
    """BYE while the region is being made: it ends without a word."""
    target = make("c", region={"size": "32M"})  # a few milliseconds
    with rwp.Writer((target.address, target.port), name="hasty") as writer:
        frames, send = [], writer.connection.raw
        writer.connection.raw = frames.append
        writer.put(rwp.HELLO, hello_tlvs(writer))
        writer.put(rwp.BYE)
        send(b"".join(frames))
        with pytest.raises(iwarp.Ended):
            writer.get()
    until(lambda: not target.regions(), what="the region to go")
    assert target.status()["memoryUsed"] == 0
