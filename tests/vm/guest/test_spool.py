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


@pytest.fixture
def narrow(inbox):
    """The inbox is a file system of 8 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", inbox], check=True)
    yield inbox
    subprocess.run(["umount", "--lazy", inbox], check=True)


def test_disk_full(narrow, spooling, tmp_path):
    """A file that cannot fit is refused at once, a stream when the disk is full; nothing of it stays. Then there is room."""
    writer, target = spooling
    path = tmp_path / "file"
    path.write_bytes(pattern(12 * MEBIBYTE))
    assert "no room for 12 MiB" in writer.refused("write", "--region", "inbox", "b", path)
    stream = writer.stream("b", "--region", "inbox", "--name", "stream")
    _, said = stream.communicate(path.read_bytes(), timeout=90)
    assert stream.returncode == 1 and b"No space left" in said, said.decode()
    assert not (narrow / "stream").exists()
    subprocess.run(["mount", "-o", "remount,size=64M", narrow], check=True)
    writer.rwctl("write", "--region", "inbox", "b", path)
    assert (narrow / path.name).read_bytes() == path.read_bytes()


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
