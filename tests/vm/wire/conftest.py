"""conftest.py -- the wire"""

import pathlib

import pytest
from machines import wired


def pytest_addoption(parser):
    parser.addoption("--build", help="where the programs are", type=pathlib.Path)


@pytest.fixture(scope="module")
def machines(request):
    with wired(request.config.getoption("--build")) as both:
        yield both


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failure shows what the daemons had to say."""
    report = (yield).get_result()
    if report.failed:
        for machine in item.funcargs.get("machines", ()):
            if machine.alive():
                report.sections.append((f"log of {machine.name}", machine.log()[-4000:]))
