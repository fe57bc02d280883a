"""iwarp.py -- iWARP by hand: frames of MPA (RFC 5044, 6581), DDP (RFC 5041) and RDMAP (RFC 5040)

Written from the standards alone and sharing nothing with rwriter, so that what the two agree on is right.
It builds wrong frames as readily as right ones.
"""

import collections
import socket
import struct
import time

# ---- CRC32C ----


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = tuple(_table())


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- MPA: set-up ----

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
PEER_TO_PEER, RTR_SEND = 0x8000, 0x4000  # with IRD
RTR_WRITE, RTR_READ = 0x8000, 0x4000  # with ORD
DEPTH = 0x3FFF

Setup = collections.namedtuple("Setup", "key flags revision private ird ord", defaults=(0, 0))


def setup_frame(key, private=b"", flags=CRC | ENHANCED, revision=2, ird=0, ord=0):
    """A frame of the set-up."""
    if flags & ENHANCED:
        private = struct.pack(">HH", ird, ord) + private
    return key + struct.pack(">BBH", flags, revision, len(private)) + private


def parse_setup(frame):
    flags, revision, length = struct.unpack_from(">BBH", frame, 16)
    private = frame[20:]
    assert len(private) == length
    ird = ord = 0
    if flags & ENHANCED:
        ird, ord = struct.unpack_from(">HH", private)
        private = private[4:]
    return Setup(frame[:16], flags, revision, private, ird, ord)


# ---- MPA: FPDUs ----


def fpdu(ulpdu, crc=True, length=None):
    """length: another than it has."""
    frame = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
    frame += bytes(-len(frame) % 4)
    return frame + struct.pack("<I", crc32c(frame) if crc else 0)


# ---- DDP and RDMAP ----

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_EVENT, SEND_EVENT_INVALIDATE, TERMINATE = range(8)
IMMEDIATE, IMMEDIATE_EVENT, ATOMIC_REQUEST, ATOMIC_RESPONSE = range(8, 12)  # RFC 7306
TAGGED, LAST = 0x80, 0x40
TAGGED_HEADER, UNTAGGED_HEADER = 14, 18


def control(opcode, tagged, last=True, ddp=1, rdmap=1):
    return bytes([(TAGGED if tagged else 0) | (LAST if last else 0) | ddp, rdmap << 6 | opcode])


def tagged(opcode, stag, to, payload=b"", **versions):
    return control(opcode, True, **versions) + struct.pack(">IQ", stag, to) + payload


def untagged(opcode, queue, msn, payload=b"", offset=0, word=0, **versions):
    return control(opcode, False, **versions) + struct.pack(">IIII", word, queue, msn, offset) + payload


def write(stag, to, payload=b"", **versions):
    return tagged(WRITE, stag, to, payload, **versions)


def segments(stag, to, payload, most):
    """The segments of one RDMA Write message."""
    for at in range(0, max(len(payload), 1), most):
        yield write(stag, to + at, payload[at : at + most], last=at + most >= len(payload))


def send(payload, msn=1, opcode=SEND):
    return untagged(opcode, 0, msn, payload)


def read_request(sink_stag, sink_to, size, source_stag, source_to, msn=1):
    return untagged(READ_REQUEST, 1, msn, struct.pack(">IQIIQ", sink_stag, sink_to, size, source_stag, source_to))


def terminate(layer, kind, code, flags=0, rest=b""):
    return untagged(TERMINATE, 2, 1, bytes([layer << 4 | kind, code, flags, 0]) + rest)


def terminate_about(layer, kind, code, culprit):
    """With the culprit's length and its DDP header, and the whole Read Request if it was one."""
    flags, size = 0xC0, TAGGED_HEADER if culprit[0] & TAGGED else UNTAGGED_HEADER
    return terminate(layer, kind, code, flags, struct.pack(">H", len(culprit)) + culprit[:size])


class Segment:
    """What has come in one FPDU."""

    def __init__(self, ulpdu):
        self.ulpdu = ulpdu
        self.tagged, self.last = bool(ulpdu[0] & TAGGED), bool(ulpdu[0] & LAST)
        self.opcode = ulpdu[1] & 0x0F
        assert (ulpdu[0] & 0x3F, ulpdu[1] & 0xF0) == (1, 0x40), f"versions or reserved bits: {ulpdu[:2].hex()}"
        if self.tagged:
            self.stag, self.to = struct.unpack_from(">IQ", ulpdu, 2)
            self.payload = ulpdu[TAGGED_HEADER:]
        else:
            self.word, self.queue, self.msn, self.offset = struct.unpack_from(">IIII", ulpdu, 2)
            self.payload = ulpdu[UNTAGGED_HEADER:]


# ---- a connection ----


class Ended(Exception):
    """The peer has closed the connection."""


class Connection:
    """A TCP connection with MPA on it. With `crc` every frame that comes must have a right one."""

    def __init__(self, address, timeout=30):
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.crc = True
        self.read = b""

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def raw(self, data):
        self.socket.sendall(data)

    def send(self, ulpdu, **how):
        self.raw(fpdu(ulpdu, **({"crc": self.crc} | how)))

    def connect(self, private, **how):
        """Requests, and returns the reply."""
        self.raw(setup_frame(REQUEST, private, **how))
        reply = self.receive_setup()
        self.crc = bool(reply.flags & CRC)
        return reply

    # What comes. Half a frame that was read stays for the next call.

    def _need(self, size, deadline):
        while len(self.read) < size:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                part = self.socket.recv(1 << 20)
            except ConnectionResetError:
                part = b""
            if not part:
                raise Ended(f"closed, after {self.read.hex() or 'nothing'}")
            self.read += part

    def _take(self, size):
        taken, self.read = self.read[:size], self.read[size:]
        return taken

    def receive_setup(self, timeout=30):
        deadline = time.monotonic() + timeout
        self._need(20, deadline)
        size = 20 + struct.unpack_from(">H", self.read, 18)[0]
        self._need(size, deadline)
        return parse_setup(self._take(size))

    def receive(self, timeout=30):
        """The next FPDU as a Segment; Ended, or TimeoutError."""
        deadline = time.monotonic() + timeout
        self._need(2, deadline)
        length = struct.unpack_from(">H", self.read)[0]
        padded = 2 + length + -(2 + length) % 4
        self._need(padded + 4, deadline)
        frame = self._take(padded + 4)
        assert not any(frame[2 + length : padded]), "padding that is not zero"
        wanted = crc32c(frame[:padded]) if self.crc else 0
        assert struct.unpack("<I", frame[padded:])[0] == wanted, "CRC"
        return Segment(frame[2 : 2 + length])

    def last_words(self, timeout=30):
        """Reads until the peer closes; its Terminate without the DDP header, or None."""
        deadline, words = time.monotonic() + timeout, None
        try:
            while True:
                segment = self.receive(deadline - time.monotonic())
                assert words is None, "something after a Terminate"
                if segment.opcode == TERMINATE:
                    assert (segment.queue, segment.msn, segment.offset, segment.last) == (2, 1, 0, True)
                    words = segment.payload
        except Ended:
            assert not self.read, f"half a frame at the end: {self.read.hex()}"
        return words
