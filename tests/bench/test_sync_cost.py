"""The model whose weight sync is measured, and that the ways of measuring it differ."""

import json
import sys
from pathlib import Path

import pytest

from tasks.capacity.model_shape import shape_of
from tasks.models.weights import Weights
from tests.bench.sync_cost import write_narrow
from tests.processes import run_process


def test_the_narrow_model_has_the_tensors_of_as_many_experts_and_few_bytes(tmp_path):
    folder = write_narrow(2, 16, tmp_path / "model")
    shape = shape_of(json.loads((folder / "config.json").read_text()))
    with Weights(folder) as weights:
        in_files = list(weights.file_of)

    assert 2 * (3 * 16 + 9) + 3 == len(in_files) == shape.tensors
    assert 8192 == 4 * shape.expert_parameters / 3


@pytest.mark.engines
def test_vllms_update_path_takes_more_of_a_tensor_than_its_loading_alone(tmp_path):
    pytest.importorskip("vllm")
    file = tmp_path / "cost.json"
    small = ["--layers", "2", "--experts", "16", "--rounds", "1", "--out", str(file)]
    run_process(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.sync_cost", *small],
        cwd=Path(__file__).parents[2],
    )

    costs = json.loads(file.read_text())["cpu_s_a_tensor"]
    assert costs["direct"]["thread"] < costs["update"]["thread"] < costs["sync"]["thread"]
