"""line.py -- the line between two daemons, which can be slow, cut, frozen, or flip bits"""

import random
import selectors
import socket
import struct
import threading
import time

from daemon import free_port

PIECE = 1 << 16
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST


class Line:
    """A port of its own that leads to the target; what passes is shaped by attributes that may change at any time."""

    def __init__(self, target, rate=None, seed=0):
        self.target = target
        self.rate = rate  # bytes a second, both ways together; None: as fast as it goes
        self.flip = 0.0  # chance that a piece has one bit flipped
        self.flipped = 0
        self.passed = 0  # bytes
        self.frozen = False
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.pairs = {}  # socket -> the other end
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.open = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    # ---- what a test does to it ----

    def cut(self):
        """All connections are reset; new ones may come."""
        with self.lock:
            while self.pairs:
                end = next(iter(self.pairs))
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                self.drop(end)

    def freeze(self, seconds):
        """Nothing passes, and nothing new is let in, as if a cable were out."""
        self.frozen = True
        time.sleep(seconds)
        self.frozen = False

    def close(self):
        self.open = False
        self.thread.join()
        self.cut()
        self.listener.close()
        self.selector.close()

    # ---- the thread ----

    def drop(self, end):
        for one in (end, self.pairs.pop(end, None)):
            if one is not None and one.fileno() >= 0:
                self.pairs.pop(one, None)
                self.selector.unregister(one)
                one.close()

    def accept(self):
        near, _ = self.listener.accept()
        try:
            far = socket.create_connection((self.target.address, self.target.port), timeout=5)
        except OSError:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setblocking(True)
            self.pairs[one] = other
            self.selector.register(one, selectors.EVENT_READ)

    def carry(self, end):
        data = end.recv(PIECE)
        if not data:
            self.drop(end)
            return
        if self.flip and self.random.random() < self.flip:
            data = bytearray(data)
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            self.flipped += 1
        self.pairs[end].sendall(data)
        self.passed += len(data)
        if self.rate:
            time.sleep(len(data) / self.rate)

    def turn(self, end):
        if end is self.listener:
            self.accept()
        elif end in self.pairs:
            try:
                self.carry(end)
            except OSError:
                self.drop(end)

    def run(self):
        while self.open:
            if self.frozen:
                time.sleep(0.01)
                continue
            for key, _ in self.selector.select(0.05):
                with self.lock:
                    self.turn(key.fileobj)
