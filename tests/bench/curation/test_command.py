"""What the benchmark measures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.errors import DataError
from tests.bench.curation.command import allocated_kb, main

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


@pytest.mark.slow
def test_what_was_measured_is_shown_if_another_tool_fails(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "gsm8k").mkdir()
    rows = [
        json.dumps({"question": f"One. Is {place} odd?", "answer": f"#### {place}"})
        for place in range(9)
    ]
    (tmp_path / "gsm8k" / "train.jsonl").write_text("\n".join(rows))

    with pytest.raises(DataError, match="rensa on 30 rows ended with 1"):
        main([str(tmp_path), "--sizes", "30", "--python", sys.executable])

    assert "curation" in capsys.readouterr().out
