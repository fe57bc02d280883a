"""Clients that share no code with rwriter, well-behaved and not, and targets that are twisted."""

import os
import pathlib
import re
import subprocess

import pytest

from rwriter import BIN, pattern, rdma_objects, settle, until

HELLO = "Hello RDMA Write!"
SIZE = 65536  # of a stranger's region
PIECE = 65536  # of the stream beside the strangers
DENIED_STALE, UNSUPPORTED, PROTOCOL, RELEASED = 20, 24, 25, 29


# ---- strangers ----


def command(target, steps):
    return [BIN / "stranger", target.device.address, str(target.port), *steps]


def stranger(target, *steps, timeout=60):
    """What one sees who takes these steps: see stranger.c."""
    null = subprocess.DEVNULL
    done = subprocess.run(command(target, steps), capture_output=True, text=True, timeout=timeout, stdin=null)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Held:
    """A stranger who has come to his step "wait"."""

    def __init__(self, target, *steps):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command(target, steps), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self.said = ""
        while "waiting" not in self.said:
            line = self.process.stdout.readline()
            assert line, self.said + self.process.stderr.read()
            self.said += line

    def place(self, what):
        """RKEY,ADDRESS of its tail area, or of its region ("bytes")."""
        return re.search(rf"{what} at (\S+)", self.said)[1]

    def go_on(self):
        """... and on to his end; what he sees meanwhile."""
        said, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said + errors
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def hold(target, *steps):
    return Held(target, *steps, "wait")


# ---- what stands beside them ----


@pytest.fixture(scope="module")
def target(standing):
    return standing("b", sections={"region default": {"max-size": "256M", "size": SIZE}, "limits": {"hello": "2s"}})


def holdings(target, device):
    """Descriptors, but for those of warm memory, and the kernel's RDMA objects."""
    fds = pathlib.Path(f"/proc/{target.process.pid}/fd").iterdir()
    return sum(not os.readlink(fd).startswith("/memfd:") for fd in fds), rdma_objects(device)


def anonymous_memory(target):
    with open(f"/proc/{target.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left(target, writer, device, tmp_path_factory):
    """When all strangers have gone, the target and its kernel hold what they held before the first."""
    path = tmp_path_factory.mktemp("data") / "small"
    path.write_text(HELLO)
    writer.rwctl("write", "b", path)
    settle(writer, target)
    before, memory = holdings(target, device), anonymous_memory(target)
    yield
    settle(writer, target)
    until(lambda: holdings(target, device) == before, what=f"{before}, not {holdings(target, device)}")
    assert anonymous_memory(target) < memory + (4 << 20)


@pytest.fixture(scope="module")
def stream(nothing_is_left, target, writer):
    """A transfer beside all the strangers, some bytes at each; in the end all of them have arrived."""
    stream = writer.stream("b", "--size", "64M")
    stream.sent = b""
    yield stream
    out, errors = stream.communicate(timeout=60)
    assert stream.returncode == 0, errors
    assert f"{len(stream.sent)} bytes" in out.decode()
    (region,) = [r["id"] for r in target.regions() if r["lastArrival"] and r["lastArrival"]["name"] == "stdin"]
    assert target.rwctl("dump-region", str(region)).stdout == stream.sent


@pytest.fixture(autouse=True)
def honest_writers(stream, target, writer, tmp_path):
    """Whatever a stranger did, the stream goes on, and the next honest write arrives."""
    yield
    piece = pattern(PIECE)
    stream.sent += piece
    stream.stdin.write(piece)
    stream.stdin.flush()
    path = tmp_path / "honest.txt"
    path.write_text("honest")
    writer.rwctl("write", "b", path)
    assert target.rwctl("dump-region").stdout == b"honest"


# ---- as the manual has it ----


def test_minimal_writer(target):
    assert "result 0\n" in stranger(target, "hello", f"one={HELLO}", "answer", "bye")
    assert target.rwctl("dump-region", "stranger").stdout == HELLO.encode()


def test_stale_boot_id(target):
    """What a writer says who still believes in a daemon that has been restarted since."""
    assert stranger(target, "stale", "hello").startswith(f"denied {DENIED_STALE}: ")


# ---- and not: each ends its connection ----

MISDEEDS = {  # steps; how the target says why
    "one byte behind the region": (["hello", f"write-at={SIZE},1"], None),
    "one byte before it": (["hello", "write-at=-1,1"], None),
    "over its end": (["hello", f"write-at={SIZE - 1},2"], None),
    "no HELLO": ([], None),
    "BYE before HELLO": (["record=type:9"], PROTOCOL),
    "BEGIN before HELLO": (["record=type:2"], PROTOCOL),
    "HELLO twice": (["hello", "record=type:1"], PROTOCOL),
    "torn HELLO": (["torn"], None),
    "HELLO without a blob": (["record=type:1"], PROTOCOL),
    "HELLO with half a blob": (["record=type:1,blob_len:15"], None),
    "HELLO with a blob over all": (["record=type:1,blob_len:65535"], None),
    "HELLO with a blob elsewhere": (["record=type:1,blob_len:64,blob_off:4294967288"], None),
    "torn record": (["hello", "torn"], PROTOCOL),
    "wrong tag": (["hello", "record=type:9,tag:1"], PROTOCOL),
    "sequence": (["hello", "record=type:9,seq:77"], PROTOCOL),
    "greatest sequence": (["hello", "record=type:9,seq:0xffffffffffffffff"], PROTOCOL),
    "endless records": (["hello", "endless"], PROTOCOL),
    "what must be understood": (["hello", "record=type:200,flags:0x80"], UNSUPPORTED),
    "what a target says": (["hello", "record=type:65"], PROTOCOL),
    "another grant": (["hello", "record=type:2,transfer:1,grant:0xffffffff"], PROTOCOL),
    "part of no transfer": (["hello", "record=type:3,transfer:1,length:1"], PROTOCOL),
    "blob over all": (["hello", "record=type:6,transfer:1,blob_len:65535"], PROTOCOL),
    "blob elsewhere": (["hello", "record=type:6,transfer:1,blob_len:64,blob_off:0xfffffff8"], PROTOCOL),
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_misdeed(target, device, misdeed):
    steps, code = MISDEEDS[misdeed]
    said = stranger(target, *steps, "end")
    assert said.endswith("ended by the target\n")
    assert (f"notice {code}: " if code else "") in said and ("notice" in said) == (code is not None), said
    if "completion" in said and device.name == "rxe0":  # siw completes it with success
        assert "completion: remote access error" in said


def test_slow_hello(target):
    assert "ended by the target" in stranger(target, "slow")


@pytest.mark.parametrize("field", ["length:0xffffffff", "region_off:0xfffffffffffffff0", "stream_off:0xfffffffffffffff0"])
def test_wild_data(target, field):
    """The transfer fails, and the connection goes on."""
    said = stranger(target, "hello", "begin", f"record=type:3,transfer:1,length:1,{field}", "answer", "bye", "end")
    assert f"result {PROTOCOL}: " in said and said.endswith("ended by the target\n")


# ---- rkeys ----


def is_repelled(said, device):
    assert said.endswith("ended by the target\n")
    assert ("completion: remote access error" if device.name == "rxe0" else "completion: success") in said


@pytest.fixture
def victim(target):
    """A stranger with a region in which something has arrived; at the end it is still there."""
    with hold(target, "hello", f"one={HELLO}", "answer") as victim:
        victim.id = max(r["id"] for r in target.regions() if r["claimedName"] == "stranger")
        yield victim
    assert target.rwctl("dump-region", str(victim.id)).stdout == HELLO.encode()


@pytest.mark.parametrize("area", ["tail", "bytes"])
@pytest.mark.parametrize("before", [[], ["hello"]], ids=["before HELLO", "after it"])
def test_rkey_of_another(target, victim, device, area, before):
    is_repelled(stranger(target, *before, f"write={victim.place(area)},8", "end"), device)


def test_rkey_of_one_who_has_gone(target, victim, device):
    """His region lingers, but not for writers."""
    victim.go_on()
    until(lambda: any(r["id"] == victim.id and r["state"] == "lingering" for r in target.regions()))
    is_repelled(stranger(target, f"write={victim.place('bytes')},8", "end"), device)


def test_rkey_after_release(target, device):
    with hold(target, "hello") as other:
        pass
    steps = "hello", "wait", "end", "write-at=0,8"
    with Held(target, *steps) as victim:
        region = max(r["id"] for r in target.regions() if r["claimedName"] == "stranger")
        target.rwctl("release", str(region))
        said = victim.go_on()
        assert f"notice {RELEASED}: " in said and "ended by the target" in said and "completion: success" not in said
    for gone in other, victim:
        is_repelled(stranger(target, f"write={gone.place('bytes')},8", "end"), device)


def test_guessed_rkeys(target, victim, device):
    """The right one among them. Each guess takes a connection."""
    number = 300 if device.name == "rxe0" else 40
    for area in "tail", "bytes":
        said = stranger(target, f"guess={number // 2},{victim.place(area)}", timeout=300)
        if device.name == "rxe0":
            assert f"{number // 2} guesses failed, 0 were" in said
        else:
            assert f" {number // 2} were ended by the target" in said


# ---- crowds ----


@pytest.mark.parametrize("step, kind", [("silent-crowd", "unproven"), ("crowd", "connections")])
def test_crowd(make, device, tmp_path, step, kind):
    """Many more than there are places for; on siw a process, the crowd's, has some twenty queue pairs at most."""
    room, number = (64, 200) if device.name == "rxe0" else (8, 25)
    limits = {"connections": room, "unproven": room, "hello": "5min", "setup": "1min", "beat": "1min", "dead": "10min"}
    target = make("c", sections={"limits": limits})
    writer = make("d", peers=[target])
    path = tmp_path / "file"
    path.write_text(HELLO)
    writer.rwctl("write", "c", path)
    settle(writer, target)
    before = holdings(target, device)
    with Held(target, *(["hello"] if kind == "connections" else []), f"{step}={number - 1}") as crowd:
        assert f"{room - 1} accepted, {number - room} rejected" in crowd.said
        status = target.json("status")
        assert (status[kind], status["refusedBusy"]) == (room, number - room)
        assert f"{room} of {room} connections" in writer.refused("write", "c", path)
        crowd.go_on()
    until(lambda: target.json("status")[kind] == 0, what="the crowd to go")
    writer.rwctl("write", "c", path)
    settle(writer, target)
    until(lambda: holdings(target, device) == before, what=f"{before}, not {holdings(target, device)}")


# ---- receives ----


def test_message_without_a_receive(target, device):
    """Nobody posts receives, so a message is the end of its sender: on siw only after it has succeeded."""
    said = stranger(target, "hello", "message", "end")
    assert "granted" in said and "result" not in said
    assert all(region["receiveCompletions"] == 0 for region in target.regions())


def odd(twist):
    return (BIN / "odd_rwriterd", twist)


def test_receive_completions_are_counted(make):
    odd_target = make("odd", command=odd("--post-receive"))
    said = stranger(odd_target, "hello", "message", f"one={HELLO}", "answer", "bye")
    assert "completion: success\nresult 0\n" in said
    (region,) = odd_target.regions()
    assert region["receiveCompletions"] == 1


def test_region_without_remote_write(make, device, tmp_path):
    odd_target = make("odd", command=odd("--no-remote-write"))
    writer = make("c", peers=[odd_target])
    path = tmp_path / "hello.txt"
    path.write_text(HELLO)
    said = writer.refused("write", "odd", path)
    if device.name == "rxe0":
        assert "remote access error" in said
