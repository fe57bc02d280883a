"""What goes over the wire, as tshark reads it: no malformed frame, no bad CRC."""

import contextlib
import shutil
import socket
import struct
import subprocess
import threading
import time
import xml.etree.ElementTree

import iwarp
import pytest
import rwp
from conftest import HELLO

from daemon import pattern, until

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="there is no tshark")

ETH_P_ALL, SO_RCVBUFFORCE, SOL_PACKET, PACKET_STATISTICS = 3, 33, 263, 6


class Capture(threading.Thread):
    """Everything that passes the loopback interface, from here to stop()."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        with contextlib.suppress(PermissionError):  # of an ordinary user's namespace
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.1)
        self.stopping = threading.Event()
        self.start()

    def run(self):
        with self.path.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))
            while True:
                try:
                    packet, where = self.socket.recvfrom(1 << 18)
                except TimeoutError:
                    if self.stopping.is_set():
                        return
                    continue
                if where[2] != socket.PACKET_OUTGOING:  # on loopback each comes twice
                    now = time.time_ns()
                    file.write(struct.pack("<IIII", now // 10**9, now // 1000 % 10**6, len(packet), len(packet)))
                    file.write(packet)

    def stop(self):
        """What has been sent by now is in the file then."""
        self.stopping.set()
        self.join()
        _, dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.socket.close()
        assert dropped == 0
        self.decode()

    def decode(self):
        """All fields that tshark sees, in order: (name, value, what it says). Sends are not what it would take
        them for."""
        command = ["tshark", "-n", "-r", self.path, "--disable-protocol", "rpcordma", "-T", "pdml"]
        pdml = subprocess.run(command, check=True, capture_output=True, timeout=240).stdout
        self.fields = [
            (element.get("name"), element.get("show"), element.get("showname"))
            for element in xml.etree.ElementTree.fromstring(pdml).iter()
            if element.tag in ("proto", "field")
        ]

    def values(self, wanted, base=0):
        return [int(value.replace(":", ""), base) for name, value, _ in self.fields if name == wanted]

    def fpdus(self):
        """Their lengths; all of the frames must be well-formed, and every CRC right."""
        faults = {"_ws.malformed", "iwarp_mpa.bad_length"} & {name for name, _, _ in self.fields}
        checks = [says for name, _, says in self.fields if name == "iwarp_mpa.crc_check"]
        assert not faults
        assert [says for says in checks if "(Good CRC32)" not in says] == []
        lengths = self.values("iwarp_mpa.ulpdulength")
        assert len(lengths) == len(checks)
        return lengths


@pytest.fixture
def capture(tmp_path):
    return Capture(tmp_path / "pcap")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_session(make, capture, tmp_path, hello, address):
    target = make("b", address=address)
    writer = make("a", address=address, peers=[target])
    data = pattern(100_001)
    (tmp_path / "file").write_bytes(data)
    for file in tmp_path / "file", hello:
        writer.rwctl("write", "b", file)
    writer.rwctl("disconnect", "b")
    until(lambda: target.status()["connections"] == 0, what="the end of the connection")
    capture.stop()

    assert set(capture.values("iwarp_rdma.opcode")) == {iwarp.WRITE}
    assert set(capture.values("iwarp_ddp.dv")) == set(capture.values("iwarp_rdma.version")) == {1}
    payload = sum(length - iwarp.TAGGED_HEADER for length in capture.fpdus())
    assert payload > len(HELLO) + len(data)
    # Request and reply: revision 2, CRC on, no markers, not rejected; IRD and ORD and 56 bytes of RWP.
    assert capture.values("iwarp_mpa.rev") == [2, 2]
    assert capture.values("iwarp_mpa.pdlength") == [60, 60]
    for flag, value in ("crc", 1), ("marker", 0), ("rej", 0):
        assert capture.values(f"iwarp_mpa.{flag}_flag") == [value, value]


def test_reject(make, capture, hello):
    target = make("b", listen={"allow": "10.8.0.1"})
    writer = make("a", peers=[target])
    writer.refused("write", "b", hello)
    capture.stop()
    assert capture.fpdus() == []
    assert capture.values("iwarp_mpa.rej_flag") == [0, 1]
    assert capture.values("iwarp_mpa.pdlength") == [60, 132]


def struck_down(target, capture, make_segment, **how):
    with rwp.Writer((target.address, target.port), **how) as writer:
        writer.hello()
        writer.connection.send(make_segment(writer.grant[rwp.RKEY], writer.grant[rwp.GRANT_ADDRESS]))
        assert writer.connection.last_words() is not None
    capture.stop()
    assert len(capture.fpdus()) > 3


def test_terminate_of_ddp(make, capture):
    """A write beyond the region, by revision 1 of MPA."""
    target = make("b", region={"size": "64K"})
    struck_down(target, capture, lambda stag, at: iwarp.write(stag, at + 65536, b"x"), flags=iwarp.CRC, revision=1)
    assert capture.values("iwarp_mpa.rev") == [1, 1]
    assert capture.values("iwarp_rdma.opcode")[-1] == iwarp.TERMINATE
    layer, kind, code = ("term_layer", "term_etype_ddp", "term_errcode_ddp_tagged")
    assert [capture.values(f"iwarp_rdma.{field}") for field in (layer, kind, code)] == [[1], [1], [1]]
    assert capture.values("iwarp_rdma.term_ddp_seg_len", 16) == [iwarp.TAGGED_HEADER + 1]


def test_terminate_of_rdmap(make, capture):
    """A read that was not agreed on."""
    target = make("b", region={"size": "64K"})
    struck_down(target, capture, lambda stag, at: iwarp.read_request(1, 0, 17, stag, at))
    layer, kind, code = ("term_layer", "term_etype_rdma", "term_errcode_rdma")
    assert [capture.values(f"iwarp_rdma.{field}") for field in (layer, kind, code)] == [[0], [2], [7]]


def test_a_bad_crc_would_be_seen(make, capture):
    """The test of the tests: here is one."""
    target = make("b", region={"size": "64K"})
    with rwp.Writer((target.address, target.port)) as writer:
        writer.hello()
        frame = iwarp.fpdu(iwarp.write(1, 0))
        writer.connection.raw(frame[:-1] + struct.pack("B", frame[-1] ^ 1))
        writer.connection.last_words()
    capture.stop()
    with pytest.raises(AssertionError, match="CRC check: "):
        capture.fpdus()
