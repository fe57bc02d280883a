"""test_interop.py -- our iwarp against the kernel's, in both directions

Each end is in a network namespace of its own, so that the frames cross a wire with a real MTU. tests/vm/interop.c
has the sizes: around the limits of FPDUs and of 64 KiB, up to some MiB. At last it writes where it may not, and our
side must name the reason that the kernel gives.
"""

import itertools
import subprocess

import pytest

from rwriter import BIN, Device, pattern

PORTS = itertools.count(7600)
KERNEL = {4: "10.9.2.1", 6: "fd00:9:2::1"}
OURS = {4: "10.9.2.2", 6: "fd00:9:2::2"}
ELSEWHERE = ["ip", "netns", "exec", "elsewhere"]


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@pytest.fixture(scope="module")
def wire():
    """A wire from a siw device to the namespace 'elsewhere'; a function that sets its MTU."""
    ip("netns", "add", "elsewhere")
    ip("link", "add", "kernel", "type", "veth", "peer", "name", "ours", "netns", "elsewhere")
    for addresses, link, where in ((KERNEL, "kernel", []), (OURS, "ours", ["-n", "elsewhere"])):
        ip(*where, "addr", "add", f"{addresses[4]}/24", "dev", link)
        ip(*where, "addr", "add", f"{addresses[6]}/64", "dev", link, "nodad")
        ip(*where, "link", "set", link, "up")
    subprocess.run(["rdma", "link", "add", "siw9", "type", "siw", "netdev", "kernel"], check=True)

    def set_mtu(mtu):
        ip("link", "set", "kernel", "mtu", mtu)
        ip("-n", "elsewhere", "link", "set", "ours", "mtu", mtu)

    yield set_mtu
    subprocess.run(["rdma", "link", "delete", "siw9"], check=True)
    ip("link", "delete", "kernel")
    ip("netns", "delete", "elsewhere")


def interop(role, fabric, address, port, crc):
    where = [] if fabric == "verbs" else ELSEWHERE
    return subprocess.Popen(
        [*where, BIN / "interop", role, fabric, address, str(port), crc],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("mtu, family", [("1500", 4), ("1450", 4), ("9000", 4), ("1500", 6)])
@pytest.mark.parametrize("crc", ["crc", "nocrc"])
@pytest.mark.parametrize("writer, target", [("iwarp", "verbs"), ("verbs", "iwarp")])
def test_every_size_arrives(wire, mtu, crc, family, writer, target):
    wire(mtu)
    address, port = (KERNEL if target == "verbs" else OURS)[family], next(PORTS)
    passive = interop("target", target, address, port, crc)
    assert passive.stdout.readline().startswith("listening")
    active = interop("writer", writer, address, port, crc)
    said = active.communicate(timeout=100)[0] + passive.communicate(timeout=100)[0]
    print(said)
    assert (active.returncode, passive.returncode) == (0, 0)
    assert "sizes arrived" in said


# Around what an FPDU holds in segments of both MTUs, 64 KiB, and more than staging holds.
SIZES = (0, 1, 1428, 1429, 8928, 8929, 65535, 65536, 65537, 20 << 20)


def daemon(make, name, fabric, crc, **options):
    """A daemon on that end of the wire which has this fabric."""
    ours = fabric == "iwarp"
    listen = {"fabric": fabric, "device": "any" if ours else "siw9", "allow": "any"}
    return make(
        name,
        device=Device("siw9", (OURS if ours else KERNEL)[4]),
        command=[*(ELSEWHERE if ours else []), BIN / "rwriterd"],
        sections={"listen default": listen, "iwarp": {"mpa-crc": crc}},
        **options,
    )


@pytest.mark.parametrize("mtu", ["1500", "9000"])
@pytest.mark.parametrize("crc", ["yes", "no"])
@pytest.mark.parametrize("fabric, other", [("iwarp", "verbs"), ("verbs", "iwarp")])
def test_daemons(wire, make, tmp_path, mtu, crc, fabric, other):
    wire(mtu)
    target = daemon(make, "b", other, crc)
    writer = daemon(make, "a", fabric, crc)
    writer.configure({"peer b": {"address": target.device.address, "port": target.port, "fabric": fabric}})
    writer.rwctl("reload")
    for size in SIZES:
        data = pattern(size)
        (tmp_path / "file").write_bytes(data)
        said = writer.rwctl("write", "b", tmp_path / "file").stdout.decode()
        assert f"arrived, {size} byte" in said and {"iwarp": "iwarp tcp", "verbs": "verbs siw9"}[fabric] in said
        assert target.rwctl("dump-region").stdout == data
    assert all(region["receiveCompletions"] == 0 for region in target.regions())
