"""A phase of vLLM and Megatron-core in two processes that are killed; see killed_real_team.py."""

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import build_served_moe
from tests.processes import run_process

pytest.importorskip("vllm")
pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).with_name("killed_real_team.py")


@pytest.mark.parametrize("mode", ["whole responses", "free-running"])
def test_vllm_and_megatron_killed_in_rollouts_and_a_weight_sync_end_in_the_same_bytes(
    tiny_moe, tmp_path, mode
):
    changes = {"moe_intermediate_size": 64, "num_key_value_heads": 2}
    model = build_served_moe(tiny_moe, tmp_path / "model", **changes)
    run_process(
        [sys.executable, SCRIPT, model, tmp_path, mode],
        variables={"PYTHONPATH": str(SCRIPT.parents[2]), "OMP_NUM_THREADS": "1"},
    )
    found = json.loads((tmp_path / "found.json").read_text())

    # Both faults struck in the second step.
    assert [1, 1, 4] == found["newest"]
    assert found["whole"] == found["killed"]
