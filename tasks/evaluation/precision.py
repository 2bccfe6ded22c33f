"""What another precision of the rollout engine changes: probabilities, experts, problems solved.

The reference, in the precision of the settings, draws one response to every held-out problem; all
precisions then read these tokens, so that differences are paired token by token. A problem with an
environment counts with its first turn. The tokens are drawn at temperature 1: then the mean of
exp(D) - 1 - D, with D = log q - log p, is an unbiased estimate of KL(p | q) a token.
Letters: N responses, T tokens, R response tokens, L MoE layers, E experts, K chosen experts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.arrow import read_table
from data_schemas.machine_settings import Precision
from data_schemas.reports import Comparison, LayerUse, PrecisionReport, PrecisionSlice
from data_schemas.rollouts import Rollout, RouterTrace
from data_schemas.rows import Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE, compare
from tasks.algorithms.mismatch import k3_interval
from tasks.algorithms.routing import disagreement, disagreement_by_layer
from tasks.engines.chat import load_tokenizer, render_prompts
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.engines.select import open_rollout
from tasks.engines.support import in_precision

KINDS = ("language", "domain")
"""Slices of the report."""


@dataclass(frozen=True, slots=True)
class EngineReading:
    """One response as a precision reads it."""

    logprobs_R: NDArray[np.float32]
    experts_RLK: torch.Tensor
    """int16: the choices that predict each response token; empty in a dense model."""


@dataclass(frozen=True, slots=True)
class EngineReadings:
    """All responses as one precision reads them."""

    of_responses: list[EngineReading]
    num_experts: int


def measure(
    settings: EvaluationSettings,
    model: str,
    folder: Path,
    problems: Sequence[Problem],
    scores: Mapping[str, Path],
) -> list[PrecisionReport]:
    """Compare the reference with every other precision.

    Args:
        settings: of the evaluation; their precision is the reference.
        model: its name.
        folder: of its weights.
        problems: that were answered.
        scores: precision -> folder of its evaluation, the reference first.
    """
    reference, *others = scores
    names = [one.id for one in problems]
    prompts = render_prompts(load_tokenizer(folder), [one.messages for one in problems])
    with closing(open_rollout(settings.engines, folder)) as engine:
        requests = [Request(*one, num_samples=1) for one in zip(names, prompts, strict=True)]
        sampling = Sampling(
            max_new_tokens=settings.max_new_tokens,
            temperature=1.0,
            seed=settings.seed,
            record_routes=False,
        )
        drawn = {one.problem_id: one for one in engine.generate(requests, sampling)}
        rollouts = [drawn[name] for name in names]
        before = read(engine, rollouts)
    answers = {name: read_table(path / SAMPLES_FILE, SampleResult) for name, path in scores.items()}
    reports = []
    for name in others:
        engines = in_precision(settings.engines, Precision(name))
        with closing(open_rollout(engines, folder)) as engine:
            after = read(engine, rollouts)
        gains = compare(answers[name], answers[reference], reference, settings)
        reports.append(
            PrecisionReport(
                model=model,
                reference=reference,
                precision=name,
                slices=slices(problems, before, after, {one.suite: one for one in gains}),
                layers=layers(before, after),
            )
        )
    return reports


def read(engine: RolloutEngine, rollouts: Sequence[Rollout]) -> EngineReadings:
    """Let an engine read responses: log-probabilities at temperature 1, and routes."""
    sequences = [np.concatenate([one.prompt_tokens, one.response_tokens]) for one in rollouts]
    logprobs = engine.score_logprobs(sequences)
    traces = _traces(engine, rollouts) if engine.num_experts else {}
    readings = []
    for one, scores in zip(rollouts, logprobs, strict=True):
        length, routes = len(one.response_tokens), torch.zeros(0, 0, 0, dtype=torch.int16)
        if traces:
            trace = traces[one.problem_id]
            assert trace is not None, "routes were asked for"
            routes = torch.from_numpy(trace.experts_TLK[-length:].astype(np.int16))
        readings.append(EngineReading(scores[-length:], routes))
    return EngineReadings(readings, engine.num_experts)


def _traces(engine: RolloutEngine, rollouts: Sequence[Rollout]) -> dict[str, RouterTrace | None]:
    """Let an engine with routers read responses again, and record the experts of every token."""
    # A response without its last token is continued by one: the trace is then that of all tokens
    # that the response was drawn from, whatever is drawn now.
    requests = [
        Request(one.problem_id, one.prompt_tokens, 1, response_tokens=one.response_tokens[:-1])
        for one in rollouts
    ]
    sampling = Sampling(
        max_new_tokens=max(len(one.response_tokens) for one in rollouts),
        temperature=0.0,
        seed=0,
        segment_tokens=1,
    )
    return {one.problem_id: one.trace for one in engine.generate(requests, sampling)}


def slices(
    problems: Sequence[Problem],
    before: EngineReadings,
    after: EngineReadings,
    gains: Mapping[str, Comparison],
) -> tuple[PrecisionSlice, ...]:
    """Measure all responses, then those of every language and domain.

    Tokens without a finite log-probability in either precision are left out.
    """
    members: dict[str, list[int]] = defaultdict(list)
    members["all"] = [*range(len(problems))]
    for kind in KINDS:
        for place in sorted(range(len(problems)), key=lambda row: getattr(problems[row], kind)):
            members[f"{kind}:{getattr(problems[place], kind)}"].append(place)
    found = (
        _slice(suite, rows, before, after, gains.get(suite)) for suite, rows in members.items()
    )
    return tuple(one for one in found if one is not None)


def _slice(
    suite: str,
    rows: Sequence[int],
    before: EngineReadings,
    after: EngineReadings,
    gain: Comparison | None,
) -> PrecisionSlice | None:
    gaps = [
        torch.from_numpy(after.of_responses[row].logprobs_R - before.of_responses[row].logprobs_R)
        for row in rows
    ]
    finite = [gap[gap.isfinite()].double() for gap in gaps]
    kept = [gap for gap in finite if len(gap)]
    if not kept:
        return None
    k3, low, high = k3_interval(
        torch.stack([(torch.expm1(gap) - gap).sum() for gap in kept]),
        torch.tensor([len(gap) for gap in kept], dtype=torch.float64),
    )
    routes = routed_tokens = None
    if before.num_experts:
        native_MLK = torch.cat([after.of_responses[row].experts_RLK for row in rows])
        recorded_MLK = torch.cat([before.of_responses[row].experts_RLK for row in rows])
        routes = disagreement(native_MLK, recorded_MLK)
        other_M = (native_MLK.sort(dim=2).values != recorded_MLK.sort(dim=2).values).any(dim=(1, 2))
        routed_tokens = float(other_M.double().mean())
    return PrecisionSlice(
        suite=suite,
        responses=len(kept),
        tokens=sum(len(gap) for gap in kept),
        k3=k3,
        k3_low=low,
        k3_high=high,
        abs_logprob=float(torch.cat(kept).abs().mean()),
        routes=routes,
        routed_tokens=routed_tokens,
        gain=gain,
    )


def layers(before: EngineReadings, after: EngineReadings) -> tuple[LayerUse, ...]:
    """Compare how often each expert is chosen, by layer; () in a dense model."""
    if not before.num_experts:
        return ()
    recorded_MLK = torch.cat([one.experts_RLK for one in before.of_responses])
    native_MLK = torch.cat([one.experts_RLK for one in after.of_responses])
    change_LE = _shares(native_MLK, before.num_experts) - _shares(recorded_MLK, before.num_experts)
    expert_L = change_LE.abs().argmax(dim=1)
    return tuple(
        LayerUse(
            layer=layer,
            routes=routes,
            moved=float(change_E.abs().sum() / 2),
            expert=int(expert),
            change=float(change_E[expert]),
        )
        for layer, (routes, change_E, expert) in enumerate(
            zip(disagreement_by_layer(native_MLK, recorded_MLK), change_LE, expert_L, strict=True)
        )
    )


def _shares(experts_MLK: torch.Tensor, num_experts: int) -> torch.Tensor:
    """Share of the choices of a layer that each expert has [L, E]; a missing route is none."""
    counts_LE = torch.stack(
        [
            torch.bincount(layer_M[layer_M >= 0], minlength=num_experts)
            for layer_M in experts_MLK.long().transpose(0, 1).flatten(1)
        ]
    )
    return counts_LE.double() / counts_LE.sum(dim=1, keepdim=True).clamp(min=1)
