"""tap.py -- pytest's results as TAP: one line per case as it ends, what went wrong as comments"""

import pytest

MARKS = {"passed": "ok", "skipped": "ok", "failed": "not ok"}


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(Tap())


class Tap:
    def __init__(self):
        self.cases = 0

    def case(self, report):
        self.cases += 1
        title = report.nodeid.partition("::")[2] or report.nodeid
        note = f" # {report.duration:.1f} s" if getattr(report, "duration", 0) > 1 else ""
        if report.skipped:
            note = f" # SKIP {report.longrepr[2]}"
        print(f"{MARKS[report.outcome]} {self.cases} - {title}{note}")
        if report.failed:
            for heading, text in [("", report.longreprtext), *report.sections]:
                print(*(f"# {line}" for line in [heading, *text.splitlines()]), sep="\n")

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or not report.passed:
            self.case(report)

    def pytest_collectreport(self, report):
        if not report.passed:
            self.case(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        print(f"1..{self.cases}", flush=True)
