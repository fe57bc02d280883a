"""daemon.py -- one rwriterd: its configuration, its life, and what can be asked of it"""

import contextlib
import json
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import tempfile
import time

BIN = pathlib.Path(os.environ["RWRITER_BIN"])
# How many times as long everything may take here as on a machine of its own.
PATIENCE = float(os.environ.get("RWRITER_PATIENCE", "1"))
# What each byte of a program's own memory takes in all: ThreadSanitizer keeps notes of it.
WEIGHT = 6 if b"__tsan_init" in (BIN / "rwriterd").read_bytes() else 1
SANITIZER = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")
ENVIRONMENT = os.environ | {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "LC_ALL": "C.UTF-8",
}
# What a daemon runs under when its memory is measured: what it frees does not stay.
MEASURED = ("env", f"ASAN_OPTIONS={ENVIRONMENT['ASAN_OPTIONS']}:quarantine_size_mb=1")


class Daemon:
    """Sections of the configuration are keyword arguments: region={"max-size": "1M"}, limits={...};
    listen and region stand for those called default. A list of values is written as repeated keys."""

    def __init__(self, name, address="127.0.0.1", fabric="iwarp", peers=(), command=(), environment=(), **sections):
        self.name, self.address, self.port, self.command = name, address, free_port(), command
        self.environment = dict(environment)
        self.home = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.file, self.socket, self.log = (self.home / leaf for leaf in ("conf", "socket", "log"))
        self.process = None
        self.sections = {
            "rwriter": {"name": name, "control": self.socket},
            "listen default": {"address": address, "port": self.port, "fabric": fabric, "allow": "host"},
            "limits": {"stop": "2s", "reconnect": "0"},  # a transfer that breaks tells at once what broke it
        }
        for peer in peers:
            self.add_peer(peer)
        self.configure(**sections)

    # ---- configuration ----

    def add_peer(self, peer, name=None, **keys):
        fabric = self.sections["listen default"]["fabric"]
        keys = {"address": peer.address, "port": peer.port, "fabric": fabric} | keys
        self.sections[f"peer {name or peer.name}"] = keys

    def configure(self, **sections):
        for section, keys in sections.items():
            section = {"listen": "listen default", "region": "region default"}.get(section, section)
            self.sections.setdefault(section, {}).update(keys)
        with self.file.open("w") as out:
            for section, keys in self.sections.items():
                out.write(f"[{section}]\n")
                for key, values in keys.items():
                    for value in values if isinstance(values, list) else [values]:
                        out.write(f"{key} = {value}\n")

    # ---- life ----

    def start(self):
        # The daemon dies with us, also when we are killed.
        command = [*self.command, "setpriv", "--pdeathsig=KILL", BIN / "rwriterd", "-c", self.file]
        with self.log.open("a") as log:
            self.process = Program(command, stdout=log, stderr=log, env=ENVIRONMENT | self.environment)
        until(self.answers, what=f"{self.name} to answer")

    def answers(self):
        assert self.alive(), self.log.read_text()
        try:
            return any(listener["up"] for listener in self.status()["listeners"])
        except OSError:
            return False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """SIGTERM; it must end in order, without leaks."""
        self.process.terminate()
        status = self.process.wait(timeout=60)
        assert status == 0, f"{self.name} ended with {status}"

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def check_log(self):
        text = self.log.read_text()
        assert not SANITIZER.search(text), text

    # ---- questions ----

    def call(self, method, **parameters):
        """A Varlink call; parameters of the answer."""
        return self.exchange(method, parameters)[0]

    def exchange(self, method, parameters):
        message = {"method": f"io.rwriter.{method}", "parameters": parameters}
        answer, fds = b"", []
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30 * PATIENCE)
            s.connect(str(self.socket))
            s.sendall(json.dumps(message).encode() + b"\0")
            while not answer.endswith(b"\0"):
                part, new, _, _ = socket.recv_fds(s, 65536, 1)
                if not part:
                    raise ConnectionError(f"{self.name} closed the connection")
                answer, fds = answer + part, fds + new
        answer = json.loads(answer[:-1])
        assert "error" not in answer, answer
        return answer["parameters"], fds

    def status(self):
        return self.call("GetStatus")

    def regions(self):
        return self.call("ListRegions")["regions"]

    def peers(self):
        return self.call("ListPeers")["peers"]

    def memory(self, region):
        """All the bytes that the peer may write in a region, whatever has arrived."""
        answer, (fd,) = self.exchange("OpenRegion", {"which": str(region)})
        with open(fd, "rb", buffering=0) as file:
            return os.pread(file.fileno(), answer["region"]["size"] * answer["region"]["buffers"], 0)

    def footprint(self):
        """What a daemon may not have more of when all is over; warm memory that it keeps for later may stay."""
        status = self.status()
        counts = {key: status[key] for key in ("connections", "regions", "transfers", "memoryUsed")}
        return counts | {"descriptors": [fd for fd in self.descriptors() if not fd.startswith("/memfd:")]}

    def anonymous_memory(self):
        """Bytes, without the memory of regions."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

    def descriptors(self):
        """What they are, in order of their numbers."""
        table = f"/proc/{self.process.pid}/fd"
        found = []
        for number in sorted(os.listdir(table), key=int):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found.append(os.readlink(f"{table}/{number}").partition(":[")[0])
        return found

    # ---- rwctl ----

    def rwctl(self, *arguments, check=True, **options):
        options = {"capture_output": True, "timeout": 120, "env": ENVIRONMENT} | options
        options["timeout"] *= PATIENCE
        done = subprocess.run([BIN / "rwctl", "--socket", self.socket, *arguments], **options)
        assert not SANITIZER.search((done.stderr or b"").decode()), done.stderr.decode()
        if check:
            assert done.returncode == 0, done.stderr.decode()
        return done

    def refused(self, *arguments, status=1, **options):
        """Runs rwctl, which must fail with this exit status; what it says."""
        done = self.rwctl(*arguments, check=False, **options)
        assert done.returncode == status, (done.stdout + done.stderr).decode()
        return done.stderr.decode()

    def dump(self, *arguments):
        return self.rwctl("dump-region", *arguments).stdout

    def start_rwctl(self, *arguments):
        """rwctl that runs beside the test: a Popen with pipes."""
        command = [BIN / "rwctl", "--socket", self.socket, *arguments]
        pipe = subprocess.PIPE
        return Program(command, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT)

    def stream(self, peer, *options):
        """A write of what the test gives to stdin."""
        return self.start_rwctl("write", *options, peer, "-")


class Program(subprocess.Popen):
    """One that is waited for with patience."""

    def communicate(self, input=None, timeout=None):
        return super().communicate(input, timeout and timeout * PATIENCE)

    def wait(self, timeout=None):
        return super().wait(timeout and timeout * PATIENCE)


def free_port():
    """Below those that the kernel gives to outgoing connections."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket(socket.AF_INET6) as s:
            try:
                s.bind(("::", port))
            except OSError:
                continue
        return port


def until(condition, timeout=30, what=None):
    """Waits until condition() holds and returns what it returned."""
    timeout *= PATIENCE
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"waited {timeout} s in vain for {what or condition.__doc__}"
        time.sleep(0.02)


def until_like(before, *daemons):
    """Waits until the footprints of the daemons are those from before."""
    for daemon, wanted in zip(daemons, before):
        now = {}

        def same():
            now.update(daemon.footprint())
            return now == wanted

        try:
            until(same)
        except AssertionError:
            raise AssertionError(f"{daemon.name} has {now}, before it had {wanted}") from None


def pattern(size):
    """Bytes of which no two pages are alike."""
    mebibyte = bytearray(os.urandom(min(size, 1 << 20)))
    whole = bytearray()
    while len(whole) < size:
        for page in range(0, len(mebibyte) - 8, 4096):
            struct.pack_into("<Q", mebibyte, page, len(whole) + page)
        whole += mebibyte
    return bytes(whole[:size])
