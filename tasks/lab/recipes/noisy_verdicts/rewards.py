"""Rewards and ties of verdicts that err at known rates, at the end of every step.

A recipe on the seam of rewards that are known at the end of a step: advantages of the groups whose
verifier errs are made of corrected rewards, and groups that its errors explain have none.

Limits: pass rates by which prompts are skipped and the curriculum moves, and refills, which end
before, have the verdicts as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rollouts import AgentTurn
from data_schemas.rows import Problem
from tasks.algorithms.advantages import table as advantages
from tasks.errors import SettingsError
from tasks.lab.recipes.noisy_verdicts.formulas import (
    corrected_reward,
    no_contrast_probability,
    noise_range,
)
from tasks.lab.recipes.noisy_verdicts.settings import NoisyVerdictsSettings
from tasks.rl.batch import group_relative
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Memory, Recipe, TurnLimits, TurnRewards


class CorrectedRewards:
    """`AgentTurns` of the solver alone: no turn follows a group."""

    limits = TurnLimits(agents=(), max_input_tokens=1, pipelined=True)

    def __init__(self, settings: NoisyVerdictsSettings, phase: RLSettings) -> None:
        self._settings, self._phase = settings, phase

    def first_turn(self, key: str, root: Problem, memory: Memory) -> None:
        """A prompt of the stream is asked."""

    def next_turns(self, key: str, root: Problem, entry: CollectedGroup) -> list[AgentTurn]:
        """Nothing follows."""
        return []

    def reward(self, groups: Sequence[CollectedGroup], memory: Memory) -> TurnRewards:
        """Correct the rewards of verifiers that err, and take those of ties away."""
        rewarded = [self._rewarded(entry) for entry in groups]
        known = self._settings.error_rates.keys() | self._settings.noise.keys()
        ties = sum(entry.outcome is GroupOutcome.ZERO_VARIANCE_NOISE for entry in rewarded)
        erring = sum(_verifier(entry) in known for entry in groups)
        metrics = {
            "noisy_verdicts/tied_groups": float(ties),
            "noisy_verdicts/known_groups": float(erring),
        }
        return TurnRewards(rewarded, metrics=metrics)

    def _rewarded(self, entry: CollectedGroup) -> CollectedGroup:
        """Return a group with its advantages; one of an exact verifier as it is."""
        scores = [item.verdict.score for item in entry.group.rollouts]
        if entry.outcome is not GroupOutcome.NON_ZERO_VARIANCE:
            return entry
        if self.is_tie(entry):
            none = (0.0,) * len(scores)
            return replace(entry, outcome=GroupOutcome.ZERO_VARIANCE_NOISE, advantages=none)
        rates = self._settings.error_rates.get(_verifier(entry))
        if rates is None:
            return entry
        rewards = [
            None
            if score is None
            else corrected_reward(score, rates.false_positive, rates.false_negative)
            for score in scores
        ]
        (advantages_G,) = group_relative(self._phase, [entry], [rewards]).tolist()
        return replace(entry, advantages=tuple(advantages_G))

    def is_tie(self, entry: CollectedGroup) -> bool:
        """True if verdicts differ by no more than noise or errors of their verifier explain.

        Error rates are those of verdicts 1 and 0: of partial credit they say nothing.
        """
        verdicts = [item.verdict.score for item in entry.group.rollouts]
        scores = [score for score in verdicts if score is not None]
        settings, size, verifier = self._settings, len(scores), _verifier(entry)
        if max(scores) - min(scores) <= noise_range(size, settings.noise.get(verifier, 0.0)):
            return True
        rates = settings.error_rates.get(verifier)
        if rates is None or settings.tie_above == 1.0 or not {0.0, 1.0}.issuperset(scores):
            return False
        return settings.tie_above < no_contrast_probability(
            round(sum(scores)), size, rates.false_positive, rates.false_negative
        )


def open_corrected(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`).

    Raises:
        SettingsError: a correction would change nothing, or blow advantages up.
    """
    noisy, own = NoisyVerdictsSettings.model_validate(settings.model_dump()), phase.advantage.kind
    if noisy.error_rates and advantages.find(phase).divides_by_mean:
        raise SettingsError(
            f"advantage {own!r} divides by the mean score, which recipe.error_rates correct to "
            "about 0 where verdicts are as rare as errors: advantages of 20 and more; use "
            "'centred' or 'rloo', or leave error_rates out"
        )
    if noisy.error_rates and noisy.tie_above == 1.0 and not _changes_advantages(phase):
        raise SettingsError(
            f"recipe.error_rates changes nothing with advantage {own!r}: division by the standard "
            "deviation of the group cancels it. Set advantage to 'centred' or 'rloo', or "
            "recipe.tie_above below 1"
        )
    known = frozenset(noisy.error_rates) | frozenset(noisy.noise)
    return Recipe(turns=CorrectedRewards(noisy, phase), expected_verifiers=known)


def _changes_advantages(phase: RLSettings) -> bool:
    """Return whether rewards that are stretched have other advantages under the estimator."""
    plain_PG = torch.tensor([[1.0, 0.0, 0.0]])
    whole_PG = torch.ones_like(plain_PG, dtype=torch.bool)
    one, two = (
        advantages.estimate(phase, scale * plain_PG, 0.0 * plain_PG, whole_PG)
        for scale in (1.0, 2.0)
    )
    return not torch.allclose(one, two)


def _verifier(entry: CollectedGroup) -> str:
    """Name the verifier of a group, without the digest of its source."""
    return entry.group.problem.verifier.partition("@")[0]
