"""Devices, addresses and ports that are missing, go and come; peers that do not answer."""

import contextlib
import pathlib
import signal
import subprocess
import time

import pytest

from rwriter import Device, settle, until

SOON = 20  # seconds, on a machine that is slow: retry (1 s), dead interval, set-up
LIMITS = {"reconnect": "0", "retry": "1s", "beat": "500ms", "dead": "5s", "setup": "3s", "stop": "2s"}
HELLO = b"Hello RDMA Write!"


@pytest.fixture
def hello(tmp_path):
    path = tmp_path / "hello.txt"
    path.write_bytes(HELLO)
    return path


@pytest.fixture
def start(make):
    def start(name, limits=LIMITS, listen=(), **options):
        sections = {"limits": limits, "listen default": dict(listen)}
        return make(name, sections=sections, **options)

    return start


def run(*command):
    subprocess.run([str(word) for word in command], check=True, timeout=60)


@contextlib.contextmanager
def stopped(daemon):
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def is_asleep(daemon, seconds=20):
    """None of its threads does anything."""

    def naps():
        statuses = pathlib.Path(f"/proc/{daemon.process.pid}/task").glob("*/status")
        lines = [line for status in statuses for line in status.read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))

    time.sleep(2)  # what was just done dies down
    before = naps()
    time.sleep(seconds)
    return naps() == before


def says_down(daemon, *words):
    """The service manager and rwctl are told what is missing."""

    def said():
        texts = daemon.manager.status, daemon.rwctl("status").stdout.decode()
        return all("down: " in text and word in text for text in texts for word in words)

    until(said, timeout=SOON, what=f"{daemon.name} to say {words}")


def listens(daemon):
    until(daemon.listens, timeout=SOON, what=f"{daemon.name} to listen")
    until(lambda: "down: " not in daemon.manager.status, what="the service manager to be told")


def works(writer, target, hello, peer=None):
    done = writer.rwctl("write", peer or target.name, hello)
    assert b"arrived" in done.stdout
    assert target.rwctl("dump-region").stdout == HELLO


def test_port_that_is_taken(start, hello):
    first = start("first")
    second = start("second", port=first.port, listening=False)
    says_down(second, f"{first.device.address}:{first.port}", "taken by another listener")
    writer = start("a", peers=[second])
    writer.rwctl("write", "second", hello)
    assert first.rwctl("dump-region").stdout == HELLO
    first.stop()
    listens(second)
    works(writer, second, hello)


@pytest.fixture
def address(device):
    """One that is not there; a function that adds and removes it."""
    late = device.address[:-1] + "77"

    def change(how):
        run("ip", "addr", how, f"{late}/32", "dev", device.interface)

    yield late, change
    subprocess.run(["ip", "addr", "del", f"{late}/32", "dev", device.interface], stderr=subprocess.DEVNULL)


def test_address_that_comes_goes_and_comes(start, hello, address):
    late, change = address
    target = start("b", listen={"address": late}, listening=False)
    writer = start("a")
    for _ in range(2):
        says_down(target, f"{late} is not an address of this machine")
        change("add")
        listens(target)
        works(writer, target, hello, peer=f"{late}:{target.port}")
        change("del")
    says_down(target, f"{late} is not an address of this machine")


def holds(writer, target):
    """A stream that is on its way and goes no further."""
    stream = writer.stream(target.name)
    stream.stdin.write(bytes(2 << 20))
    stream.stdin.flush()
    until(lambda: any(region["state"] == "receiving" for region in target.regions()), what="the stream to begin")
    return stream


def test_device_that_goes_and_comes(start, hello, device):
    """Removing it does not wait for us; a daemon that starts meanwhile waits for it."""
    target = start("b")
    del target.sections["listen default"]["address"]
    target.configure({})
    target.rwctl("reload")
    listens(target)
    writer = start("a", peers=[target])
    stream = holds(writer, target)

    run("rdma", "link", "delete", device.name)
    _, said = stream.communicate(timeout=SOON)
    assert stream.returncode == 1 and device.name in said.decode(), said.decode()
    late = start("late", listening=False)
    says_down(target, f"there is no RDMA device {device.name}")
    for daemon in writer, late:
        says_down(daemon, f"no RDMA device has the address {device.address}")
    assert "no RDMA device leads to" in writer.refused("write", "b", hello)
    for daemon in target, writer:
        until(lambda: daemon.json("status")["connections"] == 0, what="the connection to be gone")

    run("rdma", "link", "add", device.name, "type", device.kind, "netdev", device.interface)
    for daemon in target, writer, late:
        listens(daemon)
    works(writer, target, hello)
    late.add_peer("b", target.port)
    late.configure({})
    late.rwctl("reload")
    works(late, target, hello)


def test_connection_manager_that_is_not_loaded(start, hello):
    """The kernel would load it by itself, if it were there."""
    barrier = pathlib.Path("/run/modprobe.d/barrier.conf")
    barrier.parent.mkdir(exist_ok=True)
    barrier.write_text("install rdma_ucm /bin/false\n")
    run("rmmod", "rdma_ucm")
    try:
        target = start("b", LIMITS | {"retry": "1h"}, listening=False)
        says_down(target, "load the kernel module rdma_ucm")
        assert is_asleep(target)
    finally:
        barrier.unlink()
        run("modprobe", "rdma_ucm")
    listens(target)
    works(start("a", peers=[target]), target, hello)


def test_nothing_to_do(start, hello):
    """Without a connection a daemon sleeps, also one that has had some."""
    target = start("b")
    writer = start("a", peers=[target])
    works(writer, target, hello)
    settle(writer, target)
    assert is_asleep(target) and is_asleep(writer)


@pytest.fixture
def bond(device):
    """A device over two interfaces, of which one is used; a function that makes it the other one."""
    run("modprobe", "bonding", "max_bonds=0")
    run("ip", "link", "add", "bond0", "type", "bond", "mode", "active-backup", "fail_over_mac", "active")
    for leg in "leg0", "leg1":
        run("ip", "link", "add", leg, "mtu", "9000", "type", "dummy")
        run("ip", "link", "set", leg, "master", "bond0")
    run("ip", "link", "set", "bond0", "mtu", "9000", "up")
    run("ip", "addr", "add", "10.9.2.1/24", "dev", "bond0")
    run("rdma", "link", "add", "bonded", "type", device.kind, "netdev", "bond0")
    yield Device("bonded", "10.9.2.1", device.kind, "bond0")
    for name in "bond0", "leg0", "leg1":
        run("ip", "link", "del", name)


def test_address_that_moves_to_another_interface(bond, start, hello):
    """ADDR_CHANGE: connections end, and both are listened on again."""
    target = start("b", device=bond)
    writer = start("a", device=bond, peers=[target])
    works(writer, target, hello)
    run("ip", "link", "set", "bond0", "type", "bond", "active_slave", "leg1")
    for daemon in writer, target:
        until(lambda: daemon.json("status")["connections"] == 0, timeout=SOON, what="the connection to be gone")
        until(lambda: "moved" in daemon.log.read_text(), timeout=SOON, what=f"{daemon.name} to notice")
    if bond.kind == "siw":  # it stays with the hardware address that it was made with
        says_down(target, f"no RDMA device has the address {bond.address}")
        run("rdma", "link", "delete", bond.name)
        run("rdma", "link", "add", bond.name, "type", bond.kind, "netdev", bond.interface)
    for daemon in writer, target:
        listens(daemon)
    works(writer, target, hello)


# ---- peers that do not answer: the kernel does, the daemon does not ----


def test_accept_that_does_not_come(start, hello):
    """[limits] setup is the bound."""
    target = start("b")
    writer = start("a", peers=[target])
    with stopped(target):
        began = time.monotonic()
        assert "no answer within 3 s" in writer.refused("write", "b", hello)
        assert 2 < time.monotonic() - began < SOON
    until(lambda: target.json("status")["unproven"] == 0, what="the target to forget it")
    works(writer, target, hello)


def test_farewell_that_is_not_answered(start, hello):
    """The end of a connection needs nobody else."""
    target = start("b")
    writer = start("a", peers=[target])
    works(writer, target, hello)
    with stopped(target):
        writer.rwctl("disconnect", "b")
        until(lambda: writer.json("status")["connections"] == 0, timeout=10, what="the connection to be gone")
        writer.stop()
    until(lambda: target.json("status")["connections"] == 0, what="the target to notice")
    writer.start()
    works(writer, target, hello)


@pytest.mark.parametrize("who", ["writer", "target"])
def test_daemon_that_hangs(start, hello, who):
    """Its kernel acknowledges what we write, but its beats are missing."""
    target = start("b")
    writer = start("a", peers=[target])
    stream = holds(writer, target)
    hanging, other = (writer, target) if who == "writer" else (target, writer)
    with stopped(hanging):
        until(lambda: other.json("status")["connections"] == 0, timeout=SOON, what="the other one to notice")
        assert "no sign of life" in other.log.read_text()
    stream.communicate(timeout=SOON)
    assert stream.returncode == 1
    works(writer, target, hello)
