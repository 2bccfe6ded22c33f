"""What every sample of a group is drawn under, and who may count it."""

import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.verdicts import scored
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.errors import SettingsError
from tasks.lab.recipes.rusca.prompts import open_scaffold
from tasks.lab.recipes.rusca.settings import (
    Form,
    Ratio,
    ScaffoldSettings,
    WithinGroup,
)
from tasks.rl.collector import Collector, SamplePrompt, is_bare, runs_of_samples, sample_prompts
from tasks.rl.groups import OpenGroup
from tests.algorithms.signals import terms_of

USER = ScaffoldSettings(form=Form.USER)


@pytest.fixture
def tokenizer(tiny_moe):
    return load_tokenizer(tiny_moe)


@pytest.fixture
def prompts(settings, rubrics, tokenizer):
    def make(step=1, scaffold=USER, key="1.0.0", **changes):
        group = OpenGroup(key, rubrics[0], 0, size=4)
        shaper = open_scaffold(scaffold, settings.model_copy(update=changes)).shaper
        return sample_prompts(shaper, tokenizer, step, group)

    return make


def test_the_first_sample_sees_all_the_last_none_and_all_are_trained_bare(
    prompts, rubrics, tokenizer
):
    found = prompts()
    bare = render_prompt(tokenizer, rubrics[0].messages).tolist()

    assert [3, 2, 1, 0] == [len(item.shown) for item in found]
    assert "Lowercase. In quotes. No commas." in tokenizer.decode(found[0].tokens)
    assert bare == found[3].tokens.tolist()
    assert [bare] * 3 == [item.bare.tolist() for item in found[:3]]
    assert found[3].bare is None


def test_after_the_switch_every_sample_is_bare_and_they_share_their_prefill(prompts):
    found = prompts(step=4)

    assert [()] * 4 == [item.shown for item in found]
    assert [(0, 4)] == [(first, count) for first, count, _ in runs_of_samples(found)]


def test_only_samples_with_the_same_prompt_share_their_prefill(prompts):
    half = USER.model_copy(update={"within_group": WithinGroup.FIRST_HALF})

    assert [(0, 2), (2, 2)] == [
        (first, count) for first, count, _ in runs_of_samples(prompts(scaffold=half))
    ]
    assert [(n, 1) for n in range(4)] == [
        (first, count) for first, count, _ in runs_of_samples(prompts())
    ]


def test_scaffolded_on_both_sides_is_trained_under_the_prompt_it_was_drawn_with(prompts):
    found = prompts(scaffold=USER.model_copy(update={"ratio": Ratio.SCAFFOLDED}))

    assert [3, 2, 1, 0] == [len(item.shown) for item in found]
    assert [None] * 4 == [item.bare for item in found]


def test_a_group_that_goes_on_keeps_its_prompts(
    settings, rubrics, tokenizer, make_rollout, prompts
):
    begun = [
        item.note(make_rollout(sample, prompt_tokens=item.tokens))
        for sample, item in enumerate(prompts())
    ]
    group = OpenGroup("1.0.0", rubrics[0], 0, size=4, rollouts=tuple(begun))

    later = sample_prompts(open_scaffold(USER, settings).shaper, tokenizer, 4, group)

    assert [item.shown for item in prompts()] == [item.shown for item in later]
    assert [one.prompt_tokens.tolist() for one in begun] == [p.tokens.tolist() for p in later]


@pytest.mark.parametrize("scaffold", [None, USER])
def test_without_a_scaffold_or_a_rubric_a_group_is_one_request(
    settings, problems, rubrics, tokenizer, scaffold
):
    problem = rubrics[0] if scaffold is None else problems[0]
    shaper = scaffold and open_scaffold(scaffold, settings).shaper
    found = sample_prompts(shaper, tokenizer, 1, OpenGroup("1.0.0", problem, 0, size=4))

    ((first, count, tokens),) = runs_of_samples(found)
    assert (0, 4) == (first, count)
    assert render_prompt(tokenizer, problem.messages).tolist() == tokens.tolist()


def test_records_and_the_curriculum_count_bare_samples_only(
    settings, rubrics, tiny_moe, tokenizer, scorer
):
    """All samples that saw a criterion solve the problem, the others fail."""
    engine = Noting(tiny_moe)

    def solved_if_shown(*_):
        return scored(float(engine.scaffolded.pop(0)), "rule")

    recipe, judge = open_scaffold(USER, settings), scorer(solved_if_shown)
    collector = Collector(settings, engine, tokenizer, judge, rubrics, recipe=recipe)

    found = collector.collect(1)

    assert {GroupOutcome.NON_ZERO_VARIANCE} == {item.outcome for item in found.groups}
    for entry in found.groups:
        assert [1, 1, 1, 0] == [item.verdict.score for item in entry.group.rollouts]
        record = collector.state().records[entry.group.problem.id]
        assert (0.0, 1.0, 0.0) == (record.solved, record.scored, record.last_pass_rate)
    assert 0.0 == collector.state().stage.best
    shown = [item.rollout for entry in found.groups for item in entry.group.rollouts]
    assert [False, False, False, True] * 3 == [is_bare(rollout) for rollout in shown]
    bare = {len(rollout.trained_prompt) for rollout in shown}
    assert bare == {len(rollout.prompt_tokens) for rollout in shown if is_bare(rollout)}


class Noting(HFRolloutEngine):
    """Yields responses in the order of samples and notes which of them saw a criterion."""

    def __init__(self, folder):
        super().__init__(folder)
        self.scaffolded = []

    def generate(self, requests, sampling):
        asked = list(requests)
        shortest = min(len(request.prompt_tokens) for request in asked)
        for rollout in sorted(
            super().generate(asked, sampling), key=lambda one: (one.problem_id, one.sample)
        ):
            self.scaffolded.append(len(rollout.prompt_tokens) > shortest + 1)
            yield rollout


def test_a_scaffold_that_could_show_nothing_is_refused(
    settings, problems, tiny_moe, tokenizer, scorer
):
    recipe, engine = open_scaffold(USER, settings), HFRolloutEngine(tiny_moe)

    with pytest.raises(SettingsError, match="no problem of the phase's domains has the verifier"):
        Collector(settings, engine, tokenizer, scorer(), problems, recipe=recipe)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        *(
            ({"terms": terms_of({"kind": kind})}, f"'{kind}', .* would undo a scaffold")
            for kind in ("tis", "icepop", "stale", "tasks/lab/terms/token_band.py:TokenBand")
        ),
    ],
)
def test_what_undoes_a_scaffold_is_refused_by_name(settings, changes, says):
    open_scaffold(USER, settings.model_copy(update={"terms": terms_of({"kind": "kl"})}))
    with pytest.raises(SettingsError, match=says):
        open_scaffold(USER, settings.model_copy(update=changes))


def test_a_power_has_a_small_exponent():
    with pytest.raises(ValueError, match="the exponent of curve 'power'"):
        ScaffoldSettings(curve="power")


def test_a_rollout_without_a_scaffold_says_nothing_of_one(make_rollout):
    plain = make_rollout()

    assert plain is SamplePrompt(plain.prompt_tokens).note(plain)
    assert plain.prompt_tokens is plain.trained_prompt
