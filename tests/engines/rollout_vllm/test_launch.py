"""vLLM inside a world of processes that torchrun started, next to a process group of others."""

import importlib.util
import json
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.trainer import TorchTrainer
from tests.processes import run_process

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


@contextmanager
def left_by_a_launch_that_was_killed():
    """Shared memory under the name that vLLM gives it in every launch of this shape."""
    left = Path("/dev/shm/-tp:0-[0-1]-cpushm_0")
    left.touch()
    try:
        yield
    finally:
        left.unlink(missing_ok=True)  # another run beside this one may have


@pytest.fixture(scope="module", params=[1, 2])
def ranks(request, tmp_path_factory):
    """What each of two ranks found: two replicas, or one."""
    out = tmp_path_factory.mktemp("ranks")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    world = ["--nproc-per-node=2", str(WORLD), str(BASE_MODEL), str(request.param), str(out)]
    with left_by_a_launch_that_was_killed():
        done = run_process(
            [*launcher, *world],
            variables={"PYTHONPATH": str(Path.cwd()), "OMP_NUM_THREADS": "1"},
            timeout=380,
            check=False,
        )
    assert 0 == done.returncode, done.stderr[-3000:]
    return [json.loads((out / rank).read_text()) for rank in "01"]


def tokens(answers):
    return {sample: answer[0] for sample, answer in answers.items()}


def test_ranks_serve_next_to_a_process_group_that_outlives_them(ranks, expected):
    first, second = (rank["plain"] for rank in ranks)

    digest, logprobs = expected
    assert digest == first["digest"] == second["digest"]
    assert logprobs == pytest.approx(first["probe"], abs=1e-4)
    assert np.allclose(first["probe"], second["probe"], atol=1e-5)
    assert [3.0, 3.0] == [rank["sum"] for rank in ranks]
    for when in ("before", "after"):
        assert 9 == len(first[when])
        assert tokens(first[when]).items() >= tokens(second[when]).items()
    assert tokens(first["before"]) != tokens(first["after"])


def test_asynchronous_scheduling_changes_no_rollout_of_a_rank(ranks):
    for rank in ranks:
        plain, ahead = rank["plain"], rank["ahead"]

        assert (False, True) == (plain["is_ahead"], ahead["is_ahead"])
        for key in ("before", "after", "digest", "probe"):
            assert plain[key] == ahead[key]


@pytest.mark.parametrize("scheduling", ["plain", "ahead"])
def test_all_ranks_cut_the_same_when_enough_prompts_ended(ranks, scheduling):
    first, second = (rank[scheduling]["cut"] for rank in ranks)

    assert ["p0/0", "p1/0", "p1/1", "p1/2"] == sorted(first)
    assert max(len(tokens(first)[f"p1/{sample}"]) for sample in range(3)) < 12
    assert first == second
