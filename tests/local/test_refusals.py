"""What is refused, and that the refusal names both numbers, the machine and what to change."""

import pytest
from conftest import MEBIBYTE, hold, receiving

from daemon import Daemon, free_port, until


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "big.img"
    path.write_bytes(bytes(2 * MEBIBYTE))
    return path


def test_size(make, file):
    target = make("b", region={"size": "64K", "max-size": "1M"})
    writer = make("a", peers=[target])
    said = writer.refused("write", "b", file)
    assert 'b refused 2.0 MiB for region "default": it grants at most 1.0 MiB' in said
    assert "on b: max-size = 2M in [region default]" in said

    # After following the advice:
    target.configure(region={"max-size": "2M"})
    target.rwctl("reload")
    writer.rwctl("write", "b", file)


def test_stream_that_outgrows_its_region(make):
    target = make("b", region={"size": "64K", "max-size": "1M"})
    writer = make("a", peers=[target])
    said = writer.refused("write", "b", "-", input=bytes(100_000))
    assert "64" in said and "KiB" in said
    until(lambda: not receiving(target), what="the transfer to end")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_address(make, file, address):
    target = make("b", address=address, listen={"allow": ["10.8.0.0/24", "fd00:8::/64"]})
    writer = make("a", address=address, peers=[target])
    said = writer.refused("write", "b", file)
    assert f"refused us: {address} is in no allow line of [listen default]" in said
    assert f'on b: add "allow = {address}"' in said
    assert target.regions() == []

    target.configure(listen={"allow": ["10.8.0.0/24", address]})
    target.rwctl("reload")
    writer.rwctl("write", "b", file)


def test_region(make, file):
    target = make("b")
    writer = make("a", peers=[target])
    said = writer.refused("write", "--region", "models", "b", file)
    assert 'there is no region "models"' in said
    assert "on b: add [region models]" in said

    target.configure(**{"region models": {"max-size": "8M"}})
    target.rwctl("reload")
    writer.rwctl("write", "--region", "models", "b", file)
    assert target.regions()[-1]["region"] == "models"


def test_busy(make, file):
    target = make("b", limits={"connections": 1})
    writer = make("a", peers=[target])
    stream = hold(writer, target)
    other = make("c", peers=[target])
    assert "1 of 1 connections in use" in other.refused("write", "b", file)
    stream.communicate(timeout=30)
    assert stream.returncode == 0


def test_memory(make, file):
    target = make("b", region={"size": "64K", "max-size": "3M"}, limits={"pinned-memory": "3M"})
    writer = make("a", peers=[target])
    stream = hold(writer, target, "--size", "2M")
    said = writer.refused("write", "b", file)
    assert "1.0 MiB of the 3.0 MiB of pinned memory are free, 1 regions hold 2.0 MiB" in said
    assert "on b: pinned-memory = " in said and "rwctl regions shows" in said
    assert "2.0 MiB" in target.rwctl("regions").stdout.decode()
    stream.communicate(timeout=30)
    assert stream.returncode == 0


def test_other_fabric(make, file):
    """Who may only use verbs is told what is missing, and nothing else is used instead."""
    target = make("b")
    writer = make("a", peers=[])
    writer.add_peer(target, fabric="verbs")
    writer.configure()
    writer.rwctl("reload")
    assert writer.refused("write", "b", file)
    assert target.status()["connections"] == 0 and target.regions() == []


def test_nobody_listens_there(make, file):
    said = make("a").refused("write", f"127.0.0.1:{free_port()}", file)
    assert "nobody listens there" in said
    assert "systemctl start rwriter" in said


def test_peer_that_is_not_known(make, file):
    assert "nowhere.invalid" in make("a").refused("write", "nowhere.invalid", file)


def test_file_that_is_not_there(make):
    said = make("a").refused("write", "b", "/no/such/file")
    assert "/no/such/file: No such file or directory" in said


def test_directory(make, tmp_path):
    assert "Is a directory" in make("a").refused("write", "b", tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [(), ("frobnicate",), ("write",), ("write", "b"), ("status", "--no-such-option"), ("release", "one"),
     ("write", "--timeout", "soon", "b", "-"), ("status", "--region", "r")],  # fmt: skip
    ids=" ".join,
)
def test_usage(make, arguments):
    assert make("a").refused(*arguments, status=2)


def test_daemon_that_is_not_there():
    absent = Daemon("absent")
    assert str(absent.socket) in absent.refused("status", status=3)
