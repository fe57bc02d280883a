"""Regions that are rings: what is taken is given back, and files of any size pass through."""

import os

import iwarp
import pytest
import rwp
from conftest import ends_in_order, is_told

RING = 64 << 10


@pytest.fixture(scope="module")
def target(standing):
    """As that of the other tests, and a region whose bytes go nowhere."""
    regions = {"region default": {"size": "64K"}, "region void": {"sink": "discard", "size": "64K"}}
    return standing("b", limits={"setup": "2s", "beat": "10s", "dead": "60s"}, **regions)


@pytest.fixture
def ring(target):
    with rwp.RingWriter((target.address, target.port), name="ring") as writer:
        r, grant = writer.hello(region="void")
        assert (r.type, grant[rwp.SINK], grant[rwp.SIZE_TLV]) == (rwp.GRANT, 3, RING)
        yield writer


def arrived(ring, data):
    r, words = ring.result()
    assert words is None, words[rwp.TEXT]
    assert (r.length, r.stream_off, r.region_off, r.data_crc) == (rwp.ARRIVED, len(data), 0, iwarp.crc32c(data))


def all_given_back(ring):
    while ring.last_line.released < ring.used:
        ring.turn()


def test_size_of_a_ring_is_not_the_files(target):
    with rwp.RingWriter((target.address, target.port)) as writer:
        assert writer.hello(region="void", size=1 << 40)[1][rwp.SIZE_TLV] == RING


def test_segment_fits_with_what_is_skipped(ring):
    assert ring.grant[rwp.SEGMENT] * 2 <= RING
    assert ring.grant[rwp.IN_FLIGHT] == RING


@pytest.mark.parametrize("piece", [16384, 7001, 1])
def test_many_rounds(ring, piece):
    data = os.urandom(5 * RING if piece > 1 else 300)
    ring.begin(length=len(data))
    for at in range(0, len(data), piece):
        ring.data(at, data[at : at + piece])
    ring.end(data)
    arrived(ring, data)
    all_given_back(ring)


def test_pipelined(ring):
    """Many are under way before the first result is looked at; the position goes on through all of them."""
    files = [os.urandom(n * 1000 % 16001) for n in range(1, 13)]
    for data in files:
        ring.one(data)
    for ring.transfer, data in enumerate(files, 1):
        arrived(ring, data)
    all_given_back(ring)


def test_holes_take_no_room(ring):
    data = os.urandom(1000)
    whole = data + bytes(100_000) + data
    ring.begin()
    ring.data(0, data)
    ring.hole(100_000, stream_off=1000)
    ring.data(101_000, data)
    ring.end(whole)
    arrived(ring, whole)
    assert ring.last_line.released == 2000


def test_a_failed_transfer_counts_as_well(ring):
    data = os.urandom(16000)
    ring.begin(length=len(data))
    ring.data(0, data[:6000], data_crc=1)
    ring.data(6000, data[6000:])
    ring.end(data)
    r, words = ring.result()
    assert r.length == words[rwp.CODE] == rwp.CHECKSUM
    for _ in range(5):
        ring.one(data)
        arrived(ring, data)
    all_given_back(ring)


def test_refused_at_its_begin(ring):
    ring.one(bytes(5000), length=4000, stream_off=7)
    assert ring.result()[0].length == rwp.PROTOCOL
    ring.used -= 1000
    ring.one(bytes(3000))
    arrived(ring, bytes(3000))
    all_given_back(ring)


@pytest.mark.parametrize("place", [1000, 2999, 3001, RING - 999, RING, 2**64 - 1])
def test_out_of_place(ring, place):
    ring.one(bytes(3000))
    arrived(ring, bytes(3000))
    ring.one(bytes(1000), region_off=place)
    is_told(ring, rwp.PROTOCOL)
    ends_in_order(ring)


def test_nothing_can_be_read(target, ring):
    ring.one(b"secret")
    arrived(ring, b"secret")
    assert "nothing lies whole in the region" in target.refused("dump-region", str(ring.grant[rwp.REGION_ID]))
    region = next(r for r in target.regions() if r["id"] == ring.grant[rwp.REGION_ID])
    assert (region["sink"], region["lastArrival"]["length"]) == ("discard", 6)
