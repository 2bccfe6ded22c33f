"""Mismatch between rollout engine and trainer in different precisions, with and without replay.

Prompts are answered once per rollout engine and precision. Each trainer, with the same weights,
scores the responses with its own routes and with the recorded routes of the rollout (R3). R2
replays the trainer's own routes of its first pass: before an update its log-probs equal those
without replay, except for rounding, so its row shows that R2 does not change the mismatch.
Letters: N sequences, T tokens, L MoE layers, K experts per token.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from data_schemas.machine_settings import (
    LayoutSettings,
    MachineSettings,
    Precision,
    RolloutKind,
    TrainerKind,
)
from data_schemas.presets import CPU_SMOKE
from data_schemas.rl_settings import RouterReplay
from data_schemas.rollouts import MISSING_ROUTE, Rollout, ScoredRollout
from data_schemas.rows import Problem
from data_schemas.verdicts import abstain
from tasks.algorithms.intervals import bootstrap_mean
from tasks.algorithms.mismatch import mismatch_anatomy, mismatch_metrics
from tasks.curation import sample_world
from tasks.curation.adapters import table
from tasks.engines.chat import count_prompt_tokens, load_tokenizer, render_prompts
from tasks.engines.protocols import Request, Sampling, TokenBatch, TokenScores, Trainer
from tasks.engines.select import open_rollout, open_trainer
from tasks.rl.batch import token_batch
from tasks.training.foundation.base import shipped_base

SAMPLES = 4
"""Responses per prompt."""
WIDE_NATS = 0.1
"""A difference of log-probs that changes the probability by about a tenth."""


def real_engines(
    rollout: Precision, trainer: Precision, *, fp32_router: bool = False
) -> MachineSettings:
    """vLLM in one precision against Megatron in another."""
    return MachineSettings(
        rollout=RolloutKind.VLLM,
        trainer=TrainerKind.MEGATRON,
        precision=rollout,
        fp32_router=fp32_router,
        layout=LayoutSettings(precision=trainer),
    )


EMBEDDED = (
    MachineSettings(precision=Precision.BF16),
    MachineSettings(precision=Precision.BF16, fp32_router=True),
    MachineSettings(precision=Precision.FP16),
    MachineSettings(precision=Precision.FP16, fp32_router=True),
    MachineSettings(precision=Precision.FP32),
)
REAL = (
    real_engines(Precision.BF16, Precision.BF16),
    real_engines(Precision.BF16, Precision.BF16, fp32_router=True),
    real_engines(Precision.BF16, Precision.FP32),
    real_engines(Precision.BF16, Precision.FP32, fp32_router=True),
    real_engines(Precision.FP16, Precision.FP16),
    real_engines(Precision.FP16, Precision.FP16, fp32_router=True),
    real_engines(Precision.FP16, Precision.FP32),
    real_engines(Precision.FP16, Precision.FP32, fp32_router=True),
    real_engines(Precision.FP32, Precision.FP32),
)
PAIRS = {"embedded": EMBEDDED, "real": REAL}
"""Pairs of engines that a table compares, by name."""


def pairs_here(name: str) -> tuple[MachineSettings, ...]:
    """Return the pairs of a name that this machine can open.

    On a GPU Megatron's layers are Transformer Engine's, which has no attention of packed sequences
    in fp32.
    """
    if not torch.cuda.is_available():
        return PAIRS[name]
    return tuple(
        pair
        for pair in PAIRS[name]
        if (pair.trainer, pair.layout.precision) != (TrainerKind.MEGATRON, Precision.FP32)
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """Trainer against rollout engine, one pair under one replay mode."""

    engines: MachineSettings
    replay: RouterReplay
    tokens: int
    overflow: int
    """Tokens without a finite log-prob in one of the engines, at which the gate stops a step; the
    numbers below are of the others."""
    mean_abs: float
    """Mean |dlogp| of the tokens, nats."""
    low: float
    """95% bootstrap interval over prompts, with equal weight per prompt."""
    high: float
    k3: float
    largest: float
    """|dlogp|, nats."""
    wide_share: float
    """Share of tokens with |dlogp| above WIDE_NATS."""
    extreme_share: float
    """Share of tokens whose probability differs by more than a factor of two."""
    effective_share: float
    route_share: float
    """Share of (token, layer) pairs with other experts."""
    token_share: float
    """Share of tokens with such a pair in any layer; both are 0 under R3."""
    anatomy: Mapping[str, float]
    """Where the difference lies, by the names of `mismatch_anatomy`."""

    @property
    def rollout(self) -> str:
        """Rollout engine and its precision, and that of its routers if it differs."""
        routers = ", routers fp32" if self.engines.fp32_router else ""
        return f"{self.engines.rollout.value} {self.engines.precision.value}{routers}"

    @property
    def trainer(self) -> str:
        """Trainer and its precision, as of the engine; the embedded trainer is always fp32."""
        precision = self.engines.layout.precision
        wide = self.engines.fp32_router and precision is not Precision.FP32
        return f"{self.engines.trainer.value} {precision.value}{', routers fp32' if wide else ''}"


def gaps(
    model: Path,
    problems: Sequence[Problem],
    max_new_tokens: int,
    seeds: Sequence[int],
    pairs: Sequence[MachineSettings] = EMBEDDED,
) -> Iterator[Gap]:
    """Measure every pair of engines with replay off, R2 and R3; yield each as it is known.

    Args:
        model: directory of the policy.
        problems: whose prompts are answered.
        max_new_tokens: of a response.
        seeds: of the sampling; the responses of all seeds are pooled.
        pairs: those with the same rollout engine and precision share their responses.

    Raises:
        SettingsError: an engine is not installed here.
    """
    answered: dict[tuple[RolloutKind, Precision, bool], list[Rollout]] = {}
    for pair in pairs:
        key = _rollout_of(pair)
        if key not in answered:
            answered[key] = answers(model, problems, pair, max_new_tokens, seeds)
        with closing(open_trainer(pair, model)) as trainer:
            yield from _measure_pair(pair, trainer, answered[key])


def _rollout_of(pair: MachineSettings) -> tuple[RolloutKind, Precision, bool]:
    return pair.rollout, pair.precision, pair.fp32_router


def _measure_pair(
    pair: MachineSettings, trainer: Trainer, rollouts: Sequence[Rollout]
) -> list[Gap]:
    batch = token_batch(
        [ScoredRollout(rollout, "", abstain("not_asked"), 0.0) for rollout in rollouts],
        use_routes=True,
    )
    own = _score(trainer, replace(batch, experts_NTLK=None), record_routes=True)
    # R2 is a second pass of the trainer with what it recorded in the first.
    again = _score(trainer, replace(batch, experts_NTLK=own.experts_NTLK))
    theirs = _score(trainer, batch)
    routes_NTL = _differing(own, batch)
    return [
        measure(pair, RouterReplay.OFF, own, batch, rollouts, routes_NTL),
        measure(pair, RouterReplay.R2, again, batch, rollouts, routes_NTL),
        measure(pair, RouterReplay.R3, theirs, batch, rollouts, torch.zeros_like(routes_NTL)),
    ]


def sample_problems(seed: int, count: int) -> list[Problem]:
    """Take the first problems of a sample world that curation would not drop for their length."""
    tokenizer, longest = load_tokenizer(shipped_base()), CPU_SMOKE.curation.max_prompt_tokens
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample_world.generate(seed, folder)
        rows = table.read_file("sample_world", 0, folder / sample_world.PROBLEMS)
        items = (item for row in rows if isinstance(row, list) for item in row)
        problems = (
            item.record
            for item in items
            if isinstance(item.record, Problem)
            and count_prompt_tokens(tokenizer, [item.record.messages], longest)[0] <= longest
        )
        return list({problem.id: problem for problem in islice(problems, count)}.values())


def answers(
    model: Path,
    problems: Sequence[Problem],
    engines: MachineSettings,
    max_new_tokens: int,
    seeds: Sequence[int],
) -> list[Rollout]:
    """Answer every problem with every seed, and record routes."""
    prompts = render_prompts(load_tokenizer(model), [problem.messages for problem in problems])
    requests = [
        Request(problem.id, prompt, SAMPLES)
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    with closing(open_rollout(engines, model)) as engine:
        return [
            rollout
            for seed in seeds
            for rollout in engine.generate(requests, Sampling(max_new_tokens, 1.0, seed))
        ]


def measure(
    engines: MachineSettings,
    replay: RouterReplay,
    scores: TokenScores,
    batch: TokenBatch,
    rollouts: Sequence[Rollout],
    differing_NTL: torch.Tensor,
) -> Gap:
    """Compute one row of the table.

    Args:
        differing_NTL: True where the trainer chose other experts; response tokens' rows only.
    """
    mask_NT, theirs_NT = batch.response_NT, batch.columns["rollout_logprobs"]
    metrics = mismatch_metrics(scores.logprobs_NT, theirs_NT, mask_NT)
    gap_NT = (scores.logprobs_NT - theirs_NT).abs()
    finite_NT = mask_NT & gap_NT.isfinite()
    gap_NT = gap_NT.masked_fill(~finite_NT, 0.0)
    by_prompt: dict[str, list[float]] = {}
    for rollout, gap, finite in zip(
        rollouts, gap_NT.sum(dim=1).tolist(), finite_NT.sum(dim=1).tolist(), strict=True
    ):
        if finite:
            by_prompt.setdefault(rollout.problem_id, []).append(gap / finite)
    means = [sum(values) / len(values) for values in by_prompt.values()]
    interval = bootstrap_mean(means or [0.0], seed=0)
    tokens = int(mask_NT.sum())
    return Gap(
        engines=engines,
        replay=replay,
        tokens=tokens,
        overflow=int(metrics["mismatch/overflow_tokens"]),
        mean_abs=metrics["mismatch/mean_abs_logprob"],
        low=interval.low,
        high=interval.high,
        k3=metrics["mismatch/k3"],
        largest=float(gap_NT.max()),
        wide_share=int((gap_NT > WIDE_NATS).sum()) / max(1, tokens),
        extreme_share=metrics["mismatch/extreme_share"],
        effective_share=metrics["mismatch/effective_share"],
        route_share=int(differing_NTL.sum()) / max(1, tokens * differing_NTL.shape[2]),
        token_share=int(differing_NTL.any(dim=2).sum()) / max(1, tokens),
        anatomy=mismatch_anatomy(scores.logprobs_NT, theirs_NT, mask_NT),
    )


def _score(trainer: Trainer, batch: TokenBatch, *, record_routes: bool = False) -> TokenScores:
    return trainer.score(batch, temperature=1.0, record_routes=record_routes)


def _differing(own: TokenScores, batch: TokenBatch) -> torch.Tensor:
    """Return [N, T-1, L]: True where the experts that predict a response token differ."""
    assert own.experts_NTLK is not None
    recorded_NTLK = batch.padded_routes_NTLK
    assert recorded_NTLK is not None
    recorded_NTLK, native_NTLK = recorded_NTLK[:, :-1], own.experts_NTLK[:, :-1]
    known_NTL = (recorded_NTLK != MISSING_ROUTE).all(dim=3)
    same_NTL = (native_NTLK.sort(dim=3).values == recorded_NTLK.sort(dim=3).values).all(dim=3)
    return ~same_NTL & known_NTL & batch.response_NT[:, 1:, None]
