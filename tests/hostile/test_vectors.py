"""The tools of this suite against fixed bytes: figures of RFC 5044, and the session of rwriter-protocol(7)."""

import iwarp
import pytest
import rwp

HELLO = b"Hello RDMA Write!"
WRITE = iwarp.write(0x100, 0x1000, HELLO)


def spaced(data):
    return data.hex(" ")


@pytest.mark.parametrize(
    "data, crc", [(b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"", 0)], ids=["digits", "zeros", "nothing"]
)
def test_crc32c(data, crc):
    assert iwarp.crc32c(data) == crc


def test_rfc_5044_figure_5():
    """An FPDU behind a marker: the marker is in the CRC."""
    frame = bytes(4) + bytes.fromhex("002a 4143 00000000 00000000 00000001 00000000") + bytes(24)
    assert iwarp.crc32c(frame).to_bytes(4, "little") == bytes.fromhex("52239983")


@pytest.mark.parametrize(
    "frame, wire",
    [
        (
            iwarp.setup_frame(iwarp.REQUEST, b"\xde\xad\xbe\xef", flags=iwarp.CRC, revision=1),
            "4d50412049442052657120467261 6d65 4001 0004 deadbeef",
        ),
        (
            iwarp.setup_frame(iwarp.REQUEST, b"\xde\xad\xbe\xef", ird=1, ord=1),
            "4d504120494420526571204672616d65 5002 0008 00010001 deadbeef",
        ),
        (
            iwarp.fpdu(WRITE),
            "001fc140000001000000000000001000 48656c6c6f2052444d41205772697465 21000000 eb064647",
        ),
        (
            iwarp.fpdu(WRITE, crc=False),
            "001fc140000001000000000000001000 48656c6c6f2052444d41205772697465 21000000 00000000",
        ),
        (iwarp.fpdu(iwarp.write(1, 0)), "000ec140000000010000000000000000 ebd34c5f"),
        (
            iwarp.fpdu(iwarp.terminate_about(1, 1, 0, WRITE)),
            "00264147000000000000000200000001 000000001100c000001fc14000000100 0000000000001000 08625578",
        ),
        (
            iwarp.fpdu(iwarp.terminate(2, 0, 2)),
            "0016414700000000000000020000000100000000 20020000 7fe42585",
        ),
        (
            iwarp.fpdu(iwarp.send(b"Hello")),
            "00174143000000000000000000000001 0000000048656c6c6f000000 20f5b101",
        ),
        (
            iwarp.fpdu(iwarp.read_request(0x200, 0x2000, 17, 0x100, 0x1000)),
            "002e4141000000000000000100000001 00000000000002000000000000002000"
            "00000011000001000000000000001000 7f521a49",
        ),
    ],
    ids="request-1 request-2 write no-crc empty-write bad-stag crc-error send read".split(),
)
def test_frame(frame, wire):
    assert spaced(frame) == spaced(bytes.fromhex(wire))


def test_terminate_is_understood():
    segment = iwarp.Segment(iwarp.terminate_about(1, 1, 1, WRITE))
    assert (segment.opcode, segment.queue, segment.msn) == (iwarp.TERMINATE, 2, 1)
    assert segment.payload.hex() == "1101c000" + "001f" + "c140000001000000000000001000"


# The example of rwriter-protocol(7).


def test_records_of_the_protocol_page():
    hello = rwp.blob(
        rwp.HELLO,
        1,
        {
            rwp.WRITER: "alpha",
            rwp.TARGET: "beta",
            rwp.SIZE_TLV: 17,
            rwp.ECHO: bytes.fromhex("5f0c9a3be1774d28") + (7).to_bytes(4, "little"),
        },
    )
    assert len(hello) == 72 and iwarp.crc32c(hello) == 0x15799F99
    data = rwp.record(rwp.HELLO, 1, blob_len=72, data_crc=iwarp.crc32c(hello))
    assert data[40:44].hex() == "4fa2fdba"

    one = rwp.blob(rwp.ONE, 2, {rwp.NAME: "hello.txt", rwp.LENGTH: 17})
    assert one[-8:].hex() == "3f000400" + "67f6a4a4"
    data = rwp.record(
        rwp.ONE, 2, blob_len=56, transfer=1, length=17, data_crc=iwarp.crc32c(HELLO), grant=1, blob_off=72
    )
    assert data[40:44].hex() == "bdc4941d"
    assert rwp.parse_record(data).length == 17


def test_line_of_the_protocol_page():
    data = rwp.line(beat=3, consumed=2, grant=1)
    assert data[44:48].hex() == "73acc7c8"
    assert rwp.parse_line(data).consumed == 2
