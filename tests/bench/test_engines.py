"""The benchmark: turns, ratios, and sides that do the same work."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3MoeForCausalLM

from data_schemas.machine_settings import MachineSettings, Precision
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import Sampling
from tasks.engines.select import open_rollout
from tasks.errors import SettingsError
from tests.bench.engines import (
    Load,
    Pace,
    compare_paces,
    endless_copy,
    engine_turn,
    generate_turn,
    parse_arguments,
    random_moe,
    requests_of,
    rollout_speeds,
    speeds_table,
    take_turns,
    training_batch,
    update_speeds,
)
from tests.processes import run_process

LOAD = Load(prompts=2, samples=2, new_tokens=5)


@pytest.fixture(scope="module")
def model(tiny_moe, tmp_path_factory):
    return endless_copy(tiny_moe, tmp_path_factory.mktemp("bench") / "model")


def test_sides_take_turns_in_an_order_that_rotates_and_the_first_round_does_not_count():
    done = []
    sides = {name: lambda number, name=name: done.append((number, name)) or 100 for name in "abc"}

    speeds = take_turns(sides, rounds=2)

    assert [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a")] == done[:6]
    assert [(2, "c"), (2, "a"), (2, "b")] == done[6:]
    assert {"a": 2, "b": 2, "c": 2} == {name: len(each) for name, each in speeds.items()}


def test_ratios_are_taken_round_by_round():
    paces = {
        "embedded": [Pace(100.0, 1000.0), Pace(1000.0, 1000.0), Pace(100.0, 1000.0)],
        "other": [Pace(50.0, 3000.0), Pace(2000.0, 2000.0), Pace(100.0, 4000.0)],
    }

    base, clock = compare_paces(paces, "embedded", by_clock=True)
    _, busy = compare_paces(paces, "embedded", by_clock=False)

    assert (1.0, 1.0, 1.0) == (base.ratio, base.low, base.high)
    assert (100.0, 1.0, 0.5, 2.0) == (clock.tokens_s, clock.ratio, clock.low, clock.high)
    assert (3000.0, 3.0, 2.0, 4.0) == (busy.tokens_cpu_s, busy.ratio, busy.low, busy.high)


def test_every_side_draws_as_many_tokens(model):
    requests = requests_of(LOAD, 200)
    engine = open_rollout(MachineSettings(), model)

    assert 2 * 2 * 5 == engine_turn(engine, requests, LOAD)(0)
    assert 2 * 2 * 5 == generate_turn(model, Precision.FP32, requests, LOAD)(0)


def test_the_copy_ends_a_response_with_padding_only(model, tiny_moe):
    copy, original = load_tokenizer(model), load_tokenizer(tiny_moe)

    assert original.pad_token_id == copy.eos_token_id
    assert original.eos_token_id != copy.eos_token_id


def test_a_model_without_padding_is_refused(tiny_moe, tmp_path):
    folder = endless_copy(tiny_moe, tmp_path / "one")
    (folder / "tokenizer_config.json").write_text("{}")

    with pytest.raises(SettingsError, match="needs a tokenizer with a pad_token"):
        endless_copy(folder, tmp_path / "two")


def test_the_random_model_has_100m_parameters_and_experts_that_vllm_can_update_on_a_cpu():
    config = random_moe()
    with torch.device("meta"):
        size = sum(one.numel() for one in Qwen3MoeForCausalLM(config).parameters())

    assert 90e6 < size < 110e6
    assert (32, 4) == (config.num_experts, config.num_experts_per_tok)
    assert 0 == config.moe_intermediate_size % 32


def test_a_model_is_given_or_made_not_both():
    with pytest.raises(SystemExit):
        parse_arguments(["--random", "--model", "folder"])


def test_a_training_batch_holds_the_rollouts_and_their_routes(model):
    requests = requests_of(LOAD, 200)
    rollouts = list(open_rollout(MachineSettings(), model).generate(requests, Sampling(5, 1.0, 0)))

    batch = training_batch(rollouts)

    first = rollouts[0]
    size = int(batch.lengths_N[0])
    assert 20 == int(batch.response_NT.sum())
    assert np.array_equal(
        np.concatenate([first.prompt_tokens, first.response_tokens]), batch.tokens_NT[0, :size]
    )
    assert np.array_equal(first.trace.experts_TLK, batch.experts_NTLK.of_sequences[0])


@pytest.mark.skipif(find_spec("vllm") is not None, reason="Megatron wants a process of its own")
def test_what_is_installed_here_is_compared_and_shown(model):
    speeds = rollout_speeds(model, Precision.FP32, LOAD, rounds=1)
    updates = update_speeds(model, LOAD, rounds=1)

    assert {"embedded", "generate"} <= {speed.side for speed in speeds}
    assert "embedded" == updates[0].side
    assert len(speeds) == speeds_table("", speeds).row_count


@pytest.mark.engines
@pytest.mark.parametrize("model", [[], ["--random"]], ids=["shipped", "random"])
def test_real_engines_are_compared_where_they_are_installed(model):
    pytest.importorskip("vllm")
    small = ["--rounds", "1", "--prompts", "2", "--samples", "2", "--tokens", "8"]
    done = run_process(
        [sys.executable, "-W", "ignore", "-m", "tests.bench.engines", *model, *small],
        cwd=Path(__file__).parents[2],
    )

    lines = done.stdout.splitlines()
    for side in ("vLLM", "generate", "Megatron fp32", "Megatron bf16"):
        assert [line for line in lines if line.strip().startswith(side)], side
