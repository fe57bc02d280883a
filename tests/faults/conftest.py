"""conftest.py -- pairs of daemons with a bad line between them, whose target stores files"""

import contextlib
import os
import random
import subprocess

import pytest
from line import Line

from daemon import until

MEBIBYTE = 1 << 20
SEED = int(os.environ.get("FAULTS_SEED") or random.randrange(1 << 32))


def pytest_report_header():
    return f"FAULTS_SEED={SEED}"


@pytest.fixture
def chance(request, record_property):
    """A source of chance for one test: the same seed and name give the same faults."""
    record_property("FAULTS_SEED", SEED)
    print(f"FAULTS_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


class Pair:
    """Writer a, target b with the spool `inbox`, and the line between them."""

    LIMITS = {"beat": "100ms", "dead": "1s", "stop": "5s", "reconnect": "1min"}

    def __init__(self, make, tmp_path, chance, rate=None, region=(), **target):
        self.inbox = tmp_path / "inbox"
        self.inbox.mkdir()
        spool = {"sink": "spool", "directory": self.inbox, "free": "0"} | dict(region)
        self.target = make("b", limits=self.LIMITS, **{"region inbox": spool}, **target)
        self.line = Line(self.target, rate, chance.random())
        self.writer = make("a", limits=self.LIMITS)
        self.writer.add_peer(self.target, port=self.line.port)
        self.writer.configure()
        self.writer.rwctl("reload")

    def start_write(self, path, *options, timeout="120s"):
        return self.writer.start_rwctl("write", "--region", "inbox", "--timeout", timeout, *options, "b", path)

    def write(self, path, *options, **keys):
        """Exit status, and what rwctl said."""
        done = self.start_write(path, *options, **keys)
        out, errors = done.communicate(timeout=180)
        return done.returncode, (out + errors).decode()

    def stored(self, path):
        """The file is there, whole; nothing but whole or no file is ever seen under its name."""
        final = self.inbox / path.name
        return final.exists() and same(final, path)

    def partials(self):
        return sorted(leaf.name for leaf in self.inbox.iterdir() if leaf.name.startswith(".rwriter-"))

    def files(self):
        return sorted(leaf.name for leaf in self.inbox.iterdir() if not leaf.name.startswith(".rwriter"))

    def clean(self, *wanted, unheard=False):
        """In the end the inbox holds the files wanted and nothing else, and both daemons are healthy. unheard: the
        target may not know that the writer has its result, for a fault came in between; the journal of what is
        stored may stay then (it would for an hour)."""
        if unheard:
            with contextlib.suppress(AssertionError):
                until(lambda: not self.partials(), timeout=5, what="the inbox to be tidied")
            if not any(leaf.endswith(".part") for leaf in self.partials()):
                for leaf in self.partials():
                    (self.inbox / leaf).unlink(missing_ok=True)
        until(lambda: not self.partials(), what=f"the inbox to be tidied: {self.partials()}")
        assert self.files() == sorted(wanted)
        for daemon in (self.writer, self.target):
            until(lambda: daemon.status()["transfers"] == 0, what="transfers to end")

    def close(self):
        self.line.close()


@pytest.fixture
def pair(make, tmp_path, chance):
    pairs = []

    def build(**options):
        pairs.append(Pair(make, tmp_path, chance, **options))
        return pairs[-1]

    yield build
    for one in pairs:
        one.close()


def same(one, other):
    return subprocess.run(["cmp", "-s", one, other], check=False).returncode == 0


def random_file(path, size, chance):
    path.write_bytes(chance.randbytes(size))
    return path
