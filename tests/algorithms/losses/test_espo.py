"""ESPO's two rules of clip widths, on policies of several vocabularies and entropies."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import espo, table
from tasks.algorithms.losses.surrogate import RatioMode, TokenPlan, clipped_objective

RELATIVE = LossSettings(clip_scale=0.0, clip_low=0.02, clip_high=0.02)
EQ_8 = LossSettings(clip_scale=0.02)
GRPO = LossSettings(kind="grpo", clip_low=0.02, clip_high=0.02)
VOCABULARIES = (8, 768, 151_936)
TEMPERATURES = (0.25, 0.5, 1.0)
N, T = 64, 25


def entropies(logits_NTV):
    return torch.special.entr(logits_NTV.softmax(dim=2)).sum(dim=2)


def off_policy(seed, *, spread=0.02):
    """Log-ratios of independent tokens after an update; as far off-policy in every policy."""
    return spread * torch.randn(N, T, generator=torch.Generator().manual_seed(seed)).double()


def policy(seed, *, num_tokens=8):
    """Logits whose entropies differ from token to token."""
    generator = torch.Generator().manual_seed(seed)
    sharpness = 0.5 + 3.0 * torch.rand(N, T, 1, generator=generator)
    return (sharpness * torch.randn(N, T, num_tokens, generator=generator)).double()


def clipped(plan: TokenPlan, gap_NT):
    _, found_NT = clipped_objective(
        gap_NT,
        torch.zeros_like(gap_NT),
        torch.ones_like(gap_NT),
        plan,
        ratio_mode=RatioMode.GSPO_TOKEN,
    )
    return found_NT


def decisions(settings, entropy_NT, gap_NT, *, vocabulary):
    mask_NT = torch.ones_like(gap_NT, dtype=torch.bool)
    return clipped(table.plan(settings, entropy_NT, mask_NT, vocabulary=vocabulary), gap_NT)


def share(settings, entropy_NT, gap_NT, *, vocabulary=768):
    return float(decisions(settings, entropy_NT, gap_NT, vocabulary=vocabulary).double().mean())


@given(seed=st.integers(0, 10_000), extra=st.integers(1, 40))
def test_a_larger_or_relabelled_vocabulary_changes_no_decision_of_the_relative_rule(seed, extra):
    logits_NTV, gap_NT = policy(seed), off_policy(seed + 1)
    unused = logits_NTV.new_full((N, T, extra), -torch.inf)
    wide_NTV = torch.cat([logits_NTV, unused], dim=2)
    order_V = torch.randperm(8 + extra, generator=torch.Generator().manual_seed(seed))

    expected, *found = (
        decisions(RELATIVE, entropies(logits), gap_NT, vocabulary=logits.shape[2])
        for logits in (logits_NTV, wide_NTV, wide_NTV[:, :, order_V])
    )
    for other in found:
        assert torch.equal(expected, other)


@given(seed=st.integers(0, 10_000), doublings=st.integers(-12, 12))
def test_entropies_times_a_number_change_no_decision_of_the_relative_rule(seed, doublings):
    entropy_NT, gap_NT = entropies(policy(seed)), off_policy(seed + 1)

    assert torch.equal(
        decisions(RELATIVE, entropy_NT, gap_NT, vocabulary=768),
        decisions(RELATIVE, 2.0**doublings * entropy_NT, gap_NT, vocabulary=768),
    )


def test_eq_8_clips_more_the_larger_the_vocabulary_and_the_relative_rule_does_not():
    entropy_NT, gap_NT = entropies(policy(0)), off_policy(1)
    shares = {
        rule: [share(settings, entropy_NT, gap_NT, vocabulary=size) for size in VOCABULARIES]
        for rule, settings in (("eq. 8", EQ_8), ("relative", RELATIVE))
    }

    assert pytest.approx([0.013, 0.288, 0.466], abs=0.01) == shares["eq. 8"]
    assert [shares["relative"][0]] * 3 == shares["relative"]
    assert 0.2 == pytest.approx(shares["relative"][0], abs=0.01)


def test_eq_8_clips_more_the_lower_the_temperature_and_the_relative_rule_hardly_does():
    """Policies as far off-policy, with mean entropies of 0.8, 1.6 and 2.7 nats."""
    gap_NT, logits_NTV = off_policy(1), policy(0, num_tokens=64)
    found = [entropies(logits_NTV / temperature) for temperature in TEMPERATURES]
    eq_8, relative = (
        [share(settings, entropy_NT, gap_NT) for entropy_NT in found]
        for settings in (EQ_8, RELATIVE)
    )
    tokens = table.plan(GRPO, found[0], torch.ones(N, T, dtype=torch.bool), vocabulary=64)

    assert pytest.approx([0.82, 1.65, 2.74], abs=0.01) == [float(one.mean()) for one in found]
    assert pytest.approx([0.431, 0.288, 0.078], abs=0.01) == eq_8
    assert pytest.approx([0.338, 0.275, 0.247], abs=0.01) == relative
    assert 0.179 == pytest.approx(float(clipped(tokens, gap_NT).double().mean()), abs=0.01)


def test_the_same_number_of_nats_on_every_entropy_does_change_the_relative_rule():
    """Where every token has as many synonyms; eq. 8 changes too, towards clipping nothing."""
    entropy_NT, mask_NT = entropies(policy(0)), torch.ones(N, T, dtype=torch.bool)
    once, split, limit = (
        table.plan(RELATIVE, entropy_NT + math.log(synonyms), mask_NT, vocabulary=8)
        for synonyms in (1, 10, 1e12)
    )

    assert not torch.allclose(once.clip_low_NT, split.clip_low_NT, rtol=0.1)
    sizes_NT = torch.where(limit.groups_NT == espo.HIGH, 5, 20)
    assert 5 * N == int((limit.groups_NT == espo.HIGH).sum())
    assert torch.allclose(0.02 / sizes_NT.double().sqrt(), limit.clip_low_NT, rtol=0.05)
