"""The control socket under attack by one of its users: whatever he does ends his own clients at the most. A
transfer beside it goes on, and afterwards the daemons hold what they held before."""

import array
import contextlib
import json
import os
import socket

import pytest
from conftest import HELLO, MEBIBYTE, Flow, forget

from daemon import MEASURED, PATIENCE, WEIGHT, pattern, until, until_like

CLIENTS = 64  # of one user
STATUS = b'{"method":"io.rwriter.GetStatus"}\0'
CUT_OFF = (BrokenPipeError, ConnectionResetError)


@pytest.fixture
def pair(make, hello):
    """As conftest has it, but of daemons whose memory can be measured."""
    target = make("b", command=MEASURED, region={"max-size": "256M"})
    writer = make("a", command=MEASURED, peers=[target])
    writer.rwctl("write", "b", hello)
    forget(writer, target)
    return writer, target


@pytest.fixture
def attacked(pair, hello):
    """The writer, whose control socket is attacked while a transfer runs through it."""
    writer, target = pair
    before = [daemon.footprint() for daemon in pair]
    flow = Flow(writer, target)
    memory = writer.anonymous_memory()
    yield writer
    assert writer.anonymous_memory() < memory + WEIGHT * (32 << 20)
    status, said = flow.end()
    assert (status, f"{flow.sent} bytes" in said) == (0, True), said
    assert writer.rwctl("write", "b", hello) and target.dump() == HELLO
    forget(*pair)
    until_like(before, *pair)


@pytest.fixture
def clients(pair):
    """A function that makes clients of the writer's control socket; they go before it is looked at again."""
    with contextlib.ExitStack() as stack:

        def connect():
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(pair[0].socket))
            client.settimeout(30 * PATIENCE)
            return client

        yield connect


def answers(client, count=1):
    """The next messages."""
    data = b""
    while data.count(b"\0") < count:
        part = client.recv(1 << 20)
        assert part, "cut off"
        data += part
    assert data.endswith(b"\0")
    return [json.loads(message) for message in data[:-1].split(b"\0")]


def is_cut_off(client):
    """No answer; what it had still to say may be thrown back at it."""
    with contextlib.suppress(*CUT_OFF):
        assert client.recv(1) == b""


def works(client):
    client.sendall(STATUS)
    (answer,) = answers(client)
    assert answer["parameters"]["state"] == "ready"


def test_flood_of_clients(attacked, clients):
    """One user has 64 at once, the transfer's among them; all that come after are turned away."""
    served = [clients() for _ in range(CLIENTS - 1)]
    for client in served:
        works(client)
    for client in [clients() for _ in range(300)]:
        is_cut_off(client)
    assert "rwctl" in attacked.refused("status", status=3)
    assert attacked.log.read_text().count("has too many clients") == 1  # not a line for each
    for client in served:
        works(client)
        client.close()
    until(lambda: attacked.rwctl("status", check=False).returncode == 0, what="room for others")


def test_clients_that_come_and_go(attacked, clients):
    """... in all moments of a call."""
    for number in range(1000):
        with contextlib.suppress(*CUT_OFF), clients() as client:
            client.sendall((STATUS * 2)[: number % 60])
    until(lambda: attacked.rwctl("status", check=False).returncode == 0, what="room for others")


@pytest.mark.parametrize(
    "message",
    [
        b"x" * (16 * MEBIBYTE),
        b'{"method":"' + b"x" * (16 * MEBIBYTE) + b'"}\0',
        b"[" * 100_000 + b"\0",
        b'{"method":"io.rwriter.GetStatus","parameters":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001 + b"\0",
        b"[" * 30_000 + b"]" * 30_000 + b"\0",
        b"\0" * 100_000,
        b"\xff\xfe" * 30_000 + b"\0",
    ],
    ids="endless 16-MiB 100000-brackets deep-objects deep-arrays empty-messages not-UTF-8".split(),
)
def test_bad_messages(attacked, clients, message):
    """... end their sender, and are not even read to the end; not once, and not thirty at a time."""
    senders = [clients() for _ in range(30)]
    for sender in senders:
        with contextlib.suppress(*CUT_OFF):
            sender.sendall(message)
    for sender in senders:
        is_cut_off(sender)
    works(clients())


def with_descriptors(client, data, count):
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        rights = array.array("i", [fd] * count)
        client.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    finally:
        os.close(fd)


def test_flood_of_descriptors(attacked, clients):
    """A message brings one. 253, which is all that the kernel takes at once, end their sender, also when he goes on
    sending; none of them stays."""
    before = len(attacked.descriptors())
    for _ in range(100):
        client = clients()
        with contextlib.suppress(*CUT_OFF):
            for _ in range(20):
                with_descriptors(client, STATUS, 253)
        is_cut_off(client)
        client.close()
    until(lambda: len(attacked.descriptors()) <= before, what="the descriptors to be closed")


def test_descriptors_one_by_one(attacked, clients):
    """One with each byte of a message: more than the largest batch has is too many."""
    client = clients()
    with contextlib.suppress(*CUT_OFF):
        for byte in b" " * 128 + STATUS:
            with_descriptors(client, bytes([byte]), 1)
    is_cut_off(client)


def test_descriptors_that_nobody_asked_for(attacked, clients):
    """One to a call is no offence; it is closed."""
    client = clients()
    works(client)
    before = attacked.footprint()["descriptors"]
    for _ in range(1000):
        with_descriptors(client, STATUS, 1)
        answers(client)
    # The client that asks for the footprint may still be among them.
    until(lambda: len(attacked.footprint()["descriptors"]) <= len(before), what="no descriptor more than before")


def test_half_messages(attacked, clients):
    """They may hang for as long as they like: they take no more than a client's place."""
    half = [clients() for _ in range(CLIENTS - 3)]
    for number, client in enumerate(half):
        client.sendall((b'{"method":"' + b"x" * 60_000)[: 1 + number * 1000])
    other = clients()
    for _ in range(10):
        works(other)
    half[0].sendall(STATUS[1:])
    assert answers(half[0])[0]["parameters"]["state"] == "ready"


def send_all(client, messages):
    """As many as it takes without reading; how many these were."""
    sent = 0
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        for message, fds in messages:
            socket.send_fds(client, [message], fds)
            sent += 1
    client.settimeout(30 * PATIENCE)
    return sent


def test_answers_that_nobody_reads(attacked, clients):
    """Who does not read is not asked for more calls: memory stays bounded, and no answer is lost."""
    lazy = [clients() for _ in range(40)]
    sent = [send_all(client, [(STATUS, [])] * 500) for client in lazy]
    assert min(sent) > 200
    works(clients())
    for client, count in zip(lazy, sent):
        assert len(answers(client, count)) == count


def test_progress_that_nobody_reads(attacked, clients, hello):
    """The same with writes that tell of their progress."""
    call = {"method": "io.rwriter.Write", "parameters": {"peer": "b", "name": "small"}, "more": True}
    lazy = clients()
    with hello.open() as file:
        sent = send_all(lazy, [(json.dumps(call).encode() + b"\0", [file.fileno()])] * 500)
    assert sent > 100
    works(clients())
    done = []
    while len(done) < sent:
        done += [answer for answer in answers(lazy) if not answer.get("continues", False)]
    assert all(answer["parameters"]["transfer"]["state"] == "arrived" for answer in done)


def best(writer, path, times=4):
    """The shortest of some transfers, in seconds."""

    def duration():
        return json.loads(writer.rwctl("--json", "write", "b", path).stdout)["transfer"]["durationNs"] / 1e9

    return min(duration() for _ in range(times))


def test_idle_streams_beside_a_transfer(pair, tmp_path, nothing_left):
    """Eight streams that bring nothing take nothing from a file that goes on: neither its threads nor its time."""
    writer, target = pair
    path = tmp_path / "big.bin"
    path.write_bytes(pattern(32 * MEBIBYTE))
    alone = best(writer, path)
    streams = [writer.stream("b") for _ in range(8)]
    until(lambda: writer.status()["transfers"] == 8 and len(target.regions()) == 8, what="eight streams")
    beside = best(writer, path)
    assert writer.status()["transfers"] == 8
    for stream in streams:
        out, errors = stream.communicate(timeout=60)
        assert stream.returncode == 0 and b"0 bytes" in out, out + errors
    alone = min(alone, best(writer, path))
    assert beside < 2 * alone + 0.05, f"{beside:.3f} s beside them, {alone:.3f} s alone"
