"""conftest.py -- what the tests of the units share: the service, its configuration, the journal"""

import json
import os
import pathlib
import pwd
import subprocess

import pytest

CONF = pathlib.Path("/etc/rwriter/rwriter.conf")
SOCKET = pathlib.Path("/run/rwriter/io.rwriter")
# A peer that is this very daemon, over soft-RoCE.
GOOD = "[peer self]\naddress = 10.9.0.1\nfabric = verbs\n"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """A failure shows what the journal has."""
    report = (yield).get_result()
    if report.failed:
        report.sections.append(("journal", run("journalctl", "-n", "40", check=False).stdout))


def run(*command, check=True, user=None, **options):
    if user is not None:
        gid = pwd.getpwnam(user).pw_gid
        options |= {"user": user, "group": gid, "extra_groups": os.getgrouplist(user, gid)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def systemctl(*arguments, **options):
    return run("systemctl", *arguments, **options)


def rwctl(*arguments, user="member", **options):
    return run("/usr/local/bin/rwctl", *arguments, user=user, **options)


def show(*names, unit="rwriter.service"):
    """Properties of a unit; of one name its value."""
    lines = systemctl("show", unit, *(f"-p{name}" for name in names)).stdout.splitlines()
    values = dict(line.split("=", 1) for line in lines)
    return values[names[0]] if len(names) == 1 else values


class Journal:
    """What the unit has logged since this object was made."""

    def __init__(self):
        self.cursor = run("journalctl", "-n", "0", "--show-cursor").stdout.split()[-1]

    def entries(self):
        run("journalctl", "--sync")
        # No matches here: journalctl of systemd 252 would leave out the first that does.
        out = run("journalctl", "-o", "json", f"--after-cursor={self.cursor}").stdout
        entries = [json.loads(line) for line in out.splitlines()]
        return [entry for entry in entries if "rwriter.service" in (entry.get("_SYSTEMD_UNIT"), entry.get("UNIT"))]

    def find(self, words):
        """The first line with these words."""
        return next(entry for entry in self.entries() if words in entry["MESSAGE"])


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def service():
    """The daemon runs, as `systemctl start` starts it."""
    CONF.write_text(GOOD)
    if show("ActiveState") != "active":
        systemctl("start", "rwriter")
