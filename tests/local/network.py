"""network.py -- machines of one's own: network namespaces on a bridge, or at the ends of a bad line"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

TUNSETIFF, TAP_WITHOUT_HEADER = 0x400454CA, 0x1002


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True)


class Host:
    """A namespace with an interface eth0 and three addresses on it."""

    def __init__(self, name, number):
        self.name = name
        self.v4, self.v6, self.local = (f"{net}{number}" for net in ("10.7.0.", "fd00:7::", "fe80::7:"))
        self.command = ["ip", "netns", "exec", name]
        ip("netns", "add", name)
        self.ip("link", "set", "lo", "up")

    def ip(self, *arguments):
        ip("-n", self.name, *arguments)

    def plug_in(self, interface):
        """Takes an interface of ours."""
        ip("link", "set", interface, "netns", self.name, "name", "eth0")
        self.ip("link", "set", "eth0", "up")
        self.ip("addr", "add", f"{self.v4}/24", "dev", "eth0")
        for address in self.v6, self.local:
            self.ip("addr", "add", f"{address}/64", "dev", "eth0", "nodad")

    def remove(self):
        ip("netns", "del", self.name)


class Network:
    """Hosts with a cable each to a bridge, where the cable has the name of the host."""

    def __init__(self, size):
        ip("link", "add", "bridge", "type", "bridge")
        ip("link", "set", "bridge", "up")
        self.hosts = [self.host(number) for number in range(1, size + 1)]

    def host(self, number):
        host = Host(f"host{number}", number)
        ip("link", "add", host.name, "type", "veth", "peer", "name", "cable")
        host.plug_in("cable")
        ip("link", "set", host.name, "master", "bridge", "up")
        return host

    def set_mtu(self, mtu):
        for host in self.hosts:
            ip("link", "set", host.name, "mtu", mtu)
            host.ip("link", "set", "eth0", "mtu", mtu)

    def cut(self, host):
        """Nothing passes, and neither end is told."""
        ip("link", "set", host.name, "nomaster")

    def pull(self, host):
        """The link is down, which the host's kernel sees."""
        ip("link", "set", host.name, "down")

    def heal(self):
        for host in self.hosts:
            ip("link", "set", host.name, "master", "bridge", "up")


class Line(threading.Thread):
    """Two hosts with a line between them that takes `delay` seconds and loses frames by chance: in
    userspace over two TAP devices, because not every kernel has tc's netem."""

    def __init__(self, delay=0.0, loss=0.0):
        super().__init__(daemon=True)
        self.delay, self.loss, self.chance = delay, loss, random.Random(7)
        self.hosts = [Host("left", 1), Host("right", 2)]
        self.ends = [self.tap(host) for host in self.hosts]
        self.lost = self.passed = 0
        self.under_way = []
        self.stop, self.stopped = os.pipe()
        self.start()

    @staticmethod
    def tap(host):
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"tap", TAP_WITHOUT_HEADER))
        host.plug_in("tap")
        return end

    def run(self):
        while True:
            wait = max(self.under_way[0][0] - time.monotonic(), 0) if self.under_way else None
            readable, _, _ = select.select([*self.ends, self.stop], [], [], wait)
            if self.stop in readable:
                return
            for end in readable:
                self.take(end)
            while self.under_way and self.under_way[0][0] <= time.monotonic():
                _, _, end, frame = heapq.heappop(self.under_way)
                self.put(end, frame)

    def take(self, end):
        frame = os.read(end, 65536)
        if self.chance.random() < self.loss:
            self.lost += 1
            return
        self.passed += 1
        other = self.ends[1 - self.ends.index(end)]
        heapq.heappush(self.under_way, (time.monotonic() + self.delay, self.passed, other, frame))

    @staticmethod
    def put(end, frame):
        try:
            os.write(end, frame)
        except BlockingIOError:  # lost, as in a router
            pass

    def remove(self):
        os.write(self.stopped, b"x")
        self.join()
        for descriptor in *self.ends, self.stop, self.stopped:
            os.close(descriptor)
        for host in self.hosts:
            host.remove()
