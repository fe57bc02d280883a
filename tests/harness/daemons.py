"""daemons.py -- pytest plugin: daemons that are started for a test, looked after, and stopped in order"""

import contextlib
import signal

import pytest

pytest.register_assert_rewrite("daemon", "iwarp", "keyed", "rwp")
from daemon import Daemon  # noqa: E402: rewritten, so that a failed assert shows its values

running = []

# What a shell starts in the background ignores SIGINT, and so would our children.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """A failure shows what the daemons had to say."""
    report = (yield).get_result()
    if report.failed:
        for daemon in running:
            report.sections.append((f"log of {daemon.name}", daemon.log.read_text()[-6000:]))


@contextlib.contextmanager
def fleet():
    """A function that starts daemons; all of them must end well when the context ends."""
    daemons = []

    def start(name, **options):
        daemon = Daemon(name, **options)
        daemons.append(daemon)
        running.append(daemon)
        daemon.start()
        return daemon

    try:
        yield start
        for daemon in daemons:
            if daemon.alive():
                daemon.stop()
        for daemon in daemons:
            daemon.check_log()
    finally:
        for daemon in daemons:
            daemon.kill()
            running.remove(daemon)


@pytest.fixture
def make():
    with fleet() as start:
        yield start


@pytest.fixture(scope="module")
def standing():
    """As make, but the daemons stand for all tests of a module."""
    with fleet() as start:
        yield start
