"""Our losses against those of TRL's GRPOTrainer, values and gradients, on random batches.

TRL's own loss method runs; what it asks its trainer for is a record of numbers. Conventions:
TRL's `dapo` and `cispo` divide by `num_items_in_batch`, `dr_grpo` by sequences times
`max_completion_length`, and its CISPO cap is the ratio itself, not the distance from 1. Its KL
is k3 without the ratio unless `use_bias_correction_kl`. Advantages agree up to the standard
deviation: TRL's is the sample's, ours the population's.
"""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.algorithms.terms.kl import kl_penalty
from tasks.algorithms.terms.stale import is_stale
from tasks.algorithms.terms.tis import TIS
from tests.algorithms.signals import signal_of

SEQUENCES, TOKENS, LONGEST = 6, 9, 16
AGREEING = {
    "grpo": (LossSettings(kind="grpo"), "grpo", "token"),
    "clip-higher": (LossSettings(kind="grpo", clip_high=0.6), "grpo", "token"),
    "dr_grpo": (LossSettings(kind="dr_grpo"), "dr_grpo", "token"),
    "dapo": (LossSettings(kind="dapo"), "dapo", "token"),
    "cispo": (LossSettings(kind="cispo"), "cispo", "token"),
    "gspo": (
        LossSettings(kind="gspo", clip_low=0.01, clip_high=0.02),
        "grpo",
        "sequence",
    ),
    "sapo": (LossSettings(kind="sapo"), "sapo", "token"),
}


def grpo_trainer():
    """Import TRL where it is used: one of the processes that share the suite needs it."""
    return pytest.importorskip(
        "trl.trainer.grpo_trainer", reason="trl is a test dependency: pip install trl==1.16.0"
    )


def random_batch(seed: int) -> SimpleNamespace:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lengths = torch.randint(1, TOKENS + 1, (SEQUENCES, 1), generator=generator)
    old = -normal(SEQUENCES, TOKENS).abs()
    return SimpleNamespace(
        mask=torch.arange(TOKENS) < lengths,
        old=old,
        new=(old + 0.3 * normal(SEQUENCES, TOKENS)),
        reference=old + 0.3 * normal(SEQUENCES, TOKENS),
        rollout=old + 0.5 * normal(SEQUENCES, TOKENS),
        advantages=normal(SEQUENCES),
    )


def of_trl(batch, settings, loss_type, level, *, beta=0.0, weights=None):
    """Loss and gradient by GRPOTrainer._compute_loss."""
    logprobs = batch.new.clone().requires_grad_()
    cispo = settings.kind == "cispo"
    low, high = table.find(settings).clip_range or (0.2, 0.2)
    trainer = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logprobs, batch.old.abs(), None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=beta,
        epsilon_low=low,
        epsilon_high=1.0 + high if cispo else high,
        loss_type=loss_type,
        use_vllm=weights is not None,
        vllm_importance_sampling_correction=True,
        current_gradient_accumulation_steps=1,
        max_completion_length=LONGEST,
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list)},
        args=SimpleNamespace(
            delta=None,
            use_bias_correction_kl=True,
            steps_per_generation=1,
            sapo_temperature_pos=1.0,
            sapo_temperature_neg=1.05,
        ),
        accelerator=SimpleNamespace(
            num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x
        ),
        model=SimpleNamespace(training=True),
    )
    ids = torch.zeros(SEQUENCES, TOKENS, dtype=torch.int64)
    inputs = {
        "prompt_ids": ids,
        "prompt_mask": torch.ones_like(ids),
        "completion_ids": ids,
        "completion_mask": batch.mask.long(),
        "advantages": batch.advantages,
        "old_per_token_logps": batch.old,
        "ref_per_token_logps": batch.reference,
        "num_items_in_batch": batch.mask.sum(),
        "importance_sampling_ratio": weights,
    }
    loss = grpo_trainer().GRPOTrainer._compute_loss(trainer, None, inputs)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.item(), gradient


def of_ours(batch, settings, *, beta=0.0, weights=None):
    logprobs = batch.new.clone().requires_grad_()
    totals = table.StepTotals(
        SEQUENCES,
        int(batch.mask.sum()),
        LONGEST,
        (torch.arange(SEQUENCES),),
        seed=0,
        responses_per_update=SEQUENCES,
    )
    plan = table.plan(settings, batch.old.abs(), batch.mask, vocabulary=64, step=totals)
    advantages = batch.advantages[:, None] * batch.mask
    weighted = advantages if weights is None else advantages * weights
    objective, _ = table.find(settings).objective(logprobs, batch.old, weighted, plan)
    penalty = kl_penalty(logprobs, batch.old, batch.reference, plan.weights_NT)
    loss = (beta * penalty - objective).sum() / SEQUENCES
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.item(), gradient


def assert_same(ours, theirs):
    """Up to rounding: our weights and ranges are float32."""
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5, abs=1e-7)
    assert torch.allclose(ours[1], theirs[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", AGREEING)
@hypothesis_settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_loss_and_gradient_are_those_of_trl(name, seed):
    batch = random_batch(seed)
    settings, loss_type, level = AGREEING[name]

    assert_same(of_ours(batch, settings), of_trl(batch, settings, loss_type, level))


@hypothesis_settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_luspo_is_that_of_trl_divided_by_the_mean_length(seed):
    batch = random_batch(seed)
    settings = LossSettings(kind="luspo", clip_low=0.01, clip_high=0.02)
    loss, gradient = of_trl(batch, settings, "luspo", "sequence")
    length = float(batch.mask.sum()) / SEQUENCES

    assert_same(of_ours(batch, settings), (loss / length, gradient / length))


@pytest.mark.parametrize("name", ["grpo", "dapo", "dr_grpo"])
def test_the_penalty_for_leaving_the_reference_is_that_of_trl(name):
    batch = random_batch(1)
    settings, loss_type, level = AGREEING[name]

    assert_same(
        of_ours(batch, settings, beta=0.05), of_trl(batch, settings, loss_type, level, beta=0.05)
    )


@pytest.mark.parametrize("name", ["grpo", "dapo", "cispo"])
def test_truncated_importance_sampling_is_that_of_trl(name):
    batch = random_batch(2)
    settings, loss_type, level = AGREEING[name]
    signal = signal_of(batch.mask, rollout_prompt_NT=batch.old, rollout_NT=batch.rollout)
    weights = TIS(cap=1.5).weigh(signal).weights_NT
    theirs = (batch.old - batch.rollout).exp().clamp(max=1.5)  # TRL's token_truncate

    assert_same(
        of_ours(batch, settings, weights=weights),
        of_trl(batch, settings, loss_type, level, weights=theirs),
    )


@hypothesis_settings(max_examples=25)
@given(seed=st.integers(0, 10_000), bound=st.floats(0.0, 1.0))
def test_the_off_policy_mask_of_v32_is_that_of_trl(seed, bound):
    batch = random_batch(seed)
    theirs_N1 = grpo_trainer().GRPOTrainer.get_off_policy_mask(
        batch.advantages[:, None], batch.new, batch.rollout, batch.mask.double(), bound
    )
    advantages = batch.advantages[:, None] * batch.mask

    stale_N = is_stale(batch.new, batch.rollout, advantages, batch.mask, bound)

    assert (theirs_N1[:, 0] == 0.0).tolist() == stale_N.tolist()
