"""vLLM inside a world of processes that torchrun started, next to a process group of others."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.trainer import TorchTrainer

pytestmark = [pytest.mark.engines, pytest.mark.timeout(400)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

BASE_MODEL = Path("tasks/training/foundation/base_model")
WORLD = Path(__file__).with_name("serving_world.py")


@pytest.fixture(scope="module")
def expected():
    """Digest and log-probabilities of the updated policy, from transformers."""
    trainer = TorchTrainer(BASE_MODEL)
    tokens = torch.arange(20, 30)
    with torch.no_grad():
        for _, parameter in trainer.weights():
            parameter.mul_(1.02)
        logprobs = trainer._model(input_ids=tokens[None]).logits[0, :-1].log_softmax(1)
    return weight_digest(trainer.weights()), logprobs.gather(1, tokens[1:, None])[:, 0].tolist()


@pytest.fixture(autouse=True)
def _left_by_a_launch_that_was_killed():
    """Shared memory under the name that vLLM gives it in every launch of this shape."""
    left = Path("/dev/shm/-tp:0-[0-1]-cpushm_0")
    left.touch()
    yield
    left.unlink()


@pytest.mark.parametrize("tensor", [1, 2])
def test_ranks_serve_next_to_a_process_group_that_outlives_them(tensor, tmp_path, expected):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    world = ["--nproc-per-node=2", str(WORLD), str(BASE_MODEL), str(tensor), str(tmp_path)]
    done = subprocess.run(
        [*launcher, *world],
        env=os.environ | {"PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    first, second = (json.loads((tmp_path / rank).read_text()) for rank in "01")

    digest, logprobs = expected
    assert digest == first["digest"] == second["digest"]
    assert logprobs == pytest.approx(first["probe"], abs=1e-4)
    assert np.allclose(first["probe"], second["probe"], atol=1e-5)
    assert 3.0 == first["sum"] == second["sum"]
    for when in ("before", "after"):
        assert 9 == len(first[when])
        assert second[when] == {key: first[when][key] for key in second[when]}
    assert first["before"] != first["after"]
