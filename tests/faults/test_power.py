"""Power goes at any point: what the disk then holds is a whole file under its name, or none, and the write goes on.

The target's calls on its spool are recorded once. Then, for each point, a disk is made as it could be after a
power loss there: what was synced is there; of what was not, nothing, all, or any part. A target that starts on it
takes the same file again.
"""

import collections
import os
import random

import pytest
from conftest import MEBIBYTE, SEED, Pair, random_file, same
from shim import Shim

from daemon import until

RATE = 4 * MEBIBYTE


class Disk:
    """A directory as a log of calls makes it: what is in memory, and what is on the disk for sure."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {}  # inode -> bytearray, as seen by programs
        self.safe = {}  # inode -> bytes
        self.names, self.safe_names = {}, {}
        self.loose = collections.defaultdict(list)  # inode -> changes that no sync has made safe
        self.next = 0

    def leaf(self, path):
        return os.path.relpath(path, self.folder)

    def do(self, entry):
        call, error, offset, data, path, other = entry
        if error == 0:
            getattr(self, call)(self.leaf(path), offset, data, other and self.leaf(other))

    def openat(self, leaf, _offset, _data, _other):
        if leaf not in self.names:
            self.names[leaf] = self.next
            self.files[self.next] = bytearray()
            self.safe[self.next] = b""
            self.next += 1

    def pwrite(self, leaf, offset, data, _other):
        inode = self.names[leaf]
        self.change(self.files[inode], offset, data)
        self.loose[inode].append((offset, data))

    def ftruncate(self, leaf, size, _data, _other):
        inode = self.names[leaf]
        self.change(self.files[inode], size, None)
        self.loose[inode].append((size, None))

    @staticmethod
    def change(content, offset, data):
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        if data is None:
            del content[offset:]
        else:
            content[offset : offset + len(data)] = data

    def fdatasync(self, leaf, _offset, _data, _other):
        if leaf == ".":
            self.safe_names = dict(self.names)
            return
        inode = self.names[leaf]
        self.safe[inode] = bytes(self.files[inode])
        self.loose.pop(inode, None)

    fsync = fdatasync

    def rename(self, leaf, _offset, _data, other):
        self.names[other] = self.names.pop(leaf)

    def unlink(self, leaf, _offset, _data, _other):
        self.names.pop(leaf, None)

    # ---- what may be left ----

    def content(self, inode, keep):
        content = bytearray(self.safe[inode])
        for offset, data in self.loose[inode]:
            if keep():
                self.change(content, offset, data)
        return content

    def write(self, folder, keep):
        """keep() decides for each change that is not safe."""
        names = dict(self.safe_names)
        for leaf in set(self.names) | set(names):
            if self.names.get(leaf) != names.get(leaf) and keep():
                if leaf in self.names:
                    names[leaf] = self.names[leaf]
                else:
                    del names[leaf]
        folder.mkdir()
        for leaf, inode in names.items():
            (folder / leaf).write_bytes(self.content(inode, keep))


def record(make, tmp_path, chance, size):
    """A write over a slow line, so that there are checkpoints in it: the file and the calls."""
    folder = tmp_path / "shim"
    folder.mkdir()
    shim = Shim(folder, below=tmp_path / "inbox")
    pair = Pair(make, tmp_path, chance, RATE, environment=shim.environment)
    path = random_file(tmp_path / "file", size, chance)
    try:
        status, said = pair.write(path)
        assert status == 0, said
        pair.clean(path.name)
    finally:
        pair.close()
        pair.writer.kill()
        pair.target.kill()
    return path, pair.inbox, shim.entries()


KEEPS = {"nothing": lambda chance: lambda: False, "all": lambda chance: lambda: True,
         "any": lambda chance: lambda: chance.random() < 0.5}


@pytest.mark.parametrize("keep", KEEPS)
def test_power_loss(make, tmp_path, chance, keep):
    path, inbox, entries = record(make, tmp_path, chance, 12 * MEBIBYTE)
    calls = [entry[0] for entry in entries]
    assert calls.count("rename") >= 1 and calls.count("fdatasync") + calls.count("fsync") >= 4, calls
    after = tmp_path / "after"
    pair = None
    disk = Disk(str(inbox))
    kept = KEEPS[keep](random.Random(f"{SEED} {keep}"))
    points = {len(entries)} | {at for at, call in enumerate(calls) if call != "pwrite"}
    points |= set(chance.sample(range(len(calls)), 10))
    writer = target = None
    for at, entry in enumerate([*entries, None]):
        if at in points:
            after.exists() and [leaf.unlink() for leaf in after.iterdir()] and after.rmdir()
            if after.exists():
                after.rmdir()
            disk.write(after, kept)
            final = after / path.name
            assert not final.exists() or same(final, path), f"half a file after {calls[max(0, at - 3):at]}"
            if at == len(entries):
                assert final.exists(), "stored, and lost"
            writer, target = again(make, writer, target, after)
            done = writer.rwctl("write", "--region", "inbox", "--timeout", "30s", "b", path, check=False)
            assert same(final, path), done.stderr.decode()
            assert done.returncode == 0 or b"already" in done.stderr, done.stderr.decode()
            until(lambda: [leaf.name for leaf in after.iterdir()] == [path.name], what="the spool to be tidied")
            target.kill()
        if entry is not None:
            disk.do(entry)


def again(make, writer, target, after):
    """The target, on this disk; it is always the same one."""
    if target is None:
        spool = {"sink": "spool", "directory": after, "free": "0"}
        target = make("b", **{"region inbox": spool})
        return make("a", peers=[target]), target
    target.start()
    return writer, target
