"""The units as such, and the service in its whole life, over soft-RoCE."""

import json
import os
import pathlib
import pwd
import re
import signal

import pytest
from conftest import CONF, GOOD, SOCKET, Journal, run, rwctl, show, systemctl
from rwriter import until

HELLO = b"Hello RDMA Write!"


@pytest.fixture(scope="module")
def hello():
    path = pathlib.Path("/home/member/hello.txt")
    path.write_bytes(HELLO)
    return path


def transfer(path):
    """Writes to ourselves, over verbs, as a member of the group; returns the region of the arrival."""
    done = json.loads(rwctl("--json", "write", "self", path).stdout)["transfer"]
    assert (done["fabric"], done["device"]) == ("verbs", "rxe0")
    assert rwctl("dump-region", str(done["regionId"])).stdout.encode() == HELLO
    return done["regionId"]


def place(path):
    """Mode, user and group."""
    st = os.stat(path)
    return oct(st.st_mode & 0o7777), path.owner(), path.group()


def may_write(path):
    """Whether the daemon's user may, where the daemon is."""
    where = ("nsenter", f"--mount=/proc/{show('MainPID')}/ns/mnt")
    who = ("setpriv", "--reuid=rwriter", "--regid=rwriter", "--clear-groups")
    return run(*where, *who, "test", "-w", path, check=False).returncode == 0


def give_up():
    """Ends the attempts to restart a service that fails, and forgets how many there were."""
    systemctl("stop", "rwriter")
    systemctl("reset-failed", "rwriter", check=False)  # there may be nothing left to forget


# ---- the files ----


def test_units_are_clean():
    done = run("systemd-analyze", "--man=no", "verify", "rwriter.service", "rwriter.socket")
    assert done.stdout + done.stderr == ""


def test_exposure_is_at_most_1_5():
    run("systemd-analyze", "security", "--threshold=15", "rwriter.service")


def test_sysusers_makes_the_user():
    user = pwd.getpwnam("rwriter")
    assert (user.pw_dir, user.pw_shell) == ("/var/lib/rwriter", "/usr/sbin/nologin")


# ---- the life of the service ----


def test_start(service):
    assert show("ActiveState", "StatusText", "LimitMEMLOCK") == {
        "ActiveState": "active",
        "StatusText": "ready: 4 listening, 0 connections, 0 regions, 0 transfers",
        "LimitMEMLOCK": "infinity",
    }
    assert place(SOCKET) == ("0o660", "rwriter", "rwriter")
    assert place(SOCKET.parent) == ("0o755", "rwriter", "rwriter")
    assert place(pathlib.Path("/var/lib/rwriter")) == ("0o750", "rwriter", "rwriter")


def test_the_process_has_no_privileges(service):
    text = pathlib.Path(f"/proc/{show('MainPID')}/status").read_text()
    status = dict(re.findall(r"^(\w+):\s+(.*)$", text, re.MULTILINE))
    capabilities = [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    assert capabilities == [16 * "0"] * 5
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert status["Uid"].split() == [str(pwd.getpwnam("rwriter").pw_uid)] * 4
    assert may_write("/var/lib/rwriter")
    assert not may_write("/srv/incoming")  # though it is the daemon's own


def test_others_are_kept_out(service, hello):
    done = rwctl("write", "self", hello, user="stranger", check=False)
    assert done.returncode == 3
    assert "Permission denied" in done.stderr


def test_transfer_and_journal(service, hello, journal):
    region = transfer(hello)
    entry = journal.find("hello.txt arrived from")
    assert entry["MESSAGE"].startswith(f"region {region}: hello.txt arrived from ")
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"]) == ("6", "rwriterd")
    assert entry["_SYSTEMD_UNIT"] == "rwriter.service"
    assert entry["_PID"] == show("MainPID")


def test_reload(service, journal):
    pid = show("MainPID")
    CONF.write_text(GOOD + "[peer later]\naddress = 10.9.0.2\n")
    systemctl("reload", "rwriter")
    assert "later" in rwctl("peers").stdout
    assert journal.find("configuration reloaded")["PRIORITY"] == "6"
    assert show("ActiveState", "MainPID") == {"ActiveState": "active", "MainPID": pid}


def test_bad_reload(service, hello, journal):
    pid = show("MainPID")
    CONF.write_text(GOOD + "[peer other]\naddress = 10.9.0.3\ncolour = red\n")
    assert systemctl("reload", "rwriter", check=False).returncode != 0
    entry = journal.find("colour")
    assert f"{CONF}:6: " in entry["MESSAGE"]
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"]) == ("3", "rwctl")
    assert "colour" in systemctl("status", "rwriter").stdout
    # The old configuration stays, whole.
    assert show("ActiveState", "MainPID") == {"ActiveState": "active", "MainPID": pid}
    assert "other" not in rwctl("peers").stdout
    transfer(hello)


def test_bad_start(service, journal):
    CONF.write_text(GOOD + "[rwriter]\ncolour = red\n")
    assert systemctl("restart", "rwriter", check=False).returncode != 0
    give_up()
    entry = journal.find(f"{CONF}:5: ")
    assert (entry["PRIORITY"], entry["SYSLOG_IDENTIFIER"]) == ("3", "rwriterd")
    CONF.write_text(GOOD)
    started = Journal()
    systemctl("start", "rwriter")
    assert started.find("is ready")["PRIORITY"] == "6"
    # The configuration that rwriterd -t prints is not for the journal.
    assert not [entry for entry in started.entries() if "[limits]" in entry["MESSAGE"]]


@pytest.fixture(scope="module")
def drop_in():
    """Less patience, and one more directory, as rwriterd(8) says."""
    path = pathlib.Path("/run/systemd/system/rwriter.service.d/test.conf")
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nWatchdogSec=10s\nReadWritePaths=/srv/incoming\n")
    systemctl("daemon-reload")
    CONF.write_text(GOOD)
    systemctl("restart", "rwriter")
    yield
    path.unlink()
    systemctl("daemon-reload")


def test_one_more_directory(drop_in, service):
    assert may_write("/srv/incoming")


def test_watchdog(drop_in, service, hello, journal):
    # An idle daemon lives on: it has been fed three times, which takes the watchdog's whole time.
    fed = {show("WatchdogTimestampMonotonic")}
    until(lambda: fed.add(show("WatchdogTimestampMonotonic")) or len(fed) == 4, 120, "the watchdog to be fed")
    before = show("NRestarts", "MainPID")
    assert before["NRestarts"] == "0"

    os.kill(int(before["MainPID"]), signal.SIGSTOP)
    until(lambda: show("NRestarts", "ActiveState") == {"NRestarts": "1", "ActiveState": "active"}, 120, "a restart")
    assert journal.find("Watchdog timeout")
    assert show("MainPID") != before["MainPID"]
    transfer(hello)


def test_socket_activation(service, hello):
    systemctl("stop", "rwriter")
    systemctl("start", "rwriter.socket")
    assert place(SOCKET) == ("0o660", "rwriter", "rwriter")
    inode = SOCKET.stat().st_ino
    assert show("ActiveState") == "inactive"
    transfer(hello)  # starts the daemon
    assert show("ActiveState") == "active"
    systemctl("stop", "rwriter")
    # Neither the daemon nor the end of its runtime directory takes the socket away.
    assert SOCKET.stat().st_ino == inode
    rwctl("status")
    assert show("ActiveState") == "active"
    systemctl("stop", "rwriter.socket", "rwriter.service")


def test_without_the_socket_unit_again(service):
    """The daemon makes its own socket in the place of the one that the socket unit left."""
    systemctl("start", "rwriter")
    assert place(SOCKET) == ("0o660", "rwriter", "rwriter")
    rwctl("status")


def test_socket_elsewhere(service, journal):
    systemctl("stop", "rwriter")
    systemctl("start", "rwriter.socket")
    CONF.write_text(GOOD + "[rwriter]\ncontrol = /run/rwriter/elsewhere\n")
    assert systemctl("start", "rwriter", check=False).returncode != 0
    systemctl("stop", "rwriter.socket")
    give_up()
    entry = journal.find("the service manager passed")
    assert entry["PRIORITY"] == "3"
    assert entry["MESSAGE"].endswith(f'descriptor 3, "io.rwriter": a stream socket that listens on {SOCKET}')
