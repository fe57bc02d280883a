"""fabric = auto, which is the default, on a machine without RDMA: iwarp is used, and it is said why."""

import json
import os

import pytest
from conftest import HELLO

from daemon import until

pytestmark = pytest.mark.skipif(os.path.exists("/dev/infiniband/rdma_cm"), reason="this machine has RDMA")


@pytest.fixture
def auto(make):
    target = make("b", fabric="auto")
    return make("a", fabric="auto", peers=[target]), target


def test_what_is_used_is_shown_and_why(auto, hello):
    writer, target = auto
    assert "iwarp tcp (verbs: no RDMA device here)" in writer.rwctl("write", "b", hello).stdout.decode()
    assert target.dump() == HELLO
    transfer = json.loads(writer.rwctl("--json", "write", "b", hello).stdout)["transfer"]
    for shown in [transfer, *writer.peers(), *target.regions()]:
        assert (shown["fabric"], shown["fabricWhy"]) == ("iwarp", "verbs: no RDMA device here")


def test_what_is_missing_is_shown(auto):
    _, target = auto
    by_fabric = {listener["fabric"]: listener for listener in target.status()["listeners"]}
    assert by_fabric["iwarp"]["up"] and not by_fabric["verbs"]["up"]
    assert "RDMA" in by_fabric["verbs"]["detail"] or "rdma" in by_fabric["verbs"]["detail"]
    assert "verbs (down: " in target.rwctl("status").stdout.decode()


def test_no_configuration_at_all(make, hello):
    """The built-in defaults, but for what keeps two daemons on one machine apart."""
    target = make("b")
    del target.sections["listen default"]["address"], target.sections["listen default"]["fabric"]
    target.configure()
    target.rwctl("reload")
    until(
        lambda: sum(listener["up"] for listener in target.status()["listeners"]) == 2,
        what="both families to be listened on",
    )
    writer = make("a")
    for host in "127.0.0.1", "[::1]", "localhost":
        said = writer.rwctl("write", f"{host}:{target.port}", hello).stdout.decode()
        assert "iwarp" in said
