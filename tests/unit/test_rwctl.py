#!/usr/bin/env python3
"""test_rwctl.py -- every command of rwctl against the control socket over the fake core; prints TAP

Runs in the build directory: `make check` does that.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

RWCTL = os.path.abspath("rwctl")
SERVER = os.path.abspath("tests/unit/control_server")
HELLO = b"Hello RDMA Write!"
NOBODY = 65534


class Skip(Exception):
    pass


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return "%08x" % (crc ^ 0xFFFFFFFF)


class Server:
    """The daemon's part; said is what it prints at its end, among it the counters of the fake core."""

    def __init__(self, directory, *args):
        self.path = os.path.join(directory, "s")
        self.process = subprocess.Popen([SERVER, self.path, *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.said = self.process.communicate(timeout=20)[0]
        assert self.process.returncode == 0, self.process.returncode
        return self.said


class Bench:
    """A directory, a server, and rwctl as a function."""

    def __init__(self, *server_args):
        self.directory = tempfile.TemporaryDirectory()
        self.dir = self.directory.name
        os.chmod(self.dir, 0o755)
        self.server = Server(self.dir, *server_args)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.server.process.poll() is None:
            self.server.end()
        self.directory.cleanup()

    def env(self, **more):
        return {**os.environ, "RWCTL_SOCKET": self.server.path, "LC_ALL": "C.UTF-8", **more}

    def file(self, name, data):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def popen(self, *args, **how):
        how = dict({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                    "env": self.env()}, **how)
        return subprocess.Popen([RWCTL, *args], **how)

    def run(self, *args, **how):
        """(status, standard output as bytes, standard error as text)"""
        data = how.pop("input", None)
        if data is not None:
            how["stdin"] = subprocess.PIPE
        process = self.popen(*args, **how)
        out, err = process.communicate(data, timeout=30)
        return process.returncode, out, err.decode() if err is not None else None

    def on_terminal(self, *args, until=None, interrupt=False, width=100, **env):
        """Runs it with output and errors on one terminal: (status, what was drawn)."""
        env = self.env(**env)
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(RWCTL, [RWCTL, *args], env)
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        drawn = b""
        deadline = time.time() + 20
        while time.time() < deadline and select.select([fd], [], [], 20)[0]:
            try:
                piece = os.read(fd, 65536)
            except OSError:
                break
            if not piece:
                break
            drawn += piece
            if until is not None and until in drawn:
                until = None
                if interrupt:
                    os.write(fd, b"\x03")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(fd)
        return status, drawn.decode()


def expect(got, wanted):
    assert got == wanted, "\n got    %r\n wanted %r" % (got, wanted)


def expect_match(pattern, got):
    assert re.fullmatch(pattern, got), "\n got     %r\n pattern %r" % (got, pattern)


def screen(drawn):
    """The lines as a terminal shows them in the end."""
    lines = []
    for line in drawn.replace("\r\n", "\n").split("\n"):
        row = []
        at = 0
        for c in line:
            if c == "\r":
                at = 0
                continue
            row[at:at + 1] = [c]
            at += 1
        lines.append("".join(row).rstrip())
    return [line for line in lines if line]


# ---- looking ----

def test_status():
    with Bench() as b:
        expect(b.run("status"), (0, b"""\
rwriterd 0.1.0 on b: ready, up 8 s
  listen default  10.0.0.2:7471  verbs mlx5_0, iwarp   accepts: this host only
  listen lab  10.9.0.2:7471  verbs (down: no RDMA device has this address)   accepts: its allow lines
  memory 200 KiB of 1.0 GiB   regions 3   connections 1   transfers 0
  note   no other machine may write here yet: add "allow = ADDRESS" to [listen default] in \
/etc/rwriter/rwriter.conf
""", ""))
        status = json.loads(b.run("status", "--json")[1])
        expect(status["memoryLimit"], 1 << 30)
        expect(status["listeners"][2]["detail"], "no RDMA device has this address")


def test_peers():
    with Bench() as b:
        status, out, err = b.run("peers")
        expect((status, err), (0, ""))
        lines = out.decode().splitlines()
        expect_match(r"PEER +NAME +ADDRESS +WAY +STATE +FABRIC +DEVICE +AGE +DONE +QUEUED +LAST ERROR *", lines[0])
        expect_match(r"10\.0\.0\.1  a +10\.0\.0\.1:7471  in +established  verbs +mlx5_0 +\d+d +1 +0  - *", lines[1])
        expect_match(r"spare +- +- +- +idle +- +- +- +0 +0  connection refused *", lines[2])
        expect([p["name"] for p in json.loads(b.run("peers", "--json")[1])["peers"]], ["10.0.0.1", "spare"])


def test_regions():
    with Bench() as b:
        status, out, err = b.run("regions")
        expect((status, err), (0, ""))
        lines = out.decode().splitlines()
        expect_match(r"ID  PEER +FABRIC  DEVICE +SIZE  ARRIVALS +BYTES  LAST +AGE  STATE *", lines[0])
        expect_match(r" 1  10\.0\.0\.1  verbs +mlx5_0  195 KiB +1  195 KiB  model\.bin +\d+d  granted *", lines[1])
        expect_match(r" 3  new +verbs +mlx5_0  4\.0 KiB +0 +0 B  - +-  receiving *", lines[3])
        regions = json.loads(b.run("--json", "regions")[1])["regions"]
        expect([r["id"] for r in regions], [1, 2, 3, 4])
        expect(regions[3]["lastArrival"], {"name": "hello.txt", "length": 17, "crc32c": crc32c(HELLO),
                                           "time": "2025-11-29T16:54:40.123Z"})
        expect(regions[2]["lastArrival"], None)


def test_no_regions():
    with Bench() as b:
        for region in "1234":
            expect(b.run("release", region), (0, b"region %s: released\n" % region.encode(), ""))
        expect(b.run("regions"), (0, b"no regions\n", ""))
        expect(json.loads(b.run("regions", "--json")[1]), {"regions": []})
        expect(b.run("dump-region"), (1, b"", "rwctl: nothing has arrived yet\n"))


# ---- writing ----

def test_write_file():
    data = os.urandom(3000)
    with Bench() as b:
        path = b.file("model.bin", data)
        status, out, err = b.run("write", "b", path)
        expect((status, err), (0, ""))
        expect_match(r"model\.bin -> b: arrived, 3000 bytes in [0-9.]+ m?s, region 1, verbs mlx5_0, crc32c "
                     + crc32c(data) + "\n", out.decode())
        status, out, _ = b.run("write", "spooler", path, "--region", "spool", "--name", "other", "--json")
        transfer = json.loads(out)["transfer"]
        expect((status, transfer["state"], transfer["name"], transfer["length"], transfer["region"]),
               (0, "stored", "other", 3000, "spool"))


def test_write_rate():
    with Bench() as b:
        out = b.run("write", "b", b.file("big", bytes(1 << 20)))[1]
        expect_match(r"big -> b: arrived, 1048576 bytes in .* \([0-9.]+ [KMG]iB/s\), region 1, .*\n", out.decode())


def write_from(b, wanted, *args, **how):
    status, out, err = b.run("write", "b", "-", "--json", *args, **how)
    assert status == 0, err
    transfer = json.loads(out)["transfer"]
    expect((transfer["name"], transfer["length"], transfer["crc32c"]), ("stdin", len(wanted), crc32c(wanted)))
    return transfer


def test_write_standard_input():
    data = os.urandom(100000)
    with Bench() as b:
        path = b.file("x", data)
        write_from(b, data, "--size", "1M", input=data)
        write_from(b, b"", input=b"")
        with open(path, "rb") as f:
            write_from(b, data, stdin=f)
        with open(path, "rb", buffering=0) as f:  # what has been read already is not written
            f.read(1000)
            write_from(b, data[1000:], stdin=f)
        b.server.end()
        expect(b.server.said, "writes 4 cancelled 0 last stdin size 0 region default\n")


def test_write_odd_files():
    with Bench() as b:
        fifo = os.path.join(b.dir, "fifo")
        os.mkfifo(fifo)
        process = b.popen("write", "b", fifo)
        with open(fifo, "wb") as f:
            f.write(HELLO)
        out = process.communicate(timeout=20)[0].decode()
        expect_match(r"fifo -> b: arrived, 17 bytes in .* crc32c %s\n" % crc32c(HELLO), out)
        out = b.run("write", "b", "/proc/self/status", "--json")[1]  # says that it has 0 bytes
        assert json.loads(out)["transfer"]["length"] > 100
        expect_match(r"empty -> b: arrived, 0 bytes in .* crc32c 00000000\n",
                     b.run("write", "b", b.file("empty", b""))[1].decode())
        expect_match(r"a\?b\? -> b: arrived, 1 byte in .*\n",
                     b.run("write", "b", b.file("a\nb\udcff", b"x"))[1].decode())
        expect(b.run("write", "b", b.dir), (1, b"", "rwctl: %s: Is a directory\n" % b.dir))
        expect(b.run("write", "b", "/no/such"), (1, b"", "rwctl: /no/such: No such file or directory\n"))


def test_write_refused():
    with Bench() as b:
        path = b.file("x", b"x")
        cases = {
            "closed": (1, "closed (10.0.0.2:7471) refused us: 10.0.0.1 is in no allow line of [listen default]\n"
                       "  on closed: add \"allow = 10.0.0.1\" under [listen default] in /etc/rwriter/rwriter.conf"),
            "small": (1, "small refused 2.0 GiB for region \"default\": it grants at most 1.0 GiB\n"
                      "  on small: max-size = 2G in [region default], or use a spool region"),
            "broken": (1, "broken (10.0.0.2:7471): the connection was lost"),
            "locked": (1, "locked (10.0.0.2:7471): 1.0 MiB cannot be registered\n"
                       "  here: set LimitMEMLOCK=infinity"),
            "evil": (1, "evil (10.0.0.2:7471): ?[31mred?alert"),
            "late": (4, "late (10.0.0.2:7471): nothing was heard within 1 s"),
            "nobody": (1, "nobody: no such peer is configured"),
            "no\udcffbody": (1, "no?body: no such peer is configured"),
        }
        for peer, (status, text) in cases.items():
            expect(b.run("write", peer, path), (status, b"", "rwctl: %s\n" % text))
        status, out, err = b.run("write", "small", path, "--json")
        answer = json.loads(out)
        expect((status, answer["error"]), (1, "io.rwriter.TransferRefused"))
        expect(answer["parameters"]["transfer"]["code"], "size")
        assert err.startswith("rwctl: small refused")


def test_write_deadline_reaches_a_stuck_daemon():
    with Bench() as b:
        expect(b.run("write", "slow", b.file("x", b"x"), "--timeout", "100ms"),
               (4, b"", "rwctl: rwriterd does not answer in time\n"))


def wait_for_write(b):
    """Until the server has begun a write: it takes the bytes of the pump."""
    time.sleep(0.5)


def test_interrupt():
    with Bench() as b:
        process = b.popen("write", "slow", b.file("x", bytes(1000)))
        wait_for_write(b)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        expect((process.returncode, out, err), (130, b"", b"rwctl: cancelled\n"))
        expect(b.server.end(), "writes 1 cancelled 1 last x size 0 region default\n")


def test_interrupt_never_looks_like_the_end_of_the_input():
    for how in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        for _ in range(3):
            with Bench() as b:
                process = b.popen("write", "b", "-", stdin=subprocess.PIPE)
                process.stdin.write(b"part")
                process.stdin.flush()
                wait_for_write(b)
                process.send_signal(how)
                out = process.communicate(timeout=20)[0]
                expect((process.returncode, out), (128 + how, b""))
                expect(b.server.end(), "writes 1 cancelled 1 last stdin size 0 region default\n")


# ---- the newest arrival ----

def test_dump():
    with Bench() as b:
        expect(b.run("dump-region", "c"), (0, HELLO, ""))  # the first try is torn
        expect(b.run("dump-region", "4"), (0, HELLO, ""))
        expect(b.run("dump-region"), (0, HELLO, ""))
        model = b.run("dump-region", "10.0.0.1")[1]
        region = json.loads(b.run("dump-region", "1", "--json")[1])["region"]
        expect((len(model), crc32c(model)), (region["lastArrival"]["length"], region["lastArrival"]["crc32c"]))
        expect(b.run("dump-region", "9"), (1, b"", "rwctl: 9: no region has this number or peer\n"))
        expect(b.run("dump-region", "new"), (1, b"", "rwctl: new: nothing lies whole in the region now\n"))


def test_dump_to_file():
    with Bench() as b:
        path = os.path.join(b.dir, "out")
        for _ in range(2):
            expect(b.run("dump-region", "c", "-o", path, preexec_fn=lambda: os.umask(0o027)),
                   (0, b"region 4 from c, hello.txt, 17 bytes, crc32c 24ca7934, 0 receive completions\n", ""))
            expect(open(path, "rb").read(), HELLO)
            expect(stat.S_IMODE(os.stat(path).st_mode), 0o640)
        expect(sorted(os.listdir(b.dir)), ["out", "s"])
        expect(b.run("dump-region", "c", "-o", "/dev/null")[0], 0)
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        expect(b.run("dump-region", "c", "-o", "/dev/full"),
               (1, b"", "rwctl: /dev/full: No space left on device\n"))
        status, _, err = b.run("dump-region", "c", "-o", os.path.join(b.dir, "no/such"))
        expect((status, err), (1, "rwctl: %s/no/such: No such file or directory\n" % b.dir))


def test_dump_of_a_region_in_motion():
    said = "rwctl: region 2: torn is writing into it again: there is nothing whole in it\n" \
           "  try again when that has arrived\n"
    with Bench() as b:
        expect(b.run("dump-region", "torn"), (1, b"", said))
        expect(b.run("dump-region", "torn", "-o", os.path.join(b.dir, "out")), (1, b"", said))
        expect(os.listdir(b.dir), ["s"])


# ---- administering ----

def test_administering():
    with Bench("x.conf:3: listen.port: what is a port?") as b:
        expect(b.run("release", "2"), (0, b"region 2: released\n", ""))
        expect(b.run("release", "2"), (1, b"", "rwctl: no region 2\n"))
        expect(b.run("release", "4", "--json"), (0, b"{}\n", ""))
        expect(b.run("disconnect", "10.0.0.1"), (0, b"10.0.0.1: disconnected, 1 connection ended\n", ""))
        expect(b.run("disconnect", "x"), (1, b"", "rwctl: no connection with x\n"))
        expect(b.run("reload"), (1, b"", "rwctl: the configuration stays as it was:\n"
                                 "x.conf:3: listen.port: what is a port?\n"))
    with Bench() as b:
        expect(b.run("reload"), (0, b"reloaded\n", ""))


def test_others_may_not_administer():
    if os.geteuid() != 0:
        raise Skip("needs root")
    with Bench() as b:
        expect(b.run("status", user=NOBODY, group=NOBODY, extra_groups=[]),
               (3, b"", "rwctl: %s: Permission denied\n  use sudo, or join the group: "
                "sudo usermod -aG rwriter $USER, then log in again\n" % b.server.path))
        os.chmod(b.server.path, 0o666)
        expect(b.run("status", user=NOBODY)[0], 0)
        expect(b.run("release", "1", user=NOBODY),
               (1, b"", "rwctl: Release is for root and for uid 0, which rwriterd runs as: try it with sudo\n"))


# ---- terminals ----

def test_progress():
    with Bench() as b:
        path = b.file("model.bin", bytes(2 << 20))
        status, drawn = b.on_terminal("write", "b", path)
        expect(status, 0)
        assert re.search(r"\rmodel\.bin -> b  \[█+░+\] +\d+ %  [0-9.]+ of 2\.0 MiB  [0-9.]+ [KM]iB/s  \d", drawn), drawn
        lines = screen(drawn)
        expect(len(lines), 1)
        expect_match(r"model\.bin -> b: arrived, 2097152 bytes in .*", lines[0])
        status, drawn = b.on_terminal("write", "b", path, LC_ALL="C")
        assert re.search(r"\[#+\.+\]", drawn) and drawn.isascii(), drawn
        for width in 10, 20, 40, 60:
            drawn = b.on_terminal("write", "b", path, width=width)[1]
            drawn = drawn.rsplit("\r", 3)[0]  # without the result
            assert all(len(line) < width for line in drawn.split("\r")[3:]), (width, drawn)
        drawn = b.on_terminal("write", "b", path, "-q")[1]
        expect(len(drawn.split("\r")), 2)


def test_progress_is_erased_before_an_error():
    with Bench() as b:
        path = b.file("x", bytes(1 << 20))
        status, drawn = b.on_terminal("write", "broken", path)
        expect((status, screen(drawn)), (1, ["rwctl: broken (10.0.0.2:7471): the connection was lost"]))
        status, drawn = b.on_terminal("write", "slow", path, until=b"x -> slow", interrupt=True)
        expect(status, 130)
        expect_match(r"(\^C)?rwctl: cancelled", screen(drawn)[-1])


def test_dump_on_a_terminal():
    with Bench() as b:
        status, drawn = b.on_terminal("dump-region", "c")
        expect((status, screen(drawn)), (0, [
            "region 4 from c, hello.txt, 17 bytes, crc32c 24ca7934, 0 receive completions",
            "00000000  48 65 6c 6c 6f 20 52 44  4d 41 20 57 72 69 74 65  |Hello RDMA Write|",
            "00000010  21                                                |!|",
            "00000011"]))
        lines = screen(b.on_terminal("dump-region", "1")[1])
        expect((len(lines), lines[-1]), (18, "... 199744 more bytes (--all shows them)"))
        lines = screen(b.on_terminal("dump-region", "1", "--all")[1])
        expect((len(lines), lines[-1]), (12502, "00030d40"))
        expect(screen(b.on_terminal("dump-region", "torn")[1])[0],
               "rwctl: region 2: torn is writing into it again: there is nothing whole in it")


# ---- what can go wrong around it ----

def test_usage():
    with Bench() as b:
        for args in ([], ["fly"], ["write", "b"], ["status", "x"], ["regions", "--region", "x"], ["--fly"],
                     ["write", "b", "x", "--timeout", "0"], ["write", "b", "-", "--size", "much"],
                     ["release", "x"], ["release", "4294967296"], ["dump-region", "-o"]):
            status, out, err = b.run(*args)
            expect((args, status, out), (args, 2, b""))
            assert err.startswith(("rwctl: ", RWCTL + ": ")), err
        expect(b.run("regions", "--region", "x")[2],
               "rwctl: --region is not for regions\n  rwctl --help says what there is\n")


def test_help():
    with Bench() as b:
        status, out, err = b.run("--help")
        expect((status, err), (0, ""))
        commands = b.run("complete")[1].decode().split()
        expect(commands, ["write", "dump-region", "regions", "release", "peers", "disconnect", "status", "reload"])
        for command in commands:
            assert re.search(r"^  %s\b" % command, out.decode(), re.M), command
            said = b.run(command, "--help")[1].decode()
            options = b.run("complete", command)[1].decode().split()
            assert "--json" in options and all(option in said for option in options), (said, options)
        assert "--region" in b.run("write", "--help")[1].decode()
        assert b.run("--version")[1].startswith(b"rwriter ")


def test_man_page():
    page = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/rwctl.1")).read()
    with Bench() as b:
        for command in b.run("complete")[1].decode().split():
            assert re.search(r"^\.(It )?Cm (.* )?%s\b" % command, page, re.M), command
            for option in b.run("complete", command)[1].decode().split():
                assert re.search(r"^\.It .*(Fl |, )%s\b" % option[1:], page, re.M), option


def test_shell_completion():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/rwctl/bash-completion/rwctl")

    def complete(*words):
        return subprocess.run(["bash", "-c", """
            . "$1"; shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _rwctl; echo "${COMPREPLY[*]}" """, "bash", script, *words],
            env={**os.environ, "PATH": os.path.dirname(RWCTL) + ":" + os.environ["PATH"]},
            capture_output=True, text=True).stdout.split()

    expect(complete("rwctl", "re"), ["regions", "release", "reload"])
    expect(complete("rwctl", "--json", "di"), ["disconnect"])
    expect(complete("rwctl", "write", "b", "--ti"), ["--timeout"])
    expect(complete("rwctl", "write", "b", "fi"), [])  # the shell's own: files


def test_unreachable():
    with Bench() as b:
        nowhere = os.path.join(b.dir, "nowhere")
        hint = "  start it: sudo systemctl start rwriter\n"
        expect(b.run("--socket", nowhere, "status"),
               (3, b"", "rwctl: rwriterd does not run here: %s: no such socket\n%s" % (nowhere, hint)))
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(nowhere)
        stale.close()
        expect(b.run("status", "--socket", nowhere),
               (3, b"", "rwctl: rwriterd does not run here: %s: nobody listens\n%s" % (nowhere, hint)))
        expect(b.run("--socket", "x" * 200, "status")[0], 3)


def answer_with(b, answer, *args):
    """rwctl against a server that answers anything with these bytes and hangs up."""
    path = os.path.join(b.dir, "odd")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    process = b.popen("--socket", path, *args)
    connection = server.accept()[0]
    connection.recv(65536)
    connection.sendall(answer)
    connection.close()
    out, err = process.communicate(timeout=20)
    server.close()
    os.unlink(path)
    return process.returncode, out, err.decode()


def test_odd_answers():
    closed = "rwctl: rwriterd has closed the connection without an answer\n" \
             "  it says why in its log: journalctl -u rwriter\n"
    with Bench() as b:
        expect(answer_with(b, b"", "status"), (3, b"", closed))
        expect(answer_with(b, b'{"parameters":{}', "status"), (3, b"", closed))
        expect(answer_with(b, b"HTTP/1.1 400\0", "status"), (3, b"", "rwctl: what answers is not rwriterd\n"))
        expect(answer_with(b, b'{"error":"org.varlink.service.MethodNotFound","parameters":{"method":"io.X"}}\0',
                           "status"), (1, b"", "rwctl: rwriterd does not know io.X: it is of another version\n"))
        expect(answer_with(b, b'{"error":"io.x.Odd"}\0', "peers"), (1, b"", "rwctl: io.x.Odd\n"))
        expect(answer_with(b, b'{"parameters":{"regions":17}}\0', "regions"), (0, b"no regions\n", ""))
        status, out, _ = answer_with(b, b'{"parameters":{}}\0', "write", "b", b.file("x", b"x"))
        expect(status, 0)
        expect(answer_with(b, b'{"parameters":{"region":{"lastArrival":{"length":5}}}}\0', "dump-region"),
               (1, b"", "rwctl: rwriterd has sent no descriptor of the region\n"))


def test_standard_output_fails():
    with Bench() as b:
        for args in ["status"], ["regions"], ["status", "--json"], ["dump-region", "c"], ["--help"]:
            with open("/dev/full", "wb") as full:
                status, _, err = b.run(*args, stdout=full)
            expect((args, status, err), (args, 1, "rwctl: standard output: No space left on device\n"))
        reader, writer = os.pipe()
        os.close(reader)
        status, _, err = b.run("dump-region", "1", stdout=writer)
        os.close(writer)
        expect((status, err), (1, "rwctl: standard output: Broken pipe\n"))


def main():
    tests = [(name[5:].replace("_", " "), f) for name, f in globals().items() if name.startswith("test_")]
    failed = 0
    print("1..%d" % len(tests))
    for i, (name, test) in enumerate(tests, 1):
        try:
            test()
            print("ok %d - %s" % (i, name), flush=True)
        except Skip as skip:
            print("ok %d - %s # SKIP %s" % (i, name, skip), flush=True)
        except Exception:  # the next test still runs
            failed += 1
            print("not ok %d - %s" % (i, name))
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)
    sys.exit(failed > 0)


main()
