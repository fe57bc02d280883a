"""The control socket as another's client sees it: varlinkctl of systemd."""

import json
import os
import pathlib
import subprocess

import pytest
from conftest import HELLO, forget

VARLINKCTL = pathlib.Path(os.environ["RWRITER_VARLINKCTL"])
INTERFACE = "io.rwriter"


def varlinkctl(command, daemon, *arguments, options=(), check=True):
    """What it prints, and what it complains about."""
    done = subprocess.run(
        [VARLINKCTL, *options, command, f"unix:{daemon.socket}", *arguments], capture_output=True, text=True, timeout=60
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def call(daemon, method, options=(), **parameters):
    """Parameters of the answer."""
    said, _ = varlinkctl("call", daemon, f"{INTERFACE}.{method}", json.dumps(parameters), options=options)
    return parse(said)


def error(daemon, method, options=(), **parameters):
    """The error's name, and its parameters."""
    said, complaint = varlinkctl("call", daemon, method, json.dumps(parameters), options=options, check=False)
    return complaint.strip().rpartition(" failed: ")[2], parse(said)


def parse(said):
    """An answer; with --more it comes as RFC 7464 has it."""
    return json.loads(said.strip("\x1e\n"))


@pytest.fixture
def arrived(pair, hello):
    writer, target = pair
    writer.rwctl("write", "b", hello)
    yield target
    forget(*pair)


def test_info(arrived):
    said, _ = varlinkctl("info", arrived)
    fields = dict(map(str.strip, line.split(":", 1)) for line in said.splitlines() if ":" in line)
    assert (fields["Vendor"], fields["Product"], fields["URL"]) == ("rwriter", "rwriterd", "")
    assert fields["Version"] == arrived.status()["version"]


def test_interfaces(arrived):
    said, _ = varlinkctl("list-interfaces", arrived)
    assert said.split() == [INTERFACE, "org.varlink.service"]


def description(daemon, interface):
    service = "org.varlink.service.GetInterfaceDescription"
    said, _ = varlinkctl("call", daemon, service, json.dumps({"interface": interface}))
    return json.loads(said)["description"]


@pytest.mark.parametrize("interface", [INTERFACE, "org.varlink.service"])
def test_description(arrived, tmp_path, interface):
    """It is understood, and what was understood is what it says."""
    text = description(arrived, interface)
    file = tmp_path / "interface"
    file.write_text(text)
    valid = subprocess.run([VARLINKCTL, "validate-idl", file], capture_output=True, text=True, timeout=60)
    assert valid.returncode == 0 and not valid.stderr, valid.stderr
    said, _ = varlinkctl("introspect", arrived, interface)
    assert words(said) == words(text)


def words(text):
    """Of a description, without its comments."""
    return " ".join(line.partition("#")[0] for line in text.splitlines()).replace("(", " ( ").replace(")", " ) ").split()


def methods(daemon):
    return varlinkctl("list-methods", daemon, INTERFACE)[0].split()


CALLS = {  # everything that has one answer and can be called without a descriptor, and what the answer has
    "ListRegions": ({}, "regions"),
    "ListPeers": ({}, "peers"),
    "ExpandPeers": ({"peers": "a,b"}, "peers"),
    "ListTransfers": ({}, "transfers"),
    "Explain": ({"id": "a1"}, "flights"),
    "GetStatus": ({}, "bootId"),
    "OpenRegion": ({"which": ""}, "region"),
    "Reload": ({}, None),
    "Disconnect": ({"peer": "a"}, "connections"),
    "Release": ({"id": 0}, None),  # 0 stands for the number of the region
}
OTHERS = ["Write", "WriteBatch", "Events"]
BATCH = {"peer": "b", "names": ["x", "y"]}


def test_every_method(arrived):
    number = arrived.regions()[0]["id"]
    assert sorted(methods(arrived)) == sorted(f"{INTERFACE}.{name}" for name in [*CALLS, *OTHERS])
    for name, (parameters, wanted) in CALLS.items():
        parameters = {key: number if value == 0 else value for key, value in parameters.items()}
        answer = call(arrived, name, **parameters)
        assert wanted in answer if wanted else answer == {}, name
    assert arrived.regions() == [] and arrived.status()["connections"] == 0


def test_more(arrived):
    """Asked for where there is one answer, that is the last one."""
    assert call(arrived, "GetStatus", options=["--more"])["name"] == "b"


def test_events(arrived):
    """An answer for each, in their order."""
    command = [VARLINKCTL, "--more", "call", f"unix:{arrived.socket}", f"{INTERFACE}.Events", '{"since": "start"}']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        answers = [reader.stdout.readline() for _ in range(3)]
        reader.kill()
    told = [(answer["event"]["event"], answer["lost"]) for answer in map(parse, answers)]
    assert told == [("connected", 0), ("granted", 0), ("arrival", 0)]


@pytest.mark.parametrize("method, parameters", [("Events", {}), ("WriteBatch", BATCH)])
def test_more_expected(arrived, method, parameters):
    """Asked for nothing but one answer, there is none."""
    name, _ = error(arrived, f"{INTERFACE}.{method}", **parameters)
    assert name == "org.varlink.service.ExpectedMore"


def test_oneway(arrived):
    varlinkctl("call", arrived, f"{INTERFACE}.GetStatus", "{}", options=["--oneway"])


def test_descriptor_missing(arrived):
    """What it cannot send."""
    name, answer = error(arrived, f"{INTERFACE}.Write", peer="b", name="x")
    assert name == f"{INTERFACE}.DescriptorMissing" and "descriptor" in answer["text"]
    name, answer = error(arrived, f"{INTERFACE}.WriteBatch", options=["--more"], **BATCH)
    assert name == f"{INTERFACE}.DescriptorMissing" and "2 names came with 0 descriptors" in answer["text"]


def test_errors(arrived):
    assert error(arrived, f"{INTERFACE}.Release", id=4711)[0] == f"{INTERFACE}.NoSuchRegion"
    assert error(arrived, f"{INTERFACE}.Release", id="one") == (
        "org.varlink.service.InvalidParameter",
        {"parameter": "id"},
    )
    assert error(arrived, f"{INTERFACE}.Nothing") == (
        "org.varlink.service.MethodNotFound",
        {"method": f"{INTERFACE}.Nothing"},
    )
    assert error(arrived, "io.nobody.Nothing") == (
        "org.varlink.service.InterfaceNotFound",
        {"interface": "io.nobody"},
    )
    assert arrived.dump() == HELLO
