"""Keys: what a writer with one can do, and what one without it cannot, whatever it has heard or borrowed."""

import base64
import contextlib
import hashlib
import os
import struct
import time

import iwarp
import keyed
import pytest
import rwp
from conftest import ends_in_order

from daemon import until

KEYS = {name: hashlib.sha256(name.encode()).digest() for name in ("hand", "other", "stranger")}
VAULT = {rwp.REGION_NAME: "vault"}


def write_key(directory, name):
    path = directory / f"{name}.key"
    path.write_text(base64.b64encode(KEYS[name]).decode() + "\n")
    path.chmod(0o600)
    return path


def peers(directory):
    return {
        f"peer {name}": {"address": "192.0.2.1", "key": write_key(directory, name)} for name in ("hand", "other")
    }


@pytest.fixture(scope="module")
def target(standing, tmp_path_factory):
    sections = peers(tmp_path_factory.mktemp("keys")) | {"region vault": {"size": "64K", "require-key": "yes"}}
    return standing("b", region={"size": "64K"}, limits={"setup": "2s", "beat": "10s", "dead": "60s"}, **sections)


@pytest.fixture
def connect(target):
    with contextlib.ExitStack() as stack:

        def make(key="hand", **how):
            address = (target.address, target.port)
            writer = keyed.Writer(address, KEYS[key], **how) if key else rwp.Writer(address, **how)
            return stack.enter_context(writer)

        yield make


def refusals(target):
    return {key: value for key, value in target.status().items() if key.startswith("refused")}


@contextlib.contextmanager
def refused_as(target, reason):
    before = refusals(target)
    yield
    assert refusals(target) == before | {reason: before[reason] + 1}


def denial(answer):
    r, words = answer
    assert r.type == rwp.DENY, r
    assert not words.get(rwp.FIX)
    return words[rwp.CODE], words[rwp.TEXT]


def rejection(writer):
    assert writer.setup.flags & iwarp.REJECT
    reject = rwp.parse_reject(writer.setup.private)
    return reject.reason, reject.text


@pytest.fixture
def the_one_answer(connect):
    """What everybody is told whose key is no good: here, one without any."""
    return denial(connect(key=None).hello(tlvs=VAULT))


def test_a_writer_with_the_key(target, connect):
    writer = connect()
    assert writer.hello(tlvs=VAULT)[0].type == rwp.GRANT
    for content in (b"Hello RDMA Write!", os.urandom(5000)):
        writer.one(content)
        r, _ = writer.result()
        assert (r.length, r.data_crc) == (rwp.ARRIVED, iwarp.crc32c(content))
    (region,) = [region for region in target.regions() if region["id"] == writer.grant[rwp.REGION_ID]]
    assert (region["peer"], region["claimedName"], region["keyed"]) == ("hand", "hand", True)
    assert [peer["keyed"] for peer in target.peers() if peer["name"] == "hand" and peer["state"] == "open"] == [True]
    writer.put_line()
    until(lambda: writer.turn() or writer.last_line.consumed >= writer.seq)
    writer.bye()


def test_needs_a_key(target, connect, the_one_answer):
    assert the_one_answer[0] == rwp.KEY
    with refused_as(target, "refusedKeyMissing"):
        assert denial(connect(key=None).hello(tlvs=VAULT)) == the_one_answer


def test_unknown_key(target, connect, the_one_answer):
    with refused_as(target, "refusedKeyUnknown"):
        assert rejection(connect("stranger")) == the_one_answer


def test_gate_of_another_key(target, connect, the_one_answer):
    private = keyed.request(KEYS["stranger"], 1, 0)
    private = private[:24] + keyed.key_id(KEYS["hand"]) + private[32:]
    with refused_as(target, "refusedKeyWrong"):
        assert rejection(connect(private=private)) == the_one_answer


@pytest.mark.parametrize(
    "how",
    [
        {"name": "other"},  # another peer, which has another key
        {"name": "nobody"},
        {"peer": "c"},  # relayed: meant for somebody else
        {"peer": ""},
        {"name": "b", "peer": "hand"},  # reflected: its own words
    ],
    ids="another-peer nobody another-target no-target own-words".split(),
)
def test_names_are_bound(target, connect, the_one_answer, how):
    with refused_as(target, "refusedKeyNames"):
        assert denial(connect(**how).hello()) == the_one_answer


def altered(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "alter",
    [
        lambda blob: altered(blob, 20),
        lambda blob: altered(blob, -10),
        lambda blob: blob[:4] + struct.pack("<I", len(blob) - 24) + blob[8:-24],
        lambda blob: blob[:-24] + rwp.raw_tlv(keyed.MAC, bytes(16)),
    ],
    ids="name mac no-mac zeros".split(),
)
def test_hello_that_proves_nothing(target, connect, the_one_answer, alter):
    writer = connect()
    make = writer.make_blob
    writer.make_blob = lambda type, tlvs: alter(make(type, tlvs))
    with refused_as(target, "refusedKeyWrong"):
        assert denial(writer.hello()) == the_one_answer


def test_replayed(target, connect, the_one_answer):
    """All that was heard of a good connection, said again: good for the gate, and for nothing else."""
    first = connect()
    heard = []
    make = first.make_blob
    first.make_blob = lambda type, tlvs: heard.append(make(type, tlvs)) or heard[-1]
    assert first.hello()[0].type == rwp.GRANT
    again = connect(private=first.request)
    again.make_blob = lambda type, tlvs: heard[0]
    with refused_as(target, "refusedKeyWrong"):
        assert denial(again.hello()) == the_one_answer


@pytest.mark.parametrize("keys", ["keyless", "the target's", "of another session"])
def test_record_with_another_tag(target, connect, keys):
    writer = connect()
    writer.hello()
    region = writer.grant[rwp.REGION_ID]
    if keys == "keyless":
        writer.tag = lambda data, at, blob=b"": data
    elif keys == "the target's":
        writer.keys[0] = writer.keys[1]
    else:
        other = connect()
        other.hello()
        writer.keys[0] = other.keys[0]
    writer.one(b"forged")
    r, words = writer.get()
    assert (r.type, words[rwp.CODE]) == (rwp.NOTICE, rwp.PROTOCOL)
    ends_in_order(writer)
    assert region not in [region["id"] for region in target.regions()]


def test_blob_that_was_altered(target, connect):
    """Under a record that is good: the name would have been another."""
    writer = connect()
    writer.hello()
    put = writer.put_blob

    def alter(type, data):
        bare = altered(data[:-8], 20)
        return put(type, bare + rwp.raw_tlv(rwp.CHECK, struct.pack("<I", iwarp.crc32c(bare))))

    writer.put_blob = alter
    writer.one(b"content")
    r, words = writer.get()
    assert (r.type, words[rwp.CODE]) == (rwp.NOTICE, rwp.PROTOCOL)


def test_guesses_are_slowed(make, tmp_path):
    target = make("b", **peers(tmp_path))

    def try_once():
        before = time.monotonic()
        with keyed.Writer((target.address, target.port), KEYS["stranger"]) as writer:
            assert rejection(writer)[0] == rwp.KEY
        return time.monotonic() - before

    times = [try_once() for _ in range(6)]
    assert times[3] >= 0.1 and times[4] >= 0.2 and times[5] >= 0.4, times
    assert refusals(target)["refusedKeyUnknown"] == 6
    assert target.log.read_text().count("refused: ") == 1
    with keyed.Writer((target.address, target.port), KEYS["hand"]) as writer:  # who has the key does not wait
        before = time.monotonic()
        assert writer.hello()[0].type == rwp.GRANT
        assert time.monotonic() - before < 0.8


def test_strangers_have_little_room(make, tmp_path):
    """Connections without a HELLO: few, not for long, and not at the cost of others."""
    target = make("b", limits={"unproven": 3, "hello": "700ms"}, **peers(tmp_path))
    address = (target.address, target.port)
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(keyed.Writer(address, KEYS["hand"]))
        good.hello()
        silent = [stack.enter_context(rwp.Writer(address)) for _ in range(3)]
        status = target.status()
        assert (status["connections"], status["unproven"]) == (1, 3)
        more = stack.enter_context(rwp.Writer(address))
        assert rejection(more) == (rwp.BUSY, "3 of 3 connections are being set up ([limits] unproven)")
        assert refusals(target)["refusedBusy"] == 1
        for writer in silent:
            ends_in_order(writer)
        until(lambda: target.status()["unproven"] == 0)
        good.one(b"still here")
        assert good.result()[0].length == rwp.ARRIVED


def test_reload_takes_new_keys(make, tmp_path):
    target = make("b", **peers(tmp_path))
    address = (target.address, target.port)
    with keyed.Writer(address, KEYS["hand"]) as old:
        old.hello()
        KEYS["hand"], before = os.urandom(32), KEYS["hand"]
        try:
            write_key(tmp_path, "hand")
            target.rwctl("reload")
            with keyed.Writer(address, KEYS["hand"]) as writer:
                assert writer.hello()[0].type == rwp.GRANT
            with keyed.Writer(address, before) as writer:
                assert rejection(writer)[0] == rwp.KEY
        finally:
            KEYS["hand"] = before
        old.one(b"a connection that exists goes on")
        assert old.result()[0].length == rwp.ARRIVED
