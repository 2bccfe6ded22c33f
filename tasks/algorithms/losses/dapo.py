"""DAPO: token ratios, one mean over all tokens of the batch, clip-higher.

Source: arXiv 2503.14476 eq. 8. Dynamic sampling and the over-long penalty, its other
parts, live in tasks/rl/collector.py and tasks/algorithms/penalties.py.
Letters: N sequences, T tokens.
"""

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, batch_mean_weights, clip_plan, token_groups


def plan(step: StepTokens, settings: LossSettings) -> Plan:
    """Make every token its own group; all tokens of the batch weigh the same."""
    return clip_plan(step.mask_NT, token_groups(step.mask_NT), batch_mean_weights(step), settings)


LOSS = Clipped(plan)
