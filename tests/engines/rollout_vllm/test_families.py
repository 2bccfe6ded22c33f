"""Every family in vLLM: routes, log-probabilities and weight sync, against the trainer here."""

# ruff: noqa: E402, the skip stands before what needs vLLM
import importlib.util
import json
import warnings

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

pytestmark = pytest.mark.engines
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from data_schemas.machine_settings import LayoutSettings
from tasks.algorithms.digests import weight_digest
from tasks.algorithms.routing import check_trace
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tests.engines.families import CONFIGS, ROUTED, add_mtp_layer, write_family

WIDE = {"hidden_size": 128, "head_dim": 32}
"""What vLLM's attention and experts need without a GPU."""
LAYOUT = LayoutSettings(rollout_memory=0.4)
SERVED = (*(name for name in ROUTED if name != "deepseek_v3"), "llama", "llama3")
"""Dense ones last: vLLM makes its groups for experts with the first model of a process."""
SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)


def name_class(folder):
    """Name the class in config.json, as every published file does: vLLM generates by it."""
    config = json.loads((folder / "config.json").read_text())
    if "architectures" not in config:
        model = AutoModelForCausalLM.from_pretrained(folder)
        config["architectures"] = [type(model).__name__]
        (folder / "config.json").write_text(json.dumps(config))


def write_served(case, tokenizer, folder):
    """Write a family as published, ' with prediction': its layer behind the last, too."""
    name, _, prediction = case.partition(" with ")
    changes = WIDE | ({"num_nextn_predict_layers": 1} if prediction else {})
    write_family(name, tokenizer, folder, **changes)
    name_class(folder)
    if prediction or "num_nextn_predict_layers" in CONFIGS[name]:
        add_mtp_layer(folder)
    return folder


@pytest.fixture(scope="module", params=["qwen3_moe mixed with prediction", *SERVED])
def served(request, served_moe, tmp_path_factory):
    folder = write_served(request.param, served_moe, tmp_path_factory.mktemp("served"))
    engine = VllmRolloutEngine(folder, layout=LAYOUT)
    yield engine, folder
    engine.close()


def logprobs(trainer, tokens):
    with torch.inference_mode():
        logits = trainer._model(input_ids=torch.from_numpy(tokens.astype(np.int64))[None]).logits
    chosen = torch.from_numpy(tokens.astype(np.int64))[1:, None]
    return logits[0, :-1].log_softmax(1).gather(1, chosen)[:, 0].numpy()


def largest_gap(engine, trainer):
    draw = np.random.default_rng(0)
    tokens = [draw.integers(0, 250, length).astype(np.int32) for length in (5, 33)]
    return max(
        np.abs(found - logprobs(trainer, row)).max()
        for row, found in zip(tokens, engine.score_logprobs(tokens), strict=True)
    )


def test_what_it_draws_has_the_trainers_probabilities_and_routes(served):
    engine, folder = served
    trainer = TorchTrainer(folder)
    request = Request("p", np.arange(20, 32, dtype=np.int32), 4)

    rollouts = list(engine.generate([request], SAMPLING))

    assert 4 == len(rollouts)
    for rollout in rollouts:
        tokens = np.concatenate([rollout.prompt_tokens, rollout.response_tokens])
        expected = logprobs(trainer, tokens)[len(rollout.prompt_tokens) - 1 :]
        assert np.abs(expected - rollout.logprobs).max() < 1e-4
        if engine.num_experts:
            check_trace(rollout.trace, len(tokens), engine.num_experts)


def test_weights_of_a_trainer_arrive_and_are_computed_with(served):
    engine, folder = served
    trainer = TorchTrainer(folder)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.add_(torch.randn(tensor.shape, generator=generator) * 0.02)
    assert largest_gap(engine, trainer) > 1e-3

    digest = engine.load_weights(trainer.weights(), version=1)

    assert weight_digest(trainer.weights()) == digest
    assert largest_gap(engine, trainer) < 1e-4


def test_a_process_of_its_own_opens_what_is_registered_here(served_moe, tmp_path):
    folder = write_served("ling mini 2", served_moe, tmp_path)
    engine = VllmRolloutEngine(folder, layout=LayoutSettings(dedicated_rollout_gpus=1))
    try:
        assert largest_gap(engine, TorchTrainer(folder)) < 1e-4
    finally:
        engine.close()
