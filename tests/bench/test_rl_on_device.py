"""The parts of a step on a device, on a machine of which the test is the clock and the memory."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch

from data_schemas.machine_settings import LayoutSettings, MachineSettings, Precision, TrainerKind
from tasks.capacity.model_shape import shape_of
from tasks.capacity.plan import read_shape
from tasks.engines.select import require_fit
from tasks.lab.simulator.rates import forward_flops
from tasks.lab.study.mismatch.numerics import pairs_here
from tasks.models.model_folder import SHIPPED
from tests.bench import rl_minutes
from tests.bench.comparisons import THRESHOLDS, Outcome, Part, read_comparisons
from tests.bench.engines import Load, endless_copy, random_moe, requests_of, trainers_here
from tests.bench.first_gpu import SLICES
from tests.bench.rl_on_device import (
    LARGE,
    Machine,
    all_parts,
    budget_bytes,
    engines_of,
    plain_part,
    report,
    step_parts,
    vllm_bench,
)

LOAD = Load(prompts=2, samples=3, new_tokens=4)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return endless_copy(SHIPPED, tmp_path_factory.mktemp("endless") / "model")


def machine() -> Machine:
    """Every part takes two seconds; the first allocates 100 bytes, the second 200, and so on."""
    seconds, peaks = count(0.0, 2.0), iter(range(0, 10_000, 100))
    peak = [0]

    def reset() -> None:
        peak[0] = next(peaks)

    next(peaks)
    return Machine(1e9, seconds.__next__, reset, lambda: peak[0], lambda: 30)


@pytest.fixture(scope="module")
def parts(model) -> dict[str, Part]:
    return {one.part: one for one in step_parts(MachineSettings(), model, LOAD, 1, machine())}


def test_a_step_has_its_parts_in_order_with_speed_and_peak(parts):
    assert ["rollouts", "old_logprobs", "update", "weight_sync"] == list(parts)
    assert [100, 170, 270, 370] == [one.peak_bytes for one in parts.values()]
    assert (24, 2.0, 12.0) == (
        parts["rollouts"].tokens,
        parts["rollouts"].seconds,
        parts["rollouts"].tokens_s,
    )


def test_the_update_has_its_share_of_the_peak(parts, model):
    update = parts["update"]
    mean = update.tokens / 6

    whole = 3 * forward_flops(read_shape(model), mean) * update.tokens / 2.0 / 1e9
    rows = update.mfu / whole * update.tokens
    prompts = sum(len(one.prompt_tokens) for one in requests_of(LOAD, 100))
    once = update.tokens - (LOAD.samples - 1) * prompts
    assert rows == pytest.approx(round(rows))
    assert once - 16 <= round(rows) <= once  # of 24 tokens of answers, few are alike
    assert [None] * 3 == [one.mfu for name, one in parts.items() if name != "update"]


def test_the_update_is_compared_with_its_budget(parts, model):
    bytes_of = budget_bytes(MachineSettings(), model, LOAD)

    # fp32 weights, gradients and two moments, and activations on top.
    assert bytes_of["update"] > 16 * read_shape(model).parameters
    assert bytes_of["update"] == parts["update"].budget_bytes
    assert parts["rollouts"].budget_bytes is None


def test_an_unknown_gpu_has_no_share_of_a_peak(model):
    unknown = replace(machine(), peak_flops=None)
    parts: Iterator[Part] = step_parts(MachineSettings(), model, LOAD, 1, unknown)

    assert [None] * 4 == [one.mfu for one in parts]


def test_the_same_load_is_rolled_out_by_the_library_alone(model):
    plain = plain_part(MachineSettings(), model, LOAD, 1, machine())

    assert ("plain", 24, 12.0) == (plain.part, plain.tokens, plain.tokens_s)


def test_a_part_that_fails_leaves_what_needs_it_not_measured(capsys):
    def broken() -> Iterator[Part]:
        yield Part("rollouts", 24, 2.0, 12.0)
        yield Part("update", 24, 2.0, 12.0, peak_bytes=104, budget_bytes=100)
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        report(broken())

    found = {one.comparison: one.outcome for one in read_comparisons(capsys.readouterr().out)}
    others = dict.fromkeys(THRESHOLDS, Outcome.NOT_MEASURED)
    assert others | {"update: peak memory to make budget": Outcome.MET} == found


@pytest.mark.engines
def test_megatrons_own_loop_takes_a_step_on_the_same_batch(model, capsys):
    layout = LayoutSettings(precision=Precision.BF16)
    engines = MachineSettings(trainer=TrainerKind.MEGATRON, layout=layout)

    report(all_parts(engines, model, LOAD, 1, machine()))

    out = capsys.readouterr().out
    loop, plain = (json.loads(line) for line in out.splitlines()[4:6])
    assert ("megatron_loop", 2.0, 470) == (loop["part"], loop["seconds"], loop["peak_bytes"])
    assert "plain" == plain["part"]
    ratios = {one.comparison: one.ratio for one in read_comparisons(out)}
    assert 1.0 == ratios["update: seconds to Megatron's own loop"]
    assert 270 / 470 == ratios["update: peak memory to Megatron's own loop"]
    assert ratios["rollouts: tokens/s to vllm bench throughput"] is None


def test_vllms_benchmark_is_asked_for_the_same_number_of_tokens(tmp_path):
    asked = []

    def bench(command) -> None:
        asked.extend(command)
        Path(command[command.index("--output-json") + 1]).write_text(
            json.dumps({"elapsed_time": 4.0})
        )

    assert Part("vllm_bench", 24, 4.0, 6.0) == vllm_bench(tmp_path, LOAD, 0.3, bench)
    expected = {
        "--num-prompts": "6",
        "--model": str(tmp_path),
        "--gpu-memory-utilization": "0.3",
    }
    assert expected == {name: asked[asked.index(name) + 1] for name in expected}


def test_the_large_model_has_the_size_that_is_said():
    shape = shape_of(random_moe(**LARGE).to_dict())

    assert (1.8, 0.37) == (
        round(shape.parameters / 1e9, 1),
        round(shape.active_parameters / 1e9, 2),
    )


def test_no_slice_asks_of_one_gpu_what_cuda_refuses(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    asked = {
        "tests.bench.engines": tuple(trainers_here().values()),
        "tests.bench.rl_minutes": (rl_minutes.engines_of("real"),),
        "tests.bench.rl_on_device": (engines_of("real"),),
        "workflows/lab/mismatch.py": pairs_here("real"),
    }
    programs = [one for one in SLICES if one.tier > 1 and "pytest" not in one.command]

    assert [] == [one.name for one in programs if not asked.keys() & set(one.command)]
    for engines in (one for program in asked.values() for one in program):
        require_fit(engines, nodes=1, processes=1)
        layout = engines.layout
        assert (layout.dedicated_rollout_gpus, layout.rollout_memory < 0.9) == (0, True)
        in_fp32 = layout.precision is Precision.FP32
        assert not (in_fp32 and engines.trainer is TrainerKind.MEGATRON), engines
