"""LUSPO: GSPO's sequence ratio, every token of the batch with the same weight.

Source: arXiv 2602.05261. GSPO divides the gradient of a token by the length of its sequence, which
favours short answers where all are right and long ones where all are wrong; here it does not.
Differs: the paper's sum over tokens grows with the responses, and so does the step; it is divided
by the mean length of the step.
Letters: N sequences, T tokens.
"""

from dataclasses import replace

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import gspo
from tasks.algorithms.losses.protocol import Plan, StepTokens
from tasks.algorithms.losses.surrogate import Clipped, batch_mean_weights


def plan(step: StepTokens, settings: LossSettings) -> Plan:
    """GSPO's groups and ranges with DAPO's weights; the paper's widths are 2e-3 and 2.5e-3."""
    return replace(gspo.plan(step, settings), weights_NT=batch_mean_weights(step))


LOSS = Clipped(plan)
