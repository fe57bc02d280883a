"""rwctl and the control socket over a living daemon: what is shown, what can be done."""

import json
import os
import pty
import re
import signal

import iwarp
import pytest
from conftest import HELLO, forget, receiving

from daemon import pattern, until

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
HELLO_CRC = f"{iwarp.crc32c(HELLO):08x}"


@pytest.fixture
def arrived(pair, hello):
    """The pair, with hello.txt in b's only region."""
    writer, target = pair
    writer.rwctl("write", "b", hello)
    (region,) = target.regions()
    return writer, target, region["id"]


def as_json(daemon, *arguments):
    return json.loads(daemon.rwctl("--json", *arguments).stdout)


# ---- JSON ----


def test_regions_as_json(arrived):
    _, target, number = arrived
    (region,) = as_json(target, "regions")["regions"]
    times = [region.pop("grantedAt"), region["lastArrival"].pop("time")]
    assert all(TIME.fullmatch(t) for t in times) and times == sorted(times)
    assert region == region | {
        "id": number,
        "region": "default",
        "peer": "127.0.0.1",
        "claimedName": "a",
        "address": "127.0.0.1",
        "fabric": "iwarp",
        "device": "tcp",
        "state": "granted",
        "size": 4 << 20,
        "buffers": 1,
        "generation": 2,
        "arrivals": 1,
        "bytes": 17,
        "receiveCompletions": 0,
        "lastArrival": {"name": "hello.txt", "offset": 0, "length": 17, "crc32c": HELLO_CRC, "path": None},
    }


def test_peers_as_json(arrived):
    writer, target, _ = arrived
    (out,) = as_json(writer, "peers")["peers"]
    assert TIME.fullmatch(out["since"])
    assert (out["name"], out["claimedName"], out["direction"], out["state"]) == ("b", "b", "out", "open")
    assert (out["address"], out["fabric"], out["transfers"], out["queued"]) == (
        f"127.0.0.1:{target.port}",
        "iwarp",
        1,
        0,
    )
    assert out["configured"] is True and out["lastError"] is None
    (into,) = as_json(target, "peers")["peers"]
    assert (into["name"], into["claimedName"], into["direction"], into["state"]) == ("127.0.0.1", "a", "in", "open")
    assert into["configured"] is False


def test_status_as_json(arrived):
    _, target, _ = arrived
    status = as_json(target, "status")
    assert (status["name"], status["state"]) == ("b", "ready")
    assert (status["regions"], status["connections"], status["transfers"]) == (1, 1, 0)
    assert re.fullmatch("[0-9a-f]{16}", status["bootId"])
    assert 0 < status["memoryUsed"] < status["memoryLimit"] == 1 << 30
    (listener,) = status["listeners"]
    assert listener["address"] == f"127.0.0.1:{target.port}"
    assert (listener["name"], listener["fabric"], listener["up"], listener["hostOnly"]) == (
        "default",
        "iwarp",
        True,
        True,
    )
    assert any('add "allow = ADDRESS" to [listen default]' in note for note in status["notes"])


def test_write_as_json(pair, hello):
    writer, target = pair
    transfer = as_json(writer, "write", "b", hello)["transfer"]
    assert (transfer["state"], transfer["peer"], transfer["host"]) == ("arrived", "b", "b")
    assert (transfer["name"], transfer["length"], transfer["sent"], transfer["arrived"]) == ("hello.txt", 17, 17, 17)
    assert (transfer["fabric"], transfer["crc32c"], transfer["code"]) == ("iwarp", HELLO_CRC, None)
    assert transfer["regionId"] == target.regions()[0]["id"]
    assert transfer["durationNs"] >= transfer["sendingNs"] > 0


def test_refusal_as_json(pair, tmp_path):
    writer, _ = pair
    (tmp_path / "big").write_bytes(b"")
    os.truncate(tmp_path / "big", 300 << 20)
    done = writer.rwctl("--json", "write", "b", tmp_path / "big", check=False)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["error"] == "io.rwriter.TransferRefused"
    transfer = answer["parameters"]["transfer"]
    assert (transfer["state"], transfer["code"], transfer["fixOnPeer"]) == ("refused", "size", True)


# ---- dump-region ----


def test_dump_to_file(arrived, tmp_path):
    _, target, number = arrived
    said = target.rwctl("dump-region", "-o", tmp_path / "out").stdout.decode()
    assert said == f"region {number} from 127.0.0.1, hello.txt, 17 bytes, crc32c {HELLO_CRC}, 0 receive completions\n"
    assert (tmp_path / "out").read_bytes() == HELLO


def test_dump_by_number_and_peer(arrived):
    _, target, number = arrived
    for which in str(number), "a", "127.0.0.1":
        assert target.dump(which) == HELLO
    assert "no region has this number or peer" in target.refused("dump-region", "4711")


def test_dump_to_closed_pipe(pair, tmp_path):
    """A reader that has enough is no crash."""
    writer, target = pair
    (tmp_path / "file").write_bytes(pattern(3 << 20))
    writer.rwctl("write", "b", tmp_path / "file")
    process = target.start_rwctl("dump-region")
    process.stdout.read(100)
    process.stdout.close()
    process.stdin.close()
    assert process.wait(timeout=30) == 1
    assert b"Broken pipe" in process.stderr.read()


def on_terminal(daemon, *arguments):
    """What rwctl shows on a terminal."""
    ours, theirs = pty.openpty()
    process = daemon.rwctl(*arguments, capture_output=False, stdout=theirs)
    os.close(theirs)
    assert process.returncode == 0
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_dump_to_terminal(arrived):
    _, target, number = arrived
    first, line, *rest = on_terminal(target, "dump-region").splitlines()
    assert first == f"region {number} from 127.0.0.1, hello.txt, 17 bytes, crc32c {HELLO_CRC}, 0 receive completions"
    assert line.startswith("00000000  48 65 6c 6c 6f 20 52 44") and line.endswith("|Hello RDMA Write|")
    assert rest[0].startswith("00000010  21 ") and rest[0].endswith("|!|")


def test_dump_to_terminal_is_safe_and_short(pair):
    writer, target = pair
    evil = b"\x1b]0;evil\x07\x9b31m" * 100
    writer.rwctl("write", "--name", "evil", "b", "-", input=evil)
    shown = on_terminal(target, "dump-region")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert f"... {len(evil) - 256} more bytes (--all shows them)" in shown
    assert len(on_terminal(target, "dump-region", "--all")) > len(shown)


def test_nothing_to_dump(make):
    assert "nothing has arrived yet" in make("b").refused("dump-region")


# ---- administering ----


def test_release(arrived, hello):
    writer, target, number = arrived
    assert target.rwctl("release", str(number)).stdout.decode() == f"region {number}: released\n"
    until(lambda: target.status()["memoryUsed"] == 0, what="memory to be given back")
    assert target.regions() == []
    until(lambda: writer.status()["connections"] == 0, what="the writer to notice")
    assert "no region" in target.refused("release", str(number))
    writer.rwctl("write", "b", hello)


@pytest.mark.parametrize("who", ["writer", "target"])
def test_disconnect(arrived, hello, who):
    writer, target, _ = arrived
    daemon, peer = {"writer": (writer, "b"), "target": (target, "a")}[who]
    assert daemon.rwctl("disconnect", peer).stdout.decode() == f"{peer}: disconnected, 1 connection ended\n"
    for daemon in writer, target:
        until(lambda: daemon.status()["connections"] == 0, what="the end of the connection")
    assert target.dump() == HELLO
    writer.rwctl("write", "b", hello)


def test_disconnect_from_nobody(make):
    assert "no connection with b" in make("a").refused("disconnect", "b")


def test_regions_linger_for_their_time(pair, hello):
    writer, target = pair
    target.configure(region={"linger": "2s"})
    target.rwctl("reload")
    writer.rwctl("write", "b", hello)
    target.rwctl("disconnect", "a")
    (region,) = until(
        lambda: [region for region in target.regions() if region["state"] == "lingering"], what="it to linger"
    )
    assert target.dump(str(region["id"])) == HELLO
    until(lambda: target.regions() == [] and target.status()["memoryUsed"] == 0, what="its end")


def test_as_many_regions_linger_as_are_kept(pair, tmp_path):
    writer, target = pair
    target.configure(region={"keep": 2})
    target.rwctl("reload")
    for number in range(4):
        (tmp_path / "file").write_bytes(b"%d" % number)
        writer.rwctl("write", "b", tmp_path / "file")
        target.rwctl("disconnect", "a")
        until(lambda: target.status()["connections"] == 0, what="the end of the connection")
    assert [target.dump(str(region["id"])) for region in target.regions()] == [b"2", b"3"]
    forget(target)


def test_lingering_regions_make_room(make, tmp_path):
    """The oldest go first, as many as it takes; not that of a connection, and none where it would be in vain."""
    target = make("b", region={"size": "2M", "max-size": "8M"}, limits={"pinned-memory": "8M"})
    writer = make("a", peers=[target])

    def write(number, size=2 << 20):
        (tmp_path / str(number)).write_bytes(b"%d" % number + bytes(size - 1))
        return writer.rwctl("write", "b", tmp_path / str(number), check=False)

    def held():
        return [region["lastArrival"]["name"] for region in target.regions() if region["lastArrival"]]

    for number in range(4):
        assert write(number).returncode == 0
        writer.rwctl("disconnect", "b")
        until(lambda: target.status()["connections"] == 0, what="the end of the connection")
    assert held() == ["0", "1", "2", "3"] and target.status()["memoryUsed"] == 8 << 20
    stream = writer.stream("b")
    until(lambda: receiving(target), what="a region with a connection")
    assert held() == ["1", "2", "3"]
    assert b"4 regions hold 8.0 MiB" in write(5, 7 << 20).stderr and held() == ["1", "2", "3"]
    assert write(6, 6 << 20).returncode == 0 and held() == ["6"]
    assert target.dump() == (tmp_path / "6").read_bytes()
    assert stream.communicate(b"still there", timeout=60) and target.dump() == b"still there"


# ---- reload ----


def test_reload(pair, hello):
    writer, target = pair
    writer.add_peer(target, name="beta")
    writer.configure()
    assert writer.rwctl("reload").stdout == b"reloaded\n"
    writer.rwctl("write", "beta", hello)


def test_bad_configuration_is_not_taken(pair, hello):
    writer, target = pair
    good = target.file.read_text()
    target.file.write_text(good + "[region default]\nno-such-key = 1\n")
    said = target.refused("reload")
    number = good.count("\n") + 2
    assert f"{target.file}:{number}: " in said and "no-such-key" in said
    writer.rwctl("write", "b", hello)
    assert target.dump() == HELLO
    target.file.write_text(good)
    target.rwctl("reload")


def test_reload_by_signal(pair, hello):
    writer, target = pair
    target.configure(listen={"allow": "10.8.0.1"})
    target.process.send_signal(signal.SIGHUP)
    forget(writer, target)
    until(lambda: not target.status()["listeners"][0]["hostOnly"], what="the reload")
    assert "is in no allow line" in writer.refused("write", "b", hello)


def test_listener_follows_the_configuration(pair, hello):
    writer, target = pair
    old = target.port
    target.port += 1
    target.configure(listen={"port": target.port})
    target.rwctl("reload")
    forget(writer, target)
    assert "nobody listens there" in writer.refused("write", f"127.0.0.1:{old}", hello)
    until(target.answers)
    writer.add_peer(target)
    writer.configure()
    writer.rwctl("reload")
    writer.rwctl("write", "b", hello)


# ---- the socket ----


def test_second_daemon_on_the_same_socket(make):
    """It leaves the first one alone."""
    first = make("b")
    with pytest.raises(AssertionError):
        make("c", rwriter={"control": first.socket})
    assert first.status()["name"] == "b"


def test_port_that_is_taken(make):
    """The daemon is up, says what is wrong, and takes the port when it is free."""
    first = make("b")
    other = {"address": "127.0.0.1", "port": first.port, "fabric": "iwarp"}
    second = make("c", limits={"retry": "1s"}, **{"listen other": other})

    def listener():
        return next(listener for listener in second.status()["listeners"] if listener["name"] == "other")

    assert not listener()["up"]
    assert f"127.0.0.1:{first.port} is taken by another listener" in listener()["detail"]
    assert "is taken by another listener" in second.rwctl("status").stdout.decode()
    first.stop()
    until(lambda: listener()["up"], what="the port to be taken over")
