"""vLLM and Megatron-core in two processes, and as replicas of two in four; see real_scenarios."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import build_served_moe
from tests.processes import run_process

pytest.importorskip("vllm")
pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).with_name("real_scenarios.py")
ROOT = SCRIPT.parents[3]


@pytest.fixture(scope="module")
def model(tiny_moe, tmp_path_factory):
    """Layers, heads and experts that every layout divides."""
    folder = tmp_path_factory.mktemp("model")
    return build_served_moe(tiny_moe, folder, moe_intermediate_size=64, num_key_value_heads=2)


@pytest.fixture(scope="module", params=["colocated", "dedicated", "stages", "shards"])
def found(request, model, tmp_path_factory):
    out = tmp_path_factory.mktemp("real")
    run_process(
        [sys.executable, SCRIPT, model, out, request.param],
        variables={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    one = json.loads((out / "found.json").read_text())[request.param]
    assert "returned" in one, one
    return one["returned"]["0"]


def test_every_prompt_is_answered_once_before_and_after_an_update(found):
    assert [12, 12] == found["answers"]
    assert 36 == found["sequences"]


def test_who_takes_a_request_from_the_shared_queue_changes_no_token(found):
    assert found["same_as_dealt"] is True


def test_the_engine_has_the_log_probs_of_the_trainer_with_its_routes(found):
    assert max(found["gaps"]) < 1e-4


def test_every_replica_has_the_trainers_weights_after_the_update(found):
    installed, sent = found["digests"]

    assert installed == sent
    assert [1] == found["versions"]
    assert found["same_answers"] is False


def test_the_loss_is_seen_for_every_sequence(found):
    assert list(range(12)) == found["rows"]
