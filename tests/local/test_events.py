"""What happens, told: events, waiting for arrivals, programs that run for them, transfers under way."""

import json
import os
import re
import signal
import time

import pytest
from conftest import HELLO, forget, hold, receiving

from daemon import until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def cursor(daemon):
    return daemon.status()["cursor"]


def told(daemon, since, count):
    """So many events from there on; they must be there already, or come soon."""
    process = daemon.start_rwctl("events", "--since", since)
    events = [json.loads(process.stdout.readline()) for _ in range(count)]
    process.kill()
    process.communicate()
    return events


def kinds(events):
    return [event["event"] for event in events]


# ---- events ----


def test_course_of_a_write(make, hello):
    target = make("b")
    writer = make("a", peers=[target])
    since = [cursor(writer), cursor(target)]
    crc = writer.rwctl("write", "b", hello).stdout.split()[-1].decode()
    target.rwctl("disconnect", "a")
    there = told(target, since[1], 4)
    assert kinds(there) == ["connected", "granted", "arrival", "disconnected"]
    assert all(TIME.fullmatch(event["time"]) for event in there)
    assert {(e["direction"], e["peer"], e["region"], e["fabric"]) for e in there} == {
        ("in", "127.0.0.1", "default", "iwarp")
    }
    arrival = there[2]
    assert (arrival["name"], arrival["length"], arrival["crc32c"], arrival["code"]) == ("hello.txt", 17, crc, None)
    assert there[3]["code"] == "released" and "operator" in there[3]["text"]
    here = told(writer, since[0], 3)
    assert kinds(here) == ["connected", "arrival", "disconnected"]
    assert (here[1]["direction"], here[1]["transferId"], here[1]["crc32c"]) == ("out", 1, crc)


def test_refusals(make, hello, tmp_path):
    target = make("b", region={"size": "4K", "max-size": "4K"})
    writer = make("a", peers=[target])
    (tmp_path / "big").write_bytes(bytes(5000))
    since = [cursor(writer), cursor(target)]
    writer.refused("write", "b", tmp_path / "big")
    (refused,) = told(target, since[1], 1)
    assert (refused["event"], refused["code"]) == ("refused", "size") and "it grants at most" in refused["text"]
    (refused,) = told(writer, since[0], 1)
    assert (refused["event"], refused["direction"], refused["name"]) == ("refused", "out", "big")
    target.configure(listen={"allow": "10.8.0.1"})
    target.rwctl("reload")
    since = cursor(target)
    writer.refused("write", "b", hello)
    (refused,) = told(target, since, 1)
    assert (refused["event"], refused["code"], refused["peer"]) == ("refused", "address", "127.0.0.1")


def test_reader_who_sleeps_loses_the_oldest(pair, tmp_path):
    """The daemon goes on, and says how many were left out."""
    writer, target = pair
    for number in range(600):
        (tmp_path / f"f{number}").write_bytes(b"x")
    sleeper = target.start_rwctl("events")
    start = cursor(target)
    writer.rwctl("write", "b", "--files-from", "-", input="\n".join(map(str, tmp_path.glob("f*"))).encode())
    first, *rest = told(target, start, 513)
    assert first["event"] == "lost" and first["count"] >= 600 - 512
    assert len(rest) == 512 and rest[-1]["event"] in ("arrival", "disconnected")
    sleeper.kill()
    sleeper.communicate()


def test_bad_cursor(make):
    assert "does not take this since" in make("b").refused("events", "--since", "yesterday")


# ---- waiting ----


def test_wait_for_what_comes(pair, hello):
    writer, target = pair
    start = cursor(target)
    waiting = target.start_rwctl("wait-arrival", "--name", "hello.txt", "--since", start)
    writer.rwctl("write", "--name", "other", "b", hello)
    writer.rwctl("write", "b", hello)
    out, errors = waiting.communicate(timeout=30)
    assert waiting.returncode == 0, errors
    assert re.fullmatch(r"hello.txt from 127.0.0.1: arrived, 17 bytes, region \d+ \(default\), crc32c \w{8}\n", out.decode())


def test_none_is_missed_between_two_calls(pair, hello):
    """Each wait begins where the one before has ended."""
    writer, target = pair
    since = cursor(target)
    for name in "one", "two", "three":
        writer.rwctl("write", "--name", name, "b", hello)
    for name in "one", "two", "three":
        event = json.loads(target.rwctl("--json", "wait-arrival", "--since", since).stdout)
        assert event["name"] == name
        since = event["cursor"]
    assert "nothing arrived within 0.1 s" in target.refused(
        "wait-arrival", "--since", since, "--timeout", "100ms", status=4
    )
    assert "nothing arrived" in target.refused(
        "wait-arrival", "--since", "start", "--region", "none", "--timeout", "100ms", status=4
    )


# ---- transfers ----


def test_transfers(pair):
    writer, target = pair
    assert writer.rwctl("transfers").stdout == b"no transfers\n"
    stream = hold(writer, target)
    (transfer,) = json.loads(writer.rwctl("--json", "transfers").stdout)["transfers"]
    assert (transfer["peer"], transfer["name"], transfer["state"]) == ("b", "stdin", "sending")
    heading, line = writer.rwctl("transfers").stdout.decode().splitlines()
    assert heading.split() == "ID PEER NAME STATE SENT OF TIME LOST FABRIC DEVICE".split()
    assert line.split()[1:4] == ["b", "stdin", "sending"]
    stream.stdin.close()
    assert stream.wait(timeout=60) == 0
    stream.stdout.close()
    stream.stderr.close()


# ---- programs ----


@pytest.fixture
def program(tmp_path):
    """A script that the daemon may run, and where it may write."""
    directory = tmp_path / "hook"
    directory.mkdir()

    def write(body):
        path = directory / "program"
        path.write_text(f"#!/bin/bash\ncd {directory} || exit\n{body}\n")
        path.chmod(0o755)
        return path

    write.directory = directory
    return write


def hooked(make, program, body, limits=None, **region):
    target = make("b", region={"program": program(body)} | region, limits=limits or {})
    return make("a", peers=[target]), target


def hook_ended(target, since):
    """What was told of the program's end."""
    process = target.start_rwctl("events", "--since", since)
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "hook":
            process.kill()
            process.communicate()
            return event


def test_program_gets_the_facts_and_nothing_else(make, hello, program):
    body = 'env >env; printf "%s|" "$@" >arguments; ls -l /proc/self/fd >fds; cat >stdin; ps -o pgid= $$ >group; echo $$ >pid'
    writer, target = hooked(make, program, body, argument=["-x", "two words", "$HOME"])
    since = cursor(target)
    writer.rwctl("write", "b", hello)
    event = hook_ended(target, since)
    crc = target.regions()[0]["lastArrival"]["crc32c"]
    facts = dict(line.split("=", 1) for line in (program.directory / "env").read_text().splitlines())
    ours = {key: value for key, value in facts.items() if key not in ("PWD", "OLDPWD", "SHLVL", "_")}
    assert ours == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "RWRITER_NAME": "hello.txt",
        "RWRITER_PEER": "127.0.0.1",
        "RWRITER_LENGTH": "17",
        "RWRITER_PATH": "",
        "RWRITER_REGION": "default",
        "RWRITER_CRC32C": crc,
    }
    assert (program.directory / "arguments").read_text() == "-x|two words|$HOME|"
    assert (program.directory / "stdin").read_bytes() == b""
    assert (program.directory / "group").read_text().strip() == (program.directory / "pid").read_text().strip()
    files = re.findall(r" (\d+) -> (\S+)", (program.directory / "fds").read_text())
    assert [number for number, name in files if not name.startswith("/proc/")] == ["0", "1", "2"], files
    assert event["text"].startswith(f"{program.directory}/program exited with 0 after ")
    assert (event["name"], event["peer"]) == ("hello.txt", "127.0.0.1")
    assert target.regions()[0]["lastHook"] == event["text"]


def test_program_of_a_spool_gets_the_path(make, hello, program, tmp_path):
    spool = tmp_path / "spool"
    spool.mkdir()
    region = {"sink": "spool", "directory": spool, "free": "0"}
    writer, target = hooked(make, program, 'cat "$RWRITER_PATH" >content', **region)
    since = cursor(target)
    hello.chmod(0o604)
    said = writer.rwctl("write", "--preserve", "b", hello).stdout
    assert said.startswith(b"hello.txt -> b: stored durably, 17 bytes in "), said
    stored = told(target, since, 3)[2]
    path = spool / "hello.txt"
    assert (stored["event"], stored["path"]) == ("stored", str(path))
    assert "exited with 0 after" in hook_ended(target, since)["text"]
    assert (program.directory / "content").read_bytes() == HELLO
    assert (path.stat().st_mode & 0o777, int(path.stat().st_mtime)) == (0o604, int(hello.stat().st_mtime))
    arrived = target.rwctl("wait-arrival", "--since", since).stdout.decode()
    assert arrived.startswith("hello.txt from 127.0.0.1: stored durably, 17 bytes, ") and str(path) in arrived


def test_program_that_fails_or_is_missing(make, hello, program):
    writer, target = hooked(make, program, "exit 3")
    since = cursor(target)
    writer.rwctl("write", "b", hello)
    assert "program exited with 3 after" in hook_ended(target, since)["text"]
    (program.directory / "program").unlink()
    since = cursor(target)
    writer.rwctl("write", "b", hello)
    assert "program cannot be run: No such file or directory," in hook_ended(target, since)["text"]


def test_program_that_takes_too_long(make, hello, program):
    """It is killed, and so is what it has started."""
    writer, target = hooked(make, program, "sleep 1000 & echo $! >child; wait", limits={"hook-time": "1s"})
    since = cursor(target)
    writer.rwctl("write", "b", hello)
    assert "was killed, its time was up, after 1" in hook_ended(target, since)["text"]
    child = int((program.directory / "child").read_text())
    until(lambda: not os.path.exists(f"/proc/{child}") or "Z" in state_of(child), what="the end of its child")


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_programs_wait_for_their_turn(make, hello, program):
    body = 'echo >>"begun"; until test -e go; do sleep 0.02; done; echo "$RWRITER_NAME" >>done'
    writer, target = hooked(make, program, body, limits={"hooks": "2"})
    for number in range(5):
        writer.rwctl("write", "--name", f"n{number}", "b", hello)

    def begun():
        path = program.directory / "begun"
        return path.exists() and path.read_text().count("\n")

    until(lambda: begun() == 2, what="two programs")
    time.sleep(0.3)  # a third would have begun
    assert begun() == 2
    (program.directory / "go").touch()
    done = program.directory / "done"
    until(lambda: done.exists() and done.read_text().count("\n") == 5, what="all five")
    assert sorted(done.read_text().split()) == [f"n{number}" for number in range(5)]


def test_daemon_that_stops_leaves_no_program(make, hello, program):
    writer, target = hooked(make, program, "echo $$ >pid; exec sleep 1000")
    writer.rwctl("write", "b", hello)
    path = program.directory / "pid"
    until(lambda: path.exists() and path.read_text().strip(), what="the program")
    pid = int(path.read_text())
    forget(writer)
    target.process.send_signal(signal.SIGTERM)
    assert target.process.wait(timeout=60) == 0
    assert not os.path.exists(f"/proc/{pid}")
    assert HELLO == hello.read_bytes()


# ---- where the time went ----


def phases(flight):
    return [phase["phase"] for phase in flight["phases"]]


def waits(flight):
    """What it waited for, in nanoseconds."""
    return {wait["for"]: wait["ns"] for wait in flight["waits"] if wait["ns"] > 0}


def explained(daemon, number):
    (flight,) = json.loads(daemon.rwctl("--json", "explain", number).stdout)["flights"]
    at = [phase["atNs"] for phase in flight["phases"]]
    assert sum(phase["tookNs"] for phase in flight["phases"]) == max(at)
    assert 0 < min(at) <= max(at) < 60e9
    return flight


def test_explain(make, tmp_path):
    target = make("b", region={"max-size": "64M"})
    writer = make("a", peers=[target])
    (tmp_path / "big").write_bytes(bytes(range(256)) * (32 << 12))
    for _ in range(2):
        writer.rwctl("write", "b", tmp_path / "big")
    first, second = explained(writer, "1"), explained(writer, "2")
    assert {"resolve", "connect", "hello", "grant", "register", "first byte", "last byte", "result"} <= set(phases(first))
    assert "connect" not in phases(second)  # it found the connection there
    assert (first["name"], first["length"], first["state"]) == ("big", 32 << 20, "arrived")
    there = explained(target, "a1")
    assert ["grant", "register", "first byte", "last byte", "verify", "result"] == phases(there)
    assert set(waits(first)) <= {"source", "window", "device"} and set(waits(there)) == {"poll"}
    assert (there["direction"], there["peer"]) == ("in", "127.0.0.1")
    lines = writer.rwctl("explain", "1").stdout.decode().splitlines()
    assert lines[0].startswith("1: big -> b, arrived, 33554432 bytes in ")
    assert all(re.match(r"  [a-z ]{10}  +\S+ \w+  ·*█+·*$", line) for line in lines[1 : 1 + len(first["phases"])]), lines
    assert [row.split()[0] for row in writer.rwctl("explain").stdout.decode().splitlines()] == ["ID", "1", "2"]
    assert "4711: no transfer or arrival of this number" in writer.refused("explain", "4711")


def test_explain_waits(make, tmp_path):
    """A disk that is written to takes its time, and so does an input that pauses."""
    (tmp_path / "inbox").mkdir()
    spool = {"sink": "spool", "directory": tmp_path / "inbox", "free": "0"}
    target = make("b", region=spool)
    writer = make("a", peers=[target])
    stream = writer.stream("b")
    stream.stdin.write(bytes(1000))
    stream.stdin.flush()
    until(lambda: receiving(target), what="the stream to be on its way")
    time.sleep(1.2)
    stream.communicate(b"the end")
    assert waits(explained(writer, "1"))["source"] > 1e9
    told = waits(explained(target, "a1"))
    assert set(told) == {"poll", "disk"} and told["poll"] > 1e9
    assert re.search(r"\n  waited [0-9.]+ m?s for the disk\n", target.rwctl("explain", "a1").stdout.decode())


def test_only_the_last_are_kept(pair, tmp_path):
    writer, target = pair
    for number in range(300):
        (tmp_path / f"f{number}").write_bytes(b"x")
    writer.rwctl("write", "b", "--files-from", "-", input="\n".join(map(str, tmp_path.glob("f*"))).encode())
    for daemon in pair:
        assert len(json.loads(daemon.rwctl("--json", "explain").stdout)["flights"]) == 256
    assert "(any more)" in writer.refused("explain", "1")
