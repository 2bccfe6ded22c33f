"""Rewards of verdicts that err: corrected, or taken away from what errors explain."""

import dataclasses

import pytest
import torch

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import AdvantageSettings, RLSettings
from data_schemas.rows import Domain
from data_schemas.verdicts import scored
from tasks.errors import SettingsError
from tasks.lab.recipes.noisy_verdicts.settings import NoisyVerdictsSettings
from tasks.rl import step_snapshot
from tasks.rl.batch import scalar_advantages
from tasks.rl.groups import without_problems
from tasks.rl.phase import train
from tasks.rl.recipe import open_recipe
from tasks.rl.replay.recompute import compare

RATES = {"final_answer": {"false_positive": 0.02, "false_negative": 0.01}}
ONE_OF_EIGHT = [1.0] + [0.0] * 7


def rewarded(phase, entries, **changes):
    settings = NoisyVerdictsSettings.model_validate(changes)
    turns = open_recipe(settings, phase).turns
    assert turns is not None
    return turns.reward(entries, {})


def with_verifier(entry, verifier):
    problem = entry.group.problem.model_copy(update={"verifier": verifier})
    return dataclasses.replace(entry, group=dataclasses.replace(entry.group, problem=problem))


def with_advantage(settings, kind):
    return settings.model_copy(update={"advantage": AdvantageSettings(kind=kind)})


@pytest.mark.parametrize(
    ("scores", "is_tie"),
    [
        ([0.71, 0.70, 0.72, 0.71], True),
        ([0.71, 0.70, 0.92, 0.71], False),
        ([0.99, 1.0, 1.0, 1.0, None], True),
    ],
)
def test_scores_that_differ_by_the_noise_of_their_verifier_are_a_tie(
    settings, entry, scores, is_tie
):
    graded = with_verifier(entry(scores), "code_tests@5f3a")

    found = rewarded(settings, [graded, entry(scores)], noise={"code_tests": 0.01})

    noise, contrast = GroupOutcome.ZERO_VARIANCE_NOISE, GroupOutcome.NON_ZERO_VARIANCE
    assert [noise if is_tie else contrast, contrast] == [one.outcome for one in found.groups]
    assert float(is_tie) == found.metrics["noisy_verdicts/tied_groups"]
    assert 1.0 == found.metrics["noisy_verdicts/known_groups"]
    advantages_PG = scalar_advantages(settings, found.groups)
    assert is_tie is not bool(advantages_PG[0].any())
    assert advantages_PG[1].any()


@pytest.mark.parametrize(
    ("scores", "above", "is_tie"),
    [
        (ONE_OF_EIGHT, 0.13, True),  # 13.65 % [the vectors]
        (ONE_OF_EIGHT, 0.14, False),
        (ONE_OF_EIGHT, 1.0, False),
        ([*ONE_OF_EIGHT, None], 0.13, True),
        ([1.0, 1.0, *ONE_OF_EIGHT[2:]], 0.13, False),
        # Of partial credit the rates say nothing.
        ([0.5, *ONE_OF_EIGHT[1:]], 0.13, False),
    ],
)
@pytest.mark.parametrize("advantage", ["rloo", "centred"])
def test_verdicts_that_the_errors_of_their_verifier_explain_are_a_tie(
    settings, entry, scores, above, is_tie, advantage
):
    phase = with_advantage(settings, advantage)

    (found,) = rewarded(phase, [entry(scores)], error_rates=RATES, tie_above=above).groups

    assert is_tie is (found.outcome is GroupOutcome.ZERO_VARIANCE_NOISE)
    assert is_tie is not bool(scalar_advantages(phase, [found]).any())


def test_a_group_without_variance_keeps_its_outcome(settings, entry):
    flat = entry([0.0] * 8, GroupOutcome.ZERO_VARIANCE_TRAINED)

    assert [flat] == rewarded(settings, [flat], error_rates=RATES, tie_above=0.13).groups


def test_rewards_of_a_noisy_verifier_get_the_weight_of_those_of_an_exact_one(settings, entry):
    noisy, phase = entry([1.0, 0.0, None, 0.0]), with_advantage(settings, "centred")
    rates = {"final_answer": {"false_positive": 0.1, "false_negative": 0.2}}

    groups = rewarded(phase, [noisy, with_verifier(noisy, "choice")], error_rates=rates).groups

    corrected, plain = scalar_advantages(phase, groups).tolist()
    assert [2 / 3, -1 / 3, 0.0, -1 / 3] == pytest.approx(plain)
    assert [one / 0.7 for one in plain] == pytest.approx(corrected)


def test_a_phase_is_trained_on_corrected_rewards_and_its_step_is_replayed(
    phase_in, scorer, tmp_path
):
    def judged(problem, response):
        return scored(float((len(response) + len(problem.id)) % 2 == 0), "rule")

    rates = {"final_answer": {"false_positive": 0.1, "false_negative": 0.2}}
    metrics, snapshots = [], []
    for name, settings in (
        ("plain", None),
        ("corrected", NoisyVerdictsSettings.model_validate({"error_rates": rates})),
    ):
        phase = phase_in(tmp_path / name, steps=1, advantage=AdvantageSettings(kind="centred"))
        recipe = open_recipe(settings, phase.settings)
        (record,) = train(dataclasses.replace(phase, recipe=recipe), scorer(judged))
        (path,) = step_snapshot.find_snapshots(phase.state, 1)
        metrics.append(record.report.metrics)
        snapshots.append(step_snapshot.decode(path.read_bytes()))

    assert metrics[1]["noisy_verdicts/known_groups"] > 0
    plain, corrected = (scalar_advantages(one.settings, one.groups) for one in snapshots)
    assert plain.any()
    # No penalties here: what is centred is the score alone.
    assert torch.allclose(plain / 0.7, corrected)
    assert not [one.name for one in compare(snapshots[1]) if one.difference]


@pytest.mark.parametrize(
    ("advantage", "changes", "message"),
    [
        ("of_loss", {"error_rates": RATES}, "standard deviation of the group cancels it"),
        ("maxrl", {"error_rates": RATES}, "divides by the mean score, which recipe.error_rates"),
        ("rloo", {"tie_above": 0.5}, "there are none; set error_rates, or tie_above to 1"),
        ("rloo", {}, "error_rates and noise are both empty"),
        ("rloo", {"noise": {"rubric": 1.5}}, "noise of rubric is 1.5; a standard deviation"),
        (
            "rloo",
            {"error_rates": {"choice": {"false_positive": 0.6, "false_negative": 0.4}}},
            "such verdicts say nothing of a response",
        ),
    ],
)
def test_rates_that_correct_nothing_are_refused(advantage, changes, message):
    phase = RLSettings(domains={Domain.MATHS: 1.0}, advantage=AdvantageSettings(kind=advantage))

    with pytest.raises((ValueError, SettingsError)) as refused:
        rewarded(phase, [], **changes)

    assert message in str(refused.value)


def test_error_rates_that_decide_ties_are_taken_with_any_advantage(settings):
    found = rewarded(settings, [], error_rates=RATES, tie_above=0.5)

    assert 0.0 == found.metrics["noisy_verdicts/tied_groups"]


def test_a_verifier_that_no_problem_has_is_named_at_the_start(settings, problems):
    noisy = NoisyVerdictsSettings.model_validate({"error_rates": RATES, "noise": {"rubirc": 0.1}})
    phase = with_advantage(settings, "centred").model_copy(update={"recipe": noisy})
    known = [problems[0].model_copy(update={"verifier": "final_answer@5f3a"})]

    (line,) = without_problems(phase, known, open_recipe(noisy, phase).expected_verifiers)

    assert "verifier rubirc has no effect: no problem of the phase has it, but final_answer" in line
