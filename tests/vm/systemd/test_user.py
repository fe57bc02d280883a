"""The units of a user's own manager."""

import pathlib
import pwd

import pytest
from conftest import run, systemctl

CONF = "[listen default]\nport = 7472\n[peer self]\naddress = 127.0.0.1\nport = 7472\nfabric = iwarp\n"


@pytest.fixture(scope="module")
def member():
    """A manager for the user member, as user@.service starts one at a login; runs commands as that user."""
    user = pwd.getpwnam("member")
    runtime = f"/run/user/{user.pw_uid}"
    run("install", "-d", "-o", "member", "-m", "700", runtime)
    run(
        *("systemd-run", "--unit=manager-of-member", "--uid=member", "--service-type=notify"),
        *("-p", "Delegate=yes", f"--setenv=XDG_RUNTIME_DIR={runtime}", f"--setenv=HOME={user.pw_dir}"),
        *("/lib/systemd/systemd", "--user", "--show-status=no"),
    )

    def as_member(*command, **options):
        environment = (f"XDG_RUNTIME_DIR={runtime}", f"HOME={user.pw_dir}")
        return run("env", *environment, *command, user="member", **options)

    yield as_member
    systemctl("stop", "manager-of-member")


def test_units_are_clean(member):
    done = member("systemd-analyze", "--user", "--man=no", "verify", "rwriter.service", "rwriter.socket")
    assert done.stdout + done.stderr == ""


def test_life(member):
    home = pathlib.Path("/home/member")
    conf = home / ".config/rwriter/rwriter.conf"
    member("mkdir", "-p", conf.parent)
    conf.write_text(CONF)
    member("systemctl", "--user", "start", "rwriter.socket")
    path = next(pathlib.Path("/run/user").glob("*/rwriter/io.rwriter"))
    rwctl = ("/usr/local/bin/rwctl", "--socket", path)
    (home / "hello.txt").write_bytes(b"Hello!")
    member(*rwctl, "write", "self", home / "hello.txt")
    assert member(*rwctl, "dump-region").stdout == "Hello!"
    assert member("systemctl", "--user", "is-active", "rwriter").stdout == "active\n"

    member("systemctl", "--user", "reload", "rwriter")
    conf.write_text(CONF + "colour = red\n")
    assert member("systemctl", "--user", "reload", "rwriter", check=False).returncode != 0
    assert member(*rwctl, "dump-region").stdout == "Hello!"
    member("systemctl", "--user", "stop", "rwriter.socket", "rwriter.service")
