"""A release folder is a model that others open: transformers and vLLM."""

import importlib.util
import warnings
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from data_schemas.artifacts import CheckpointRef
from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision, RolloutKind
from data_schemas.settings import ReleaseSettings
from tasks.engines.protocols import Request, Sampling
from tasks.engines.select import open_rollout
from tasks.provenance.release.release import release
from tests.provenance.release.test_release import Made, evaluation

SETTINGS = MachineSettings(
    rollout=RolloutKind.VLLM,
    precision=Precision.FP32,
    layout=LayoutSettings(dedicated_rollout_gpus=0),
)


def released(tmp_path: Path, model: Path) -> Path:
    """Release a copy of a model directory."""
    made = Made(tmp_path / "store")
    committed = made.commit({path.name: path.read_bytes() for path in model.iterdir()})
    ref = CheckpointRef(
        uri=committed.uri, digest=committed.digest, statement=made.state("rl/two", [], committed)
    )
    candidate = replace(
        made.candidate,
        checkpoint=ref,
        folder=Path(committed.uri),
        progression=[evaluation("rl/two", committed.digest, 0.5)],
    )
    out = tmp_path / "out"
    out.mkdir()
    release(ReleaseSettings(), candidate, str(made.store), out)
    return out


def test_transformers_loads_a_release_and_it_is_the_checkpoint(tmp_path, tiny_moe):
    folder = released(tmp_path, tiny_moe)
    tokens = AutoTokenizer.from_pretrained(folder)("3 + 4 =", return_tensors="pt")
    with torch.no_grad():
        logits = [
            AutoModelForCausalLM.from_pretrained(where)(**tokens).logits
            for where in (folder, tiny_moe)
        ]

    assert torch.equal(*logits)


@pytest.mark.engines
@pytest.mark.timeout(600)
def test_vllm_serves_a_release(tmp_path, served_moe):
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    folder = released(tmp_path, served_moe)
    request = Request("p", np.arange(20, 30, dtype=np.int32), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with closing(open_rollout(SETTINGS, folder)) as engine:
            rollouts = list(engine.generate([request], Sampling(8, 1.0, seed=3)))

    assert [0, 1] == sorted(rollout.sample for rollout in rollouts)
    assert all(len(rollout.response_tokens) > 0 for rollout in rollouts)
