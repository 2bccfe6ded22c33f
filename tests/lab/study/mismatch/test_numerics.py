"""Two numerics of one policy: what bf16 does, and what replay takes of it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import RouterReplay
from data_schemas.rollouts import Rollout, StopReason
from tasks.engines.chat import load_tokenizer, render_prompts
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.errors import EngineError, SettingsError
from tasks.lab.stages.mismatch import mismatch, show_and_write
from tasks.lab.study.mismatch.drift import NUM_PROBLEMS
from tasks.lab.study.mismatch.numerics import (
    EMBEDDED,
    PAIRS,
    Gap,
    gaps,
    measure,
    pairs_here,
    sample_problems,
)
from tasks.lab.study.mismatch.tables import gaps_markdown
from tasks.training.foundation.base import shipped_base
from tests.processes import run_process


@pytest.mark.slow
def test_bf16_shows_and_what_replays_the_trainers_own_routes_changes_nothing(tiny_moe):
    rows = list(gaps(tiny_moe, sample_problems(0, 3), max_new_tokens=8, seeds=[0]))
    found = {
        (row.engines.precision, row.replay): row for row in rows if not row.engines.fp32_router
    }
    routers = {(row.engines.precision, row.replay): row for row in rows if row.engines.fp32_router}
    bf16_off = found[Precision.BF16, RouterReplay.OFF]

    assert (9, 6) == (len(found), len(routers))
    fp32_routers = routers[Precision.BF16, RouterReplay.OFF]
    assert fp32_routers.k3 != bf16_off.k3
    assert "hf bf16, routers fp32" == fp32_routers.rollout
    assert bf16_off.mean_abs > 10.0 * found[Precision.FP32, RouterReplay.OFF].mean_abs
    assert bf16_off.mean_abs > 3.0 * found[Precision.FP16, RouterReplay.OFF].mean_abs > 0.0
    r2 = found[Precision.BF16, RouterReplay.R2].mean_abs
    assert pytest.approx(bf16_off.mean_abs, rel=1e-4) == r2
    assert bf16_off.route_share == found[Precision.BF16, RouterReplay.R2].route_share
    assert 0.0 == found[Precision.BF16, RouterReplay.R3].route_share
    assert 0.0 == found[Precision.FP32, RouterReplay.OFF].route_share
    for row in rows:
        assert row.low <= row.high
        assert row.largest >= row.mean_abs


@pytest.mark.slow
def test_the_sample_world_gives_the_same_problems_again():
    once, again = sample_problems(3, 5), sample_problems(3, 5)

    assert once == again
    assert 5 == len({problem.id for problem in once})


@pytest.mark.slow
def test_no_problem_of_the_sample_world_is_longer_than_a_model_reads():
    problems = sample_problems(0, NUM_PROBLEMS)  # with one of 1,597 tokens among the first 400

    prompts = render_prompts(load_tokenizer(shipped_base()), [one.messages for one in problems])

    assert 96 >= max(map(len, prompts))


@pytest.mark.engines
def test_vllm_and_megatron_agree_in_fp32_and_replay_hides_what_bf16_does_to_routes(tmp_path):
    pytest.importorskip("vllm")
    small = ["--prompts", "4", "--max_new_tokens", "16", "--seeds", "[0]"]
    run_process(
        [
            *(sys.executable, "-W", "ignore", Path(sys.executable).with_name("pyflyte"), "run"),
            *("workflows/lab/mismatch.py", "mismatch", "--engines", "real"),
            *(*small, "--out", str(tmp_path)),
        ],
        cwd=Path(__file__).parents[4],
    )

    rows = json.loads((tmp_path / "mismatch.json").read_text())
    found = {(row["rollout"], row["trainer"], row["replay"]): row for row in rows}
    modes = 3 * len(PAIRS["real"])
    assert modes == len(found)
    for replay in ("off", "r2", "r3"):
        assert found["vllm fp32", "megatron fp32", replay]["mean_abs"] < 1e-5
        assert found["vllm bf16", "megatron bf16", replay]["mean_abs"] > 1e-5
    assert 0.0 == found["vllm bf16", "megatron fp32", "r3"]["route_share"]
    lines = (tmp_path / "mismatch.md").read_text().splitlines()
    assert 2 * modes == sum(line.startswith("| vllm ") for line in lines)  # two tables


def test_a_pair_that_fails_loses_no_row_of_those_before(tmp_path):
    own = torch.zeros(1, 2)
    batch = TokenBatch(
        tokens_NT=torch.zeros(1, 2, dtype=torch.int64),
        lengths_N=torch.tensor([2]),
        response_NT=torch.ones(1, 2, dtype=torch.bool),
        experts_NTLK=None,
        columns={"rollout_logprobs": own},
    )
    none_NTL = torch.zeros(1, 1, 1, dtype=torch.bool)

    def fail_third() -> Iterator[Gap]:
        for engines in EMBEDDED[:2]:
            scores = TokenScores(own, own, None)
            yield measure(engines, RouterReplay.OFF, scores, batch, [rollout("first")], none_NTL)
        raise EngineError("out of memory")

    with pytest.raises(EngineError, match="out of memory"):
        show_and_write(fail_third(), 1, str(tmp_path))

    rows = json.loads((tmp_path / "mismatch.json").read_text())
    assert ["hf bf16", "hf bf16, routers fp32"] == [row["rollout"] for row in rows]
    lines = (tmp_path / "mismatch.md").read_text().splitlines()
    assert 2 * 2 == sum(line.startswith("| hf bf16") for line in lines)  # two tables


def test_tokens_that_overflow_are_counted_and_left_out_of_the_numbers():
    own = torch.tensor([[0.0, -1.0, -2.0, float("nan")], [0.0, -1.5, -0.5, -1.0]])
    theirs = torch.tensor([[0.0, -1.5, -float("inf"), -1.0], [0.0, -1.0, -0.5, -1.0]])
    response_NT = torch.tensor([[False, True, True, True], [False, True, True, False]])
    batch = TokenBatch(
        tokens_NT=torch.zeros(2, 4, dtype=torch.int64),
        lengths_N=torch.tensor([4, 3]),
        response_NT=response_NT,
        experts_NTLK=None,
        columns={"rollout_logprobs": theirs},
    )
    rollouts = [rollout(problem) for problem in ("first", "second")]
    none_NTL = torch.zeros(2, 3, 1, dtype=torch.bool)

    row = measure(
        EMBEDDED[2], RouterReplay.OFF, TokenScores(own, own, None), batch, rollouts, none_NTL
    )

    assert (5, 2) == (row.tokens, row.overflow)
    assert pytest.approx(1.0 / 3.0) == row.mean_abs  # 0.5, 0.5 and 0.0 nats
    assert (0.25, 0.5) == (row.low, row.high)  # of 0.5 and 0.25, by prompt
    assert 0.5 == row.largest
    assert gaps_markdown([row]).count("| 5 | 2 |") == 1


def rollout(problem):
    none = np.zeros(0, dtype=np.int32)
    return Rollout(problem, 0, none, none, none.astype(np.float32), None, StopReason.END, 0)


def test_engines_of_no_known_name_are_refused():
    with pytest.raises(SettingsError, match="is none of: embedded, real"):
        mismatch(model_folder="", prompts=1, max_new_tokens=1, seeds=[0], engines="fast", out="")


def test_a_gpu_compares_no_pair_that_its_trainer_refuses(monkeypatch):
    assert PAIRS["real"] == pairs_here("real")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    assert {Precision.BF16, Precision.FP16} == {
        pair.layout.precision for pair in pairs_here("real")
    }
    assert PAIRS["embedded"] == pairs_here("embedded")
