"""A daemon whose control socket somebody else listens on, as a service manager does."""

import shutil
import socket
import subprocess

import pytest

from daemon import BIN, ENVIRONMENT, Daemon, until

ACTIVATE = shutil.which("systemd-socket-activate")
pytestmark = pytest.mark.skipif(ACTIVATE is None, reason="there is no systemd-socket-activate")


def activate(*sockets):
    """Listens on the sockets, and runs a program with them at the first connection."""
    passed = (f"--setenv={name}" for name in ENVIRONMENT)
    return (ACTIVATE, *passed, *(f"--listen={socket}" for socket in sockets))


def connects(path):
    """somebody listens"""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(str(path)) == 0


def test_activated(hello):
    daemon = Daemon("b")
    daemon.add_peer(daemon)
    daemon.configure()
    daemon.command = activate(daemon.socket)
    daemon.start()
    try:
        inode = daemon.socket.stat().st_ino
        daemon.rwctl("write", "b", hello)
        assert daemon.dump() == hello.read_bytes()
        daemon.stop()
        assert daemon.socket.stat().st_ino == inode  # it is not the daemon's to remove
    finally:
        daemon.kill()
    daemon.check_log()


def test_wrong_sockets(tmp_path):
    """Systemd's own tool passes what it is told to; the daemon says what that was, and what it takes."""
    daemon = Daemon("b")
    wrong = tmp_path / "wrong"
    command = [*activate(wrong), BIN / "rwriterd", "-c", daemon.file]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True) as process:
        try:
            until(lambda: connects(wrong), what="the tool to listen")
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == 1
    assert f"a stream socket that listens on {wrong}" in said
    assert f"control socket {daemon.socket}: " in said
