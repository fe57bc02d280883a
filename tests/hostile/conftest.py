"""conftest.py -- a target, strangers who write to it by hand, and a good writer beside them"""

import contextlib
import os

import iwarp
import pytest
import rwp

from daemon import until

INNOCENT = b"what lay there before"


@pytest.fixture(scope="module")
def target(standing):
    two = {"size": "64K", "max-size": "64K", "buffers": 2}
    limits = {"setup": "2s", "beat": "10s", "dead": "60s"}
    return standing("b", region={"size": "64K"}, limits=limits, **{"region two": two})


@pytest.fixture
def connect(target):
    """A function that makes strangers; their connections end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **how: stack.enter_context(rwp.Writer((target.address, target.port), **how))


@pytest.fixture
def fresh(connect):
    """Connected, nothing said yet."""
    return connect(name="stranger")


@pytest.fixture
def granted(fresh):
    fresh.hello()
    return fresh


@pytest.fixture
def stranger(connect):
    """A writer in whose region something has arrived."""
    writer = connect(name="stranger")
    writer.hello()
    writer.one(INNOCENT)
    assert writer.result()[0].length == rwp.ARRIVED
    return writer


@pytest.fixture(autouse=True)
def canary(target):
    """A good writer that is in the middle of a transfer while the test does its worst. After that its region
    is untouched, the transfer ends well, and the daemon holds no more than before."""
    before = target.status()["connections"]
    data = os.urandom(3000)
    with rwp.Writer((target.address, target.port), name="canary") as writer:
        writer.hello()
        writer.begin(length=len(data))
        writer.data(0, data[:1000])
        yield writer
        writer.data(1000, data[1000:])
        writer.end(data)
        r, _ = writer.result()
        assert (r.length, r.stream_off, r.data_crc) == (rwp.ARRIVED, len(data), iwarp.crc32c(data))
        whole = target.memory(writer.grant[rwp.REGION_ID])
        assert whole == data + bytes(len(whole) - len(data))
        writer.bye()
    until(lambda: target.status()["connections"] == before, what="all connections to end")


def region_is_as_before(target, writer):
    whole = target.memory(writer.grant[rwp.REGION_ID])
    assert whole == INNOCENT + bytes(len(whole) - len(INNOCENT))


def ends_in_order(writer):
    """Without a Terminate."""
    assert writer.connection.last_words() is None


def is_told(writer, code, type=rwp.NOTICE):
    """NOTICE, or DENY, with that code, then the end."""
    r, words = writer.get()
    assert (r.type, words[rwp.CODE]) == (type, code), words[rwp.TEXT]
    assert words[rwp.HOST] == "b" and words[rwp.TEXT]
    ends_in_order(writer)
