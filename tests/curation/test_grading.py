"""Grading with a scripted model whose pass rates are known."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import read_table
from data_schemas.pass_rates import Band, GradedProblem, band_of
from data_schemas.rollouts import Rollout
from data_schemas.rows import GRADED, QUARANTINE, Domain, Problem, QuarantinedItem
from data_schemas.samples import RESPONSES, ResponseTokens
from data_schemas.settings import GradingSettings
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.curation.grading import REPORT, grade, screen_out, unsolved_domains
from tasks.curation.items import Item
from tasks.engines.protocols import Request, Sampling
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import DataError, EngineError

SETTINGS = GradingSettings(samples=4, drop_at_or_above=1.0)


def solve(prompt: str, sample: int) -> str:
    """Solve as many of four samples as the prompt says."""
    return "yes" if sample < int(prompt.split("solved ")[1][0]) else "no"


def judge(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    return [
        abstain("timeout")
        if "silent" in problem.prompt_text
        else scored(float(response == "yes"), "judged")
        for problem, response in zip(problems, responses, strict=True)
    ]


@pytest.fixture
def problems(make_problem: Callable[..., Item]) -> list[Problem]:
    items = [make_problem(f"{times}", f"solved {times} times") for times in range(5)]
    items.append(make_problem("silent", "solved 4 times, silent", domain=Domain.CODE))
    return [item.record for item in items if isinstance(item.record, Problem)]


def test_the_responses_of_the_problems_that_are_kept_are_written_for_their_reuse(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    grade(SETTINGS, problems, ScriptedRolloutEngine(tokenizer, solve), tokenizer, judge, tmp_path)

    graded = {problem.id for problem in read_table(tmp_path / GRADED, GradedProblem)}
    rows = read_table(tmp_path / RESPONSES, ResponseTokens)
    texts = {
        (row.stream, row.sample): tokenizer.decode(list(row.tokens), skip_special_tokens=True)
        for row in rows
    }
    assert {(name, sample) for name in graded for sample in range(4)} == texts.keys()
    assert ["yes", "yes", "no", "no"] == [texts["test/2", sample] for sample in range(4)]


def test_pass_rates_bands_and_drops(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    engine = ScriptedRolloutEngine(tokenizer, solve)

    facts = grade(SETTINGS, problems, engine, tokenizer, judge, tmp_path)

    graded = read_table(tmp_path / GRADED, GradedProblem)
    assert {
        "test/0": (0.0, Band.UNSOLVED),
        "test/1": (0.25, Band.HARD),
        "test/2": (0.5, Band.MEDIUM),
        "test/3": (0.75, Band.EASY),
        "test/silent": (None, Band.UNGRADED),
    } == {problem.id: (problem.pass_rate, problem.band) for problem in graded}
    (refusal,) = read_table(tmp_path / QUARANTINE, QuarantinedItem)
    assert ("test/4", "too_easy") == (refusal.key, refusal.reason)
    assert {
        "offered": 6,
        "graded": 6,
        "generated_tokens": engine.counters.generated_tokens,
        "kept": 5,
        "too_easy": 1,
        "small_model_solves": 0,
        "too_hard": 0,
        "ungraded": 1,
        "unsolved_domains": 0,
        "mean_pass_rate": 0.5,
    } == facts


def test_unsolved_prompts_are_dropped_if_asked_for(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    settings = SETTINGS.model_copy(update={"drop_at_or_below": 0.25})
    engine = ScriptedRolloutEngine(tokenizer, solve)

    grade(settings, problems, engine, tokenizer, judge, tmp_path)

    refused = read_table(tmp_path / QUARANTINE, QuarantinedItem)
    expected = {"test/0": "too_hard", "test/1": "too_hard", "test/4": "too_easy"}
    assert expected == {refusal.key: refusal.reason for refusal in refused}
    maths = json.loads((tmp_path / REPORT).read_bytes())["domains"]["maths"]
    assert {"too_easy": 1, "too_hard": 2} == maths["dropped"]
    assert (5, 2, 0.5) == (maths["graded"], maths["kept"], maths["mean_pass_rate"])


def test_mean_tokens_count_the_end_token(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    engine = ScriptedRolloutEngine(tokenizer, lambda _prompt, sample: "7" * (sample + 1))

    grade(SETTINGS, problems[:1], engine, tokenizer, judge, tmp_path)

    # Digits are single tokens: 1, 2, 3 and 4 of them, and an end token each.
    (problem,) = read_table(tmp_path / GRADED, GradedProblem)
    assert 3.5 == problem.mean_tokens


def test_what_a_smaller_model_consistently_solves_is_not_graded(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    """The smaller model solves 'solved 4 times' always, the start model is not even asked."""
    asked: list[str] = []

    class Watched(ScriptedRolloutEngine):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
            asked.extend(request.problem_id for request in requests)
            return super().generate(requests, sampling)

    def always(prompt: str, _: int) -> str:
        return "yes" if "solved 4 times" in prompt else "no"

    small = ScriptedRolloutEngine(tokenizer, always)
    screened = screen_out(SETTINGS, problems, small, tokenizer, judge)
    engine = Watched(tokenizer, solve)

    facts = grade(SETTINGS, problems, engine, tokenizer, judge, tmp_path, screened)

    refusals = read_table(tmp_path / QUARANTINE, QuarantinedItem)
    assert {"test/4": "small_model_solves"} == {r.key: r.reason for r in refusals}
    assert "test/4" not in asked
    assert (1, 0) == (facts["small_model_solves"], facts["too_easy"])


def test_at_most_max_problems_are_graded_by_domain_weight(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    settings = SETTINGS.model_copy(update={"max_problems": 2, "weights": {Domain.CODE: 1.0}})
    engine = ScriptedRolloutEngine(tokenizer, solve)

    facts = grade(settings, problems, engine, tokenizer, judge, tmp_path)

    assert (6, 1) == (facts["offered"], facts["graded"])


def test_when_everything_is_too_easy_it_says_so(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    engine = ScriptedRolloutEngine(tokenizer, solve)

    with pytest.raises(DataError, match=r"1 are too easy .* and 0 too hard. Add harder"):
        grade(SETTINGS, problems[4:5], engine, tokenizer, judge, tmp_path)
    empty = SETTINGS.model_copy(update={"weights": {Domain.CHOICE: 1.0}})
    with pytest.raises(DataError, match=r"no problem to grade .* \(choice\)"):
        grade(empty, problems, engine, tokenizer, judge, tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_an_engine_that_loses_a_sample_is_an_engine_error(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    class Forgetful(ScriptedRolloutEngine):
        def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
            rollouts = super().generate(requests, sampling)
            next(rollouts)
            yield from rollouts

    with pytest.raises(EngineError, match=r"test/0: requested 4 samples, .* returned \[1, 2"):
        grade(SETTINGS, problems, Forgetful(tokenizer, solve), tokenizer, judge, tmp_path)


def test_bands_at_their_edges():
    rates = [0.0, 0.01, 1 / 3, 2 / 3, 0.67, 1.0, None]

    expected = ["unsolved", "hard", "medium", "medium", "easy", "solved", "ungraded"]
    assert expected == [band_of(rate) for rate in rates]


def test_responses_that_are_cut_are_told_before_rl_is_paid_for(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem], caplog
):
    settings = SETTINGS.model_copy(update={"max_new_tokens": 2})
    grade(settings, problems, ScriptedRolloutEngine(tokenizer, solve), tokenizer, judge, tmp_path)

    assert "100 % of the responses were cut at grading.max_new_tokens, 2" in caplog.text


def test_domains_in_which_nothing_is_solved_are_named(problems: list[Problem]):
    graded = [
        GradedProblem(**dict(problems[0]), pass_rate=rate, mean_tokens=1.0, band=band_of(rate))
        for rate in (0.0, None, 0.0)
    ]

    assert [graded[0].domain] == unsolved_domains(graded)
    solved = graded[0].model_copy(update={"pass_rate": 0.25})
    assert [] == unsolved_domains([*graded, solved])
    assert [] == unsolved_domains([graded[1]])


def test_grade_names_a_reward_that_its_own_reference_does_not_earn(
    tmp_path: Path, tokenizer: PreTrainedTokenizerBase, problems: list[Problem]
):
    settings = SETTINGS.model_copy(update={"drop_at_or_below": 1.0})
    gold = {"verifier": "reference_text", "answer": '{"reference": "maybe"}'}
    never = [one.model_copy(update=gold) for one in problems if "solved 0" in one.prompt_text]
    engine = ScriptedRolloutEngine(tokenizer, solve)

    with pytest.raises(DataError, match=r"Nor can anybody solve 1 of 1 .* gives 0 .* 'maybe'"):
        grade(settings, never, engine, tokenizer, judge, tmp_path)
