"""A region of two buffers: where transfers must lie, and what of the region no writer reaches."""

import os

import iwarp
import pytest
import rwp

SIZE = 65536
FIRST, SECOND = b"the first arrival", b"the second"


@pytest.fixture
def writer(connect):
    writer = connect(name="stranger")
    writer.hello(tlvs={rwp.REGION_NAME: "two"})
    assert (writer.grant[rwp.SIZE_TLV], writer.grant[rwp.BUFFERS]) == (SIZE, 2)
    return writer


def write(writer, place, data):
    """A ONE that lies there; the code of its RESULT."""
    writer.transfer += 1
    writer.write_region(place, data)
    fields = {"transfer": writer.transfer, "grant": writer.grant[rwp.GENERATION], "region_off": place}
    writer.put(rwp.ONE, {rwp.NAME: "x"}, **fields, length=len(data), data_crc=iwarp.crc32c(data))
    return writer.result()[0].length


def shown(target, writer):
    return next(r for r in target.regions() if r["id"] == writer.grant[rwp.REGION_ID])


def whole_file(target, writer):
    _, (fd,) = target.exchange("OpenRegion", {"which": str(writer.grant[rwp.REGION_ID])})
    with open(fd, "rb", buffering=0) as file:
        return os.pread(fd, os.fstat(file.fileno()).st_size, 0)


def test_in_turns(target, writer):
    for number in range(1, 6):
        place = (number - 1) % 2 * SIZE
        assert write(writer, place, FIRST) == rwp.ARRIVED
        region = shown(target, writer)
        assert (region["generation"], region["lastArrival"]["offset"]) == (2 * number, place)


def test_not_in_its_turn(target, writer):
    """The next still goes into the second buffer: only what arrives counts."""
    assert write(writer, SIZE, FIRST) == rwp.PROTOCOL
    assert write(writer, 0, FIRST) == rwp.ARRIVED
    for wrong in 0, SIZE - 1, SIZE + 1, 2 * SIZE:
        writer.transfer += 1
        fields = {"transfer": writer.transfer, "grant": writer.grant[rwp.GENERATION], "region_off": wrong}
        writer.put(rwp.ONE, {rwp.NAME: "x"}, **fields, length=1, data_crc=iwarp.crc32c(b"t"))
        assert writer.result()[0].length == rwp.PROTOCOL
    region = shown(target, writer)
    assert (region["generation"], region["lastArrival"]["length"]) == (2, len(FIRST))
    assert write(writer, SIZE, SECOND) == rwp.ARRIVED
    memory = target.memory(writer.grant[rwp.REGION_ID])
    assert memory[: len(FIRST)] == FIRST and memory[SIZE : SIZE + len(SECOND)] == SECOND


def test_a_stream_ends_with_its_buffer(target, writer):
    """It does not go on into the other, where the last arrival may lie."""
    writer.begin()
    writer.data(0, bytes(SIZE))
    writer.data(SIZE, b"x")
    r, words = writer.result()
    assert r.length == words[rwp.CODE] == rwp.SIZE


def test_the_label_is_out_of_reach(target, writer):
    assert write(writer, 0, FIRST) == rwp.ARRIVED
    before = whole_file(target, writer)
    assert before[-4096:-4088] == b"RWLABEL\0"
    writer.write_region(2 * SIZE, bytes(8))
    assert writer.connection.last_words() is not None, "no Terminate"
    assert whole_file(target, writer)[:-4096] == before[:-4096]
    assert whole_file(target, writer)[-4096:-4056] == before[-4096:-4056]  # up to where the end is told
