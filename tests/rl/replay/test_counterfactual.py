"""Another loss on the same step, against gradients worked by hand."""

import pytest
import torch

from data_schemas.rl_settings import AdvantageSettings, LossSettings
from tasks.algorithms.losses import table
from tasks.rl.replay.counterfactual import compare_losses, with_loss
from tasks.rl.replay.recompute import repeat


def test_a_step_is_itself_under_its_own_loss(snapshot):
    own, other = compare_losses(snapshot(), "espo")

    assert own == other
    assert pytest.approx(1.0) == own.cosine
    assert pytest.approx(1.0) == sum(own.domains.values())
    assert pytest.approx(1.0) == sum(own.outcomes.values())


def test_another_loss_weighs_the_same_tokens_otherwise(snapshot):
    own, other = compare_losses(snapshot(), "gspo")

    assert "gspo (-0.0003, +0.0004)" == other.loss
    assert own.domains.keys() == other.domains.keys()
    assert 0.0 < other.cosine < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("advantage", "kind", "names"),
    [
        ("of_loss", "dr_grpo", ("grpo (-0.2, +0.2)", "dr_grpo (-0.2, +0.2, centred)")),
        # With an estimator of its own a phase keeps it under every loss.
        ("grpo", "dr_grpo", ("grpo (-0.2, +0.2)", "dr_grpo (-0.2, +0.2)")),
        ("rloo", "gspo", ("grpo (-0.2, +0.2, rloo)", "gspo (-0.0003, +0.0004, rloo)")),
        ("maxrl", "espo", ("grpo (-0.2, +0.2, maxrl)", "espo (-0.2, +0.2, maxrl)")),
    ],
)
def test_a_loss_is_named_with_the_estimator_of_its_advantages(snapshot, advantage, kind, names):
    estimator = AdvantageSettings(kind=advantage)
    compared = compare_losses(snapshot(loss=LossSettings(kind="grpo"), advantage=estimator), kind)

    assert names == tuple(effect.loss for effect in compared)


def test_before_the_first_update_a_token_weighs_its_advantage_over_the_length(snapshot):
    # One update per step: the policy is pi_old, every ratio is 1 and nothing is clipped.
    step = snapshot(num_mini_batches=1, loss=LossSettings(kind="grpo"))
    repeated = repeat(step, step.settings)
    mask_NT = repeated.outputs.batch.tokens.response_NT
    length_N = mask_NT.sum(dim=1, keepdim=True)
    expected_NT = (
        repeated.outputs.signal.advantages_NT / length_N / repeated.outputs.batch.num_sequences
    )

    assert torch.allclose(expected_NT, repeated.gradient_NT, rtol=1e-3, atol=1e-7)


def test_a_loss_brings_the_range_of_its_paper_and_the_own_one_keeps_what_was_set(snapshot):
    settings = snapshot().settings
    wide = settings.model_copy(update={"loss": LossSettings(kind="grpo", clip_low=0.9)})

    assert (3e-4, 4e-4) == table.find(with_loss(wide, "gspo").loss).clip_range
    assert (0.9, 0.2) == table.find(with_loss(wide, "grpo").loss).clip_range
