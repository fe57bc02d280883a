"""shim.py -- the test's hand on shim.c: calls of a daemon that fail, its clock, and what it did to its files"""

import errno
import os
import pathlib
import re
import struct

LIBRARY = pathlib.Path(os.environ["RWRITER_BIN"]) / "shim.so"
LAYOUT = struct.Struct("<qqqi20s64s")
ENTRY = re.compile(rb"(\w+) (\d+) (-?\d+) (\d+) ([^\n\t]*)(?:\t([^\n]*))?\n")


class Shim:
    """Give `environment` to the daemon before it starts."""

    def __init__(self, folder, below=None):
        self.file, self.log = folder / "control", folder / "log"
        self.file.write_bytes(bytes(LAYOUT.size))
        self.clock = 0
        self.environment = {
            "LD_PRELOAD": str(LIBRARY),
            "FAULTS_CONTROL": str(self.file),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":verify_asan_link_order=0",
        }
        if below is not None:
            self.environment |= {"FAULTS_LOG": str(self.log), "FAULTS_BELOW": str(below)}

    def put(self, skip=0, times=0, error=0, call="", path=""):
        with self.file.open("r+b") as file:
            file.write(LAYOUT.pack(self.clock, skip, times, error, call.encode(), path.encode()))

    def fail(self, call, error, path="", skip=0, times=1):
        """After `skip` more calls on paths with this in them, `times` of them fail."""
        self.put(skip, times, getattr(errno, error), call, path)

    def left(self):
        """Failures that have not come yet."""
        return LAYOUT.unpack(self.file.read_bytes())[2]

    def heal(self):
        self.put()

    def jump(self, seconds):
        self.clock += int(seconds * 1e9)
        self.put()

    def entries(self):
        """What was done: (call, errno, offset, data, path, other path)."""
        data, at, found = self.log.read_bytes(), 0, []
        while at < len(data):
            match = ENTRY.match(data, at)
            call, error, offset, length, path, other = match.groups()
            at = match.end() + int(length)
            found.append((call.decode(), int(error), int(offset), data[match.end() : at], path.decode(),
                          other.decode() if other else None))
        return found
