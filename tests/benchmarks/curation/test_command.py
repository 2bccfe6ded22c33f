"""What the benchmark measures."""

import os
import subprocess
import sys

from tasks.benchmarks.curation.command import allocated_kb

PARENT = """
import subprocess, sys
held = b"x" * 2**26
child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
sys.stdin.read()
child.communicate()
"""
CHILD = """
import sys
held = b"x" * 2**26
print("ready", flush=True)
sys.stdin.read()
"""


def test_memory_is_that_of_a_process_and_of_those_it_started():
    code = f"CHILD = {CHILD!r}\n{PARENT}"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"ready\n" == process.stdout.readline()
        both = allocated_kb(process.pid)
        process.communicate()

    assert both > 2 * 2**16
    assert both < 3 * 2**16


def test_a_process_that_ended_has_no_memory():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert 0 == allocated_kb(process.pid)
    assert 0 < allocated_kb(os.getpid())
