"""Writes that arrive: every size, streams, many connections at once."""

import pytest

from rwriter import crc32c, pattern, until

HELLO = b"Hello RDMA Write!"
MEBIBYTE = 1 << 20


def write(writer, path, data):
    path.write_bytes(data)
    return writer.rwctl("write", "b", path)


def test_hello(writer, target, device, tmp_path):
    said = write(writer, tmp_path / "hello.txt", HELLO).stdout.decode()
    assert "hello.txt -> b: arrived, 17 bytes in " in said
    assert f"verbs {device.name}" in said
    assert f"crc32c {crc32c(HELLO)}" in said
    assert target.rwctl("dump-region").stdout == HELLO


def test_region_as_json(writer, target, device, tmp_path):
    write(writer, tmp_path / "hello.txt", HELLO)
    region = max(target.regions(), key=lambda region: region["lastArrival"]["time"])
    assert region["peer"] == device.address
    assert region["claimedName"] == "a"
    assert (region["fabric"], region["device"]) == ("verbs", device.name)
    assert region["receiveCompletions"] == 0
    last = region["lastArrival"]
    assert (last["name"], last["length"], last["crc32c"]) == ("hello.txt", 17, crc32c(HELLO))


@pytest.mark.parametrize("size", [0, 1, 17, 4095, 4096, 4097, MEBIBYTE, 64 * MEBIBYTE, 200 * MEBIBYTE])
def test_size(writer, target, tmp_path, size):
    data = pattern(size)
    write(writer, tmp_path / f"{size}.bin", data)
    with (tmp_path / "dump").open("wb") as dump:
        target.rwctl("dump-region", stdout=dump, capture_output=False)
    assert (tmp_path / "dump").read_bytes() == data


def test_standard_input(writer, target):
    data = pattern(MEBIBYTE + 1)
    writer.rwctl("write", "--name", "stream", "b", "-", input=data)
    assert target.rwctl("dump-region").stdout == data


def test_regions_can_be_chosen(writer, target, tmp_path):
    write(writer, tmp_path / "hello.txt", HELLO)
    region = max(target.regions(), key=lambda region: region["lastArrival"]["time"])
    assert target.rwctl("dump-region", str(region["id"])).stdout == HELLO
    assert target.rwctl("dump-region", "a").stdout == HELLO
    target.rwctl("dump-region", "-o", tmp_path / "dump")
    assert (tmp_path / "dump").read_bytes() == HELLO


def test_no_receives(target):
    """After all of the above, the target's CPU has taken no part in any transfer."""
    assert target.regions()
    assert all(region["receiveCompletions"] == 0 for region in target.regions())


def test_many_connections_at_once(make, target):
    """One connection per peer section: more than siw's libraries bear without the big completion queue."""
    many = 20
    hub = make("hub")
    for i in range(many):
        hub.add_peer(f"b{i}", target.port)
    hub.configure({})
    hub.rwctl("reload")

    before = target.json("status")["connections"]
    streams = [hub.stream(f"b{i}", "--name", f"stream{i}") for i in range(many)]
    for i, stream in enumerate(streams):
        stream.stdin.write(pattern(4096 + i))
        stream.stdin.flush()
    until(lambda: target.json("status")["connections"] == before + many, what=f"{many} connections")
    for stream in streams:
        out, errors = stream.communicate(timeout=60)
        assert stream.returncode == 0, errors.decode()
    arrived = {r["lastArrival"]["name"]: r["lastArrival"]["length"] for r in target.regions() if r["lastArrival"]}
    assert {f"stream{i}": 4096 + i for i in range(many)}.items() <= arrived.items()
