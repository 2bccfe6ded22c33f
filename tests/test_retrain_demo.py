"""Five nights of retraining end as the README says: the command itself, by `make story`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.story, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[1]


def test_two_good_nights_are_promoted_and_people_are_asked_about_two_bad_ones(tmp_path):
    pyflyte = Path(sys.executable).with_name("pyflyte")
    command = [
        "run",
        "workflows/retrain_demo.py",
        "retrain_demo",
        "--store",
        str(tmp_path / "runs"),
    ]
    done = subprocess.run(
        [pyflyte, *command],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    said = re.findall(r"^(Promoted|Refused|Not retrained): (.*)$", done.stdout, re.MULTILINE)
    assert ["Promoted", "Promoted", *["Not retrained"] * 3] == [decision for decision, _ in said]
    poisoned, bad, nothing = (reason for _, reason in said[2:])
    assert "needs people: wednesday.jsonl" in poisoned
    assert "needs people: thursday.jsonl" in bad
    assert nothing.startswith("nothing new in ")
    assert 5 == done.stdout.count("PROVED")
    assert "eachprompt-demo version 3" in done.stdout
    assert Path(done.stdout.split("Page: ")[1].splitlines()[0]).is_file()
