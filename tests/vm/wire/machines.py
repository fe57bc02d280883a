"""machines.py -- two VMs on a wire, and the daemons in them, as the host sees them"""

import contextlib
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import tempfile

from rwriter import until

HERE = pathlib.Path(__file__).parent
PORT = 7471
CONFIGURATION = """
[rwriter]
name = {name}
control = /run/socket
[listen default]
address = {address}
fabric = verbs
allow = {peer.address}
[peer {peer.name}]
address = {peer.address}
fabric = verbs
[region default]
max-size = 32M
[region inbox]
sink = spool
directory = /run/inbox
free = 0
[limits]
reconnect = {reconnect}
beat = {beat}ms
dead = {dead}s
setup = 30s
stop = 2s
"""
BEAT, DEAD = 500, 8  # milliseconds, seconds


class Job:
    """A script that runs in a machine."""

    def __init__(self, machine, script):
        self.machine, self.script = machine, script
        self.path = machine.out / "jobs" / str(machine.jobs)
        machine.jobs += 1
        whole = self.path.with_suffix(".whole")
        whole.write_text(script)
        whole.rename(self.path)

    def ended(self):
        self.machine.assert_alive()
        return self.path.with_suffix(".status").exists()

    def wait(self, timeout=60):
        """Its exit status and what it said."""
        until(self.ended, timeout, what=f"{self.machine.name}: {self.script}")
        return int(self.path.with_suffix(".status").read_text()), self.path.with_suffix(".said").read_text()


class Machine:
    """A VM with one end of the wire. The first one's end stays when the other's machine dies."""

    def __init__(self, name, number, build, home, wire):
        self.name, self.build, self.home, self.wire = name, build, home, wire
        self.address, self.mac = f"10.8.0.{number}", f"52:54:00:00:00:0{number}"
        self.peer = self.process = self.out = None

    # ---- life ----

    def power_on(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.home))
        (self.out / "jobs").mkdir()
        self.jobs = 0
        options = {
            "pidfile": self.out / "pid",
            "qmp": f"unix:{self.out}/qmp,server=on,wait=off",
            "netdev": f"socket,id=wire,{self.wire}",
            "device": f"virtio-net-pci,id=end,netdev=wire,mac={self.mac}",
        }
        settings = {
            "OUT": self.out,
            "CPUS": 1,
            "MEM": 1024,
            "TIMEOUT": 900,
            "QEMU_OPTIONS": " ".join(f"-{option} {value}" for option, value in options.items()),
        }
        with (self.out / "log").open("w") as log:
            self.process = subprocess.Popen(
                [HERE.parent / "vm-run", HERE / "agent", self.address, self.build],
                env=os.environ | {name: str(value) for name, value in settings.items()},
                stdout=log,
                stderr=log,
            )

    def is_up(self):
        self.assert_alive()
        return (self.out / "jobs/ready").exists()

    def wait_until_up(self):
        try:
            until(self.is_up, 240, what=f"{self.name} to boot")
        except AssertionError:
            raise AssertionError((self.out / "log").read_text() + (self.out / "console").read_text()) from None

    def boot(self):
        self.power_on()
        self.wait_until_up()
        self.start_daemon()

    def assert_alive(self):
        assert self.process.poll() is None, (self.out / "log").read_text()

    def kill(self):
        """As when the power fails: nothing says good-bye."""
        os.kill(int((self.out / "pid").read_text()), signal.SIGKILL)
        self.process.wait()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    # ---- the wire ----

    def plug(self, state):
        """Pulls our end of the wire, or puts it in again; the other machine is not told."""
        with socket.socket(socket.AF_UNIX) as s, s.makefile("rw") as monitor:
            s.settimeout(30)
            s.connect(str(self.out / "qmp"))
            json.loads(monitor.readline())  # its greeting
            for command in (
                {"execute": "qmp_capabilities"},
                {"execute": "set_link", "arguments": {"name": "end", "up": state}},
            ):
                monitor.write(json.dumps(command) + "\n")
                monitor.flush()
                answer = json.loads(monitor.readline())
                while "event" in answer:
                    answer = json.loads(monitor.readline())
                assert "return" in answer, answer

    @contextlib.contextmanager
    def unplugged(self):
        self.plug(False)
        try:
            yield
        finally:
            self.plug(True)

    # ---- what runs in it ----

    def start(self, script):
        return Job(self, script)

    def run(self, script, check=True):
        status, said = self.start(script).wait()
        assert status == 0 or not check, said
        return said

    def configure(self, reconnect):
        """How long a transfer that has lost its connection tries to get on; 0: it fails at once, and says why."""
        text = CONFIGURATION.format(
            name=self.name, address=self.address, peer=self.peer, beat=BEAT, dead=DEAD, reconnect=reconnect
        )
        self.run(f"echo {shlex.quote(text)} >/run/conf")

    def start_daemon(self):
        self.configure(reconnect=0)
        self.run("mkdir -p /run/inbox; rwriterd -c /run/conf >>/run/log 2>&1 &")
        until(self.listens, what=f"{self.name} to listen")

    def rwctl(self, words):
        return self.run(f"rwctl --socket /run/socket {words}")

    def json(self, what):
        return json.loads(self.rwctl(f"{what} --json"))

    def listens(self):
        said = self.run("rwctl --socket /run/socket status --json", check=False)
        return said.startswith("{") and all(listener["up"] for listener in json.loads(said)["listeners"])

    def connections(self):
        return self.json("status")["connections"]

    def log(self):
        return self.run("cat /run/log")


@contextlib.contextmanager
def wired(build):
    """Two machines on a wire, with a daemon each that may write to the other."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        end = f"127.0.0.1:{s.getsockname()[1]}"
    with tempfile.TemporaryDirectory(prefix="wire-") as home:
        a = Machine("a", 1, build, home, f"listen={end}")
        b = Machine("b", 2, build, home, f"connect={end}")
        a.peer, b.peer = b, a
        try:
            a.power_on()
            until(lambda: a.assert_alive() or (a.out / "qmp").exists(), what="the wire")
            b.power_on()
            for machine in a, b:
                machine.wait_until_up()
                machine.start_daemon()
            yield a, b
        finally:
            for machine in a, b:
                if machine.alive():
                    machine.kill()
