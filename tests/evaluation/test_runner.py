"""One model on the held-out problems, answered by a script."""

from dataclasses import replace

import numpy as np
import pytest

from data_schemas.arrow import read_table
from data_schemas.reports import EvaluationReport
from data_schemas.rollouts import ResponseScore
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from data_schemas.verdicts import abstain, scored
from tasks.engines.chat import response_text
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import DataError, EngineError, JudgeError
from tasks.evaluation.respondents import Checkpoint
from tasks.evaluation.runner import Candidate, evaluate, summarise
from tasks.gym.table import score_batch

SETTINGS = EvaluationSettings(samples=2, max_new_tokens=24)


class _Serial:
    """A scorer that judges one response after the other."""

    def __init__(self, tokenizer, judge):
        self._tokenizer, self._judge, self._items = tokenizer, judge, []

    def submit(self, item):
        self._items.append(item)

    def gather(self):
        texts = [response_text(self._tokenizer, item.tokens.tolist()) for item in self._items]
        verdicts = self._judge([item.problem for item in self._items], texts)
        return {
            (item.group, item.sample): ResponseScore(text, verdict, 0.0, 0)
            for item, text, verdict in zip(self._items, texts, verdicts, strict=True)
        }

    def check_canaries(self, verifiers):
        pass


class _Altered(ScriptedRolloutEngine):
    """An engine whose stream of rollouts is changed before it arrives."""

    def __init__(self, tokenizer, script, change):
        super().__init__(tokenizer, script)
        self._change = change

    def generate(self, requests, sampling):
        yield from self._change(list(super().generate(requests, sampling)))


@pytest.fixture
def run(tokenizer, tmp_path):
    """Evaluate a script and return the report."""

    def run(script, problems, *, change=list, judge=score_batch, name="merged"):
        engine = _Altered(tokenizer, script, change)
        folder = tmp_path / name
        folder.mkdir()
        candidate = Candidate(name, "c" * 64, Checkpoint(engine, tokenizer, SETTINGS))
        return evaluate(SETTINGS, candidate, problems, _Serial(tokenizer, judge), folder)

    return run


def _script(prompt, sample):
    """'a' is right once, 'b' always, 'c' never stops thinking."""
    if "a<|im_end|>" in prompt:
        return "<think>3 + 4</think>7" if sample == 0 else "<think>no</think>8"
    return "7" if "b<|im_end|>" in prompt else "<think>" + "hm " * 20


def test_answers_are_scored_and_counted(run, make_problem, tmp_path):
    report = run(_script, [make_problem(name) for name in "abc"])

    overall = report.suites[0]
    assert ("all", 3, 2) == (overall.suite, overall.problems, overall.samples)
    assert (0.5 + 1.0 + 0.0) / 3 == pytest.approx(overall.accuracy)
    assert 2 / 3 == pytest.approx(overall.pass_at_k)
    assert 1 / 3 == pytest.approx(report.truncated_share)
    # Markup, bytes and the end token: 9 and 6 for a, 2 and 2 for b, c is cut at 24.
    assert (9 + 6 + 2 + 2 + 24 + 24) / 6 == report.mean_response_tokens
    assert ("merged", "c" * 64) == (report.model, report.checkpoint)


def test_the_report_is_a_function_of_the_stored_samples(run, make_problem, tmp_path):
    report = run(_script, [make_problem(name) for name in "abc"])

    samples = read_table(tmp_path / "merged" / "samples.parquet", SampleResult)
    stored = EvaluationReport.model_validate_json(
        (tmp_path / "merged" / "report.json").read_bytes()
    )

    assert report == stored == summarise(SETTINGS, "merged", "c" * 64, samples)
    assert [("a", 0, 1.0), ("a", 1, 0.0), ("b", 0, 1.0)] == [
        (row.problem_id, row.sample, row.score) for row in samples[:3]
    ]
    assert "<think>3 + 4</think>7" == samples[0].text
    assert (True, "no_answer") == (samples[4].truncated, samples[4].reason)


def test_a_model_most_of_whose_responses_are_cut_is_named(run, make_problem, caplog):
    run(_script, [make_problem(name) for name in "bc"], name="half")
    run(_script, [make_problem(name) for name in "c"], name="base")

    assert ["base: 100 % of the responses were cut at evaluation.max_new_tokens, 24"] == [
        record.message for record in caplog.records if record.levelname == "WARNING"
    ]


def test_a_problem_with_a_level_is_scored_with_the_others_of_that_level(run, make_problem):
    hard = [make_problem(name).model_copy(update={"level": 3}) for name in "bc"]

    report = run(_script, [make_problem("a"), *hard])

    assert [("level:hand/3", 2, 0.5)] == [
        (suite.suite, suite.problems, suite.accuracy)
        for suite in report.suites
        if suite.suite.startswith("level:")
    ]


def test_the_order_rollouts_finish_in_does_not_matter(run, make_problem, tmp_path):
    problems = [make_problem(name) for name in "abc"]

    run(_script, problems, name="first")
    run(_script, problems, change=lambda rollouts: rollouts[::-1], name="second")

    assert (tmp_path / "first" / "samples.parquet").read_bytes() == (
        tmp_path / "second" / "samples.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rollouts: rollouts[:-1], r"5 responses to 6 requested samples.*\('c', 1\)"),
        (lambda rollouts: [*rollouts, rollouts[0]], "7 responses to 6 requested samples"),
        (lambda rollouts: [*rollouts[:-1], rollouts[0]], r"first missing: \('c', 1\)"),
    ],
)
def test_an_engine_that_loses_or_repeats_responses_is_not_believed(
    run, make_problem, change, message
):
    with pytest.raises(EngineError, match=message):
        run(_script, [make_problem(name) for name in "abc"], change=change)


def test_abstentions_are_counted_and_left_out(run, make_problem):
    def judge(problems, responses):
        return [
            abstain("timeout") if problem.id == "a" else scored(1.0, "correct")
            for problem in problems
        ]

    overall = run(_script, [make_problem("a"), make_problem("b")], judge=judge).suites[0]

    assert (1.0, 1, 2) == (overall.accuracy, overall.problems, overall.abstained)


def test_an_evaluation_without_any_verdict_fails_with_the_reasons(run, make_problem, tmp_path):
    def judge(problems, responses):
        return [abstain("timeout") for _ in problems]

    with pytest.raises(
        JudgeError, match=r"no verdict on any of 2 responses of merged: timeout \(2\)"
    ):
        run(_script, [make_problem("a")], judge=judge)
    assert [] == list((tmp_path / "merged").iterdir())


def test_bad_tables_are_refused_before_anything_is_generated(run, make_problem):
    def never(prompt, sample):
        raise AssertionError("generated")

    with pytest.raises(DataError, match="no held-out problem"):
        run(never, [], name="empty")
    with pytest.raises(DataError, match="'a' appears twice"):
        run(never, [make_problem("a"), make_problem("a")], name="twice")


def test_surprisal_estimates_entropy_per_token(run, make_problem):
    # Tokens drawn from (1/2, 1/4, 1/4), whose entropy is 1.5 ln 2 = 1.0397 nats.
    probabilities = np.array([0.5, 0.25, 0.25])
    generator = np.random.default_rng(0)

    def draw(rollouts):
        return [
            replace(
                rollout,
                response_tokens=np.full(400, 3, dtype=np.int32),
                logprobs=np.log(generator.choice(probabilities, 400, p=probabilities)).astype(
                    np.float32
                ),
            )
            for rollout in rollouts
        ]

    report = run(_script, [make_problem(name) for name in "abc"], change=draw)

    assert 1.5 * np.log(2) == pytest.approx(report.mean_entropy_nats, abs=0.02)


def test_the_bias_of_a_judge_is_part_of_the_report(run, make_problem):
    def judge(problems, texts):
        detail = "as A: A, as B: A"
        return [scored(0.5, "orders_disagree", detail) for _ in zip(problems, texts, strict=True)]

    asked = [
        make_problem(name).model_copy(update={"verifier": "generative_judge"}) for name in "ab"
    ]

    judged = run(_script, asked, judge=judge, name="judged").judge

    assert (4.0, 0.0, 1.0) == tuple(
        judged[f"judge/{name}"] for name in ("comparisons", "swap_consistency", "first_preference")
    )
    assert {} == run(_script, [make_problem("a")], name="plain").judge
