"""Many files in one command; and commands that outlive the daemon they asked."""

import json
import os
import signal
import socket

from conftest import HELLO

from daemon import until


def small_files(directory, count):
    for number in range(count):
        (directory / f"f{number}").write_bytes(b"%d" % number * 100)
    return [directory / f"f{number}" for number in range(count)]


def arrivals(target):
    return sum(region["arrivals"] for region in target.regions())


def test_some(pair, tmp_path):
    writer, target = pair
    files = small_files(tmp_path, 5)
    *lines, summary = writer.rwctl("write", "b", *files).stdout.decode().splitlines()
    assert sorted(line.partition(" -> b: arrived, 100 bytes in ")[0] for line in lines) == [f.name for f in files]
    assert summary.startswith("5 files -> b: 5 done, 0 failed; 500 B in ")
    assert arrivals(target) == 5 and writer.status()["transfers"] == 0


def test_list_of_many(pair, tmp_path):
    writer, target = pair
    files = small_files(tmp_path, 150)
    for end in b"\n", b"\0":
        before = arrivals(target)
        done = writer.rwctl("--json", "write", "b", "--files-from", "-", input=end.join(map(os.fsencode, files)))
        results = [json.loads(line) for line in done.stdout.splitlines()]
        assert sorted(result["file"] for result in results) == sorted(map(str, files))
        assert {result["transfer"]["state"] for result in results} == {"arrived"}
        assert arrivals(target) - before == 150


def test_one_that_fails_fails_alone(pair, tmp_path):
    writer, target = pair
    files = small_files(tmp_path, 4)
    os.truncate(files[1], 300 << 20)
    (tmp_path / "dir").mkdir()
    done = writer.rwctl("write", "b", *files, tmp_path / "dir", tmp_path / "none", "/dev/zero", check=False)
    said = done.stdout.decode()
    assert done.returncode == 1, said
    for line in (
        'f1 -> b: refused: refused 300 MiB for region "default": it grants at most 256 MiB; on b: max-size = 300M',
        "dir -> b: failed: Is a directory\n",
        "none -> b: failed: No such file or directory\n",
        "zero -> b: failed: it is no regular file: write it by itself\n",
        "\n7 files -> b: 3 done, 4 failed; 300 B in ",
    ):
        assert line in said, said


def test_nothing_to_write(pair, tmp_path):
    writer, _ = pair
    assert writer.rwctl("write", "b", "--files-from", "-", input=b"").stdout.startswith(b"0 files -> b: 0 done")
    assert "No such file" in writer.refused("write", "b", "--files-from", tmp_path / "none")
    assert "give no others" in writer.refused("write", "b", "x", "--files-from", "x", status=2)
    assert "is for a single file" in writer.refused("write", "--name", "n", "b", "x", "y", status=2)


def blackhole(make):
    """A daemon whose peer accepts and says nothing."""
    silent = socket.create_server(("127.0.0.1", 0))
    peer = {"address": "127.0.0.1", "port": silent.getsockname()[1], "fabric": "iwarp"}
    return silent, make("a", limits={"setup": "1h"}, **{"peer b": peer})


def test_daemon_that_comes_back(make, hello):
    """rwctl waits for it, passes its files once more, and they arrive."""
    silent, writer = blackhole(make)
    one = writer.start_rwctl("write", "b", hello)
    many = writer.start_rwctl("write", "b", hello, hello)
    until(lambda: writer.status()["transfers"] == 3, what="the writes to begin")
    writer.kill()
    for process in one, many:
        assert process.stderr.readline() == b"rwctl: rwriterd has gone; trying again when it is back ...\n"
    target = make("b")
    writer.add_peer(target)
    writer.configure()
    writer.start()
    out, errors = one.communicate(timeout=60)
    assert (one.returncode, errors) == (0, b"") and out.startswith(b"hello.txt -> b: arrived, 17 bytes")
    out, errors = many.communicate(timeout=60)
    assert (many.returncode, errors) == (0, b"") and b"2 files -> b: 2 done, 0 failed" in out
    assert target.dump() == HELLO
    silent.close()


def test_daemon_that_is_restarted(make, hello):
    """The same when it stops in order."""
    silent, writer = blackhole(make)
    writer.configure(limits={"stop": "100ms"})
    writer.rwctl("reload")
    process = writer.start_rwctl("write", "b", hello)
    until(lambda: writer.status()["transfers"] == 1, what="the write to begin")
    writer.stop()
    assert b"rwriterd has gone" in process.stderr.readline()
    target = make("b")
    writer.add_peer(target)
    writer.configure()
    writer.start()
    assert process.communicate(timeout=60)[0].startswith(b"hello.txt -> b: arrived")
    assert process.returncode == 0
    silent.close()


def test_daemon_that_does_not_come_back(make, hello):
    silent, writer = blackhole(make)
    late = writer.start_rwctl("write", "--timeout", "2s", "b", hello)
    cancelled = writer.start_rwctl("write", "b", hello)
    until(lambda: writer.status()["transfers"] == 2, what="the writes to begin")
    writer.kill()
    assert b"rwriterd has gone" in cancelled.stderr.readline()
    cancelled.send_signal(signal.SIGINT)
    assert cancelled.communicate(timeout=60)[1] == b"rwctl: cancelled\n" and cancelled.returncode == 130
    assert b"rwriterd was not back in time" in late.communicate(timeout=60)[1] and late.returncode == 4
    silent.close()


def test_stream_is_not_begun_again(make):
    silent, writer = blackhole(make)
    process = writer.stream("b")
    until(lambda: writer.status()["transfers"] == 1, what="the write to begin")
    writer.kill()
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 3 and "stdin is a stream, which cannot be read again" in said
    silent.close()
