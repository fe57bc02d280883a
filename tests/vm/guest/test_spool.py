"""Files that are stored, over real verbs: whole under their names, whatever dies on the way."""

import subprocess

import pytest

from rwriter import BIN, pattern, until

MEBIBYTE = 1 << 20


@pytest.fixture
def inbox(tmp_path):
    path = tmp_path / "inbox"
    path.mkdir()
    return path


@pytest.fixture
def spooling(make, inbox):
    """A writer and a target with a spool."""
    limits = {"limits": {"beat": "200ms", "dead": "2s", "reconnect": "1min"}}
    spool = {"region inbox": {"sink": "spool", "directory": inbox, "free": "0"}}
    target = make("b", sections=limits | spool)
    return make("a", peers=[target], sections=limits), target


def is_stored(inbox, path):
    """It is there, and nothing else."""
    until(lambda: [leaf.name for leaf in inbox.iterdir()] == [path.name], what="the inbox to be tidied")
    return (inbox / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("size", [0, 17, MEBIBYTE + 1, 24 * MEBIBYTE])
def test_stored(spooling, inbox, tmp_path, size):
    writer, target = spooling
    path = tmp_path / "file"
    path.write_bytes(pattern(size))
    done = writer.rwctl("write", "--region", "inbox", "b", path)
    assert b"stored durably" in done.stdout
    assert is_stored(inbox, path)


@pytest.mark.parametrize("victim", ["writer", "target"])
def test_killed(spooling, inbox, tmp_path, victim):
    """rwctl does not even notice but for the time that it takes."""
    writer, target = spooling
    path = tmp_path / "file"
    path.write_bytes(pattern(48 * MEBIBYTE))
    command = [BIN / "rwctl", "--socket", writer.socket, "write", "--region", "inbox", "b", path]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: any(leaf.stat().st_size > 4 * MEBIBYTE for leaf in inbox.iterdir()), what="a part to be stored")
    assert running.poll() is None
    killed = {"writer": writer, "target": target}[victim]
    killed.kill()
    assert not (inbox / path.name).exists()
    killed.start()
    _, said = running.communicate(timeout=90)
    assert running.returncode == 0, said.decode()
    assert is_stored(inbox, path)
