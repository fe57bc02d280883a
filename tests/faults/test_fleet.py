"""A fleet of which one refuses, one dies and one has a full disk: all the others have the file, whole."""

import contextlib
import os

from conftest import MEBIBYTE, random_file, same
from line import Line
from shim import Shim

from daemon import until

GOOD = [f"t{number}" for number in range(8)]
BAD = ["refuses", "dies", "full"]


def start(make, tmp_path, name, **options):
    inbox = tmp_path / f"inbox-{name}"
    inbox.mkdir()
    daemon = make(name, region={"sink": "spool", "directory": inbox, "free": "0"}, **options)
    daemon.inbox = inbox
    return daemon


def result(process, path):
    """Exit status, what was said of each peer, the summary, and the errors."""
    out, errors = process.communicate(timeout=300)
    head, lines = f"{path.name} -> ", out.decode().splitlines()
    told = dict(line.removeprefix(head).split(": ", 1) for line in lines if line.startswith(head))
    return process.returncode, told, [line for line in lines if not line.startswith(head)], errors


def test_one_refuses_one_dies_one_is_full(make, tmp_path, chance):
    folder = tmp_path / "shim"
    folder.mkdir()
    shim = Shim(folder)
    good = [start(make, tmp_path, name) for name in GOOD]
    refuses = start(make, tmp_path, "refuses", listen={"allow": "10.9.9.9"})
    full = start(make, tmp_path, "full", environment=shim.environment)
    dies = start(make, tmp_path, "dies")
    writer = make("a", peers=[*good, refuses, full], limits={"width": "11", "reconnect": "2s"})
    with contextlib.closing(Line(dies, 4 * MEBIBYTE, chance.random())) as line:  # slow: it is hit in the middle
        writer.add_peer(dies, port=line.port)
        writer.configure()
        writer.rwctl("reload")
        path = random_file(tmp_path / "model.bin", 24 * MEBIBYTE, chance)
        shim.fail("pwrite", "ENOSPC", full.inbox.name, skip=5, times=1 << 40)
        process = writer.start_rwctl("write", "@all", path)
        until(lambda: any(region["state"] == "receiving" for region in dies.regions()), what="the one to receive")
        dies.kill()
        status, results, summary, errors = result(process, path)

        assert status == 1, errors
        assert sorted(results) == sorted(GOOD + BAD)
        for daemon in good:
            assert results[daemon.name].startswith("stored durably, 25165824 bytes in "), results
            assert same(daemon.inbox / path.name, path)
            assert os.listdir(daemon.inbox) == [path.name]
        assert "refused us" in results["refuses"] and not os.listdir(refuses.inbox)
        assert "No space left" in results["full"] and path.name not in os.listdir(full.inbox)
        assert results["dies"].startswith("failed: ") and path.name not in os.listdir(dies.inbox)
        assert summary[0].startswith("1 file -> 11 peers: 8 done, 3 failed; 192 MiB in "), summary
        assert sorted(summary[1].removeprefix("failed: ").split(", ")) == sorted(BAD)

        # With the faults gone the same command is done for all, and goes on where it was.
        shim.heal()
        dies.start()
        refuses.configure(listen={"allow": "host"})
        refuses.rwctl("reload")
        process = writer.start_rwctl("write", ",".join(BAD), path)
        status, results, _, errors = result(process, path)
        assert status == 0, (errors, results)
        assert all(text.startswith("stored durably") for text in results.values())
        for daemon in refuses, full, dies:
            assert same(daemon.inbox / path.name, path)
            assert os.listdir(daemon.inbox) == [path.name]
    assert writer.status()["transfers"] == 0
