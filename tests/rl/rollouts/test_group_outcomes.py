import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import (
    AnyRecipe,
    CodeReward,
    JudgeKind,
    JudgeSettings,
    RewardSettings,
    TermSettings,
)
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.verdicts import abstain, scored
from tasks.errors import EngineError
from tasks.plugins import pin
from tasks.rl.groups import (
    CollectedGroup,
    check_abstentions,
    decide_outcome,
    fill,
    without_problems,
)


@pytest.fixture
def group(problems, make_rollout):
    def build(scores, penalty=0.0, verifier="final_answer"):
        verdicts = [abstain("timeout") if s is None else scored(s, "rule") for s in scores]
        items = tuple(ScoredRollout(make_rollout(), "", v, penalty) for v in verdicts)
        return RolloutGroup(problems[0].model_copy(update={"verifier": verifier}), items)

    return build


@pytest.mark.parametrize(
    ("scores", "zvp", "outcome"),
    [
        ([1.0, 0.0, 1.0], True, GroupOutcome.NON_ZERO_VARIANCE),
        ([1.0, 1.0, 1.0], True, GroupOutcome.ZERO_VARIANCE_TRAINED),
        ([0.0, 0.0, None], True, GroupOutcome.ZERO_VARIANCE_TRAINED),
        ([0.0, 0.0, 0.0], False, GroupOutcome.ZERO_VARIANCE_IDLE),
        ([0.5, 0.5, 0.5], True, GroupOutcome.ZERO_VARIANCE_PARTIAL),
        ([1.0, None, None], True, GroupOutcome.UNSCORED),
    ],
)
def test_the_outcome_of_a_group_follows_from_its_verdicts(settings, group, scores, zvp, outcome):
    chosen = settings.model_copy(update={"terms": (TermSettings(kind="rl_zvp"),) if zvp else ()})

    assert outcome is decide_outcome(chosen, group(scores))


def test_penalties_cannot_give_variance_to_a_zero_variance_group(settings, group):
    shaped = group([0.0, 0.0, 0.0])
    items = tuple(
        ScoredRollout(item.rollout, "", item.verdict, -0.1 * number)
        for number, item in enumerate(shaped.rollouts)
    )

    assert GroupOutcome.ZERO_VARIANCE_TRAINED is decide_outcome(
        settings, RolloutGroup(shaped.problem, items)
    )


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_answers_that_a_judge_finds_alike_have_no_sign(settings, group, score):
    alike = group([score] * 3, verifier="generative_judge")

    assert GroupOutcome.ZERO_VARIANCE_JUDGED is decide_outcome(settings, alike)
    assert GroupOutcome.NON_ZERO_VARIANCE is decide_outcome(
        settings, group([1.0, score / 2], verifier="generative_judge")
    )


def test_opinions_of_a_verifier_of_ones_own_have_no_sign_either(
    settings, group, tmp_path, monkeypatch
):
    (tmp_path / "opinion.py").write_text(
        "class Opinion:\n    judged = True\n    def __call__(self, problem, response): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    alike = group([1.0] * 3, verifier=pin("opinion.py:Opinion"))

    assert GroupOutcome.ZERO_VARIANCE_JUDGED is decide_outcome(settings, alike)


JUDGE = JudgeSettings(kind=JudgeKind.HTTP, address="http://judge/v1", model="judge")


@pytest.mark.parametrize(
    ("rewards", "verifier", "start"),
    [
        (RewardSettings(code=CodeReward.ALL_TESTS), "code_tests", "rewards.code all_tests has no"),
        (RewardSettings(judge=JUDGE), "generative_judge", "rewards.judge http has no effect"),
        (RewardSettings(judge=JUDGE), "rubric", "rewards.judge http has no effect"),
    ],
)
def test_a_reward_of_a_verifier_that_no_problem_has_is_named(
    settings, problems, rewards, verifier, start
):
    rewarded = settings.model_copy(update={"rewards": rewards})
    (line,) = without_problems(rewarded, problems)
    assert line.startswith(start)

    one = problems[0].model_copy(update={"verifier": verifier})
    assert [] == without_problems(rewarded, [*problems, one])
    recipe = AnyRecipe(implementation="my_recipe.py:mine")
    assert [] == without_problems(rewarded.model_copy(update={"recipe": recipe}), problems)


def test_contrast_takes_the_places_of_the_batch_first(group):
    uniform = CollectedGroup(group([1.0, 1.0]), 0, GroupOutcome.ZERO_VARIANCE_TRAINED)
    alive = CollectedGroup(group([1.0, 0.0]), 1, GroupOutcome.NON_ZERO_VARIANCE)

    chosen = fill([uniform, uniform, alive], places=2)

    assert [
        GroupOutcome.ZERO_VARIANCE_TRAINED,
        GroupOutcome.SURPLUS,
        GroupOutcome.NON_ZERO_VARIANCE,
    ] == [e.outcome for e in chosen]


def test_too_many_missing_verdicts_stop_the_step_with_their_reasons(settings, group):
    allowed = settings.model_copy(update={"rewards": RewardSettings(max_abstained_share=0.5)})

    check_abstentions(allowed, [group([1.0, None])])
    with pytest.raises(EngineError, match=r"2 of 3 rollouts have no verdict \(timeout x2\)"):
        check_abstentions(allowed, [group([1.0, None, None])])
