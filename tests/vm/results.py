"""results.py -- a plugin of pytest (-p results): one line per case in the file RESULTS, for tests/vm/run

Each line is there as soon as its case has ended, so that a guest that crashes leaves those before.
"""

import os


def pytest_runtest_logreport(report):
    if report.when == "call" or not report.passed:
        with open(os.environ["RESULTS"], "a") as results:
            results.write(f"{report.outcome} {report.nodeid}\n")
