"""Guessed STags. An STag is all that stands between a connection and another's memory, so many are tried: a
connection to each guess, for the first wrong one ends it. 10,000; 100,000 in `make check-long`."""

import collections
import contextlib
import itertools
import os
import random
import socket
import struct

import iwarp
import pytest
import rwp

from daemon import MEASURED, WEIGHT, until_like

GUESSES = 100_000 if os.environ.get("RWRITER_LONG") else 10_000
AT_ONCE = 64

REQUEST = iwarp.setup_frame(iwarp.REQUEST, rwp.request(0xC0FFEE, 0x1000), flags=iwarp.ENHANCED)
REPLY_SIZE = 20 + 4 + 56
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: no port waits after the end


@pytest.fixture(scope="module")
def target(standing):
    """Without CRC on the wire, which this client is slow at; and patient with the canary."""
    return standing(
        "b",
        command=MEASURED,
        region={"size": "64K"},
        listen={"allow": "any"},
        limits={"beat": "5min", "dead": "30min", "stall": "30min", "unproven": 2 * AT_ONCE},
        iwarp={"mpa-crc": "no"},
    )


def frame(segment):
    return iwarp.fpdu(segment, crc=False)


def guesses(known):
    """STags without end: any, the first and the last, and those near what is in use."""
    for n in itertools.count():
        yield random.getrandbits(32)
        yield n
        yield 0xFFFFFFFF - n
        near = random.choice(known)
        yield near ^ 1 << n % 32
        yield near + n & 0xFFFFFFFF
        yield near + (n << 8) & 0xFFFFFFFF


class Guesser:
    """One connection, accepted; of RWP nothing is said."""

    def __init__(self, target):
        self.socket = socket.create_connection((target.address, target.port), 30)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.socket.sendall(REQUEST)

    def read(self, size):
        """All that comes must come at once: more than size would be too much."""
        data = self.socket.recv(size + 1)
        while data and len(data) < size:
            data += self.socket.recv(size + 1 - len(data))
        return data

    def accepted(self):
        """The STag of its own tail area."""
        reply = rwp.parse_reply(iwarp.parse_setup(self.read(REPLY_SIZE)).private)
        return reply.rkey

    def guess(self, stag, at):
        """An empty write, which asks nobody and harms nobody (RFC 5040 lets it pass), then a letter."""
        self.segment = iwarp.write(stag, at, b"x")
        self.socket.sendall(frame(iwarp.write(stag ^ 0x100, at)) + frame(self.segment))

    def is_struck_down(self, code):
        """By this Terminate, and nothing else is said."""
        words = frame(iwarp.terminate_about(1, 1, code, self.segment))
        with contextlib.closing(self.socket):
            assert self.read(len(words)) == words
            assert self.socket.recv(1) == b""


def guess_round(target, canary, source, number):
    """As many guesses as connections are open at once; their own STags."""
    guessers = [Guesser(target) for _ in range(number)]
    own = [guesser.accepted() for guesser in guessers]
    theirs = (canary.reply.rkey, canary.grant[rwp.RKEY])
    at = canary.grant[rwp.GRANT_ADDRESS]
    wanted = [next(guess for guess in source if guess not in own) for _ in guessers]
    for guesser, stag in zip(guessers, wanted):
        guesser.guess(stag, at)
    for guesser, stag in zip(guessers, wanted):
        guesser.is_struck_down(2 if stag in theirs else 0)
    return own


def test_guessed_stags(target, canary):
    """Every guess is answered by the Terminate for it, though it names the right address; the canary's memory is
    as it was (which its fixture asserts), and so is the daemon."""
    source = guesses((canary.reply.rkey, canary.grant[rwp.RKEY]))
    seen = guess_round(target, canary, source, AT_ONCE)
    before, memory = target.footprint(), target.anonymous_memory()
    while len(seen) < GUESSES:
        seen += guess_round(target, canary, source, min(AT_ONCE, GUESSES - len(seen)))
    until_like([before], target)
    assert target.anonymous_memory() < memory + WEIGHT * (8 << 20)
    are_random(seen)


def are_random(stags):
    """As far as one can tell: few come again, every bit is set in half of them, no step leads from one to the
    next. Each bound is that of a chance of less than one in a billion."""
    count = len(stags)
    assert count - len(set(stags)) < 20
    for bit in range(32):
        ones = sum(stag >> bit & 1 for stag in stags)
        assert abs(ones - count / 2) < 3.5 * count**0.5, f"bit {bit} is set in {ones} of {count}"
    steps = collections.Counter(b - a for a, b in itertools.pairwise(stags))
    assert max(steps.values()) < 10


def test_exact_guess(target, canary):
    """Even those that are right are of no use: they count for the canary's connection alone."""
    theirs = itertools.cycle([canary.reply.rkey, canary.grant[rwp.RKEY]])
    guess_round(target, canary, theirs, AT_ONCE)
