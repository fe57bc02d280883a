"""What other users can do with what they are given: the descriptor of a region, and the control socket."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys

import pytest
from conftest import HELLO, forget

from daemon import until

OWNER = ()  # root, as the daemon: nobody may more
OTHER = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs")
FUTURE_WRITE = 0x10  # F_SEAL_FUTURE_WRITE, which Python does not know
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | FUTURE_WRITE

# Tries to change the memory behind descriptor 0 in every way there is, and prints each that worked.
ATTACK = """
import ctypes, fcntl, mmap, os

path, libc = "/proc/self/fd/0", ctypes.CDLL(None, use_errno=True)

def attempt(name, change):
    try:
        if change() != -1:
            print(name)
    except (OSError, ValueError):
        pass

def reopened(flags):
    return os.open(path, flags)

attempt("seals", lambda: fcntl.fcntl(0, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE))
attempt("chmod", lambda: os.fchmod(0, 0o666) if os.geteuid() else -1)
if os.geteuid() == 0:
    os.fchmod(0, 0o666)  # the owner may, and it does not help
opened = [0]
for flags in os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_APPEND:
    try:
        opened.append(reopened(flags))
    except OSError:
        pass
attempt("O_TRUNC", lambda: reopened(os.O_RDWR | os.O_TRUNC))
for fd in opened:
    attempt("write", lambda: os.pwrite(fd, b"evil", 0))
    attempt("append", lambda: os.write(fd, b"evil"))
    attempt("cut", lambda: os.ftruncate(fd, 0))
    attempt("grow", lambda: os.ftruncate(fd, 1 << 30))
    attempt("punch", lambda: libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096)))
    attempt("zero", lambda: libc.fallocate(fd, 0x10, ctypes.c_long(0), ctypes.c_long(4096)))
    attempt("map", lambda: mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE).write(b"evil"))
print("tried", len(opened))
print(os.pread(0, 17, 0).decode())
"""


@pytest.fixture
def arrived(pair, hello):
    """The pair, with hello.txt in a region of b."""
    pair[0].rwctl("write", "b", hello)
    return pair


def open_region(daemon, which=""):
    _, (fd,) = daemon.exchange("OpenRegion", {"which": which})
    return fd


@contextlib.contextmanager
def descriptor(daemon, which=""):
    fd = open_region(daemon, which)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.mark.parametrize("user, descriptors", [(OWNER, 4), (OTHER, 1)], ids=["owner", "other"])
def test_descriptor_cannot_be_written_through(arrived, user, descriptors):
    """Neither directly nor opened again (which only the owner can do, for writing)."""
    _, target = arrived
    with descriptor(target) as fd:
        assert fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS
        assert os.fstat(fd).st_mode & 0o777 == 0o400
        size = os.fstat(fd).st_size
        done = subprocess.run([*user, sys.executable, "-c", ATTACK], stdin=fd, capture_output=True, text=True)
        assert done.stdout == f"tried {descriptors}\n{HELLO.decode()}\n", done.stdout + done.stderr
        assert os.fstat(fd).st_size == size
    assert target.dump() == HELLO


def inodes(daemon):
    """Of the memory that the daemon holds."""
    folder, found = f"/proc/{daemon.process.pid}/fd", set()
    for number in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"{folder}/{number}").startswith("/memfd:rwriter"):
                found.add(os.stat(f"{folder}/{number}").st_ino)
    return found


def write_anew(writer, target, data, tmp_path):
    """On a connection, and so into a region, of its own, which goes afterwards; its number."""
    (tmp_path / "data").write_bytes(data)
    writer.rwctl("write", "b", tmp_path / "data")
    (region,) = target.regions()
    return str(region["id"])


def test_descriptor_does_not_show_what_comes_later(pair, tmp_path):
    """Memory of which a descriptor is out is never used again, other memory is."""
    writer, target = pair
    write_anew(writer, target, b"nobody looks at this", tmp_path)
    unseen = inodes(target)
    forget(writer, target)
    number = write_anew(writer, target, HELLO, tmp_path)
    assert inodes(target) == unseen
    with descriptor(target, number) as fd:
        forget(writer, target)
        for secret in b"secret 1", b"secret 2", b"secret 3":
            write_anew(writer, target, secret, tmp_path)
            assert os.fstat(fd).st_ino not in inodes(target)
            assert os.pread(fd, 64, 0) == HELLO + bytes(64 - len(HELLO))
            forget(writer, target)


def test_new_region_does_not_show_what_came_before(pair, tmp_path):
    """Used again, but empty."""
    writer, target = pair
    write_anew(writer, target, b"secret" * 10_000, tmp_path)
    used = inodes(target)
    forget(writer, target)
    number = write_anew(writer, target, b"x", tmp_path)
    assert inodes(target) == used
    memory = target.memory(number)
    assert memory == b"x" + bytes(len(memory) - 1)


# ---- the control socket ----


def as_other(daemon, *arguments):
    """rwctl of another user, to whom the socket has been opened."""
    return daemon.rwctl(*arguments, check=False, user="nobody", group="nogroup", extra_groups=[])


@pytest.fixture
def opened(arrived):
    """The target's socket is open to everybody, as to the members of the group rwriter."""
    _, target = arrived
    target.home.chmod(0o755)
    target.socket.chmod(0o666)
    return target


def test_what_others_may_do(opened):
    assert as_other(opened, "dump-region").stdout == HELLO
    assert as_other(opened, "status").returncode == 0
    for command in ["release", "1"], ["disconnect", "a"], ["reload"]:
        refused = as_other(opened, *command)
        assert refused.returncode == 1 and b"is for root and for uid 0" in refused.stderr


# 100 clients of the socket in argv, of which each makes the call in argv: prints how many were answered.
CROWD = """
import socket, sys
clients = [socket.socket(socket.AF_UNIX) for _ in range(100)]
for client in clients:
    client.connect(sys.argv[1])
    client.settimeout(30)
served = 0
for client in clients:
    try:
        client.sendall(sys.argv[2].encode() + bytes(1))
        served += client.recv(1) != b""
    except OSError:
        pass
print(served, flush=True)
sys.stdin.read()
"""


def test_crowd_of_one_user_does_not_shut_out_others(opened):
    """64 clients of one user are all that he has."""
    call = json.dumps({"method": "io.rwriter.GetStatus"})
    command = [*OTHER, sys.executable, "-c", CROWD, str(opened.socket), call]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdout.readline() == "64\n"
        assert as_other(opened, "status").returncode == 3
        assert opened.dump() == HELLO
        crowd.communicate()
    until(lambda: as_other(opened, "status").returncode == 0, what="room for the other user")
