"""A phase whose replicas share a queue, killed and resumed; see killed_in_team.py."""

import json
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

pytestmark = [pytest.mark.attack, pytest.mark.slow, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).with_name("killed_in_team.py")


@pytest.fixture(scope="module")
def found(tiny_moe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    run_process(
        [sys.executable, SCRIPT, tiny_moe, folder],
        variables={"PYTHONPATH": str(SCRIPT.parents[2]), "OMP_NUM_THREADS": "1"},
    )
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(params=["whole responses", "segments", "free-running", "one step off"])
def one(found, request):
    return found[request.param]


def test_a_team_killed_in_rollouts_and_weight_syncs_ends_in_the_same_bytes(one):
    # Every fault struck: the phase was not at its end.
    assert max(one["newest"].values()) < 4
    assert one["outcomes"]["whole"] == one["outcomes"]["faults"]


def test_faults_strike_at_the_step_that_they_name(found):
    assert {
        "all in the first rollouts": 0,
        "a worker in rollouts": 1,
        "the controller in rollouts": 1,
        "all in a weight sync": 1,
        "all in later rollouts": 2,
    } == found["whole responses"]["newest"]


def test_a_team_killed_at_random_times_ends_in_the_same_bytes(found):
    one = found["segments"]

    assert one["outcomes"]["whole"] == one["outcomes"]["at random"], one["waits_s"]


def test_a_team_with_a_worker_that_stops_in_a_weight_sync_fails_and_resumes_to_the_same_bytes(
    found,
):
    one = found["segments"]

    assert 1 == one["stopped"]
    assert one["outcomes"]["whole"] == one["outcomes"]["stopped"]


def test_which_replica_is_slow_changes_no_byte_of_a_phase(one):
    first, second = one["taken"]

    assert first == second
    # Both replicas took part.
    assert min(map(sum, first)) > 3
    assert one["outcomes"]["whole"] == one["outcomes"]["slow in turn"]
