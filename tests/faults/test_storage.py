"""The disk fails in every way, on either side: a clear word, nothing half-written, and the next try works."""

import pytest
from conftest import MEBIBYTE, Pair, random_file
from shim import Shim

from daemon import until

SIZE = 6 * MEBIBYTE


@pytest.fixture
def shim(tmp_path):
    folder = tmp_path / "shim"
    folder.mkdir()
    return Shim(folder)


FAULTS = [
    ("openat", "EACCES", "Permission denied"),
    ("openat", "ENOSPC", "No space left"),
    ("pwrite", "ENOSPC", "No space left"),
    ("pwrite", "EDQUOT", "quota"),
    ("pwrite", "EIO", "Input/output error"),
    ("fdatasync", "EIO", "Input/output error"),
    ("fsync", "EIO", "Input/output error"),
    ("ftruncate", "EIO", "Input/output error"),
    ("rename", "EIO", "Input/output error"),
    ("rename", "EROFS", "Read-only file system"),
]


@pytest.mark.parametrize("call, error, word", FAULTS)
def test_target_disk(pair, shim, tmp_path, chance, call, error, word):
    """Every call of this kind in turn fails for good, then once."""
    pair = pair(environment=shim.environment)
    inbox = pair.inbox.name
    hit = 0
    for skip in range(20):
        path = random_file(tmp_path / f"file{skip}", SIZE, chance)
        shim.fail(call, error, inbox, skip=skip, times=1 << 40)
        status, said = pair.write(path, timeout="3s")
        if shim.left() == 1 << 40:  # there are no more such calls
            assert status == 0, said
            break
        hit += 1
        assert status != 0 or pair.stored(path), f"{call} {skip} failed, and it was called stored: {said}"
        if status != 0:
            assert word in said, said
            assert path.name not in pair.files() or pair.stored(path)
        shim.heal()
        status, said = pair.write(path)
        assert status == 0 or pair.stored(path), said
        assert pair.stored(path)
        (pair.inbox / path.name).unlink()
    shim.heal()
    assert hit or call in ("ftruncate",)
    until(lambda: not pair.partials(), what="the inbox to be tidied")
    assert pair.target.alive() and pair.writer.alive()


@pytest.mark.parametrize("skip", [0, 1, 3, 5])
def test_source_disk(pair, shim, tmp_path, chance, make, skip):
    """What cannot be read is not sent as if whole."""
    pair = pair()
    path = random_file(tmp_path / "source", SIZE, chance)
    pair.writer.stop()
    pair.writer.environment = shim.environment
    pair.writer.start()
    shim.fail("pread", "EIO", str(path), skip=skip, times=1)
    status, said = pair.write(path)
    assert status == 1 and "Input/output error" in said, said
    assert not pair.files()
    status, said = pair.write(path)
    assert status == 0, said
    assert pair.stored(path)
    pair.clean(path.name)


def test_directory_read_only(pair, tmp_path, chance):
    pair = pair()
    path = random_file(tmp_path / "file", SIZE, chance)
    pair.inbox.chmod(0o555)
    status, said = pair.write(path)
    assert status == 1 and "Permission denied" in said and str(pair.inbox) in said, said
    pair.inbox.chmod(0o755)
    status, said = pair.write(path)
    assert status == 0, said
    assert pair.stored(path)
    pair.clean(path.name)


def test_directory_gone(pair, tmp_path, chance):
    """Removed while the daemon runs; when it is back, a reload is enough."""
    pair = pair()
    path = random_file(tmp_path / "file", SIZE, chance)
    pair.inbox.rmdir()
    status, said = pair.write(path)
    assert status == 1 and str(pair.inbox) in said, said
    pair.inbox.mkdir()
    pair.target.rwctl("reload")
    status, said = pair.write(path)
    assert status == 0, said
    assert pair.stored(path)
    pair.clean(path.name)


@pytest.mark.parametrize("who, budget", [("target", "11M"), ("writer", "9M")])
def test_out_of_memory_budget(pair, tmp_path, chance, who, budget):
    """Another transfer has what this one needs; when that has ended, there is room."""
    pair = pair()
    path = random_file(tmp_path / "file", SIZE, chance)
    daemon = getattr(pair, who)
    daemon.configure(limits={"pinned-memory": budget})
    for one in (pair.writer, pair.target):
        one.configure(region={"max-size": "4M", "linger": "0"})
        one.rwctl("reload")
    stream = pair.writer.stream("b")
    stream.stdin.write(bytes(2 * MEBIBYTE))
    stream.stdin.flush()
    until(lambda: pair.target.regions(), what="the other transfer")
    status, said = pair.write(path)
    assert status == 1 and "pinned" in said, said
    stream.communicate()
    assert stream.returncode == 0
    pair.writer.rwctl("disconnect", "b")
    until(lambda: pair.target.status()["memoryUsed"] == 0, what="the memory of the other transfer")
    status, said = pair.write(path)
    assert status == 0, said
    assert pair.stored(path)
    pair.clean(path.name)


@pytest.mark.parametrize("who", ["target", "writer"])
@pytest.mark.parametrize("seconds", [-86400 * 400, 86400 * 400])
def test_clock_jumps(pair, shim, tmp_path, chance, who, seconds):
    """The time of day jumps while a file is under way: nobody loses patience, nothing is tidied away."""
    pair = pair(rate=8 * MEBIBYTE)
    daemon = getattr(pair, who)
    daemon.stop()
    daemon.environment = shim.environment
    daemon.start()
    path = random_file(tmp_path / "file", 2 * SIZE, chance)
    process = pair.start_write(path)
    until(lambda: pair.line.passed > 2 * MEBIBYTE, what="some bytes to pass")
    shim.jump(seconds)
    until(lambda: pair.line.passed > 4 * MEBIBYTE, what="more bytes to pass")
    pair.line.cut()
    shim.jump(-seconds)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, (out + errors).decode()
    assert pair.stored(path)
    pair.clean(path.name)


@pytest.mark.parametrize("sink", ["spool", "memory"])
def test_bits_flip(make, tmp_path, chance, sink):
    """Without checksums on the wire, the payload's own finds what was damaged on the way: never stored."""
    pair = Pair(make, tmp_path, chance, iwarp={"mpa-crc": "no"})
    pair.writer.configure(iwarp={"mpa-crc": "no"})
    pair.writer.stop()
    pair.writer.start()
    try:
        bad = 0
        for round in range(12):
            path = random_file(tmp_path / f"file{round}", SIZE, chance)
            pair.line.flip = 0.02
            if sink == "spool":
                status, said = pair.write(path, timeout="5s")
                # It may be the word that it is stored which was damaged: never half of it under its name.
                assert pair.stored(path) or (status != 0 and path.name not in pair.files()), said
            else:
                done = pair.writer.rwctl("write", "--timeout", "5s", "b", path, check=False)
                assert done.returncode != 0 or pair.target.dump() == path.read_bytes()
                status = done.returncode
            bad += pair.line.flipped > 0
            pair.line.flipped = 0
            pair.line.flip = 0.0
            if sink == "spool" and status != 0:
                status, said = pair.write(path)
                assert status == 0 and pair.stored(path), said
        assert bad >= 6, "hardly anything was flipped"
    finally:
        pair.close()
