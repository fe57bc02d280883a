"""Two machines with a wire between them: what arrives, and who notices what when the wire or a machine goes."""

import json
import time

import pytest
from machines import BEAT, DEAD
from rwriter import until

SOON = DEAD + BEAT / 1000 + 20  # the dead interval, a beat, and much for a busy machine
# Only words of the shell itself: what it starts is slow to start here.
FLOW = """
rm -f /run/enough
exec {{silence}}<> <(:)
until [ -e /run/enough ]; do
	printf %065536d $((n++))
	read -rt 0.1 -u $silence
done | tee /run/sent | rwctl --socket /run/socket write {options} {peer} -
"""


def works(writer, target):
    words = f"hello from {writer.name} at {time.time()}"
    writer.run(f"echo {words} >/run/hello")
    writer.rwctl(f"write {target.name} /run/hello")
    assert words in target.rwctl("dump-region")


def works_again(writer, target):
    """As soon as the kernels have found the way."""
    writer.run("echo healed >/run/healed")
    write = f"rwctl --socket /run/socket write {target.name} /run/healed"
    until(lambda: "arrived" in writer.run(write, check=False), what="a write")
    assert target.rwctl("dump-region") == "healed\n"


def flow(writer, target, options="--size 32M"):
    """A transfer that goes on and on, half a megabyte each second, until /run/enough is there."""
    job = writer.start(FLOW.format(options=options, peer=target.name))
    until(lambda: any(region["state"] == "receiving" for region in target.json("regions")["regions"]), what="the flow")
    return job


def notices(machine, began):
    until(lambda: machine.connections() == 0, timeout=SOON, what=f"{machine.name} to notice")
    assert time.monotonic() - began < SOON


@pytest.fixture(autouse=True)
def quiet(machines):
    """Each test begins without connections and with little in the log."""
    for machine in machines:
        if not machine.alive():
            machine.boot()
        machine.run(f"rwctl --socket /run/socket disconnect {machine.peer.name}; touch /run/enough; : >/run/log", check=False)
    for machine in machines:
        until(lambda: machine.connections() == 0, what="no connections")


@pytest.mark.parametrize("way", ["there", "back"])
def test_some_mebibytes(machines, way):
    writer, target = machines if way == "there" else machines[::-1]
    writer.run("head -c 8388609 /dev/urandom >/run/data")
    said = writer.rwctl(f"write {target.name} /run/data")
    assert "arrived, 8388609 bytes" in said and "verbs rxe0" in said
    assert target.run("rwctl --socket /run/socket dump-region | sha256sum") == writer.run("sha256sum </run/data")
    (region,) = [r for r in target.json("regions")["regions"] if r["state"] == "granted"]
    assert region["receiveCompletions"] == 0


def test_wire_cut_while_idle(machines):
    """Both sides notice by the missing beats; when it is whole again, so is everything."""
    writer, target = machines
    works(writer, target)
    with target.unplugged():
        began = time.monotonic()
        for machine in machines:
            notices(machine, began)
        assert time.monotonic() - began > DEAD / 2
        assert "no sign of life" in target.log()
        assert "no sign of life" in str(writer.json("peers"))
    works_again(writer, target)
    works(target, writer)


@pytest.mark.parametrize("end", ["writer", "target"])
def test_wire_cut_in_mid_transfer(machines, end):
    """Whoever's end it is: the transfer fails, and says why."""
    writer, target = machines
    job = flow(writer, target)
    with {"writer": writer, "target": target}[end].unplugged():
        began = time.monotonic()
        for machine in machines:
            notices(machine, began)
        status, said = job.wait(SOON)
        assert status == 1 and f"b ({target.address}:" in said, said
        assert all(region["state"] != "receiving" for region in target.json("regions")["regions"])
    works_again(writer, target)


@pytest.fixture
def patient(machines):
    """The writer gives nothing up."""
    writer, _ = machines
    writer.configure(reconnect="5min")
    writer.rwctl("reload")
    yield
    writer.configure(reconnect=0)
    writer.rwctl("reload")


def test_wire_cut_while_storing(machines, patient):
    """The connection is lost, the transfer is not: it goes on when the wire is whole, and all of it is stored."""
    writer, target = machines
    job = flow(writer, target, "--json --region inbox --name flow")
    with target.unplugged():
        notices(target, time.monotonic())
        until(lambda: "it will be connected again" in writer.log(), SOON, "the writer to notice")
        assert not job.ended()
        target.run("! test -e /run/inbox/flow")
    until(lambda: target.connections() == 1, what="another connection")
    writer.run("touch /run/enough")
    status, said = job.wait()
    assert status == 0, said
    done = json.loads(said[said.index("{") :])["transfer"]  # after what was said when the connection was lost
    assert done["state"] == "stored" and done["reconnects"] > 0 and done["sentAgain"] > 0, said
    assert target.run("sha256sum </run/inbox/flow") == writer.run("sha256sum </run/sent")
    assert target.run("ls -A /run/inbox") == "flow\n"


def test_wire_that_is_whole_in_time(machines):
    """A short cut is no end: what was lost is sent again."""
    writer, target = machines
    job = flow(writer, target)
    before = target.json("regions")["regions"]
    with target.unplugged():
        time.sleep(1)
    time.sleep(DEAD + 2 * BEAT / 1000)
    assert not job.ended()
    assert [r["id"] for r in target.json("regions")["regions"]] == [r["id"] for r in before]
    writer.run("touch /run/enough")
    assert job.wait()[0] == 0


def test_neighbour_that_is_another(machines):
    """The address leads to another interface suddenly (UNREACHABLE after ESTABLISHED)."""
    writer, target = machines
    works(writer, target)
    writer.run(f"ip neigh replace {target.address} lladdr 52:54:00:00:00:99 dev eth0 nud permanent")
    notices(writer, time.monotonic())
    assert f"the path to {target.address} was lost" in str(writer.json("peers"))
    notices(target, time.monotonic())
    writer.run(f"ip neigh del {target.address} dev eth0")
    works(writer, target)


def test_machine_that_dies(machines):
    """It says nothing more. The other one notices, as writer and as target, and works with it again when it is back."""
    survivor, victim = machines
    out = flow(survivor, victim)
    flow(victim, survivor)
    assert survivor.connections() == 2
    victim.kill()
    began = time.monotonic()
    notices(survivor, began)
    status, said = out.wait(SOON)
    assert status == 1 and f"b ({victim.address}:" in said, said
    status = survivor.json("status")
    assert status["transfers"] == 0
    assert all(region["state"] != "receiving" for region in survivor.json("regions")["regions"])
    assert "no sign of life" in survivor.log() and "no sign of life" in said

    victim.boot()
    works(survivor, victim)
    works(victim, survivor)
