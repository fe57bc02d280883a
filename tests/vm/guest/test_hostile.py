"""Clients that share no code with rwriter, well-behaved and not, and targets that are twisted."""

import subprocess

import pytest

from rwriter import BIN, until

HELLO = "Hello RDMA Write!"


def stranger(mode, target, status=0):
    done = subprocess.run(
        [BIN / "stranger", mode, target.device.address, str(target.port), HELLO],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def odd(twist):
    return (BIN / "odd_rwriterd", twist)


@pytest.fixture(autouse=True)
def nothing_is_left(target, writer, device, tmp_path):
    """Whatever a stranger did, the next honest write arrives."""
    yield
    path = tmp_path / "honest.txt"
    path.write_text("honest")
    writer.rwctl("write", "b", path)
    assert target.rwctl("dump-region").stdout == b"honest"


def test_minimal_writer(target):
    assert "result 0\n" in stranger("minimal", target)
    assert target.rwctl("dump-region", "stranger").stdout == HELLO.encode()


def test_stale_boot_id(target):
    """What a writer says who still believes in a daemon that has been restarted since."""
    assert stranger("stale", target).startswith("denied 20: ")


def test_write_beyond_the_region(target, device):
    said = stranger("outside", target)
    assert "granted" in said
    if device.name == "rxe0":  # siw completes it with success, and ends the connection
        assert "completion: remote access error" in said
    until(lambda: target.json("status")["connections"] <= 1, what="the stranger's connection to end")


def test_message_without_a_receive(target, device):
    """Nobody posts receives, so a message is the end of its sender: on siw only after it has succeeded."""
    said = stranger("send", target, status=1 if device.name == "siw0" else 0)
    assert "granted" in said and "result" not in said
    assert all(region["receiveCompletions"] == 0 for region in target.regions())


def test_receive_completions_are_counted(make):
    odd_target = make("odd", command=odd("--post-receive"))
    assert "completion: success\nresult 0\n" in stranger("send", odd_target)
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
