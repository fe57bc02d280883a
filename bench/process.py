"""process.py -- processes that are measured: how long they took, and how much of a CPU"""

import os
import pathlib
import resource
import subprocess
import sys
import time

PATIENCE = "120"  # seconds; what takes longer hangs


class Run:
    """A process that runs from now on. Its CPU time is that of all its children, too."""

    def __init__(self, *command, **options):
        self.command = [str(word) for word in command]
        self.began = time.monotonic()
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | options
        self.process = subprocess.Popen(["timeout", PATIENCE, *self.command], text=True, **options)

    def end(self, signal=None, check=True):
        """Waits for its end, which the signal brings about; self.said, .ended and .cpu are known then."""
        if signal is not None:
            self.process.send_signal(signal)
        self.said = self.process.stdout.read() if self.process.stdout else ""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.ended = time.monotonic()
        self.cpu = usage.ru_utime + usage.ru_stime
        if check and self.process.returncode != 0:
            raise RuntimeError(f"{' '.join(self.command)}: status {self.process.returncode}\n{self.said}")
        return self


def run(*command, **options):
    return Run(*command, **options).end()


def measure_all(rounds, title, measurements):
    """Figures of so many rounds of (name, function) pairs: a name makes {measurement: figures} of what its function
    returns. One that fails is told of, and is missing from that round."""
    done = []
    for number in range(rounds):
        print(f"{title}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        figures = {}
        for name, measure in measurements:
            try:
                figures |= name(measure())
            except (OSError, RuntimeError, AssertionError, subprocess.SubprocessError) as error:
                print(f"bench: {error}", file=sys.stderr, flush=True)
        done.append(figures)
    return done


def named(*names):
    """Names for what a function returns several of."""
    return lambda figures: dict(zip(names, figures))


def one(name):
    return lambda figures: {name: figures}


def children_cpu():
    """Core-seconds of all processes that we have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def living_cpu(process):
    """Core-seconds so far of a process, by its number, or of one of its threads, as PID/task/TID."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid):
    """How often a thread of the process has gone to sleep so far: each time it was woken before."""
    return sum(
        int(line.split()[1])
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status")
        for line in status.read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )


def memory(pid):
    """RSS and PSS in bytes."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {key: int(rest.split()[0]) << 10 for key, _, rest in (line.partition(":") for line in lines[1:])}
    return sizes["Rss"], sizes["Pss"]


def listening(port):
    """Whether somebody listens there. To connect would be taken for the client, to bind would be in the way."""
    for table in "/proc/net/tcp", "/proc/net/tcp6":
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}") and fields[3] == "0A":
                return True
    return False
