"""A program that reads a region by itself, as rwriter-region(7) has it: examples/reader.c, compiled as it stands."""

import array
import json
import os
import pathlib
import socket
import subprocess
import threading
import time

import iwarp
import pytest
from conftest import HELLO

from daemon import ENVIRONMENT, SANITIZER, pattern, until

HOME = pathlib.Path(__file__).resolve().parents[2]
SIZE = 128 << 10
SECONDS = 2
TWO = {"buffers": 2, "max-size": "64M"}


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def program(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("reader") / "reader"
    flags = ["-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", f"-fsanitize={request.param}", "-I", HOME / "include"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, "-o", path, HOME / "examples/reader.c"], check=True)
    return path


class Reader:
    """One that runs; everything that it has taken for whole."""

    def __init__(self, program, target, which, *count):
        # ThreadSanitizer does not know the addresses of every kernel.
        command = ["setarch", "-R", program, target.socket, which, *count]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, env=ENVIRONMENT)
        self.said = []
        self.listener = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.bytes = []
        self.taker = threading.Thread(target=lambda: self.bytes.append(self.process.stdout.read()), daemon=True)
        self.listener.start()
        self.taker.start()

    def wait(self):
        status = self.process.wait(timeout=60)
        self.listener.join()
        self.taker.join()
        said = b"".join(self.said).decode()
        assert status == 0 and not SANITIZER.search(said), said
        return said.splitlines(), self.bytes[0]


class Overwriter:
    """Writes of several patterns, one after the other, with nothing between them."""

    def __init__(self, writer, tmp_path, patterns):
        self.control = socket.socket(socket.AF_UNIX)
        self.control.settimeout(60)
        self.control.connect(str(writer.socket))
        self.files = []
        for name, data in patterns.items():
            (tmp_path / name).write_bytes(data)
            self.files.append((name, os.open(tmp_path / name, os.O_RDONLY)))
        self.written = 0

    def write(self):
        name, fd = self.files[self.written % len(self.files)]
        call = {"method": "io.rwriter.Write", "parameters": {"peer": "b", "name": name}}
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.control.sendmsg([json.dumps(call).encode() + b"\0"], rights)
        answer = b""
        while not answer.endswith(b"\0"):
            answer += self.control.recv(65536)
        assert b'"arrived"' in answer, answer
        self.written += 1

    def write_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.write()

    def close(self):
        for _, fd in self.files:
            os.close(fd)
        self.control.close()


@pytest.mark.parametrize("buffers", [1, 2])
def test_under_constant_overwriting(make, program, tmp_path, buffers):
    """What the reader takes for whole is one pattern, from its first byte to its last."""
    target = make("b", region=TWO | {"buffers": buffers})
    writer = make("a", peers=[target])
    patterns = {f"pattern{i}": pattern(SIZE + i) for i in range(5)}
    overwriter = Overwriter(writer, tmp_path, patterns)
    overwriter.write()
    reader = Reader(program, target, "a")
    overwriter.write_for(SECONDS)
    overwriter.close()
    writer.rwctl("disconnect", "b")  # the end that the reader waits for
    said, taken = reader.wait()
    taken = memoryview(taken)
    checksums = {name: f"crc32c {iwarp.crc32c(data):08x}" for name, data in patterns.items()}
    again = 0
    for line in said:
        name, length = line.split()[1].rstrip(","), int(line.split()[2])
        assert taken[:length] == patterns[name], line
        assert checksums[name] in line
        taken = taken[length:]
        again += int(line.split()[-1]) > 0
    assert len(taken) == 0
    assert len(said) > 5
    if buffers == 2:
        # A machine that is busy with other things may stop a reader for longer than a transfer takes.
        assert again <= 2 + len(said) / 10, f"{again} of {len(said)} reads were not whole at once"
    print(f"{overwriter.written} written, {len(said)} read, {again} not at once")


def test_the_last_arrival_stays_whole(make, program, tmp_path):
    """With two buffers: while the next is on its way, and when it breaks."""
    target = make("b", region=TWO)
    writer = make("a", peers=[target])
    data = pattern(100_000)
    (tmp_path / "first").write_bytes(data)
    writer.rwctl("write", "b", tmp_path / "first")
    stream = writer.stream("b")
    stream.stdin.write(bytes(2 << 20))
    stream.stdin.flush()
    until(lambda: [r for r in target.regions() if r["state"] == "receiving"], what="the stream to be on its way")
    (region,) = target.regions()
    assert (region["generation"], region["lastArrival"]["offset"]) == (2, 0)
    assert target.dump() == data
    assert Reader(program, target, "1", "1").wait()[1] == data
    stream.kill()
    stream.communicate()
    until(lambda: not [r for r in target.regions() if r["state"] == "receiving"], what="the stream to be given up")
    assert target.dump("1") == data


def test_regions_tell_it(make, hello, tmp_path):
    """Where the arrivals lie, and how the generation counts them."""
    target = make("b", region=TWO | {"size": "64K"})
    writer = make("a", peers=[target])
    big = tmp_path / "big"
    big.write_bytes(pattern(65536))
    for number, file in enumerate([hello, big, hello, big], start=1):
        writer.rwctl("write", "b", file)
        (region,) = json.loads(target.rwctl("regions", "--json").stdout)["regions"]
        assert (region["buffers"], region["size"], region["generation"]) == (2, 65536, 2 * number)
        assert region["lastArrival"]["offset"] == 65536 * ((number - 1) % 2)
        assert target.dump() == file.read_bytes()
    assert target.memory(1)[:17] == HELLO


def test_no_region(make, program):
    target = make("b")
    reader = subprocess.run([program, target.socket, "1"], capture_output=True, env=ENVIRONMENT, timeout=60)
    assert (reader.returncode, reader.stdout) == (1, b"")
    assert b"NoSuchRegion" in reader.stderr
