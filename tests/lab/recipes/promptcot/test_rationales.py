import numpy as np
import pytest

from data_schemas.rows import Parent
from tasks.engines.chat import load_tokenizer, render_demonstration
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import DataError, SettingsError
from tasks.lab.recipes.promptcot import prompts
from tasks.lab.recipes.promptcot.likelihood import measure
from tasks.lab.recipes.promptcot.prompts import (
    demonstrate,
    join,
    read_response,
    writer_prompt,
    writer_response,
)
from tasks.lab.recipes.promptcot.rationales import expect, maximise
from tasks.lab.recipes.promptcot.records import WordedProblem
from tasks.lab.recipes.promptcot.settings import PartScore, SynthesisSettings

ROW = WordedProblem(id="a", concepts="multiply; pan; 1", problem="3 pans at 4. Total?")
SETTINGS = SynthesisSettings(rationales=3, min_rationale_tokens=2)


@pytest.fixture(scope="module")
def tokenizer(tiny_moe):
    return load_tokenizer(tiny_moe)


def silent(prompt, sample):
    raise AssertionError(f"a writer that only scores was asked for sample {sample} of {prompt}")


class Likely(ScriptedRolloutEngine):
    """Every token has log-probability -1, but for rationales that begin with the favourite."""

    favourite = "few"

    def score_logprobs(self, tokens):
        texts = [str(self._tokenizer.decode(one.tolist())) for one in tokens]
        return [
            np.full(len(one) - 1, -0.1 if f"<think>{self.favourite}" in text else -1.0, np.float32)
            for one, text in zip(tokens, texts, strict=True)
        ]


def test_joined_tokens_are_those_of_the_demonstration_and_split_into_its_parts(tokenizer):
    plan = tokenizer("pans; total", add_special_tokens=False)["input_ids"]
    joined = join(tokenizer, ROW, np.array(plan, np.int32))
    whole, mask = render_demonstration(
        tokenizer, writer_prompt(ROW.concepts), writer_response("pans; total", ROW.problem)
    )

    rationale, problem = joined.parts(np.arange(1, len(whole), dtype=np.float32))

    assert whole.tolist() == joined.tokens.tolist()
    assert mask.nonzero()[0].tolist() == [*rationale.tolist(), *problem.tolist()]
    assert len(plan) + 2 == len(rationale)


def test_a_tokenizer_without_the_mark_is_refused_by_name(tiny_moe, monkeypatch):
    monkeypatch.setattr(prompts, "THINK_OPEN", "<plan>")

    with pytest.raises(SettingsError, match=r"'<plan>' is .* tokens, so it may merge"):
        join(load_tokenizer(tiny_moe), ROW, np.array([5], np.int32))


@pytest.mark.parametrize(
    "response",
    [
        "no marks",
        "<think>a",
        "a</think>b",
        "<think>a<think>b</think>c",
        "<think>a</think>b</think>",
    ],
)
def test_a_response_of_another_form_is_not_read(response):
    assert read_response(response) is None
    assert ("a", "b") == read_response("<think>a</think>b")


def test_the_e_step_takes_the_best_rationale_and_counts_those_that_may_be_chosen(tokenizer):
    planner = ScriptedRolloutEngine(
        tokenizer, lambda _, sample: ("pans; total", "few pans", "")[sample]
    )

    (shown,), (chosen,) = expect(SETTINGS, [ROW], planner, Likely(tokenizer, silent), tokenizer)

    assert demonstrate(ROW, "few pans", Parent.PLANNER) == shown
    assert ("few pans", 2) == (chosen.rationale, chosen.candidates)
    assert pytest.approx(-0.2) == chosen.reward


def test_the_sum_has_the_reward_of_all_tokens(tokenizer):
    settings = SETTINGS.model_copy(update={"part_score": PartScore.SUM, "rationales": 1})
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "pans; total")

    _, (chosen,) = expect(settings, [ROW], planner, Likely(tokenizer, silent), tokenizer)

    tokens = tokenizer(writer_response("pans; total", ROW.problem))["input_ids"]
    assert pytest.approx(-len(tokens) - 1) == chosen.reward


def test_a_problem_whose_rationales_are_too_short_is_left_out(tokenizer):
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "")

    assert ([], []) == expect(SETTINGS, [ROW], planner, Likely(tokenizer, silent), tokenizer)


def test_the_m_step_teaches_the_writer_the_planners_greedy_rationale(tokenizer):
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "pans; total")

    (shown,), (chosen,) = maximise(SETTINGS, [ROW], planner, tokenizer)

    assert demonstrate(ROW, "pans; total", Parent.WRITER) == shown
    assert ("pans; total", None) == (chosen.rationale, chosen.reward)
    assert "<think>pans; total</think>3 pans at 4. Total?" == shown.response


def test_a_rationale_that_does_not_end_is_left_out(tokenizer):
    short = SETTINGS.model_copy(update={"max_new_tokens": 3})
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "pans and pans and pans; total")

    assert ([], []) == maximise(short, [ROW], planner, tokenizer)
    assert ([], []) == expect(short, [ROW], planner, Likely(tokenizer, silent), tokenizer)


def test_likelihood_is_that_of_the_planners_samples(tokenizer):
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "pans; total")
    writer = Likely(tokenizer, lambda *_: writer_response("pans", ROW.problem))

    found = measure(SETTINGS, [ROW], planner, writer, tokenizer)

    tokens = len(tokenizer(writer_response("pans; total", ROW.problem))["input_ids"]) + 1
    assert 1.0 == found.valid_share
    assert {"a": pytest.approx(tokens)} == found.nll == found.looser_nll
    assert 0 == found.unended


def test_without_a_rationale_that_ends_there_is_no_likelihood(tokenizer):
    planner = ScriptedRolloutEngine(tokenizer, lambda *_: "")
    writer = Likely(tokenizer, lambda *_: writer_response("pans", ROW.problem))

    with pytest.raises(DataError, match=r"none of the planner's rationales for 1 problems ended"):
        measure(SETTINGS, [ROW], planner, writer, tokenizer)


@pytest.mark.parametrize(
    "response", ["3 pans at 4. Total?", writer_response("pans", "3 kites at 4. Total?")]
)
def test_a_writer_whose_problems_are_mostly_not_valid_is_refused(tokenizer, response):
    writer = Likely(tokenizer, lambda *_: response)

    with pytest.raises(DataError, match="0% of the problems that the writer decodes"):
        measure(SETTINGS, [ROW], writer, writer, tokenizer)
