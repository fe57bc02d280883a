"""One file for many peers: who is named, what each of them gets, and that the file is read once."""

import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import termios

import pytest

from daemon import BIN, pattern, until

SIZE = 12 << 20
SEGMENT = 1 << 20


@pytest.fixture
def fleet(make, tmp_path):
    """Writer a, and b0 to b3, who store."""

    def build(count=4, **limits):
        targets = []
        for number in range(count):
            inbox = tmp_path / f"inbox{number}"
            inbox.mkdir()
            targets.append(make(f"b{number}", region={"sink": "spool", "directory": inbox, "free": "0"}))
            targets[-1].inbox = inbox
        groups = {"group even": {"peer": ["b0", "b2"]}} if count > 2 else {}
        return make("a", peers=targets, limits=limits, **groups), targets

    return build


@pytest.fixture
def big(tmp_path):
    path = tmp_path / "big"
    path.write_bytes(pattern(SIZE + 100))
    return path


def bytes_read(daemon):
    """By read(2) and its like: sockets are not among it."""
    with open(f"/proc/{daemon.process.pid}/io", encoding="ascii") as io:
        return next(int(line.split()[1]) for line in io if line.startswith("rchar"))


def test_all(fleet, big):
    writer, targets = fleet()
    before = bytes_read(writer)
    *lines, summary = writer.rwctl("write", "@all", big).stdout.decode().splitlines()
    assert sorted(line.partition(": stored durably, ")[0] for line in lines) == [f"big -> b{n}" for n in range(4)]
    assert summary.startswith("1 file -> 4 peers: 4 done, 0 failed; 48 MiB in ")
    for target in targets:
        assert (target.inbox / "big").read_bytes() == big.read_bytes()
    # Once, and what one of them was too far behind for: with so few segments nobody is.
    assert bytes_read(writer) - before < 1.2 * SIZE
    assert writer.status()["transfers"] == 0


def test_names(fleet, tmp_path):
    writer, targets = fleet()
    for number, (word, named) in enumerate((("b1,b3", "13"), ("@even", "02"), ("b1,@even,b0", "012"), ("@even,", None))):
        path = tmp_path / f"f{number}"
        path.write_bytes(b"x" * 1000)
        if named is None:
            assert "a peer without a name" in writer.refused("write", word, path)
            continue
        writer.rwctl("write", word, path)
        assert "".join(target.name[1] for target in targets if (target.inbox / path.name).exists()) == named
    assert "@odd: there is no such group; there are @all, @even" in writer.refused("write", "@odd", "x")


def test_many_files(fleet, tmp_path):
    """More of them, times peers, than one call holds."""
    writer, targets = fleet(3)
    files = [tmp_path / f"f{number}" for number in range(50)]
    for number, path in enumerate(files):
        path.write_bytes(b"%d" % number * 500)
    out = writer.rwctl("write", "@all", *files).stdout.decode()
    assert "\n50 files -> 3 peers: 150 done, 0 failed; " in out
    for target in targets:
        assert all((target.inbox / path.name).read_bytes() == path.read_bytes() for path in files)


def test_long_names(fleet, tmp_path):
    """As many as a call has room for descriptors, but not for words: of hosts, too, and of what a shell gives."""
    writer, targets = fleet(1)
    files = [tmp_path / (f"{number:03}" + '"' * 240) for number in range(130)]
    for path in files:
        path.write_bytes(path.name.encode())
    said = writer.rwctl("write", "@all", *files).stdout.decode()
    assert "\n130 files -> b0: 130 done, 0 failed; " in said
    assert all((targets[0].inbox / path.name).read_bytes() == path.name.encode() for path in files)
    host = ".".join(["x" * 60] * 4)
    done = writer.rwctl("write", host, *files, check=False)
    assert done.returncode == 1 and done.stdout.count(b": failed: ") == 130


def test_one_that_is_gone_comes_last(fleet, tmp_path):
    """More files than one call holds do not wait for it over and over; it is tried with all of them in the end."""
    writer, targets = fleet(3)
    targets[1].stop()
    files = [tmp_path / f"f{number}" for number in range(60)]
    for path in files:
        path.write_bytes(path.name.encode())
    done = writer.rwctl("write", "@all", *files, check=False)
    *lines, summary, failed = done.stdout.decode().splitlines()
    assert done.returncode == 1
    later = 60 - (128 // 3 + 1)
    assert all(line.split()[2] == "b1:" for line in lines[-later:])
    assert summary.startswith("60 files -> 3 peers: 120 done, 60 failed; ") and failed == "failed: b1 (60 of 60 files)"
    for target in targets[::2]:
        assert all((target.inbox / path.name).read_bytes() == path.name.encode() for path in files)


def test_few_descriptors(fleet, tmp_path):
    """Not more files travel together than may be open."""
    writer, _ = fleet(2)
    files = [tmp_path / f"f{number}" for number in range(30)]
    for path in files:
        path.write_bytes(b"x")
    few = 30
    out = writer.rwctl(
        "write", "@all", *files, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
    ).stdout.decode()
    assert "\n30 files -> 2 peers: 60 done, 0 failed; " in out


def test_a_daemon_that_hangs(fleet, big):
    """The time runs also while it is asked who is meant."""
    writer, _ = fleet(1)
    writer.process.send_signal(signal.SIGSTOP)
    try:
        said = writer.refused("write", "--timeout", "1s", "@all", big, status=4, timeout=10)
    finally:
        writer.process.send_signal(signal.SIGCONT)
    assert "rwriterd does not answer in time" in said


def test_some_fail(fleet, big, tmp_path):
    """Each has its result; the summary names those that failed."""
    writer, (_, refuses, _, stopped) = fleet()
    refuses.configure(listen={"allow": "10.9.9.9"})
    refuses.rwctl("reload")
    stopped.stop()
    small = tmp_path / "small"
    small.write_bytes(b"small")
    done = writer.rwctl("write", "@all", big, small, tmp_path / "none", check=False)
    said = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert sum("stored durably" in line for line in said) == 4
    assert sum(line.startswith(("big -> b1: refused: ", "small -> b1: refused: ")) for line in said) == 2
    assert sum("-> b3: failed: nobody listens there" in line for line in said) == 2
    assert sum("none -> b" in line and "No such file" in line for line in said) == 4
    assert said[-2].startswith("3 files -> 4 peers: 4 done, 8 failed; ")
    assert said[-1] == "failed: b0 (1 of 3 files), b1 (3 of 3 files), b2 (1 of 3 files), b3 (3 of 3 files)"


def test_json(fleet, big):
    writer, _ = fleet()
    lines = writer.rwctl("--json", "write", "--name", "other", "@even", big).stdout.splitlines()
    results = {result["peer"]: result for result in map(json.loads, lines)}
    assert sorted(results) == ["b0", "b2"]
    for peer, result in results.items():
        assert result["file"] == str(big) and result["transfer"]["peer"] == peer
        assert result["transfer"]["name"] == "other" and result["transfer"]["state"] == "stored"


def test_what_goes_to_one_only(fleet, big):
    writer, _ = fleet()
    assert "--size is for a stream" in writer.refused("write", "--size", "1M", "@all", big, status=2)
    said = writer.rwctl("write", "@even", "-", input=b"x", check=False).stdout.decode()
    assert said.count("- -> b0: failed: it is no regular file: write it to one peer at a time\n") == 1
    assert said.endswith("\nfailed: b0, b2\n")
    for width in "0", "129", "x":
        assert f"--width: {width} is no number from 1 to 128" in writer.refused(
            "write", "--width", width, "@all", big, status=2
        )


@pytest.mark.parametrize("options, width", [((), 2), (("--width", "1"), 1)])
def test_width(make, tmp_path, options, width):
    """So many at once, one after the other, all of them in the end."""
    path = tmp_path / "slow"
    path.write_bytes(pattern(64 << 20))
    targets = [make(f"b{number}", region={"sink": "discard"}) for number in range(4)]
    writer = make("a", peers=targets, limits={"width": "2"})
    process = writer.start_rwctl("write", *options, "@all", path)
    most = 0
    while process.poll() is None:
        most = max(most, writer.status()["transfers"])
    assert process.returncode == 0, process.communicate()
    assert most == width


def test_lines(fleet, big):
    """Each peer that is written to has a line; results push them down."""
    writer, _ = fleet()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(BIN / "rwctl", ["rwctl", "--socket", str(writer.socket), "write", "@all", str(big)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    seen = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # it has ended
            break
        seen += part
    assert os.waitpid(pid, 0)[1] == 0
    text = seen.decode()
    for number in range(4):
        assert re.search(rf"\[[0-3]/4\] big -> b{number} ", text), text
        assert f"big -> b{number}: stored durably" in text
    assert "\033[1A" in text and "1 file -> 4 peers: 4 done" in text


def test_writer_daemon_restarts(make, fleet, tmp_path):
    """What was done stays done; the rest follows when the daemon is back."""
    path = tmp_path / "slow"
    path.write_bytes(pattern(64 << 20))
    writer, targets = fleet()
    process = writer.start_rwctl("write", "--width", "1", "@all", path)
    until(lambda: (targets[0].inbox / "slow").exists(), what="the first peer to have it")
    writer.kill()
    assert b"rwriterd has gone" in process.stderr.readline()
    writer.start()
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert out.decode().count("stored durably") == 4
    for target in targets:
        assert (target.inbox / "slow").read_bytes() == path.read_bytes()
