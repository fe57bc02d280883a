"""conftest.py -- what every test of the VM suite has: the device, and daemons"""

import contextlib
import itertools

import pytest

from rwriter import DEVICES, Daemon

PORTS = itertools.count(7471)
running = []


def pytest_addoption(parser):
    parser.addoption("--device", choices=DEVICES, default="rxe")


def pytest_ignore_collect(collection_path, config):
    """Our iwarp meets the kernel's where the kernel's is the device."""
    return collection_path.name == "test_interop.py" and config.getoption("--device") != "siw" or None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """A failure shows what the daemons had to say."""
    report = (yield).get_result()
    if report.failed:
        for daemon in running:
            report.sections.append((f"log of {daemon.name}", daemon.log.read_text()[-4000:]))


@pytest.fixture(scope="session")
def device(request):
    return DEVICES[request.config.getoption("--device")]


@contextlib.contextmanager
def fleet(device):
    """A function that starts daemons; all that still run must stop in good order when the context ends."""
    daemons = []

    def start(name, device=device, port=None, listening=True, **options):
        daemon = Daemon(name, device, port or next(PORTS), **options)
        daemons.append(daemon)
        running.append(daemon)
        daemon.start(listening)
        return daemon

    yield start
    statuses = {daemon.name: daemon.stop() for daemon in daemons if daemon.process.poll() is None}
    for daemon in daemons:
        running.remove(daemon)
    assert not any(statuses.values()), statuses


@pytest.fixture
def make(device):
    with fleet(device) as start:
        yield start


@pytest.fixture(scope="module")
def standing(device):
    """As make, but the daemons stand for all tests of a module."""
    with fleet(device) as start:
        yield start


@pytest.fixture(scope="module")
def target(standing):
    return standing("b", sections={"region default": {"max-size": "256M"}})


@pytest.fixture(scope="module")
def writer(standing, target):
    return standing("a", peers=[target])
