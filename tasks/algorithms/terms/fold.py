"""The fold of a step over its terms, before its first update and in every micro-batch.

Letters: N sequences, T tokens.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import torch

from data_schemas.ledgers import TokenUse
from tasks.algorithms.terms.protocol import (
    Auxiliary,
    StepEffect,
    StepSignal,
    Term,
    UpdateEffect,
    UpdateSignal,
)
from tasks.errors import DataError


class ActsOnStep(Protocol):
    """What a step folds over: terms, and a teacher's lesson."""

    def weigh(self, step: StepSignal) -> StepEffect:
        """Act on the tokens of a step, before its first update."""
        ...


def acting_in_order(terms: Sequence[Term], lesson: ActsOnStep | None) -> list[ActsOnStep]:
    """Put a teacher's lesson behind the terms that give advantages, and before all others."""
    giving = [term for term in terms if term.trains_zero_variance]
    others = [term for term in terms if not term.trains_zero_variance]
    return [*giving, *others] if lesson is None else [*giving, lesson, *others]


def fold_step(terms: Iterable[ActsOnStep], step: StepSignal) -> StepSignal:
    """Let the terms act on a step, in their order.

    Raises:
        DataError: two terms hold a column of the same name.
    """
    for term in terms:
        effect = term.weigh(step)
        if twice := step.held.keys() & effect.held.keys():
            raise DataError(
                f"two of the terms hold a column {min(twice)!r}, the second {type(term).__name__}; "
                "give it another name, or leave one of them out"
            )
        weights_NT, kept_NT = effect.weights_NT, effect.kept_NT
        step = replace(
            step,
            advantages_NT=_either(effect.advantages_NT, step.advantages_NT),
            plan=effect.plan or step.plan,
            weights_NT=step.weights_NT if weights_NT is None else step.weights_NT * weights_NT,
            kept_NT=step.kept_NT if kept_NT is None else step.kept_NT & kept_NT,
            held={**step.held, **effect.held},
            uses=_joined(step.uses, effect.uses),
            metrics={**step.metrics, **effect.metrics},
        )
    return step


def fold_update(
    terms: Iterable[Term], update: UpdateSignal
) -> tuple[UpdateSignal, list[UpdateEffect]]:
    """Let the terms act on a micro-batch, in their order; their penalties are not subtracted."""
    effects: list[UpdateEffect] = []
    for term in terms:
        effect = term.adjust(update)
        shift_NT = effect.log_ratio_NT
        update = replace(
            update,
            advantages_NT=_either(effect.advantages_NT, update.advantages_NT),
            ratio_NT=update.ratio_NT if shift_NT is None else update.ratio_NT + shift_NT,
        )
        effects.append(effect)
    return update, effects


def lost_tokens(step: StepSignal, alone_NT: torch.Tensor) -> dict[TokenUse, torch.Tensor]:
    """Mark the response tokens [N, T] without weight in the policy's surrogate, by the reason.

    A token is trained if plan weight x |advantage x weight| > 0, and if sampling could have drawn
    another one. No token has two reasons: with those that are trained, and those without an
    advantage that no term acts on, they are all of the response.

    Args:
        step: after the fold.
        alone_NT: tokens that were alone in the set that they were drawn from.
    """
    signed_NT = step.kept_NT & (step.advantages_NT != 0)
    reasons = [
        (TokenUse.CUT, step.response_NT & ~step.kept_NT),
        (TokenUse.MASKED, signed_NT & (step.weights_NT == 0)),
        *step.uses.items(),
        (TokenUse.DROPPED, signed_NT & (step.plan.weights_NT <= 0)),
        (TokenUse.SINGLETON, signed_NT & alone_NT),
    ]
    uses: dict[TokenUse, torch.Tensor] = {}
    left_NT = step.response_NT
    for use, marks_NT in reasons:
        uses[use] = uses.get(use, torch.zeros_like(left_NT)) | (marks_NT & left_NT)
        left_NT = left_NT & ~marks_NT
    return uses


def auxiliary_of(terms: Iterable[Term]) -> Auxiliary:
    """Add up what the trainer adds to the loss."""
    return sum((term.auxiliary for term in terms), Auxiliary())


def term_metrics(terms: Iterable[Term], updates: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Collect what the terms report of the updates of a step."""
    return {name: value for term in terms for name, value in term.report(updates).items()}


def _either(new_NT: torch.Tensor | None, old_NT: torch.Tensor) -> torch.Tensor:
    return old_NT if new_NT is None else new_NT


def _joined(
    uses: Mapping[TokenUse, torch.Tensor], more: Mapping[TokenUse, torch.Tensor]
) -> dict[TokenUse, torch.Tensor]:
    joined = dict(uses)
    for use, marks_NT in more.items():
        joined[use] = joined[use] | marks_NT if use in joined else marks_NT
    return joined
