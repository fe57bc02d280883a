"""Reload under load: whatever the new configuration is, what has begun goes on to its end."""

import contextlib
import signal
import threading

import pytest
from conftest import Flow, forget, receiving

from daemon import free_port, until

pytestmark = pytest.mark.usefixtures("nothing_left")


def reload_by_rwctl(daemon):
    daemon.rwctl("reload")


def reload_by_signal(daemon):
    def count():
        return daemon.log.read_text().count("configuration reloaded")

    before = count()
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: count() > before, what="the reload")


def vary(daemon, turn, port):
    """Limits, a region, a peer and a listener come, change and go."""
    for section in "region other", "peer other", "listen other":
        daemon.sections.pop(section, None)
    more = {"region other": {"keep": turn}, "peer other": {"address": "127.0.0.1", "port": port}}
    if turn % 2:
        more["listen other"] = {"address": "127.0.0.1", "port": port, "fabric": "iwarp", "allow": "any"}
    daemon.configure(limits={"idle": f"{60 + turn}s", "pinned-memory": f"{1100 + turn}M"}, **more)


@contextlib.contextmanager
def small_writes(writer, path):
    """One after the other meanwhile, on one connection."""
    failures, count, enough = [], 0, threading.Event()

    def run():
        nonlocal count
        while not enough.is_set():
            done = writer.rwctl("write", "b", path, check=False)
            count += 1
            if done.returncode != 0:
                failures.append(done.stderr.decode())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
    assert count > 5 and not failures, failures


def arrives(flow, target):
    status, said = flow.end()
    assert status == 0, said
    assert f"arrived, {flow.sent} bytes" in said


def test_nothing_is_lost(pair, hello):
    writer, target = pair
    ports = [free_port() for _ in pair]
    flows = [Flow(writer, target, pause=0.05) for _ in range(2)]
    until(lambda: len(receiving(target)) == 2, what="both flows to be on their way")
    with small_writes(writer, hello):
        for turn in range(9):
            for daemon, port in zip(pair, ports):
                vary(daemon, turn, port)
                (reload_by_rwctl, reload_by_signal)[turn % 3 == 0](daemon)
    for flow in flows:
        arrives(flow, target)
    assert {region["state"] for region in target.regions()} == {"granted"}, "no connection has ended"


def test_what_has_begun_goes_on(pair, hello):
    """Though new ones would be refused: no peer, nobody listens there, nobody is allowed."""
    writer, target = pair
    flow = Flow(writer, target)
    peer = writer.sections.pop("peer b")
    writer.configure()
    writer.rwctl("reload")
    old = target.port
    target.configure(listen={"port": free_port(), "allow": "10.0.0.1"})
    target.rwctl("reload")
    assert "nobody listens" in writer.refused("write", f"127.0.0.1:{old}", hello)
    sent = flow.sent
    until(lambda: flow.sent > sent + (1 << 20), what="the flow to go on")
    arrives(flow, target)

    forget(target)
    writer.sections["peer b"] = peer
    writer.configure()
    target.configure(listen={"port": old, "allow": "host"})
    for daemon in pair:
        daemon.rwctl("reload")


def test_bad_configuration_under_load(pair):
    """It is not taken, and nothing changes."""
    writer, target = pair
    flow = Flow(writer, target)
    good = target.file.read_text()
    target.file.write_text(good + "[limits]\nno-such-key = 1\n")
    for _ in range(5):
        assert "no-such-key" in target.refused("reload")
    target.file.write_text(good)
    arrives(flow, target)
