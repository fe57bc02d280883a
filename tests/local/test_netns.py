"""Several hosts, in network namespaces: who may write, links that are slow, lossy or cut, addresses."""

import contextlib
import os
import subprocess
import time

import pytest
from conftest import HELLO, MEBIBYTE, Flow, receiving
from network import Line, Network

from daemon import pattern, until

QUICK = {"beat": "200ms", "dead": "2s", "stop": "2s"}
SOON = 15  # seconds: the dead interval, and much for a busy machine


@pytest.fixture(scope="module")
def network():
    """It goes with the namespace that we are in."""
    return Network(5)


@pytest.fixture
def net(network):
    yield network
    network.heal()
    network.set_mtu(1500)


@pytest.fixture
def line():
    """A function that makes a line; what runs at its ends must have ended before the line does."""
    with contextlib.ExitStack() as stack:

        def make(**how):
            if not os.access("/dev/net/tun", os.W_OK):
                pytest.skip("no TAP devices here")
            line = Line(**how)
            stack.callback(line.remove)
            return line

        yield make


def on(make, host, name, address=None, **options):
    return make(name, address=address or host.v4, command=host.command, **options)


def two(make, writer_host, target_host, family="v4", **options):
    """A writer on one host and a target on the other, which admits it."""
    ours, theirs = getattr(writer_host, family), getattr(target_host, family)
    target = on(make, target_host, "b", theirs, listen={"allow": ours}, region={"max-size": "256M"}, **options)
    return on(make, writer_host, "a", ours, peers=[target], **options), target


def works_again(writer, target, hello):
    """As soon as the kernel has found the way."""
    until(lambda: writer.rwctl("write", "b", hello, check=False).returncode == 0, what="a write to arrive")
    assert target.dump() == HELLO


# The order of fixtures is that of their making: daemons end before their network.


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_two_hosts(net, make, tmp_path, mtu, family):
    net.set_mtu(mtu)
    a, b, *_ = net.hosts
    writer, target = two(make, a, b, family)
    for size in 17, 1428, 1429, 8928, 8929, 65536, 3 * MEBIBYTE + 1:
        data = pattern(size)
        (tmp_path / "file").write_bytes(data)
        writer.rwctl("write", "b", tmp_path / "file")
        assert target.dump() == data
    assert {region["peer"] for region in target.regions()} == {getattr(a, family)}


def test_many_hosts_at_once(net, make, tmp_path):
    hub, *hosts = net.hosts
    target = on(make, hub, "b", listen={"allow": "10.7.0.0/24"})
    running = []
    for number, host in enumerate(hosts):
        writer = on(make, host, f"writer{number}", peers=[target])
        (tmp_path / f"{number}").write_bytes(pattern(MEBIBYTE + number))
        running.append(writer.start_rwctl("write", "b", tmp_path / f"{number}"))
    for process in running:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    for number, host in enumerate(hosts):
        assert target.dump(host.v4) == (tmp_path / f"{number}").read_bytes()


# ---- who may write ----


def test_only_this_host_by_default(net, make, hello):
    a, b, *_ = net.hosts
    target = on(make, b, "b")
    writer = on(make, a, "a", peers=[target])
    said = writer.refused("write", "b", hello)
    assert f"b ({b.v4}:{target.port}) refused us: {a.v4} is in no allow line of [listen default]" in said
    assert f'on b: add "allow = {a.v4}"' in said
    assert any('add "allow = ADDRESS"' in note for note in target.status()["notes"])

    target.configure(listen={"allow": ["host", a.v4]})  # the advice
    target.rwctl("reload")
    writer.rwctl("write", "b", hello)
    assert not target.status()["notes"]
    local = on(make, b, "c", peers=[target])
    local.rwctl("write", "b", hello)


@pytest.mark.parametrize("family", ["v4", "v6"])
@pytest.mark.parametrize("form", ["{0}", "{0}/{1}", "any", "friend"])
def test_allowed(net, make, hello, family, form):
    a, b, other, *_ = net.hosts
    address = getattr(a, family)
    allow = form.format(address, 32 if family == "v4" else 128)
    target = on(make, b, "b", getattr(b, family), listen={"allow": allow}, **{"peer friend": {"address": address}})
    writer = on(make, a, "a", address, peers=[target])
    writer.rwctl("write", "b", hello)
    assert target.regions()[0]["peer"] == "friend"
    if form != "any":
        stranger = on(make, other, "c", getattr(other, family), peers=[target])
        assert f"{getattr(other, family)} is in no allow line" in stranger.refused("write", "b", hello)


# ---- links ----


def test_line_that_is_slow(line, make, hello):
    """150 ms there, 150 ms back."""
    writer, target = two(make, *line(delay=0.15).hosts)
    writer.rwctl("write", "b", hello)
    assert target.dump() == HELLO
    began = time.monotonic()
    writer.rwctl("write", "b", hello)
    assert time.monotonic() - began > 0.3


def test_line_that_loses(line, make, tmp_path):
    """One frame in fifty, each way."""
    bad = line(delay=0.002, loss=0.02)
    writer, target = two(make, *bad.hosts)
    data = pattern(2 * MEBIBYTE)
    (tmp_path / "file").write_bytes(data)
    writer.rwctl("write", "b", tmp_path / "file")
    assert target.dump() == data
    assert bad.lost > 10


@pytest.mark.parametrize("how", ["cut", "pull"])
def test_link_that_goes_while_idle(net, make, hello, how):
    """Both sides notice within the dead interval (2 s); when it is back all works again."""
    a, b, *_ = net.hosts
    writer, target = two(make, a, b, limits=QUICK)
    writer.rwctl("write", "b", hello)
    began = time.monotonic()
    getattr(net, how)(b)
    for daemon in writer, target:
        until(lambda: daemon.status()["connections"] == 0, timeout=SOON, what=f"{daemon.name} to notice")
    assert time.monotonic() - began > 1
    assert target.dump() == HELLO
    net.heal()
    works_again(writer, target, hello)


@pytest.mark.parametrize("how", ["cut", "pull"])
def test_link_that_goes_in_mid_transfer(net, make, hello, how):
    a, b, *_ = net.hosts
    writer, target = two(make, a, b, limits=QUICK)
    flow = Flow(writer, target)
    getattr(net, how)(a)
    status = until(lambda: flow.process.poll(), timeout=SOON, what="rwctl to end")
    _, said = flow.end()
    assert status == 1 and f"b ({b.v4}:" in said, said
    for daemon in writer, target:
        until(lambda: daemon.status()["connections"] == 0, timeout=SOON, what=f"{daemon.name} to notice")
        assert daemon.status()["transfers"] == 0
    assert not receiving(target)
    net.heal()
    works_again(writer, target, hello)


def test_link_that_is_back_in_time(net, make):
    """A short cut is no end: the transfer goes on."""
    a, b, *_ = net.hosts
    writer, target = two(make, a, b, limits=QUICK | {"dead": "60s"})
    flow = Flow(writer, target)
    net.cut(b)
    time.sleep(1)
    net.heal()
    sent = flow.sent
    until(lambda: flow.sent > sent + 4 * MEBIBYTE, timeout=60, what="the flow to go on")
    status, said = flow.end()
    assert status == 0, said
    assert len(target.dump()) == flow.sent


def test_host_that_is_not_there(net, make, hello):
    writer = on(make, net.hosts[0], "a", limits=QUICK | {"setup": "2s"})
    began = time.monotonic()
    said = writer.refused("write", "10.7.0.99", hello)
    assert "10.7.0.99" in said
    assert time.monotonic() - began < SOON


# ---- addresses ----


def test_link_local_address(net, make, hello):
    """It means something only together with its interface."""
    a, b, *_ = net.hosts
    target = on(make, b, "b", f"{b.local}%eth0", listen={"allow": "fe80::/10"})
    writer = on(make, a, "a", f"{a.local}%eth0", peers=[target])
    writer.rwctl("write", "b", hello)
    assert target.dump() == HELLO
    (peer,) = writer.peers()
    assert peer["address"] == f"[{b.local}%eth0]:{target.port}"
    writer.rwctl("write", f"[{b.local}%eth0]:{target.port}", hello)


@pytest.mark.parametrize("order", [1, -1], ids=["dead one first", "dead one last"])
def test_name_with_a_dead_address(net, make, hello, tmp_path, order):
    """One of the addresses of the name is nobody's."""
    a, b, *_ = net.hosts
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{address} twofold\n" for address in ["10.7.0.99", b.v4][::order]))
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)  # in our namespace only
    try:
        target = on(make, b, "b", listen={"allow": a.v4})
        writer = on(make, a, "a")
        writer.add_peer(target, name="two", address="twofold")
        writer.configure()
        writer.rwctl("reload")
        writer.rwctl("write", "two", hello)
        assert target.dump() == HELLO
        assert writer.peers()[0]["address"] == f"{b.v4}:{target.port}"
    finally:
        subprocess.run(["umount", "/etc/hosts"], check=True)


def test_address_that_comes_goes_and_comes(net, make, hello):
    """The daemon is up without it, listens when it is there, and never says that it listens where it cannot."""
    a, b, *_ = net.hosts
    late = {"address": "10.7.0.77", "port": 7477, "fabric": "iwarp", "allow": a.v4}
    target = on(make, b, "b", limits={"retry": "1h"}, **{"listen late": late})
    writer = on(make, a, "a")

    def listener():
        return next(listener for listener in target.status()["listeners"] if listener["name"] == "late")

    for _ in range(2):
        until(lambda: not listener()["up"], what="the address to be missed")
        assert listener()["detail"] == "10.7.0.77 is not an address of this machine"
        b.ip("addr", "add", "10.7.0.77/32", "dev", "eth0")
        until(lambda: listener()["up"], what="the address to be listened on")
        writer.rwctl("write", "10.7.0.77:7477", hello)
        assert target.dump() == HELLO
        b.ip("addr", "del", "10.7.0.77/32", "dev", "eth0")
