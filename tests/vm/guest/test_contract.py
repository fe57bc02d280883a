"""The contract of the seam (src/fabric/fabric.h), over the real device."""

import subprocess

from rwriter import BIN


def test_verbs_keeps_the_contract(device):
    done = subprocess.run(
        [BIN / "contract_verbs", device.address], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
    )
    print(done.stdout.decode())
    assert done.returncode == 0
