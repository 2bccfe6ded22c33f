"""A phase of RL in two processes, see phase_in_team.py."""

import json
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("phase_in_team.py")


@pytest.fixture(scope="module")
def found(tiny_moe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("phases")
    run_process(
        [sys.executable, SCRIPT, tiny_moe, folder],
        variables={"PYTHONPATH": str(SCRIPT.parents[2]), "OMP_NUM_THREADS": "1"},
    )
    return json.loads((folder / "found.json").read_text())


def test_a_phase_in_two_processes_ends_in_the_same_bytes_as_in_one(found):
    assert found["alone"] == found["whole"]


def test_sigterm_commits_the_step_and_ends_all_processes(found):
    assert "stopped by SIGTERM after committed step" in found["stopped"]


def test_a_phase_goes_on_in_new_processes_where_it_was_cut_off(found):
    assert found["whole"] == found["resumed"]


def test_a_pod_that_is_to_go_commits_the_step_in_flight_and_ends(found):
    told = found["told"]

    assert f"stopped by SIGTERM after committed step {told['newest']}" == told["said"]
    assert told["seconds"] < 29.0  # torchrun would kill what is left after 30
