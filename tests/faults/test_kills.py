"""Everything is killed at any time, and the line breaks: what was written arrives whole, once, and nothing is left behind.

FAULTS=N does N faults (default 300), FAULTS_SEED=S the same ones again.
"""

import os
import signal
import time

from conftest import MEBIBYTE, random_file

from daemon import until, until_like

FAULTS = int(os.environ.get("FAULTS", "300"))
RATE = 48 * MEBIBYTE  # slow enough to be hit in the middle


class Trouble:
    """One transfer after the other, each with faults while it runs."""

    def __init__(self, pair, chance, tmp_path):
        self.pair, self.chance, self.tmp_path = pair, chance, tmp_path
        self.faults = dict.fromkeys(self.KINDS, 0)
        self.transfers = 0

    def kill(self, daemon):
        daemon.kill()
        time.sleep(self.chance.choice([0, 0, 0.3]))
        daemon.start()

    def writer(self):
        self.kill(self.pair.writer)

    def target(self):
        self.kill(self.pair.target)

    def both(self):
        self.pair.writer.kill()
        self.kill(self.pair.target)
        self.pair.writer.start()

    def rwctl(self):
        """Killed, and the same command run again, as a user would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        self.begin()

    def cut(self):
        self.pair.line.cut()

    def frozen(self):
        self.pair.line.freeze(1.5)  # longer than [limits] dead

    KINDS = ("writer", "target", "both", "rwctl", "cut", "frozen")
    WEIGHTS = (4, 4, 1, 3, 4, 1)

    def begin(self):
        self.process = self.pair.start_write(self.path)

    def strike(self):
        kind = self.chance.choices(self.KINDS, self.WEIGHTS)[0]
        getattr(self, kind)()
        self.faults[kind] += 1
        final = self.pair.inbox / self.path.name
        assert not final.exists() or self.pair.stored(self.path), f"half a file after {kind}"

    def end(self):
        out, errors = self.process.communicate(timeout=150)
        return self.process.returncode, (out + errors).decode()

    def transfer(self):
        self.transfers += 1
        size = self.chance.choice([1000, 300_000, 5 * MEBIBYTE, 20 * MEBIBYTE, 40 * MEBIBYTE])
        before = sum(self.faults.values())
        self.path = random_file(self.tmp_path / f"file{self.transfers}", size, self.chance)
        self.begin()
        for _ in range(self.chance.randrange(1, 7)):
            time.sleep(self.chance.uniform(0, 0.4))
            if self.process.poll() is not None:
                break
            self.strike()
        status, said = self.end()
        if status == 1 and "cannot be reached" in said and "has gone" not in said:
            self.begin()  # it was begun when nobody was there: that is told at once
            status, said = self.end()
        # Whoever runs the command again after it was done may be told that the file is there.
        assert status == 0 or self.pair.stored(self.path), said
        assert self.pair.stored(self.path), f"lost, or not as it was: {said}"
        self.pair.clean(self.path.name, unheard=sum(self.faults.values()) > before)
        (self.pair.inbox / self.path.name).unlink()
        self.path.unlink()


def test_kills(pair, chance, tmp_path):
    pair = pair(rate=RATE)
    trouble = Trouble(pair, chance, tmp_path)
    trouble.transfer()
    while sum(trouble.faults.values()) < FAULTS:
        trouble.transfer()
    print(f"{trouble.transfers} transfers, faults {trouble.faults}: 0 lost, 0 corrupt")


def test_nothing_grows(pair, chance, tmp_path):
    """After transfers with cuts, memory and descriptors are what they were after the first one."""
    pair = pair(rate=RATE)
    path = random_file(tmp_path / "file", 8 * MEBIBYTE, chance)

    def transfer():
        status, said = pair.write(path)
        assert status == 0, said
        (pair.inbox / path.name).unlink()

    def idle():
        for daemon in (pair.writer, pair.target):
            for peer in daemon.peers():
                daemon.rwctl("disconnect", peer["name"], check=False)
            until(lambda: daemon.status()["connections"] == 0, what="connections to end")

    transfer()
    idle()
    before = [daemon.footprint() for daemon in (pair.writer, pair.target)]
    for round in range(6):
        path.write_bytes(chance.randbytes(8 * MEBIBYTE))
        process = pair.start_write(path)
        for _ in range(3):
            time.sleep(chance.uniform(0.01, 0.2))
            pair.line.cut()
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, (out + errors).decode()
        (pair.inbox / path.name).unlink()
    idle()
    until_like(before, pair.writer, pair.target)
