"""Which criteria of a rubric a rollout prompt shows: shares by step and sample, and the choice.

Source: RuscaRL (arXiv 2508.16949) and its code; a share is that of the step times that of the
sample. Half a criterion rounds to even, as there.
Differs: the choice is by digest and so repeatable; the published code draws without a seed.
Letters: G rollouts per problem.
"""

import hashlib

from scipy.special import expit

from tasks.lab.recipes.rusca.settings import Curve, ScaffoldSettings, WithinGroup


def share_of_step(step: int, total_steps: int, settings: ScaffoldSettings) -> float:
    """Share of the criteria that a step shows to its first sample.

    Args:
        step: from 1; a phase of one step is at the beginning of the curve.
        total_steps: of the phase.
        settings: the curve.
    """
    x = (step - 1) / max(total_steps - 1, 1)
    match settings.curve:
        case Curve.SIGMOID:
            return float(expit(settings.steepness * (settings.switch_at - x)))
        case Curve.POWER:
            return max(0.0, 1.0 - x) ** settings.steepness
        case Curve.CONSTANT:
            return 1.0


def shares_of_group(group_size: int, within_group: WithinGroup) -> list[float]:
    """Share of the criteria relative to the first sample, [G]; a group of one shows none."""
    if group_size == 1:
        return [0.0]
    match within_group:
        case WithinGroup.LINEAR:
            last = group_size - 1
            return [(last - sample) / last for sample in range(group_size)]
        case WithinGroup.FIRST_HALF:
            return [float(2 * sample < group_size) for sample in range(group_size)]
        case WithinGroup.EVERY:
            return [1.0] * group_size


def scaffold_ratios(
    step: int, total_steps: int, group_size: int, settings: ScaffoldSettings
) -> list[float]:
    """Share of the criteria shown to every sample of a group in a step, [G]."""
    of_step = share_of_step(step, total_steps, settings)
    return [of_step * share for share in shares_of_group(group_size, settings.within_group)]


def scaffold_subset(
    num_criteria: int, ratio: float, *, seed: int, group: str, sample: int
) -> tuple[int, ...]:
    """Choose the criteria that a sample sees, ascending: the first ones in the order of a digest.

    A larger ratio shows what a smaller one shows, and more.
    """

    def digest(criterion: int) -> str:
        return hashlib.sha256(f"{seed}|{group}|{sample}|{criterion}".encode()).hexdigest()

    count = round(num_criteria * ratio)
    return tuple(sorted(sorted(range(num_criteria), key=digest)[:count]))
