"""The spool sink: files on disk, durable and whole under their names, resumed after any end."""

import contextlib
import os
import signal
import stat
import time

import iwarp
import pytest
import rwp

from daemon import until

ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))
RING = 256 << 10


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "in"
    path.mkdir()
    return path


@pytest.fixture
def spool(make, directory):
    """A function that starts a target with a spool."""

    def start(**keys):
        region = {"sink": "spool", "directory": directory, "size": "256K", "free": "0"} | keys
        return make("b", region=region, limits={"beat": "200ms", "dead": "10s"})

    return start


@pytest.fixture
def connect():
    with contextlib.ExitStack() as stack:

        def to(target, name="hand"):
            writer = stack.enter_context(rwp.RingWriter((target.address, target.port), name=name))
            assert writer.hello()[1][rwp.SINK] == 2
            return writer

        yield to


def stored(writer, data):
    r, words = writer.result()
    assert words is None, words[rwp.TEXT]
    assert (r.length, r.stream_off, r.region_off, r.data_crc) == (rwp.STORED, len(data), len(data), iwarp.crc32c(data))


def fails(writer, code=rwp.STORAGE):
    r, words = writer.result()
    assert r.length == code, words and words[rwp.TEXT]
    return words


def names(directory):
    return sorted(os.listdir(directory))


def partials(directory):
    return [name for name in names(directory) if name.startswith(".rwriter-") and name.endswith(".part")]


def only_files(directory, *wanted):
    """Journals go a little after the results."""
    until(lambda: names(directory) == sorted(wanted), what=f"{wanted}, there is {names(directory)}")


def line_says(writer, field, value):
    while getattr(writer.last_line, field) < value:
        writer.turn()


# ---- storing ----


def test_small_and_large(spool, connect, directory):
    target = spool()
    writer = connect(target)
    small, large = os.urandom(1000), os.urandom(5 * RING + 17)
    writer.one(small, name="small")
    stored(writer, small)
    writer.begin(name="large", length=len(large))
    writer.send(large)
    writer.end(large)
    stored(writer, large)
    only_files(directory, "large", "small")
    assert (directory / "small").read_bytes() == small
    assert (directory / "large").read_bytes() == large
    assert stat.S_IMODE((directory / "small").stat().st_mode) == 0o640
    region = target.regions()[0]
    assert (region["sink"], region["arrivals"], region["lastArrival"]["name"]) == ("spool", 2, "large")
    assert region["lastArrival"]["path"] == str(directory / "large")


def test_pipelined(spool, connect, directory):
    writer = connect(spool())
    files = {f"file{n}": os.urandom(n * 1000) for n in range(12)}
    for name, data in files.items():
        writer.one(data, name=name)
    for writer.transfer, data in enumerate(files.values(), 1):
        stored(writer, data)
    only_files(directory, *files)
    assert all((directory / name).read_bytes() == data for name, data in files.items())


def test_no_name_before_it_is_whole(spool, connect, directory):
    writer = connect(spool())
    data = os.urandom(100_000)
    writer.begin(name="whole")
    writer.send(data, end=90_000)
    line_says(writer, "arrived", 90_000)
    assert len(names(directory)) == len(partials(directory)) == 1
    writer.send(data, start=90_000)
    writer.end(data)
    stored(writer, data)
    only_files(directory, "whole")


def test_holes(spool, connect, directory):
    writer = connect(spool())
    data = os.urandom(8192)
    whole = data + bytes(2 << 20) + data + bytes(4096)
    writer.begin(name="holes")
    writer.data(0, data)
    writer.hole(2 << 20, stream_off=8192)
    writer.data(8192 + (2 << 20), data)
    writer.hole(4096, stream_off=2 * 8192 + (2 << 20))
    writer.end(whole)
    stored(writer, whole)
    assert (directory / "holes").read_bytes() == whole
    assert (directory / "holes").stat().st_blocks * 512 < 100_000


def test_mode_and_time_on_request(spool, connect, directory):
    writer = connect(spool(mode="0600"))
    writer.one(b"x", tlvs={rwp.NAME: "plain"})
    stored(writer, b"x")
    writer.one(b"x", tlvs={rwp.NAME: "asked", rwp.MODE: 0o7755, rwp.MTIME: 1_000_000_000_123_456_789})
    stored(writer, b"x")
    plain, asked = (directory / "plain").stat(), (directory / "asked").stat()
    assert (stat.S_IMODE(plain.st_mode), stat.S_IMODE(asked.st_mode)) == (0o600, 0o755)
    assert asked.st_mtime_ns == 1_000_000_000_123_456_789


@pytest.mark.parametrize(
    "foreign, name",
    [
        ("../../etc/passwd", "passwd"),
        ("/absolute", "absolute"),
        (".hidden", "_hidden"),
        ("..", "_."),
        (".rwriter-0123.part", "_rwriter-0123.part"),
        ("x" * 255, "x" * 250),
    ],
    ids=["up", "absolute", "hidden", "dots", "ours", "long"],
)
def test_names_are_made_safe(spool, connect, directory, foreign, name):
    writer = connect(spool())
    writer.one(b"x", name=foreign)
    stored(writer, b"x")
    only_files(directory, name)


@pytest.mark.parametrize("foreign", ["", "a/"])
def test_no_name_is_left(spool, connect, directory, foreign):
    writer = connect(spool())
    writer.one(b"x", tlvs={rwp.NAME: foreign} if foreign else {})
    assert "name" in fails(writer)[rwp.TEXT]
    writer.one(b"x")
    stored(writer, b"x")


# ---- conflicts ----


def test_keep(spool, connect, directory):
    writer = connect(spool())
    for data in b"first", b"second":
        writer.one(data, name="taken")
    writer.transfer = 1
    stored(writer, b"first")
    writer.transfer = 2
    words = fails(writer)
    assert "taken is in" in words[rwp.TEXT] and "conflict = replace" in words[rwp.FIX]
    only_files(directory, "taken")
    assert (directory / "taken").read_bytes() == b"first"


def test_replace(spool, connect, directory):
    writer = connect(spool(conflict="replace"))
    for data in b"first", b"second":
        writer.one(data, name="taken")
        stored(writer, data)
    only_files(directory, "taken")
    assert (directory / "taken").read_bytes() == b"second"


def test_version(spool, connect, directory):
    writer = connect(spool(conflict="version"))
    for data in b"first", b"second", b"third":
        writer.one(data, name="taken")
        stored(writer, data)
    only_files(directory, "taken", "taken.1", "taken.2")
    assert (directory / "taken.2").read_bytes() == b"third"


def test_two_at_once_under_one_name(spool, connect, directory):
    """Both began when the name was free: the first one to end gets it."""
    target = spool()
    writers = connect(target, "one"), connect(target, "two")
    for number, writer in enumerate(writers):
        writer.begin(name="same")
        writer.data(0, b"%d" % number)
        line_says(writer, "arrived", 1)
    writers[1].end(b"1")
    stored(writers[1], b"1")
    writers[0].end(b"0")
    assert "same is in" in fails(writers[0])[rwp.TEXT]
    only_files(directory, "same")
    assert (directory / "same").read_bytes() == b"1"


def test_no_room(spool, connect, directory):
    writer = connect(spool(free="1024T"))
    writer.one(b"x")
    words = fails(writer)
    assert "must stay free" in words[rwp.TEXT] and "lower free in [region default]" in words[rwp.FIX]
    assert names(directory) == []


# ---- resuming ----


def half(writer, data, id=ID, name="file"):
    """Sends two thirds of a file; they have arrived."""
    assert writer.resume(id, name=name, length=len(data)) == (0, 0)
    there = len(data) * 2 // 3
    writer.send(data, end=there)
    line_says(writer, "arrived", there)
    return there


def go_on(writer, data, offset, name="file"):
    start, crc = writer.resume(ID, name=name, length=len(data))
    assert (start, crc) == (offset, iwarp.crc32c(data[:offset]))
    writer.send(data, start=start)
    writer.end(data)
    stored(writer, data)


def test_connection_lost(spool, connect, directory):
    target = spool()
    data = os.urandom(3 * RING)
    writer = connect(target)
    there = half(writer, data)
    writer.close()
    go_on(connect(target), data, there)
    only_files(directory, "file")
    assert (directory / "file").read_bytes() == data


def test_connection_half_dead(spool, connect, directory):
    """The writer has come back before the target has noticed that he was gone."""
    target = spool()
    data = os.urandom(3 * RING)
    first = connect(target)
    there = half(first, data)
    go_on(connect(target), data, there)
    first.grant = first.beat_at = None  # it says nothing any more
    r, words = first.get()
    assert (r.type, words[rwp.CODE]) == (rwp.NOTICE, rwp.STALE)
    assert (directory / "file").read_bytes() == data


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_target_restarted(spool, connect, directory, how):
    target = spool()
    data = os.urandom(3 * RING)
    writer = connect(target)
    there = half(writer, data)
    if how == "stop":
        target.stop()
    else:
        line_says(writer, "durable", there)
        target.kill()
    target.start()
    go_on(connect(target), data, there)
    only_files(directory, "file")
    assert (directory / "file").read_bytes() == data


def test_writer_starts_anew(spool, connect, directory):
    target = spool()
    writer = connect(target)
    half(writer, os.urandom(3 * RING))
    writer.close()
    other = os.urandom(RING)
    writer = connect(target)
    assert writer.resume(ID)[0] > 0
    writer.send(other)
    writer.end(other)
    stored(writer, other)
    only_files(directory, "file")
    assert (directory / "file").read_bytes() == other


def test_anew_does_not_resume_the_old(spool, connect, directory):
    """What a journal said of bytes that were written over is not believed any more."""
    target = spool()
    writer = connect(target)
    there = half(writer, os.urandom(3 * RING))
    line_says(writer, "durable", there)
    writer.close()
    writer = connect(target)
    assert writer.resume(ID)[0] == there
    other = os.urandom(RING)
    writer.data(0, other[:1000])
    line_says(writer, "released", 1000)
    target.kill()
    target.start()
    start, crc = connect(target).resume(ID)
    assert (start, crc) in [(0, 0), (1000, iwarp.crc32c(other[:1000]))]


def test_end_is_repeated(spool, connect, directory):
    """Nobody has heard the result: it is told again, and the file is not stored twice."""
    target = spool()
    data = os.urandom(RING)
    for _ in range(2):
        writer = connect(target)
        start, crc = writer.resume(ID)
        assert (start, crc) in [(0, 0), (len(data), iwarp.crc32c(data))]
        writer.send(data, start=start)
        writer.end(data)
        stored(writer, data)
        inode = (directory / "file").stat().st_ino
        writer.close()
    target.kill()
    target.start()
    writer = connect(target)
    writer.one(data, tlvs={rwp.NAME: "small", rwp.ID: OTHER_ID})
    stored(writer, data)
    writer.one(data, tlvs={rwp.NAME: "small", rwp.ID: OTHER_ID})
    stored(writer, data)
    assert (directory / "file").stat().st_ino == inode
    only_files(directory, "file", "small")


@pytest.mark.parametrize("keep", [0, 1])
def test_abort(spool, connect, directory, keep):
    target = spool()
    data = os.urandom(3 * RING)
    writer = connect(target)
    there = half(writer, data)
    writer.put(rwp.ABORT, transfer=writer.transfer, length=keep)
    fails(writer, rwp.ABORTED)
    assert len(partials(directory)) == keep
    go_on(writer, data, there * keep)


def test_without_an_id_nothing_stays(spool, connect, directory):
    target = spool()
    writer = connect(target)
    writer.begin()
    writer.data(0, bytes(1000))
    line_says(writer, "arrived", 1000)
    writer.close()
    only_files(directory)


def test_end_that_does_not_fit(spool, connect, directory):
    """What is there is not what the writer has: it goes."""
    writer = connect(spool())
    half(writer, os.urandom(RING))
    writer.end(b"something else")
    fails(writer, rwp.CHECKSUM)
    assert writer.resume(ID) == (0, 0)


def test_others_do_not_meet(spool, connect, directory):
    """Two writers with equal IDs."""
    target = spool()
    first, second = connect(target, "one"), connect(target, "two")
    data = os.urandom(RING)
    half(first, data, name="1")
    half(second, data, name="2")


def test_a_line_says_what_is_durable(spool, connect):
    writer = connect(spool())
    data = bytes(100_000)
    writer.begin(name="slow")
    writer.send(data)
    line_says(writer, "durable", len(data))
    assert writer.last_line.transfer == writer.transfer


# ---- the directory ----


def test_remains_of_a_crash(make, spool, connect, directory):
    key = "0123456789abcdef" * 2
    (directory / f".rwriter-{key}.part").write_bytes(b"nobody knows it")
    (directory / f".rwriter-{key[::-1]}.journal").write_bytes(b"no journal")
    (directory / "innocent").write_bytes(b"x")
    target = spool()
    only_files(directory, "innocent")
    writer = connect(target)
    writer.one(b"x")
    stored(writer, b"x")


def test_two_daemons_in_one_directory(make, spool, connect, directory):
    target = spool()
    other = make("c", region={"sink": "spool", "directory": directory, "free": "0"})
    writer = connect(other)
    writer.one(b"x")
    assert "another rwriterd" in fails(writer)[rwp.TEXT]
    target.stop()
    writer.one(b"x")
    stored(writer, b"x")


def test_directory_comes_and_goes(spool, connect, directory):
    target = spool()
    writer = connect(target)
    directory.chmod(0o500)
    writer.one(b"x")
    words = fails(writer)
    assert "Permission denied" in words[rwp.TEXT] and words[rwp.FIX]
    directory.chmod(0o700)
    writer.one(b"x")
    stored(writer, b"x")


def test_stopped_in_the_middle(spool, connect, directory):
    """SIGTERM: what has come is kept, without a crash's help."""
    target = spool()
    writer = connect(target)
    data = os.urandom(3 * RING)
    half(writer, data)
    target.process.send_signal(signal.SIGTERM)
    assert target.process.wait(timeout=60) == 0
    assert len(partials(directory)) == 1


# ---- with rwctl ----


def test_rwctl(make, spool, directory, tmp_path):
    target = spool()
    writer = make("a", peers=[target])
    data = os.urandom(3 << 20)
    (tmp_path / "big.img").write_bytes(data)
    said = writer.rwctl("write", "b", tmp_path / "big.img").stdout.decode()
    assert "stored" in said
    assert (directory / "big.img").read_bytes() == data
    only_files(directory, "big.img")


def test_rwctl_empty(make, spool, directory, tmp_path):
    """What is stored already is not refused when it is written again, not even when it is nothing."""
    writer, path = make("a", peers=[spool()]), tmp_path / "nothing"
    path.touch()
    for _ in range(2):
        assert b"stored durably, 0 bytes" in writer.rwctl("write", "b", path).stdout
    assert names(directory) == ["nothing"]


def test_a_trickle_becomes_durable(spool, connect):
    """Also while something comes all the time."""
    writer = connect(spool())
    writer.begin(name="trickle")
    for at in range(2000):
        writer.data(at, b"x")
        writer.turn()
        if writer.last_line.durable > 0:
            break
        time.sleep(0.01)
    assert 0 < writer.last_line.durable
