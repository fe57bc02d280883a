"""conftest.py -- what the tests of whole daemons share: pairs of them, and something to write"""

import threading
import time

import pytest

from daemon import until, until_like

HELLO = b"Hello RDMA Write!"
MEBIBYTE = 1 << 20


@pytest.fixture
def hello(tmp_path):
    path = tmp_path / "hello.txt"
    path.write_bytes(HELLO)
    return path


@pytest.fixture
def pair(make, hello):
    """A writer and a target that have done one transfer and forgotten it."""
    target = make("b", region={"max-size": "256M"})
    writer = make("a", peers=[target])
    writer.rwctl("write", "b", hello)
    forget(writer, target)
    return writer, target


def forget(*daemons):
    """Ends all connections and regions."""
    for daemon in daemons:
        for peer in daemon.peers():
            daemon.rwctl("disconnect", peer["name"], check=False)
    for daemon in daemons:
        until(lambda: daemon.status()["connections"] == 0, what="connections to end")
        for region in daemon.regions():
            daemon.rwctl("release", str(region["id"]))
        until(lambda: daemon.status()["memoryUsed"] == 0, what="memory to be given back")


def receiving(target):
    return [region for region in target.regions() if region["state"] == "receiving"]


def hold(writer, target, *options):
    """A stream that has begun and is not ended: enough bytes for the first segment, and no end of the input."""
    stream = writer.stream("b", *options)
    stream.stdin.write(bytes(2 * MEBIBYTE))
    stream.stdin.flush()
    until(lambda: receiving(target), what="the stream to be on its way")
    return stream


class Flow:
    """A transfer that goes on and on, a piece after each pause, until it is ended or broken."""

    PIECE = bytes(range(256)) * 256

    def __init__(self, writer, target, *options, pause=0.005):
        self.sent, self.pause = 0, pause
        self.process = writer.stream("b", "--size", "256M", *options)
        self.ended = threading.Event()
        self.feeder = threading.Thread(target=self.feed, daemon=True)
        self.feeder.start()
        until(lambda: receiving(target), what="the flow to be on its way")

    def feed(self):
        try:
            while not self.ended.is_set():
                self.process.stdin.write(self.PIECE)
                self.sent += len(self.PIECE)
                time.sleep(self.pause)
        except OSError:
            pass

    def end(self):
        """The end of the input, or of rwctl; returns its exit status and what it said."""
        self.ended.set()
        self.feeder.join()
        try:
            out, errors = self.process.communicate(timeout=60)
        except BrokenPipeError:
            out, errors = self.process.stdout.read(), self.process.stderr.read()
        return self.process.wait(timeout=60), (out + errors).decode()


@pytest.fixture
def nothing_left(pair):
    """After the test, both daemons shrink to what they were before it."""
    before = [daemon.footprint() for daemon in pair]
    yield
    forget(*pair)
    until_like(before, *pair)
