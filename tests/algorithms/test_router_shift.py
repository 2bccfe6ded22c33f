"""RSPO's router shift, worked by hand."""

import math

import numpy as np
import pytest
import torch

from data_schemas.rl_settings import LossSettings, RLSettings
from data_schemas.routing import Routing
from tasks.algorithms.losses.surrogate import sequence_mean_weights, unclipped
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.router_shift import SHIFT, chosen_scores, log_shift
from tasks.engines.protocols import TokenBatch
from tasks.errors import SettingsError
from tasks.rl.objective import UpdateLoss
from tests.algorithms.signals import terms_of

TERM = {"kind": "tasks/lab/terms/router_shift.py:RouterShift", "least": 0.8}

# Two tokens, two layers, two experts.
OLD_RLK = torch.tensor([[[0.5, 0.3], [0.4, 0.35]], [[0.6, 0.2], [0.45, 0.3]]]).log()
NEW_RLK = torch.tensor([[[0.48, 0.31], [0.42, 0.33]], [[0.3, 0.4], [0.2, 0.45]]]).log()


def test_gamma_is_the_mean_change_of_the_scores_of_the_old_experts():
    gamma_R = log_shift(NEW_RLK, OLD_RLK).exp()

    assert [0.955701, 0.521695] == pytest.approx(gamma_R.tolist(), abs=2e-6)
    assert [1.0, 1.0] == log_shift(OLD_RLK, OLD_RLK).exp().tolist()


@pytest.mark.parametrize(("advantage", "mean"), [(1.0, 0.811211), (-1.0, 0.841428)])
def test_the_ratio_is_multiplied_before_it_is_clipped(advantage, mean):
    """Token log-ratios 0.1 and -0.25; the floor 0.8 holds the second gamma, the clip is 0.4."""
    mask_NT = torch.ones(1, 2, dtype=torch.bool)
    settings = LossSettings(kind="gmpo", clip_low=0.4, clip_high=0.4)
    columns = {
        "old_logprobs": torch.zeros(1, 2),
        "advantages": torch.full((1, 2), advantage),
        SHIFT: log_shift(NEW_RLK, OLD_RLK)[None],
        **unclipped(mask_NT, sequence_mean_weights(mask_NT)).columns(),
    }
    batch = TokenBatch(mask_NT.long(), torch.tensor([2]), mask_NT, None, columns)
    logprobs_NT = torch.tensor([[0.1, -0.25]], requires_grad=True)

    value, counts = UpdateLoss(settings, 1.0, terms_of(TERM))(logprobs_NT, batch)

    assert -advantage * mean == pytest.approx(float(value.detach()), abs=2e-6)
    assert 0.955701 + 0.8 == pytest.approx(counts["router_shift"], abs=2e-6)
    assert float(advantage < 0) == counts["clipped_falling_tokens"]


def test_scores_are_those_of_all_experts_and_0_without_a_route():
    logits_RE = torch.tensor([[0.0, math.log(2.0), 0.0], [0.0, 0.0, 0.0]])
    experts_RK = torch.tensor([[1, 0], [-1, -1]])

    soft = chosen_scores(logits_RE, experts_RK, Routing(3, 2))
    sigmoid = chosen_scores(logits_RE, experts_RK, Routing(3, 2, score="sigmoid"))

    np.testing.assert_allclose(soft.exp(), [[0.5, 0.25], [1.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(sigmoid.exp(), [[2 / 3, 0.5], [1.0, 1.0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engines": {"trainer": "megatron"}}, "they are on other pipeline stages; use 'torch'"),
        ({"router_replay": "off"}, "router_replay is 'off'; use 'r3' or 'r2'"),
    ],
)
def test_where_the_scores_of_the_same_experts_are_not_known_it_is_refused(changes, reason):
    phase = RLSettings.model_validate({"domains": {"maths": 1}, "terms": [TERM]} | changes)

    with pytest.raises(SettingsError, match=reason):
        require_fit(phase)
