"""Writes that arrive: every size, IPv4 and IPv6, streams, many at once."""

import array
import json
import os
import socket

import iwarp
import pytest
from conftest import HELLO, MEBIBYTE

from daemon import pattern, until

SIZES = [0, 1, 17, 4095, 4096, 4097, 65520, 65521, 65522, 65535, 65536, 65537, MEBIBYTE, MEBIBYTE + 1]


@pytest.fixture(scope="module", params=["127.0.0.1", "::1"])
def standing_pair(standing, request):
    target = standing("b", address=request.param, region={"max-size": "256M"})
    return standing("a", address=request.param, peers=[target]), target


def write(writer, path, data, *options):
    path.write_bytes(data)
    return writer.rwctl("write", *options, "b", path).stdout.decode()


def test_hello(standing_pair, tmp_path):
    writer, target = standing_pair
    said = write(writer, tmp_path / "hello.txt", HELLO)
    assert said.startswith("hello.txt -> b: arrived, 17 bytes in ")
    assert "region 1, iwarp" in said
    assert f"crc32c {iwarp.crc32c(HELLO):08x}" in said
    assert target.dump() == HELLO


@pytest.mark.parametrize("size", SIZES)
def test_size(standing_pair, tmp_path, size):
    writer, target = standing_pair
    data = pattern(size)
    write(writer, tmp_path / f"{size}.bin", data)
    assert target.dump() == data


@pytest.mark.parametrize("mebibytes", [64, 200])
def test_big(make, tmp_path, mebibytes):
    target = make("b", region={"max-size": "256M"})
    writer = make("a", peers=[target])
    data = pattern(mebibytes * MEBIBYTE)
    said = write(writer, tmp_path / "big.bin", data)
    assert "/s), region 1, iwarp" in said
    target.rwctl("dump-region", "-o", tmp_path / "dump")
    assert (tmp_path / "dump").read_bytes() == data


def test_without_crc(make, tmp_path):
    """MPA CRC is off only if both sides are configured so."""
    target = make("b", iwarp={"mpa-crc": "no"})
    writer = make("a", peers=[target], iwarp={"mpa-crc": "no"})
    data = pattern(MEBIBYTE + 17)
    write(writer, tmp_path / "file", data)
    assert target.dump() == data


def test_standard_input(standing_pair):
    writer, target = standing_pair
    data = pattern(MEBIBYTE + 1)
    writer.rwctl("write", "--name", "stream", "b", "-", input=data)
    assert target.dump() == data


def test_file_name_is_a_label(standing_pair, tmp_path):
    writer, target = standing_pair
    name = "Füße und Straßen.txt"
    write(writer, tmp_path / name, HELLO)
    assert max(target.regions(), key=lambda r: r["lastArrival"]["time"])["lastArrival"]["name"] == name


def test_connection_is_reused(make, tmp_path):
    target = make("b")
    writer = make("a", peers=[target])
    for number in range(1, 6):
        write(writer, tmp_path / f"file{number}", b"%d" % number)
    (region,) = target.regions()
    assert (region["arrivals"], region["bytes"], region["receiveCompletions"]) == (5, 5, 0)
    assert target.status()["connections"] == 1
    assert target.dump() == b"5"


def test_file_that_does_not_fit_gets_its_own_connection(make, tmp_path):
    target = make("b", region={"size": "64K", "max-size": "256M"})
    writer = make("a", peers=[target])
    small, big = pattern(1000), pattern(100_000)
    write(writer, tmp_path / "small", small)
    write(writer, tmp_path / "big", big)
    assert [target.dump(str(region["id"])) for region in target.regions()] == [small, big]


def test_sixteen_at_once(make, tmp_path):
    """As many rwctl, started together."""
    target = make("b")
    writer = make("a", peers=[target])
    files = [tmp_path / f"file{i}" for i in range(16)]
    for i, file in enumerate(files):
        file.write_bytes(pattern(300_000 + i))
    running = [writer.start_rwctl("write", "b", file) for file in files]
    for process in running:
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
        assert b"arrived, 3000" in out
    assert sum(region["arrivals"] for region in target.regions()) == 16
    assert sum(region["bytes"] for region in target.regions()) == sum(300_000 + i for i in range(16))


class Stream:
    """A write of what the test puts into one end of a socket pair, by a Varlink call of its own."""

    def __init__(self, writer, name):
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(60)
        self.control.connect(str(writer.socket))
        self.input, theirs = socket.socketpair()
        call = {"method": "io.rwriter.Write", "parameters": {"peer": "b", "name": name}}
        fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))]
        self.control.sendmsg([json.dumps(call).encode() + b"\0"], fds)
        theirs.close()

    def finish(self):
        """shutdown() is the end of the bytes; close() alone would mean that there should have been more."""
        self.input.shutdown(socket.SHUT_WR)
        answer = b""
        while not answer.endswith(b"\0"):
            answer += self.control.recv(65536)
        self.control.close()
        self.input.close()
        return json.loads(answer[:-1])["parameters"]["transfer"]


def test_sixty_four_connections_at_once(make):
    """From two writers, because one opens at most 32 connections to a peer."""
    target = make("b", region={"size": "1M"})
    writers = [make(name, peers=[target]) for name in ("a", "c")]
    streams = {f"stream{i}": Stream(writers[i % 2], f"stream{i}") for i in range(64)}
    contents = {name: os.urandom(5000 + i) for i, name in enumerate(streams)}
    for name, stream in streams.items():
        stream.input.sendall(contents[name])
    until(lambda: target.status()["connections"] == 64, timeout=60, what="64 connections")
    for stream in streams.values():
        assert stream.finish()["state"] == "arrived"
    arrived = {region["lastArrival"]["name"]: target.dump(str(region["id"])) for region in target.regions()}
    assert arrived == contents
