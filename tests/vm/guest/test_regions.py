"""The memory of regions: sealed before a device knows it, and of huge pages where there are any."""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import subprocess

import pytest

from rwriter import BIN, pattern, until

HUGE = 2 << 20
SIZE = 5 * (1 << 20) + 123  # no whole number of pages of any kind
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | 0x10  # F_SEAL_FUTURE_WRITE


@contextlib.contextmanager
def descriptor(daemon):
    """Of the newest arrival's region."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.socket))
        s.sendall(json.dumps({"method": "io.rwriter.OpenRegion"}).encode() + b"\0")
        _, (fd,), _, _ = socket.recv_fds(s, 65536, 1)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.fixture
def pair(make):
    target = make("b")
    return make("a", peers=[target]), target


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(pattern(SIZE))
    return path


def test_sealed_memory_is_written_by_the_device(pair, file):
    """What a descriptor shows that was sealed before the registration is what arrives later."""
    writer, target = pair
    writer.rwctl("write", "b", file)
    with descriptor(target) as fd:
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS and os.fstat(fd).st_mode & 0o777 == 0o400
        with pytest.raises(OSError):
            os.ftruncate(fd, 0)
        for data in pattern(SIZE), pattern(1000):
            file.write_bytes(data)
            writer.rwctl("write", "b", file)
            assert os.pread(fd, len(data), 0) == data
    assert len(target.regions()) == 1


def pages(kind):
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"HugePages_{kind}:"):
            return int(line.split()[1])
    raise AssertionError(kind)


@pytest.fixture
def huge_pages():
    """A function that sets some aside."""
    setting = pathlib.Path("/proc/sys/vm/nr_hugepages")

    def set_aside(number):
        setting.write_text(str(number))
        assert pages("Total") == number

    yield set_aside
    setting.write_text("0")


def test_huge_pages(huge_pages, pair, file, device):
    """Region and staging are of them, the last one taken whole; what is granted stays what was asked for."""
    huge_pages(16)
    writer, target = pair
    writer.rwctl("write", "b", file)
    assert pages("Free") == 16 - 3 - 3
    with descriptor(target) as fd:
        status = os.fstat(fd)
        assert status.st_blksize == HUGE and status.st_size == 3 * HUGE
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS and status.st_mode & 0o777 == 0o400
        assert os.pread(fd, SIZE, 0) == file.read_bytes()
    assert target.rwctl("dump-region").stdout == file.read_bytes()
    granted = target.regions()[0]["size"]
    assert granted == SIZE // 4096 * 4096 + 4096
    command = [BIN / "stranger", device.address, str(target.port), f"hello={SIZE}", f"write-at={granted},1", "end"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    assert f"granted {granted} bytes" in said and said.endswith("ended by the target\n")

    for daemon in pair:
        assert daemon.stop() == 0
    until(lambda: pages("Free") == 16, what="all huge pages to be free again")


def test_too_few_huge_pages(huge_pages, pair, file):
    """Then none is taken, and nobody notices."""
    huge_pages(2)
    writer, target = pair
    writer.rwctl("write", "b", file)
    assert pages("Free") == 2
    with descriptor(target) as fd:
        assert os.fstat(fd).st_blksize == 4096
    assert target.rwctl("dump-region").stdout == file.read_bytes()
