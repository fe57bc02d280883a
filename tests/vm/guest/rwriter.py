"""rwriter.py -- daemons and their configuration, and what the tests ask of them"""

import collections
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time

BIN = pathlib.Path("/run/bin")

Device = collections.namedtuple("Device", "name address kind interface", defaults=(None, None))
DEVICES = {
    "rxe": Device("rxe0", "10.9.0.1", "rxe", "dummy0"),
    "siw": Device("siw0", "10.9.1.1", "siw", "dummy1"),
}


class Daemon:
    """One rwriterd with a directory, a configuration, a log and a control socket of its own."""

    def __init__(self, name, device, port, sections=(), peers=(), command=(BIN / "rwriterd",)):
        self.name, self.device, self.port, self.command = name, device, port, command
        home = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir="/run"))
        home.chmod(0o777)  # for daemons of other users
        self.file, self.socket, self.log = home / "rwriter.conf", home / "socket", home / "log"
        self.process = None
        self.manager = Manager(home / "notify")
        self.sections = {
            "rwriter": {"name": name, "control": self.socket},
            "listen default": {
                "address": device.address,
                "port": port,
                "fabric": "verbs",
                "device": device.name,
                "allow": "host",
            },
        }
        for peer in peers:
            self.add_peer(peer.name, peer.port)
        self.configure(dict(sections))

    def add_peer(self, name, port):
        self.sections[f"peer {name}"] = {
            "address": self.device.address,
            "port": port,
            "fabric": "verbs",
        }

    def configure(self, sections):
        """Writes the configuration with these keys changed: {section: {key: value}}."""
        for section, keys in sections.items():
            self.sections.setdefault(section, {}).update(keys)
        with self.file.open("w") as out:
            for section, keys in self.sections.items():
                out.write(f"[{section}]\n")
                out.writelines(f"{key} = {value}\n" for key, value in keys.items())

    def start(self, listening=True):
        environment = os.environ | {"NOTIFY_SOCKET": str(self.manager.path)}
        self.manager.ready = False
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*self.command, "-c", self.file], stdout=log, stderr=log, env=environment)
        until(self.is_ready, what=f"{self.name} to be ready")
        if listening:
            until(self.listens, what=f"{self.name} to listen")

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()
        return self.manager.ready

    def listens(self):
        return all(listener["up"] for listener in self.json("status")["listeners"])

    def stop(self):
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(timeout=20)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def rwctl(self, *arguments, check=True, **options):
        options = {"capture_output": True, "timeout": 120} | options
        done = subprocess.run([BIN / "rwctl", "--socket", self.socket, *arguments], **options)
        if check:
            assert done.returncode == 0, done.stderr.decode()
        return done

    def refused(self, *arguments, status=1, **options):
        """Runs rwctl, which must fail with this exit status; what it says."""
        done = self.rwctl(*arguments, check=False, **options)
        assert done.returncode == status, (done.stdout + done.stderr).decode()
        return done.stderr.decode()

    def json(self, what):
        return json.loads(self.rwctl(what, "--json").stdout)

    def regions(self):
        return self.json("regions")["regions"]

    def stream(self, peer, *options):
        """rwctl writing its standard input, which the test holds in its hand."""
        return subprocess.Popen(
            [BIN / "rwctl", "--socket", self.socket, "write", *options, peer, "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


class Manager(threading.Thread):
    """Stands for the service manager: keeps what a daemon tells it."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.ready, self.status = path, False, ""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o777)
        self.start()

    def run(self):
        while True:
            for line in self.socket.recv(65536).decode().splitlines():
                key, _, value = line.partition("=")
                if key == "READY":
                    self.ready = True
                elif key == "STATUS":
                    self.status = value


def until(condition, timeout=30, what=None):
    """Waits until condition() holds and returns what it returned."""
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"waited {timeout} s in vain for {what or condition.__doc__}"
        time.sleep(0.1)


def settle(*daemons):
    """Ends all connections and regions."""
    for daemon in daemons:
        for peer in daemon.json("peers")["peers"]:
            daemon.rwctl("disconnect", peer["name"], check=False)
    for daemon in daemons:
        until(lambda: daemon.json("status")["connections"] == 0, what="no connections")
        for region in daemon.regions():
            daemon.rwctl("release", str(region["id"]), check=False)
        until(lambda: is_clean(daemon), what=f"{daemon.name} to be clean")


def is_clean(daemon):
    status = daemon.json("status")
    return status["transfers"] == 0 and status["connections"] == 0 and status["memoryUsed"] == 0


def pattern(size):
    """Bytes of which no two pages are alike."""
    mebibyte = bytearray(os.urandom(min(size, 1 << 20)))
    whole = bytearray()
    while len(whole) < size:
        for page in range(0, len(mebibyte) - 8, 4096):
            struct.pack_into("<Q", mebibyte, page, len(whole) + page)
        whole += mebibyte
    return bytes(whole[:size])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def rdma_objects(device):
    """How many queue pairs, regions and so on the kernel holds for the device."""
    everything = subprocess.check_output(["rdma", "-j", "resource", "show"])
    for counts in json.loads(everything):
        if counts["ifname"] == device.name:
            return {kind: counts[kind] for kind in ("pd", "cq", "qp", "cm_id", "mr")}
    raise AssertionError(f"no device {device.name}")
