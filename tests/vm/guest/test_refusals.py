"""What is refused, and that the refusal names both numbers, the machine and what to change."""

import pytest

from rwriter import BIN, Daemon

MEBIBYTE = 1 << 20


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "big.img"
    path.write_bytes(bytes(2 * MEBIBYTE))
    return path


def limited(memlock, device):
    """rwriterd that may lock so many bytes of memory: as nobody, but siw heeds the limit of root too."""
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --".split()
    return (
        "prlimit",
        f"--memlock={memlock}:{memlock}",
        *(nobody if device.name == "rxe0" else ()),
        BIN / "rwriterd",
    )


def test_file_beyond_max_size(make, file):
    target = make("b", sections={"region default": {"size": "64K", "max-size": "1M"}})
    writer = make("a", peers=[target])
    said = writer.refused("write", "b", file)
    assert 'b refused 2.0 MiB for region "default": it grants at most 1.0 MiB' in said
    assert "on b: max-size = 2M in [region default]" in said

    # After following the advice:
    target.configure({"region default": {"max-size": "2M"}})
    target.rwctl("reload")
    writer.rwctl("write", "b", file)


def test_address_that_is_not_allowed(make, file, device):
    target = make("b", sections={"listen default": {"allow": "10.8.0.0/24"}})
    writer = make("a", peers=[target])
    said = writer.refused("write", "b", file)
    assert f"refused us: {device.address} is in no allow line of [listen default]" in said
    assert f'on b: add "allow = {device.address}"' in said
    assert target.regions() == []

    target.configure({"listen default": {"allow": device.address}})
    target.rwctl("reload")
    writer.rwctl("write", "b", file)


def test_target_may_not_lock_enough_memory(make, file, device):
    sections = {"region default": {"size": "64K"}}
    target = make("b", sections=sections, command=limited(MEBIBYTE, device))
    writer = make("a", peers=[target])
    said = writer.refused("write", "b", file)
    assert "cannot pin 2.0 MiB: this process may lock 1.0 MiB in all (RLIMIT_MEMLOCK)" in said
    assert "LimitMEMLOCK=infinity" in said


def test_writer_may_not_lock_enough_memory(make, file, device):
    target = make("b")
    writer = make("a", peers=[target], command=limited(8192, device))
    said = writer.refused("write", "b", file)
    assert "8.0 KiB" in said
    assert "LimitMEMLOCK" in said


def test_nobody_listens_there(make, file, device):
    writer = make("a")
    said = writer.refused("write", f"{device.address}:7399", file)
    assert f"{device.address}:7399" in said


def test_usage(make):
    writer = make("a")
    for arguments in (), ("frobnicate",), ("write",), ("write", "b"), ("status", "--no-such-option"):
        assert writer.refused(*arguments, status=2)


def test_peer_that_is_not_known(make, file):
    assert "nowhere" in make("a").refused("write", "nowhere.invalid", file)


def test_file_that_is_not_there(make):
    assert "/no/such/file" in make("a").refused("write", "b", "/no/such/file")


def test_daemon_that_is_not_there(device):
    absent = Daemon("absent", device, port=7399)
    assert str(absent.socket) in absent.refused("status", status=3)
