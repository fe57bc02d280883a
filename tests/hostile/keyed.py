"""keyed.py -- a writer with a key, by hand, as rwriter-protocol(7) has it under KEYS"""

import hashlib
import hmac
import os
import struct

import rwp

KEYED = 1  # flag
MAC = 8  # TLV


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def key_id(key):
    return sha(b"RWP1 key id", key)[:8]


def request(key, rkey, addr, nonce=None):
    head = rwp.request(rkey, addr, flags=KEYED)[:24] + key_id(key) + (nonce or os.urandom(16))
    return head + mac(key, b"RWP1 gate", head)[:8]


class Writer(rwp.Writer):
    """peer: what the writer believes the target to be called. Between the steps everything can be changed."""

    FLAGS = KEYED

    def __init__(self, address, key, name="hand", peer="b", private=None, **how):
        self.key, self.peer, self.keys = key, peer, None
        self.request = private or request(key, self.MAILBOX_STAG, self.MAILBOX_BASE)
        super().__init__(address, name, private=self.request, **how)

    def make_blob(self, type, tlvs):
        """HELLO ends in the MAC."""
        if type != rwp.HELLO:
            return super().make_blob(type, tlvs)
        bare = rwp.blob(type, self.seq, tlvs)
        bare = bare[:4] + struct.pack("<I", len(bare) + 24) + bare[8:]
        self.t1 = sha(b"RWP1 hello", self.request, self.setup.private[:56], bare)
        self.hello_mac = mac(self.key, self.t1)[:16]
        return bare + rwp.raw_tlv(MAC, self.hello_mac)

    def hello(self, size=0, **changes):
        changes["tlvs"] = {rwp.TARGET: self.peer} | changes.get("tlvs", {})
        return super().hello(size, **changes)

    def get(self, timeout=30):
        r, words = super().get(timeout)
        if r.type == rwp.GRANT:
            self.take_grant(self.last_blob, words)
        return r, words

    def take_grant(self, blob, words):
        assert blob[-24:-20] == struct.pack("<HH", MAC, 16) and blob[-4:] == bytes(4)
        t2 = sha(b"RWP1 grant", self.t1, self.hello_mac, blob[:-24])
        assert words.values[MAC] == mac(self.key, t2)[:16], "the target does not prove the key"
        extracted = mac(t2, self.key)  # HKDF
        self.keys = [mac(extracted, b"RWP1 ", side, b"\1") for side in (b"writer", b"target")]

    def tag(self, data, at, blob=b""):
        if self.keys is None:
            return data
        return data[:at] + mac(self.keys[0], data[:at], data[56:], blob)[: 56 - at] + data[56:]

    def is_tagged(self, data, at, blob=b""):
        if self.keys is None:
            return super().is_tagged(data, at)
        return data[at:56] == mac(self.keys[1], data[:at], data[56:], blob)[: 56 - at]
