"""An evaluation that is killed, and started again."""

from itertools import islice

import numpy as np
import pytest

from data_schemas.arrow import read_table
from data_schemas.rollouts import ResponseScore
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.errors import EngineError
from tasks.evaluation.journal import Journal, open_journal
from tasks.evaluation.respondents import EvaluationAnswer
from tasks.evaluation.runner import Candidate, evaluate
from tasks.gym.table import score_batch

SETTINGS = EvaluationSettings(samples=2)


class _Scorer:
    """Scores the texts of an endpoint."""

    def __init__(self):
        self._items = []

    def submit(self, item):
        self._items.append(item)

    def gather(self):
        verdicts = score_batch(
            [item.problem for item in self._items], [item.tokens for item in self._items]
        )
        return {
            (item.group, item.sample): ResponseScore(item.tokens, verdict, 0.0, 0)
            for item, verdict in zip(self._items, verdicts, strict=True)
        }

    def check_canaries(self, verifiers):
        pass


class _Respondent:
    """Answers 7 to everything but `failing`, and dies after `lives` answers."""

    def __init__(self, lives=99, failing=()):
        self.asked, self._lives, self._failing = [], lives, failing

    def answer(self, problems, asked):
        self.asked = list(asked)
        for name, sample in islice(asked, self._lives):
            failure = "no_reply" if (name, sample) in self._failing else ""
            yield EvaluationAnswer(
                name, sample, "" if failure else "7", 1, failure=failure, detail="gone"
            )
        if self._lives < len(asked):
            raise EngineError("killed")


@pytest.fixture
def run(make_problem, tmp_path):
    """Evaluate one respondent with a journal in the same store; returns the samples."""

    def run(respondent, *, names="abc", settings=SETTINGS, model="m", place="out"):
        problems = [make_problem(name) for name in names]
        journal = open_journal(str(tmp_path / "store"), model, settings, problems)
        out = tmp_path / place
        out.mkdir(exist_ok=True)
        evaluate(settings, Candidate("m", model, respondent), problems, _Scorer(), out, journal)
        return read_table(out / "samples.parquet", SampleResult)

    return run


def test_only_what_is_missing_is_asked_again(run):
    with pytest.raises(EngineError, match="killed"):
        run(_Respondent(lives=3))

    second = _Respondent()
    samples = run(second)

    assert [("b", 1), ("c", 0), ("c", 1)] == second.asked
    assert samples == run(_Respondent(), place="never killed")


def test_a_finished_evaluation_asks_everything_again(run):
    run(_Respondent())
    again = _Respondent()
    run(again)

    assert 6 == len(again.asked)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"settings": EvaluationSettings(samples=2, temperature=0.5)},
        {"settings": EvaluationSettings(samples=2, max_new_tokens=9)},
    ],
)
def test_answers_of_another_model_or_sampling_are_not_used(run, change):
    with pytest.raises(EngineError):
        run(_Respondent(lives=3))

    second = _Respondent()
    run(second, **change)

    assert 6 == len(second.asked)


def test_more_samples_of_the_same_problems_ask_the_new_ones(run):
    with pytest.raises(EngineError):
        run(_Respondent(lives=5))

    second = _Respondent()
    run(second, settings=EvaluationSettings(samples=3))

    assert [("a", 2), ("b", 2), ("c", 1), ("c", 2)] == second.asked


def test_an_answer_to_another_prompt_with_the_same_id_is_not_used(make_problem, tmp_path):
    problem, other = make_problem("a"), make_problem("b").model_copy(update={"id": "a"})
    journal = Journal(str(tmp_path), {"a": problem}, every_s=0.0)
    journal.add(EvaluationAnswer("a", 0, "7"))

    assert [EvaluationAnswer("a", 0, "7")] == Journal(str(tmp_path), {"a": problem}).load(
        [("a", 0)]
    )
    assert [] == Journal(str(tmp_path), {"a": other}).load([("a", 0)])


def test_tokens_of_a_checkpoint_come_back_as_they_were(make_problem, tmp_path):
    journal = Journal(str(tmp_path), {"a": make_problem("a")}, every_s=0.0)
    answer = EvaluationAnswer("a", 1, np.array([3, 1], dtype=np.int32), 2, True, 0.5)
    journal.add(answer)

    (back,) = journal.load([("a", 1), ("a", 0)])

    assert (np.int32, [3, 1]) == (back.content.dtype, back.content.tolist())
    assert ("a", 1, 2, True, 0.5) == (
        *(back.problem_id, back.sample, back.tokens, back.truncated, back.surprisal_nats),
    )


def test_what_an_endpoint_does_not_answer_is_counted_and_never_scored(run):
    failing = {("a", 0), ("b", 0), ("b", 1)}

    samples = run(_Respondent(failing=failing))

    failed = [row for row in samples if (row.problem_id, row.sample) in failing]
    assert {(None, "no_reply", "gone")} == {(row.score, row.reason, row.detail) for row in failed}
    assert {1.0} == {row.score for row in samples if row not in failed}


def test_what_failed_is_asked_again_by_the_next_run(run):
    run(_Respondent(failing={("b", 1)}))

    second = _Respondent()
    samples = run(second)

    assert [("b", 1)] == second.asked
    assert {1.0} == {row.score for row in samples}


@pytest.mark.attack
@pytest.mark.parametrize("how", ["planted", "changed", "of another evaluation"])
def test_answers_that_were_not_signed_for_the_evaluation_are_asked_again(run, tmp_path, how):
    with pytest.raises(EngineError, match="killed"):
        run(_Respondent(lives=3))
    (file,) = (tmp_path / "store" / "answers").rglob("*.jsonl")
    if how == "planted":
        file.write_bytes(b'{"problem": "a", "sample": 0}\n')
    elif how == "changed":
        content = file.read_bytes()
        file.write_bytes(content.replace(b'"payload":"eyJ', b'"payload":"eyK'))
    else:  # of a model that answers better
        with pytest.raises(EngineError, match="killed"):
            run(_Respondent(lives=3), model="better")
        found = (tmp_path / "store" / "answers").rglob("*.jsonl")
        (other,) = (path for path in found if path != file)
        file.unlink()
        other.rename(file.with_name(other.name))

    second = _Respondent()
    run(second)
    assert 6 == len(second.asked)
