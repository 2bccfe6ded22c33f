"""Replay the same step (rollouts, log-probs) under another loss.

Clip ranges are those of the loss's paper, because they are not comparable between losses.
The weight of a token is |d objective / d log-prob|: its advantage times its share of the mean, and
0 where it is clipped. Letters: N sequences, T tokens.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from data_schemas.machine_settings import merged_over
from data_schemas.rl_settings import LossSettings, RLSettings
from tasks.algorithms.advantages import table as advantages
from tasks.algorithms.losses import table
from tasks.algorithms.losses.protocol import Loss
from tasks.rl.replay.recompute import StepRepetition, repeat, total
from tasks.rl.step_snapshot import StepSnapshot


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of a loss on a step."""

    loss: str
    objective: float
    """Sum over the updates."""
    clip_share: float
    tokens: int
    """Tokens with a non-zero gradient."""
    weight: float
    """Sum of all tokens' weights."""
    domains: Mapping[str, float]
    """Share of the weight."""
    outcomes: Mapping[str, float]
    cosine: float
    """Cosine of the signed token weights with those of the recorded step; 0 if either is zero."""


def with_loss(settings: RLSettings, kind: str) -> RLSettings:
    """Change the loss, to its paper's settings; the step's own loss keeps its settings."""
    values = merged_over(settings.loss, {"kind": kind})
    return settings.model_copy(update={"loss": LossSettings.model_validate(values)})


def compare_losses(snapshot: StepSnapshot, kind: str) -> tuple[Effect, Effect]:
    """Measure the step as recorded and under another loss.

    Raises:
        DataError: the settings would train sequences whose log-probs the snapshot lacks.
    """
    own = repeat(snapshot, snapshot.settings)
    settings = with_loss(snapshot.settings, kind)
    other = repeat(snapshot, settings)
    return (
        effect(snapshot, own, own, _name(snapshot.settings)),
        effect(snapshot, other, own, _name(settings)),
    )


def effect(snapshot: StepSnapshot, step: StepRepetition, own: StepRepetition, name: str) -> Effect:
    """Summarise a repeated step."""
    weight_N = step.gradient_NT.abs().sum(dim=1).double()
    domains: dict[str, float] = {}
    outcomes: dict[str, float] = {}
    whole = float(weight_N.sum())
    for (index, _), weight in zip(step.outputs.batch.owners, weight_N.tolist(), strict=True):
        entry, share = snapshot.groups[index], weight / whole if whole else 0.0
        domain = entry.group.problem.domain.value
        domains[domain] = domains.get(domain, 0.0) + share
        outcomes[entry.outcome.value] = outcomes.get(entry.outcome.value, 0.0) + share
    tokens = total(step.calls, "tokens")
    return Effect(
        loss=name,
        objective=-sum(float(call.value) for call in step.calls),
        clip_share=total(step.calls, "clipped_tokens") / max(1.0, tokens),
        tokens=int((step.gradient_NT != 0).sum()),
        weight=whole,
        domains=domains,
        outcomes=outcomes,
        cosine=_cosine(step.gradient_NT, own.gradient_NT),
    )


def _cosine(left_NT: torch.Tensor, right_NT: torch.Tensor) -> float:
    left, right = left_NT.double().flatten(), right_NT.double().flatten()
    size = float(left.norm() * right.norm())
    return float(left @ right) / size if size else 0.0


def _name(settings: RLSettings) -> str:
    widths = table.find(settings.loss).clip_range
    signed = [f"-{widths[0]:g}", f"+{widths[1]:g}"] if widths else []
    parts = ", ".join([*signed, *_estimator(settings)])
    return f"{settings.loss.kind} ({parts})" if parts else settings.loss.kind


def _estimator(settings: RLSettings) -> list[str]:
    """Name the estimator of the advantages where it is not that of most losses."""
    name = advantages.name_of(settings)
    return [] if name == Loss.advantage else [name]
