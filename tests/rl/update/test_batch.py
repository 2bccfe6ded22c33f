import dataclasses

import numpy as np
import pytest
import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import (
    LossSettings,
    MathsReward,
    RouterReplay,
)
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.verdicts import response_fault, scored
from tasks.algorithms.losses.table import LOSSES
from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.rl_zvp import RLZVP
from tasks.engines.protocols import TokenScores
from tasks.plugins import pin
from tasks.rl.batch import build, scalar_advantages
from tasks.rl.groups import CollectedGroup, KeptPrompt
from tasks.rl.objective import first_signal, split
from tests.algorithms.signals import terms_of


def test_sequences_that_cannot_have_a_gradient_never_reach_the_trainer(settings, entry):
    off = settings.model_copy(update={"router_replay": "off"})
    entries = [
        entry([1.0, 0.0, None], GroupOutcome.NON_ZERO_VARIANCE),
        entry([0.5, 0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL),
        entry([1.0, 1.0, None], GroupOutcome.ZERO_VARIANCE_TRAINED),
    ]

    batch = build(off, entries)

    assert [(0, 0), (0, 1), (2, 0), (2, 1)] == batch.owners
    assert (9, 36) == (batch.num_sequences, batch.num_tokens)
    assert [False, False, True, True] == batch.zero_variance_N.tolist()


def test_the_loss_is_divided_by_the_responses_that_there_are_whatever_the_size_of_their_groups(
    settings, entry
):
    groups = [
        entry([1.0, 0.0, 0.0, 1.0], GroupOutcome.NON_ZERO_VARIANCE),
        entry([1.0, 0.0], GroupOutcome.NON_ZERO_VARIANCE, number=1),
    ]

    batch = build(settings, groups)

    assert 6 == len(batch.owners) == batch.num_sequences
    assert 24 == batch.num_tokens


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_trains_on_the_same_rows_by_name_and_by_reference(settings, entry, kind):
    groups = [
        entry([1.0, 0.0, 0.0, 1.0], GroupOutcome.NON_ZERO_VARIANCE),
        entry([0.5, 0.5, 0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL, number=1),
    ]
    model = LOSSES[kind]
    losses = (LossSettings(kind=one) for one in (kind, f"{model.__module__}:{model.__name__}"))

    named, referred = (build(settings.model_copy(update={"loss": loss}), groups) for loss in losses)

    assert named.owners == referred.owners
    assert torch.equal(named.advantages_N, referred.advantages_N)
    assert (8 if model.acts_on_all else 4) == len(named.owners)


@pytest.mark.parametrize(
    "choice",
    [
        *(
            {"terms": terms_of({"kind": kind})}
            for kind in ("kl", "entropy", "balance", "router_z", "token_budget")
        ),
        {"loss": LossSettings(kind="dppo")},  # its penalty is of every token
    ],
)
def test_every_response_is_trained_where_a_term_or_the_loss_acts_on_all(settings, entry, choice):
    chosen = settings.model_copy(update={"router_replay": "off", **choice})
    entries = [
        entry([1.0, 0.0, None], GroupOutcome.NON_ZERO_VARIANCE),
        entry([0.5, 0.5, 0.5], GroupOutcome.ZERO_VARIANCE_PARTIAL),
        entry([1.0, 1.0, None], GroupOutcome.ZERO_VARIANCE_TRAINED),
        entry([None, None, None], GroupOutcome.UNSCORED),
    ]

    batch = build(chosen, entries)

    assert [(place, sample) for place in range(4) for sample in range(3)] == batch.owners
    assert [0, 1] == batch.advantages_N.nonzero()[:, 0].tolist()
    # RL-ZVP has a sign for what has a verdict.
    assert [6, 7] == batch.zero_variance_N.nonzero()[:, 0].tolist()


def test_a_response_that_breaks_its_verifier_gains_nothing_over_a_wrong_one(
    settings, problems, make_rollout
):
    verdicts = [scored(1.0, "correct"), scored(0.0, "wrong"), response_fault("timeout")]
    items = tuple(ScoredRollout(make_rollout(), "", verdict, 0.0) for verdict in verdicts)
    group = CollectedGroup(RolloutGroup(problems[0], items), 0, GroupOutcome.NON_ZERO_VARIANCE)

    _, wrong, broken = scalar_advantages(settings, [group])[0].tolist()

    assert wrong == broken < 0.0


def test_dr_grpo_does_not_divide_by_the_spread(settings, entry):
    group = [entry([1.0, 0.0, 0.0, 0.0], GroupOutcome.NON_ZERO_VARIANCE)]
    plain = settings.model_copy(update={"loss": LossSettings(kind="dr_grpo")})

    assert [0.75, -0.25, -0.25, -0.25] == scalar_advantages(plain, group)[0].tolist()
    assert 1.7 < scalar_advantages(settings, group)[0, 0]


def test_an_environments_tokens_are_in_no_loss_and_in_no_count(settings, problems, make_rollout):
    mask = np.array([True, True, False, False, True])
    rollouts = [make_rollout(sample, 5, sampled=mask) for sample in range(2)]
    items = tuple(
        ScoredRollout(rollout, "", scored(float(rollout.sample), "rule"), 0.0)
        for rollout in rollouts
    )
    group = CollectedGroup(RolloutGroup(problems[0], items), 0, GroupOutcome.NON_ZERO_VARIANCE)
    off = settings.model_copy(update={"router_replay": "off"})

    batch = build(off, [group])

    assert [[False, False, *mask.tolist()]] * 2 == batch.tokens.response_NT.tolist()
    assert 6 == batch.num_tokens
    assert [7, 7] == batch.tokens.lengths_N.tolist()


def test_a_step_without_a_finished_group_is_an_empty_batch(settings):
    batch = build(settings, [])

    assert 0 == batch.num_sequences == len(batch.owners)
    assert (0, 0) == tuple(batch.tokens.tokens_NT.shape)
    assert torch.equal(torch.zeros(0, 4), scalar_advantages(settings, []))


def with_rule(settings, **changes):
    """The settings with Compass-Thinker's reward: +1 and -1."""
    rewards = settings.rewards.model_copy(update={"maths": MathsReward.RULE})
    return settings.model_copy(update={"rewards": rewards} | changes)


def test_signed_rewards_have_twice_the_advantage_where_nothing_normalises(settings, entry):
    group = [entry([1.0, 0.0, 0.0, 0.0], GroupOutcome.NON_ZERO_VARIANCE)]
    plain = with_rule(settings, loss=LossSettings(kind="dr_grpo"))

    assert [1.5, -0.5, -0.5, -0.5] == scalar_advantages(plain, group)[0].tolist()
    assert torch.allclose(
        scalar_advantages(settings, group), scalar_advantages(with_rule(settings), group)
    )


def test_only_verdicts_on_final_answers_are_signed(settings, problems, entry):
    plain = with_rule(settings, loss=LossSettings(kind="dr_grpo"))
    group = entry([1.0, 0.0, None, 0.0], GroupOutcome.NON_ZERO_VARIANCE)
    other = dataclasses.replace(
        group.group, problem=problems[0].model_copy(update={"verifier": "code_tests"})
    )
    mixed = [group, dataclasses.replace(group, group=other)]

    signed, unsigned = scalar_advantages(plain, mixed).tolist()

    assert [2 * one for one in unsigned] == pytest.approx(signed)
    assert 0.0 == signed[2] == unsigned[2]


OWN = """
from data_schemas.verdicts import scored


class Exact:
    signed = {signed}

    def __call__(self, problem, response):
        return scored(float(response == "4"), "exact")
"""


@pytest.mark.parametrize("signed", [True, False])
def test_a_verifier_of_ones_own_that_declares_it_is_paid_minus_one_for_a_wrong_answer(
    settings, problems, entry, tmp_path, monkeypatch, signed
):
    (tmp_path / "exact.py").write_text(OWN.format(signed=signed))
    monkeypatch.chdir(tmp_path)
    verifier = pin("exact.py:Exact")
    plain = with_rule(settings, loss=LossSettings(kind="dr_grpo"))
    group = entry([1.0, 0.0, 0.0, 0.0])
    own = dataclasses.replace(
        group.group, problem=problems[0].model_copy(update={"verifier": verifier})
    )

    (advantages,) = scalar_advantages(plain, [dataclasses.replace(group, group=own)]).tolist()

    assert [0.75 * (1 + signed), *[-0.25 * (1 + signed)] * 3] == advantages


def test_the_signs_of_zero_variance_groups_follow_the_verdicts_under_either_reward(settings, entry):
    for score, sign in ((1.0, 1.0), (0.0, -1.0)):
        group = [entry([score] * 3, GroupOutcome.ZERO_VARIANCE_TRAINED)]
        ruled = with_rule(settings, router_replay=RouterReplay.OFF)
        batch = build(ruled, group)
        entropy_NT = torch.arange(1.0, 1 + batch.tokens.tokens_NT.numel())
        entropy_NT = entropy_NT.reshape(batch.tokens.tokens_NT.shape)
        old = TokenScores(torch.zeros_like(entropy_NT), entropy_NT, None)

        first = first_signal(
            ruled,
            batch,
            (old, old),
            split(ruled, len(batch.owners), 1),
            vocabulary=288,
            step=1,
            reference_NT=None,
        )
        advantages_NT = fold_step([RLZVP()], first).advantages_NT

        assert sign == advantages_NT[batch.tokens.response_NT].sum().sign()
        assert (advantages_NT * sign >= 0.0).all()


def test_every_prompt_counts_once_whatever_the_size_of_its_group(settings, entry):
    groups = [
        entry([1.0, 0.0, 0.0, 1.0], GroupOutcome.NON_ZERO_VARIANCE),
        entry([1.0, 0.0], GroupOutcome.NON_ZERO_VARIANCE, number=1),
    ]

    weights = build(settings, groups).weights_N

    assert [0.75] * 4 + [1.5] * 2 == weights.tolist()
    assert 6 == float(weights.sum())


def test_a_group_weighs_what_its_prompt_was_kept_for(settings, entry):
    groups = [entry([1.0, 0.0], kept=KeptPrompt(0.5, 2.0)), entry([1.0, 0.0], number=1)]

    assert [2.0, 2.0, 1.0, 1.0] == build(settings, groups).weights_N.tolist()
    assert [1.0] * 4 == build(settings, [entry([1.0, 0.0]), entry([1.0, 0.0])]).weights_N.tolist()


def test_groups_of_one_response_have_the_advantages_of_their_recipe(settings, entry):
    alone = [
        dataclasses.replace(entry([1.0], GroupOutcome.NON_ZERO_VARIANCE), advantages=(value,))
        for value in (0.5, -0.5)
    ]

    assert [[0.5], [-0.5]] == scalar_advantages(settings, alone).tolist()
