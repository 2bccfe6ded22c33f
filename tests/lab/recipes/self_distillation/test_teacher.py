"""The policy as its own teacher: what it sees, what is taught, and what the update gets."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from data_schemas.ledgers import GroupOutcome, TokenUse
from data_schemas.rl_settings import TermSettings
from data_schemas.rollouts import RolloutGroup, ScoredRollout
from data_schemas.rows import Message
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.algorithms.token_uses import token_uses
from tasks.engines.chat import load_tokenizer
from tasks.errors import SettingsError
from tasks.lab.recipes.self_distillation.settings import SelfDistillationSettings
from tasks.lab.recipes.self_distillation.teacher import open_teacher
from tasks.rl import codec, step_snapshot
from tasks.rl.groups import CollectedGroup
from tasks.rl.phase import finish, train
from tasks.rl.recipe import Teacher, open_recipe
from tasks.rl.replay.recompute import compare
from tests.rl.conftest import RuleScorer, even
from tests.slices import sliced

CANARY = "xylophone canary"


def noted(problem, response):
    """A verdict whose words are in no prompt of a problem."""
    verdict = even(problem, response)
    return verdict if verdict.solved else scored(0.0, "rule", f"{CANARY}: it is odd")


@pytest.fixture
def teacher(settings):
    def make(**changes: object) -> Teacher:
        opened = open_teacher(SelfDistillationSettings(**changes), settings).teacher
        assert opened is not None
        return opened

    return make


@pytest.fixture
def make_entry(problems, make_rollout):
    """Make a group of one response per verdict."""

    def make(verdicts: Sequence[Verdict]) -> CollectedGroup:
        responses = tuple(
            ScoredRollout(make_rollout(sample), f"answer {sample}", verdict, 0.0)
            for sample, verdict in enumerate(verdicts)
        )
        group = RolloutGroup(problems[0], responses)
        return CollectedGroup(group, 0, GroupOutcome.NON_ZERO_VARIANCE)

    return make


@pytest.fixture
def group(make_entry):
    """One response without a verdict, one solved, two failed."""
    verdicts = [abstain("down"), scored(1.0, "right"), scored(0.0, "wrong", "8 is not 7")]
    return make_entry([*verdicts, scored(0.0, "wrong", "9 is not 7")])


def content(prompts: Sequence[Sequence[Message] | None]) -> list[str]:
    return ["" if one is None else one[-1].content for one in prompts]


def test_only_failed_responses_are_taught_with_a_solved_sibling_and_a_reason(teacher, group):
    texts = content(teacher().prompts(group))

    assert texts[:2] == ["", ""]
    assert "A correct solution:\nanswer 1" in texts[2]
    assert "What was wrong with the last attempt: 8 is not 7" in texts[2]
    assert texts[2].startswith(group.group.problem.messages[-1].content)
    assert "9 is not 7" in texts[3]


def test_the_thinking_of_a_sibling_is_cut(teacher, group):
    rollouts = list(group.group.rollouts)
    rollouts[1] = replace(rollouts[1], text="<think>a secret</think>\n7")
    group = replace(group, group=replace(group.group, rollouts=tuple(rollouts)))

    text = content(teacher().prompts(group))[2]

    assert "secret" not in text
    assert "A correct solution:\n7" in text


def test_where_all_fail_the_reason_alone_teaches_and_a_code_without_words_does_not(
    teacher, make_entry
):
    entry = make_entry([scored(0.0, "wrong", "8 is not 7"), scored(0.0, "wrong")])

    texts = content(teacher().prompts(entry))

    assert "8 is not 7" in texts[0]
    assert texts[1] == ""
    assert content(teacher(reason=False).prompts(entry)) == ["", ""]


def test_a_phase_teaches_and_nothing_of_the_teachers_prompt_is_trained(
    phase_in, tiny_moe, tmp_path
):
    phase = phase_in(tmp_path / "state", steps=2)
    recipe = open_recipe(SelfDistillationSettings(weight=1.0), phase.settings)
    scorer = RuleScorer(load_tokenizer(tiny_moe), noted)

    records = list(train(replace(phase, recipe=recipe), scorer))

    tokenizer = load_tokenizer(tiny_moe)
    for path in step_snapshot.find_snapshots(phase.state, 2):
        snapshot = step_snapshot.decode(path.read_bytes())
        assert snapshot.inputs["taught_NT"].any()
        trained = [tokenizer.decode(row) for row in snapshot.outputs["tokens_NT"]]
        assert all("say" in text and CANARY not in text for text in trained)
        assert not [one.name for one in compare(snapshot) if one.difference]
    assert all(0 < one.report.metrics["teacher/taught_share"] < 1 for one in records)


def test_the_advantages_of_taught_tokens_are_the_teachers_surprise(phase_in, tiny_moe, tmp_path):
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(SelfDistillationSettings(weight=1.0, bound=2.0), phase.settings)
    list(train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), noted)))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())

    taught_NT = snapshot.inputs["taught_NT"]
    gap_NT = snapshot.inputs["teacher_logprobs_NT"] - snapshot.inputs["old_logprobs_NT"]
    expected = np.clip(gap_NT, -2.0, 2.0)[taught_NT]
    np.testing.assert_allclose(snapshot.outputs["advantages_NT"][taught_NT], expected, atol=1e-6)
    assert np.abs(expected).mean() > 1e-3


def test_weighed_by_entropy_taught_tokens_weigh_more_where_the_teacher_is_sure(
    phase_in, tiny_moe, tmp_path
):
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(SelfDistillationSettings(weight=1.0, by_entropy=True), phase.settings)
    (record,) = train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), noted))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    inputs, taught_NT = snapshot.inputs, snapshot.inputs["taught_NT"]
    entropy = inputs["teacher_entropy_NT"][taught_NT]
    gap = (inputs["teacher_logprobs_NT"] - inputs["old_logprobs_NT"])[taught_NT]
    weights = snapshot.outputs["advantages_NT"][taught_NT] / np.clip(gap, -5.0, 5.0)
    assert np.ptp(entropy) > 1e-3
    np.testing.assert_allclose(weights.mean(), 1.0, atol=1e-4)
    np.testing.assert_allclose(weights / weights[0], np.exp(entropy[0] - entropy), rtol=1e-3)
    assert not [one.name for one in compare(snapshot) if one.difference]
    assert record.report.metrics["teacher/entropy_nats"] == pytest.approx(entropy.mean(), abs=1e-5)


@pytest.mark.slow
def test_a_teacher_that_does_not_weigh_leaves_the_record_as_it_was(phase_in, tiny_moe, tmp_path):
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(SelfDistillationSettings(), phase.settings)
    (record,) = train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), noted))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    arrays, meta = codec.unpack(path.read_bytes())

    assert {"weight", "bound", "control"} == meta["blend"].keys()
    assert "inputs/teacher_entropy_NT" not in arrays
    assert "teacher/entropy_nats" not in record.report.metrics


def test_with_truncated_sampling_teacher_and_policy_are_over_the_same_sets(
    phase_in, tiny_moe, tmp_path
):
    phase = phase_in(tmp_path / "state", steps=1, top_p=0.5)
    recipe = open_recipe(SelfDistillationSettings(weight=1.0), phase.settings)
    list(train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), noted)))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    taught_NT = snapshot.inputs["taught_NT"]
    alone_NT = taught_NT & (snapshot.inputs["old_logprobs_NT"] == 0.0)

    assert taught_NT.any()
    assert not snapshot.inputs["teacher_logprobs_NT"][alone_NT].any()
    assert not [one.name for one in compare(snapshot) if one.difference]


def test_the_control_asks_no_teacher(phase_in, tiny_moe, tmp_path):
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(SelfDistillationSettings(weight=1.0, control=True), phase.settings)
    list(train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), noted)))

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    taught_NT = snapshot.inputs["taught_NT"]

    assert not snapshot.inputs["teacher_logprobs_NT"].any()
    assert {-0.5, 0.0} == set(snapshot.outputs["advantages_NT"][taught_NT].tolist())
    assert not [one.name for one in compare(snapshot) if one.difference]


@pytest.mark.parametrize("terms", sliced([((TermSettings(kind="rl_zvp"),),), ((),)], bool))
def test_where_all_fail_the_tokens_are_taught_with_and_without_rl_zvp(
    phase_in, tiny_moe, tmp_path, terms
):
    phase = phase_in(tmp_path / "state", steps=1, terms=terms)
    recipe = open_recipe(SelfDistillationSettings(), phase.settings)
    failing = RuleScorer(load_tokenizer(tiny_moe), lambda *_: scored(0.0, "rule", "never"))

    (record,) = train(replace(phase, recipe=recipe), failing)

    uses = {use: count for use, count in token_uses(record.ledger).items() if count}
    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    assert {TokenUse.TAUGHT} == set(uses) - {TokenUse.SURPLUS}
    assert not [
        one.name for one in compare(step_snapshot.decode(path.read_bytes())) if one.difference
    ]


def long_winded(problem, response):
    """A verdict with more words than the model has positions."""
    verdict = even(problem, response)
    return verdict if verdict.solved else scored(0.0, "rule", "it is odd " * 2000)


@pytest.mark.parametrize(
    ("rule", "tokens"),
    sliced([(noted, 1), (long_winded, 10**6)], lambda rule, tokens: rule is noted),
)
def test_behind_a_prompt_that_is_too_long_nothing_is_taught(
    phase_in, tiny_moe, tmp_path, rule, tokens
):
    """Then the advantages are those of a plain phase."""
    advantages = []
    taught = SelfDistillationSettings(max_prompt_tokens=tokens, solved_sibling=False)
    for name, recipe in (("plain", None), ("taught", taught)):
        phase = phase_in(tmp_path / name, steps=1)
        opened = open_recipe(recipe, phase.settings)
        list(train(replace(phase, recipe=opened), RuleScorer(load_tokenizer(tiny_moe), rule)))
        (path,) = step_snapshot.find_snapshots(phase.state, 1)
        advantages.append(step_snapshot.decode(path.read_bytes()).outputs["advantages_NT"])

    np.testing.assert_array_equal(*advantages)


def taught_by(folder, **changes):
    return SelfDistillationSettings(teachers={"maths": str(folder)}, weight=1.0, **changes)


def gap_to(teacher, phase):
    """Difference between teacher and policy on what a phase of one step has trained, nats."""
    recipe = open_recipe(taught_by(teacher, bound=2.0), phase.settings)
    list(train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(phase.start), even)))
    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    assert not [one.name for one in compare(snapshot) if one.difference]
    response_NT = snapshot.outputs["response_NT"]
    gap_NT = snapshot.inputs["teacher_logprobs_NT"] - snapshot.inputs["old_logprobs_NT"]
    np.testing.assert_allclose(
        snapshot.outputs["advantages_NT"][response_NT],
        np.clip(gap_NT, -2.0, 2.0)[response_NT],
        atol=1e-6,
    )
    return response_NT, gap_NT[response_NT]


@pytest.mark.slow
def test_another_model_teaches_every_response_and_itself_nothing(phase_in, tiny_moe, tmp_path):
    """A phase from the trained model, taught by the one that it started from; and by itself."""
    first = phase_in(tmp_path / "first", steps=2, learning_rate=1e-2)
    list(train(first, RuleScorer(load_tokenizer(tiny_moe), even)))
    finish(first, tmp_path / "trained", tmp_path / "report")

    def phase(name):
        return replace(phase_in(tmp_path / name, steps=1), start=tmp_path / "trained")

    # Routes are replayed in the policy's own pass and are the teacher's own in its.
    response_NT, other = gap_to(tiny_moe, phase("by parent"))
    _, same = gap_to(tmp_path / "trained", phase("by itself"))

    assert 12 == len(response_NT)  # three prompts, four responses, those without contrast too
    assert np.abs(other).mean() > 0.01
    assert np.abs(same).max() < 1e-4


def test_a_teacher_of_other_tokens_or_a_domain_without_one_is_refused(
    phase_in, settings, tiny_moe, tmp_path
):
    other = tmp_path / "other"
    shutil.copytree(tiny_moe, other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append(tokenizer["added_tokens"][0] | {"id": 9999, "content": "<x>"})
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(taught_by(other), phase.settings)

    with pytest.raises(SettingsError, match="choose a teacher from the same base"):
        next(train(replace(phase, recipe=recipe), RuleScorer(load_tokenizer(tiny_moe), even)))
    two = settings.model_copy(update={"domains": {"maths": 1.0, "code": 1.0}})
    with pytest.raises(SettingsError, match="teachers has none for code; name one for every"):
        open_teacher(taught_by(tiny_moe), two)


def test_what_cannot_teach_is_refused(settings):
    with pytest.raises(ValueError, match="control asks no teacher; leave teachers out"):
        taught_by("a", control=True)
    with pytest.raises(ValueError, match="control asks no teacher; leave by_entropy out"):
        SelfDistillationSettings(control=True, by_entropy=True)
    with pytest.raises(ValueError, match="solved_sibling and reason are both off"):
        SelfDistillationSettings(solved_sibling=False, reason=False)
    loss = settings.loss.model_copy(update={"kind": "gmpo"})
    with pytest.raises(SettingsError, match="one advantage per response"):
        open_teacher(SelfDistillationSettings(), settings.model_copy(update={"loss": loss}))
