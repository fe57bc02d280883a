"""rwp.py -- RWP version 1 by hand, as rwriter-protocol(7) has it, over the iWARP of iwarp.py

Shares nothing with rwriter. Writer is the minimal writer of that page; each of its steps can also be taken
alone, and wrongly.
"""

import collections
import struct
import time

import iwarp
from iwarp import crc32c

MAGIC = b"RWP1"
IWARP = 3  # fabric
HELLO, BEGIN, DATA, HOLE, END, ONE, ABORT, GROW, BYE = range(1, 10)
GRANT, DENY, BEGIN_OK, RESULT, NOTICE = range(65, 70)
MUST_UNDERSTAND = 0x80

ARRIVED, STORED = 0, 1
(VERSION, ADDRESS, BUSY, KEY, STALE, REGION, SIZE, MEMORY, UNSUPPORTED, PROTOCOL, CHECKSUM, TIMEOUT, SHUTDOWN, RELEASED,
 IDLE, STORAGE, ABORTED, INTERNAL) = range(16, 34)  # fmt: skip

MAILBOX_SIZE, MAILBOX_RECORDS = 4096, 16
RING, SLOT = 128, 64

# ---- private data ----

Reply = collections.namedtuple("Reply", "version ring_log2 fabric rkey addr length generation boot_id")
Reject = collections.namedtuple("Reject", "versions reason retry_after text")


def request(rkey, addr, magic=MAGIC, versions=(1, 1), length=56, flags=0):
    return magic + struct.pack("<BBBBIIQ32x", *versions, length, IWARP, flags, rkey, addr)


def parse_reply(data, wanted_flags=0):
    version, ring_log2, length, fabric, flags, rkey, addr, area, generation, boot_id = struct.unpack_from(
        "<BBBBIIQII8s", data, 4
    )
    assert data[:4] == MAGIC and version == 1 and flags == wanted_flags and 56 <= length <= len(data)
    return Reply(version, ring_log2, fabric, rkey, addr, area, generation, boot_id)


def parse_reject(data):
    low, high, length, _, reason, text_len, retry_after = struct.unpack_from("<BBBBHHI", data, 4)
    assert data[:4] == MAGIC and 16 + text_len <= length <= len(data)
    return Reject((low, high), reason, retry_after, data[16 : 16 + text_len].decode())


# ---- records, lines ----

FIELDS = "type flags blob_len transfer stream_off region_off length data_crc grant blob_off"
Record = collections.namedtuple("Record", FIELDS + " seq")
Line = collections.namedtuple("Line", "state grant consumed released arrived durable transfer beat")


def record(type, seq, tag=None, **fields):
    values = dict.fromkeys(FIELDS.split(), 0) | {"type": type} | fields
    head = struct.pack("<BBHIQQIIII", *values.values())
    flag = struct.pack("<Q", seq)
    return head + struct.pack("<I12x", crc32c(head + flag) if tag is None else tag) + flag


def parse_record(data):
    """None: the tag does not match."""
    if crc32c(data[:40] + data[56:]) != struct.unpack_from("<I", data, 40)[0]:
        return None
    return Record(*struct.unpack("<BBHIQQIIII16xQ", data))


def line(beat, consumed, grant=0, state=1, tag=None):
    head = struct.pack("<IIQQQQI", state, grant, consumed, 0, 0, 0, 0)
    flag = struct.pack("<Q", beat)
    return head + struct.pack("<I8x", crc32c(head + flag) if tag is None else tag) + flag


def parse_line(data):
    if crc32c(data[:44] + data[56:]) != struct.unpack_from("<I", data, 44)[0]:
        return None
    return Line(*struct.unpack("<IIQQQQI12xQ", data))


# ---- blobs ----

Tlv = collections.namedtuple("Tlv", "number format")
WRITER, TARGET, REGION_NAME, HOST = Tlv(1, "text"), Tlv(2, "text"), Tlv(3, "text"), Tlv(26, "text")
SIZE_TLV, OFFERED, REQUIRED = Tlv(4, "<Q"), Tlv(5, "<Q"), Tlv(6, "<Q")
ECHO = Tlv(7, "bytes")
GRANT_ADDRESS, RKEY, GENERATION, SINK = Tlv(16, "<Q"), Tlv(17, "<I"), Tlv(18, "<I"), Tlv(19, "<I")
SEGMENT, IN_FLIGHT, BEAT, DEAD, REGION_ID = Tlv(20, "<I"), Tlv(21, "<Q"), Tlv(22, "<I"), Tlv(23, "<I"), Tlv(25, "<I")
CODE, TEXT, FIX, LIMIT, RETRY = Tlv(32, "<I"), Tlv(33, "text"), Tlv(34, "text"), Tlv(35, "<Q"), Tlv(36, "<I")
BUFFERS = Tlv(27 | 0x8000, "<I")  # must be understood
NAME, LENGTH = Tlv(48, "text"), Tlv(49, "<Q")
MODE, MTIME, ID = Tlv(50, "<I"), Tlv(51, "<q"), Tlv(52, "bytes")
CHECK = 63


def raw_tlv(number, value, length=None):
    data = struct.pack("<HH", number, len(value) if length is None else length) + value
    return data + bytes(-len(data) % 8)


def tlv(kind, value):
    if kind.format == "text":
        value = value.encode()
    elif kind.format != "bytes":
        value = struct.pack(kind.format, value)
    return raw_tlv(kind.number, value)


def blob(kind, seq, tlvs, length=None):
    """tlvs: {Tlv: value}, or bytes. A ONE gets its CHECK."""
    if not isinstance(tlvs, bytes):
        tlvs = b"".join(tlv(name, value) for name, value in tlvs.items() if value is not None)
    size = 16 + len(tlvs) + (8 if kind == ONE else 0)
    data = struct.pack("<HHIQ", kind, 0, size if length is None else length, seq) + tlvs
    if kind == ONE:
        data += raw_tlv(CHECK, struct.pack("<I", crc32c(data)))
    return data


def parse_blob(data, kind, seq):
    """{number: value}"""
    assert struct.unpack_from("<HHIQ", data) == (kind, 0, len(data), seq)
    values, at = {}, 16
    while at < len(data):
        number, size = struct.unpack_from("<HH", data, at)
        assert at + 4 + size <= len(data) and number not in values
        values[number] = data[at + 4 : at + 4 + size]
        at += 4 + size + -(4 + size) % 8
    return values


class Tlvs:
    """The TLVs of a blob, by their kind."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, kind):
        value = self.values[kind.number]
        if kind.format == "text":
            return value.decode()
        return value if kind.format == "bytes" else struct.unpack(kind.format, value)[0]

    def get(self, kind, default=None):
        return self[kind] if kind.number in self.values else default


# ---- the minimal writer ----


class Writer:
    MAILBOX_STAG, MAILBOX_BASE = 0x00C0FFEE, 0x700000001000
    FLAGS = 0

    def __init__(self, address, name="hand", **how):
        """Connects. how: of the MPA request."""
        self.name = name
        self.mailbox = bytearray(MAILBOX_SIZE)
        self.last_line = Line(*[0] * 8)
        self.seq = self.got = self.beat = self.blob_at = self.transfer = 0
        self.beat_at = self.grant = None
        self.connection = iwarp.Connection(address)
        private = how.pop("private", request(self.MAILBOX_STAG, self.MAILBOX_BASE))
        self.setup = self.connection.connect(private, **how)
        if not self.setup.flags & iwarp.REJECT:
            self.reply = parse_reply(self.setup.private, self.FLAGS)
            self.slots = 1 << self.reply.ring_log2
            self.blobs = RING + SLOT * self.slots

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.connection.close()

    # Writes: to the tail area, to the region.

    def write(self, stag, to, data, most=32768):
        for segment in iwarp.segments(stag, to, data, most):
            self.connection.send(segment)

    def write_tail(self, offset, data):
        self.write(self.reply.rkey, self.reply.addr + offset, data)

    def write_region(self, offset, data):
        self.write(self.grant[RKEY], self.grant[GRANT_ADDRESS] + offset, data)

    def write_record(self, data, seq):
        self.write_tail(RING + SLOT * ((seq - 1) % self.slots), data)

    def put(self, type, tlvs=None, **fields):
        """A record, with a blob if there are TLVs; waits for credit."""
        while self.seq + 1 > self.last_line.consumed + self.slots:
            self.turn()
        self.seq += 1
        data = b""
        if tlvs is not None:
            data = self.make_blob(type, tlvs)
            fields = self.put_blob(type, data) | fields
        self.write_record(self.tag(record(type, self.seq, **fields), 40, data), self.seq)

    def put_blob(self, type, data):
        if self.blob_at + len(data) > self.reply.length - self.blobs:
            while self.last_line.consumed < self.seq - 1:  # then nothing there is in use
                self.turn()
            self.blob_at = 0
        at, self.blob_at = self.blob_at, self.blob_at + len(data)
        self.write_tail(self.blobs + at, data)
        fields = {"blob_len": len(data), "blob_off": at}
        return fields if type == ONE else fields | {"data_crc": crc32c(data)}

    # What comes.

    def turn(self, timeout=30):
        """Waits for one FPDU and places it; keeps the beat meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            wait = deadline
            if self.beat_at is not None:
                if self.beat_at <= time.monotonic():
                    self.put_line()
                wait = min(deadline, self.beat_at)
            try:
                self.place(self.connection.receive(wait - time.monotonic()))
                return
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise

    def place(self, segment):
        assert segment.tagged and segment.opcode == iwarp.WRITE, f"not a Write: {segment.ulpdu.hex()}"
        at = segment.to - self.MAILBOX_BASE
        assert segment.stag == self.MAILBOX_STAG and 0 <= at <= at + len(segment.payload) <= MAILBOX_SIZE
        self.mailbox[at : at + len(segment.payload)] = segment.payload
        data = bytes(self.mailbox[:SLOT])
        if self.is_tagged(data, 44):
            self.last_line = Line(*struct.unpack("<IIQQQQI12xQ", data))

    def put_line(self, **fields):
        self.beat += 1
        fields = {"consumed": self.got, "grant": self.grant[GENERATION] if self.grant else 0} | fields
        self.write_tail(0, self.tag(line(self.beat, **fields), 44))
        if self.grant:
            self.beat_at = time.monotonic() + self.grant[BEAT] / 1000

    def get(self, timeout=30):
        """The next record and its TLVs."""
        slot = RING + SLOT * (self.got % MAILBOX_RECORDS)
        while struct.unpack_from("<Q", self.mailbox, slot + 56)[0] != self.got + 1:
            self.turn(timeout)
        self.got += 1
        raw = bytes(self.mailbox[slot : slot + SLOT])
        r = Record(*struct.unpack("<BBHIQQIIII16xQ", raw))
        at = RING + SLOT * MAILBOX_RECORDS + r.blob_off
        data = bytes(self.mailbox[at : at + r.blob_len])
        assert self.is_tagged(raw, 40, data), "a record with a wrong tag"
        if self.grant:
            self.put_line()  # gives the slot back
        if r.blob_len == 0:
            return r, None
        assert len(data) == r.blob_len and crc32c(data) == r.data_crc
        self.last_blob = data
        return r, Tlvs(parse_blob(data, r.type, r.seq))

    # What keys change: see keyed.py.

    def make_blob(self, type, tlvs):
        return blob(type, self.seq, tlvs)

    def tag(self, data, at, blob=b""):
        """A record (tag at 40) or line (44) as it goes out."""
        return data

    def is_tagged(self, data, at, blob=b""):
        return crc32c(data[:at] + data[56:]) == struct.unpack_from("<I", data, at)[0]

    # The steps.

    def hello(self, size=0, **changes):
        """Returns what answers it; a GRANT is kept."""
        tlvs = {
            WRITER: self.name,
            SIZE_TLV: size,
            ECHO: self.reply.boot_id + struct.pack("<I", self.reply.generation),
        } | changes.pop("tlvs", {})
        self.put(HELLO, tlvs, **changes)
        r, answer = self.get()
        if r.type == GRANT:
            assert r.grant == answer[GENERATION]
            self.grant = answer
            self.put_line()
        return r, answer

    def one(self, data, name="file", **changes):
        self.transfer += 1
        self.write_region(0, data)
        tlvs = changes.pop("tlvs", {NAME: name})
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION], "length": len(data)}
        self.put(ONE, tlvs, **fields | {"data_crc": crc32c(data)} | changes)

    def begin(self, length=None, name="file", **changes):
        self.transfer += 1
        tlvs = changes.pop("tlvs", {NAME: name, LENGTH: length})
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION]}
        self.put(BEGIN, tlvs, **fields | changes)

    def data(self, offset, payload, **changes):
        self.write_region(offset, payload)
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION], "length": len(payload)}
        fields |= {"stream_off": offset, "region_off": offset, "data_crc": crc32c(payload)}
        self.put(DATA, **fields | changes)

    def hole(self, length, **changes):
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION], "length": length}
        self.put(HOLE, **fields | changes)

    def end(self, stream, **changes):
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION]}
        self.put(END, **fields | {"stream_off": len(stream), "data_crc": crc32c(stream)} | changes)

    def result(self):
        """The RESULT of the running transfer."""
        r, words = self.get()
        assert (r.type, r.transfer) == (RESULT, self.transfer), r
        return r, words

    def bye(self):
        self.put(BYE)
        self.connection.last_words()


class RingWriter(Writer):
    """For regions with the sinks spool and discard: keeps to the rules of a ring, and can resume."""

    used = 0

    def hello(self, region="default", **how):
        answer = super().hello(tlvs={REGION_NAME: region}, **how)
        self.size = self.grant[SIZE_TLV]
        return answer

    def place(self, segment):
        super().place(segment)
        assert self.last_line.released <= self.used

    def piece(self, payload):
        """Lays it out; returns where."""
        if self.used % self.size + len(payload) > self.size:
            self.used += -self.used % self.size
        at, self.used = self.used % self.size, self.used + len(payload)
        while self.used > self.last_line.released + self.size:
            self.turn()
        self.write_region(at, payload)
        return at

    def data(self, offset, payload, **changes):
        at = self.piece(payload)
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION], "length": len(payload)}
        fields |= {"stream_off": offset, "region_off": at, "data_crc": crc32c(payload)}
        self.put(DATA, **fields | changes)

    def one(self, data, name="file", **changes):
        at = self.piece(data)
        self.transfer += 1
        tlvs = changes.pop("tlvs", {NAME: name})
        fields = {"transfer": self.transfer, "grant": self.grant[GENERATION], "length": len(data)}
        fields |= {"region_off": at, "data_crc": crc32c(data)}
        self.put(ONE, tlvs, **fields | changes)

    def resume(self, id, name="file", length=None, **tlvs):
        """BEGIN with an ID; what is there of it: offset and CRC."""
        self.begin(tlvs={NAME: name, LENGTH: length, ID: id} | tlvs)
        r, words = self.get()
        assert r.type == BEGIN_OK and r.transfer == self.transfer, words and words[TEXT]
        return r.stream_off, r.data_crc

    def send(self, whole, start=0, end=None, piece=None):
        """DATA for these bytes of the file."""
        piece = piece or self.grant[SEGMENT]
        end = len(whole) if end is None else end
        for at in range(start, end, piece):
            self.data(at, whole[at : min(at + piece, end)])
