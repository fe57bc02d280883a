"""Records and lines that break the protocol."""

import time

import iwarp
import pytest
import rwp
from conftest import ends_in_order, is_told

DATA = b"some bytes"


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


# ---- records ----


def test_second_hello(granted):
    r, words = granted.hello()
    assert (r.type, words[rwp.CODE]) == (rwp.NOTICE, rwp.PROTOCOL)
    ends_in_order(granted)


@pytest.mark.parametrize("type", range(rwp.GRANT, rwp.NOTICE + 1))
def test_record_that_has_no_place_here(granted, type):
    granted.put(type)
    is_told(granted, rwp.PROTOCOL)


def test_growing_is_reserved(granted):
    granted.put(rwp.GROW)
    is_told(granted, rwp.UNSUPPORTED)


@pytest.mark.parametrize("data_crc", [0, 0x12345678])
def test_unknown_record_with_a_blob(granted, data_crc):
    """What its data_crc covers is its own affair."""
    granted.put(200, {rwp.NAME: "x"}, data_crc=data_crc)
    still_works(granted)


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


@pytest.mark.parametrize("length", [0, 9, 11, 2**64 - 1])
def test_one_of_another_length(granted, length):
    """Its description says what the record does, or nothing (the greatest number)."""
    granted.one(DATA, tlvs={rwp.NAME: "x", rwp.LENGTH: length})
    if length == 2**64 - 1:
        assert granted.result()[0].length == rwp.ARRIVED
    else:
        fails(granted, rwp.PROTOCOL)


def test_region_is_filled_in_order(granted):
    """In memory the stream lies as it is: region_off is stream_off."""
    granted.write_region(4096, DATA)
    granted.one(DATA, region_off=4096)
    fails(granted, rwp.PROTOCOL)
    granted.begin()
    granted.data(0, DATA)
    granted.data(len(DATA), DATA, region_off=4096)
    fails(granted, rwp.PROTOCOL, goes_on=False)
    granted.end(DATA + DATA)
    still_works(granted)


def test_failures_go_round(granted):
    """More failed results, with their words, than the mailbox holds at once."""
    for _ in range(5 * rwp.MAILBOX_RECORDS):
        granted.one(DATA, region_off=65536)
        fails(granted, rwp.PROTOCOL, goes_on=False)
    still_works(granted)


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


@pytest.mark.parametrize(
    "length, at, code",
    [(0, len(DATA), rwp.PROTOCOL), (1000, 0, rwp.PROTOCOL), (65536 - len(DATA) + 1, len(DATA), rwp.SIZE)],
    ids=["empty", "not-next", "too-large"],
)
def test_hole_that_does_not_fit(open_transfer, length, at, code):
    open_transfer.hole(length, stream_off=at)
    fails(open_transfer, code, goes_on=False)
    open_transfer.end(DATA)
    still_works(open_transfer)


def test_payload_that_is_not_the_writers(target, granted, canary):
    """A record may speak of bytes that were never written: they are zeros, and nobody else's."""
    granted.transfer += 1
    zeros = bytes(1000)
    fields = {"transfer": 1, "grant": granted.grant[rwp.GENERATION], "length": len(zeros)}
    granted.put(rwp.ONE, {rwp.NAME: "zeros"}, data_crc=iwarp.crc32c(zeros), **fields)
    assert granted.result()[0].length == rwp.ARRIVED


# ---- long payload: the target has its sum from the frames that brought it ----

LONG = bytes(i * 7 % 251 for i in range(40000))


def one_of(writer, length, data_crc):
    """A record that speaks of what is in the region already."""
    writer.transfer += 1
    fields = {"transfer": writer.transfer, "grant": writer.grant[rwp.GENERATION], "length": length}
    writer.put(rwp.ONE, {rwp.NAME: "x"}, data_crc=data_crc, **fields)


def test_long_payload(target, granted):
    granted.one(LONG)
    assert granted.result()[0].length == rwp.ARRIVED
    assert target.memory(granted.grant[rwp.REGION_ID])[: len(LONG)] == LONG


def test_wrong_crc_of_long_payload(granted):
    granted.one(LONG, data_crc=0x12345678)
    fails(granted, rwp.CHECKSUM)


@pytest.mark.parametrize("at", [0, 32767, 32768, len(LONG) - 5])
def test_long_payload_that_is_written_over(granted, at):
    """What counts is what is there."""
    changed = LONG[:at] + b"other" + LONG[at + 5 :]
    for data, code in (LONG, rwp.CHECKSUM), (changed, rwp.ARRIVED):
        granted.write_region(0, LONG)
        granted.write_region(at, b"other")
        one_of(granted, len(LONG), iwarp.crc32c(data))
        assert granted.result()[0].length == code


def test_hole_over_long_payload(target, granted):
    """Its zeros are there then, whatever came before them."""
    zeros = bytes(len(LONG))
    granted.begin()
    granted.write_region(0, LONG)
    granted.hole(len(LONG))
    granted.end(zeros)
    assert granted.result()[0].length == rwp.ARRIVED
    for data, code in (LONG, rwp.CHECKSUM), (zeros, rwp.ARRIVED):
        one_of(granted, len(LONG), iwarp.crc32c(data))
        assert granted.result()[0].length == code
    assert target.memory(granted.grant[rwp.REGION_ID])[: len(LONG)] == zeros


def test_records_that_divide_a_write(target, granted):
    """They need not be of the same bytes."""
    granted.begin()
    granted.write_region(0, LONG)
    for begin, end in (0, 20000), (20000, 20001), (20001, 40000):
        fields = {"transfer": granted.transfer, "grant": granted.grant[rwp.GENERATION], "length": end - begin}
        fields |= {"stream_off": begin, "region_off": begin, "data_crc": iwarp.crc32c(LONG[begin:end])}
        granted.put(rwp.DATA, **fields)
    granted.end(LONG)
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


def test_line_of_the_target(granted):
    """It is open, and names the grant."""
    while granted.last_line.grant == 0:
        granted.turn()
    assert (granted.last_line.state, granted.last_line.grant) == (1, granted.grant[rwp.GENERATION])


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
