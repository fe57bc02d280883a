"""Big files in little memory: 10 GiB of holes and 2 GiB of data, with the default configuration.

SCALE=N divides the sizes.
"""

import os
import pathlib

import pytest
from conftest import same

from daemon import until

SCALE = int(os.environ.get("SCALE", "1"))
GIBIBYTE = (1 << 30) // SCALE
MOST = 200 << 20  # bytes resident, each daemon


def resident_most(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.fixture
def sparse(tmp_path):
    """Data at the start, in the middle and at the end of holes."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        for at in (0, 3 * GIBIBYTE + 12345, 10 * GIBIBYTE - 5000):
            file.seek(at)
            file.write(os.urandom(5000))
    return path


@pytest.fixture
def dense(tmp_path):
    path = tmp_path / "dense"
    with path.open("wb") as file:
        for _ in range(2 * GIBIBYTE >> 20):
            file.write(os.urandom(1 << 20))
    return path


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_big(make, tmp_path, kind, request):
    path = request.getfixturevalue(kind)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    target = make("b", **{"region inbox": {"sink": "spool", "directory": inbox, "free": "0"}})
    writer = make("a", peers=[target])
    done = writer.rwctl("write", "--region", "inbox", "b", path, timeout=900)
    assert b"stored" in done.stdout, done.stdout
    assert same(inbox / kind, path)
    if kind == "sparse":
        assert (inbox / kind).stat().st_blocks << 9 <= (path.stat().st_blocks << 9) + (4 << 20), "holes were filled"
    for daemon in (writer, target):
        assert resident_most(daemon) < MOST, f"{daemon.name}: {resident_most(daemon) >> 20} MiB"
    until(lambda: os.listdir(inbox) == [kind], what="the inbox to be tidied")
    path.unlink()
    (inbox / kind).unlink()
