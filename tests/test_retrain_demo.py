"""Five nights of retraining end as their page says: the command itself, by `make story`.

Once in a folder, and once in S3 with MLflow behind a server, as on a cluster.
"""

import re
import sys
from pathlib import Path

import pytest

from tasks.store.interface import store_at
from tests.buckets import served_bucket
from tests.processes import run_process

pytestmark = [pytest.mark.story, pytest.mark.timeout(1800)]
ROOT = Path(__file__).parents[1]


@pytest.fixture
def in_a_folder(tmp_path):
    return str(tmp_path / "runs")


@pytest.fixture
def in_s3(mlflow_server, monkeypatch):
    """A bucket, and an MLflow server whose models lie there."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server.uri)
    with served_bucket(monkeypatch):
        yield "s3://bucket/runs"


@pytest.mark.parametrize("place", ["in_a_folder", "in_s3"])
def test_two_good_nights_are_promoted_and_people_are_asked_about_two_bad_ones(
    tmp_path, place, request
):
    store = request.getfixturevalue(place)
    pyflyte = Path(sys.executable).with_name("pyflyte")
    command = [
        "run",
        "workflows/retrain_demo.py",
        "retrain_demo",
        "--store",
        store,
    ]
    done = run_process(
        [pyflyte, *command], cwd=ROOT, variables={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    )

    said = re.findall(r"^(Promoted|Refused|Not retrained): (.*)$", done.stdout, re.MULTILINE)
    assert ["Promoted", "Promoted", *["Not retrained"] * 3] == [decision for decision, _ in said]
    poisoned, bad, nothing = (reason for _, reason in said[2:])
    assert "needs people: wednesday.jsonl" in poisoned
    assert "needs people: thursday.jsonl" in bad
    assert nothing.startswith("nothing new in ")
    assert 5 == done.stdout.count("PROVED")
    assert "eachprompt-demo version 3" in done.stdout
    page = done.stdout.split("Page: ")[-1].splitlines()[0]
    assert b"Night 5: nothing" in store_at(page).read_bytes()
