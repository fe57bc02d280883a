"""Daemons with keys, and somebody between them who passes on what he hears to whom he likes."""

import socket
import threading

import pytest

from daemon import until


class Relay:
    """Whoever connects here talks to `to`, word by word."""

    def __init__(self, to):
        self.address, self.name, self.to = "127.0.0.1", "b", to
        self.listener = socket.create_server((self.address, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.to.address, self.to.port))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def key(tmp_path, make):
    """The path of a key that rwctl makes."""
    path = tmp_path / "the.key"
    make("keymaker").rwctl("genkey", path)
    return path


def refusals(daemon):
    return {name: n for name, n in daemon.status().items() if name.startswith("refused") and n > 0}


def peer_a(key):
    return {"peer a": {"address": "192.0.2.1", "key": key}}


def test_write_with_a_key(make, hello, key):
    """Only a may write to b, wherever it comes from."""
    target = make("b", listen={"allow": "a"}, region={"require-key": "yes"}, **peer_a(key))
    writer, stranger = make("a"), make("s", peers=[target])
    writer.add_peer(target, key=key)
    writer.configure()
    writer.rwctl("reload")
    writer.rwctl("write", "b", hello)
    assert target.dump() == hello.read_bytes()
    (region,) = target.regions()
    assert (region["peer"], region["keyed"]) == ("a", True)
    assert [peer["keyed"] for peer in writer.peers()] == [True]
    said = stranger.refused("write", "b", hello)
    assert "127.0.0.1 is in no allow line of [listen default]" in said
    assert refusals(target) == {"refusedAddress": 1}


def make_writer(make, key, peer):
    """a, whose b is what listens there."""
    writer = make("a", **peer_a(key))
    writer.add_peer(peer, name="b", key=key)
    writer.configure()
    writer.rwctl("reload")
    return writer


def test_passed_on_to_the_right_one(make, hello, key):
    target = make("b", region={"require-key": "yes"}, **peer_a(key))
    writer = make_writer(make, key, Relay(target))
    writer.rwctl("write", "b", hello)
    assert target.dump() == hello.read_bytes()


def test_relayed_to_another(make, hello, key):
    """c has the same key, so it could prove it; but a means b."""
    other = make("c", region={"require-key": "yes"}, **peer_a(key))
    writer = make_writer(make, key, Relay(other))
    said = writer.refused("write", "b", hello)
    assert "the key is missing, unknown, wrong, or not for this" in said
    assert refusals(other) == {"refusedKeyNames": 1}
    assert '"a" means to write to "b", and this is "c"' in other.log.read_text()


def test_reflected(make, hello, key):
    """a's words come back to a itself."""
    writer = make_writer(make, key, relay := Relay(None))
    relay.to = writer
    writer.refused("write", "b", hello)
    assert refusals(writer) == {"refusedKeyNames": 1}
    until(lambda: writer.status()["unproven"] == 0)


def test_only_one_side_has_it(make, hello, key):
    target = make("b")
    writer = make_writer(make, key, target)
    said = writer.refused("write", "b", hello)
    assert "the key is missing, unknown, wrong, or not for this" in said
    assert "both machines need the same key" in said
    assert refusals(target) == {"refusedKeyUnknown": 1}
    target.configure(region={"require-key": "yes"}, **peer_a(key))
    target.rwctl("reload")
    keyless = make("a2", peers=[target])
    assert "the key is missing, unknown, wrong, or not for this" in keyless.refused("write", "b", hello)
    assert refusals(target) == {"refusedKeyUnknown": 1, "refusedKeyMissing": 1}


def test_bad_key_file(make, key):
    """A reload that cannot have the key changes nothing."""
    daemon = make("a", **peer_a(key))
    key.chmod(0o644)
    said = daemon.refused("reload")
    assert f"{key} has mode 0644: others may get at the key; chmod 0600" in said
