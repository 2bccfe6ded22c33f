import torch

from data_schemas.ledger import GroupOutcome
from data_schemas.rl_settings import LossSettings, PolicyLoss
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.verdicts import response_fault, scored
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.update.batch import build, scalar_advantages


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
    plain = settings.model_copy(update={"loss": LossSettings(kind=PolicyLoss.DR_GRPO)})

    assert [0.75, -0.25, -0.25, -0.25] == scalar_advantages(plain, group)[0].tolist()
    assert 1.7 < scalar_advantages(settings, group)[0, 0]


def test_a_step_without_a_finished_group_is_an_empty_batch(settings):
    batch = build(settings, [])

    assert 0 == batch.num_sequences == len(batch.owners)
    assert (0, 0) == tuple(batch.tokens.tokens_NT.shape)
    assert torch.equal(torch.zeros(0, 4), scalar_advantages(settings, []))
