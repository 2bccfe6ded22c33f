"""Software of a lock file, as a bill of materials lists it."""

import json
import subprocess
import sys

import pytest

from tasks.platform.source import lock_files
from tasks.provenance.release.software import libraries
from tests.packages import ROOT


def test_a_pin_is_a_library_with_its_address():
    lock = b"# made by uv\nPy_YAML==6.0.3\ntorch==2.13.0+cpu ; sys_platform == 'linux'\n"

    assert [
        {
            "type": "library",
            "name": "py-yaml",
            "version": "6.0.3",
            "purl": "pkg:pypi/py-yaml@6.0.3",
        },
        {
            "type": "library",
            "name": "torch",
            "version": "2.13.0+cpu",
            "scope": "optional",
            "purl": "pkg:pypi/torch@2.13.0%2Bcpu",
        },
    ] == libraries(lock)


@pytest.mark.parametrize("lock", lock_files())
def test_every_lock_file_has_a_bill_of_materials(lock):
    listed = libraries(lock_files()[lock].read_bytes())

    assert listed
    assert len({one["purl"] for one in listed}) == len(listed)


def test_the_command_prints_the_bill_or_one_line():
    command = [sys.executable, "-m", "tasks.provenance.release.software"]
    done = subprocess.run([*command, "lock_cpu.txt"], cwd=ROOT, capture_output=True, check=True)
    bill = json.loads(done.stdout)
    assert ("CycloneDX", "lock_cpu.txt") == (
        bill["bomFormat"],
        bill["metadata"]["component"]["name"],
    )
    assert "torch" not in {one["name"] for one in bill["components"]}  # chosen by the index

    refused = subprocess.run([*command, "README.md"], cwd=ROOT, capture_output=True, check=False)
    assert (2, 1) == (refused.returncode, len(refused.stderr.splitlines()))
