"""Twenty answers before and after, which nobody chose."""

from collections import Counter
from pathlib import Path

from data_schemas.arrow import write_table
from data_schemas.artifacts import Execution
from data_schemas.reports import EvaluationReport
from data_schemas.rows import Domain, Problem
from data_schemas.samples import SampleResult
from data_schemas.settings import PipelineSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.pages.before_after import before_and_after
from tasks.pages.inputs import RunInputs
from tasks.pages.page import write_report
from tests.records import filled, problem_of


def problem(number: int) -> Problem:
    domain = Domain.MATHS if number < 50 else Domain.CHOICE
    return problem_of(f"ask {number}", '{"value":"7"}', id=f"p/{number}", domain=domain)


def evaluated(folder: Path, model: str, problems: list[Problem], score: float | None) -> Path:
    folder.mkdir()
    report = filled(EvaluationReport, model=model, suites=())
    (folder / "report.json").write_text(report.model_dump_json())
    rows = [
        filled(
            SampleResult,
            reason="checked",
            problem_id=one.id,
            domain=one.domain,
            sample=sample,
            text=f"{model} says {sample}",
            score=score,
            tokens=3,
        )
        for one in problems
        for sample in (1, 0)
    ]
    write_table(folder / SAMPLES_FILE, SampleResult, rows)
    return folder


def test_twenty_problems_are_drawn_from_every_family_with_the_first_answers(tmp_path: Path):
    problems = [problem(number) for number in range(55)]
    before = evaluated(tmp_path / "before", "base", problems, 0.0)
    after = evaluated(tmp_path / "after", "rl/two", problems[1:], 1.0)

    shown = before_and_after(before, after, problems)

    assert 20 == len(shown)
    assert {"maths": 15, "choice": 5} == Counter(one.title.partition(",")[0] for one in shown)
    assert "p/0" not in {one.prompt.partition("\n")[0] for one in shown}
    first = shown[0].answers
    assert [("base", "base says 0", "no"), ("rl/two", "rl/two says 0", "yes")] == [
        (answer.model, answer.text, answer.kind) for answer in first
    ]
    assert shown == before_and_after(before, after, problems[::-1])


def test_both_answers_stand_on_the_page_with_their_verdicts(tmp_path: Path):
    problems = [problem(number) for number in range(3)]
    before = evaluated(tmp_path / "before", "base", problems, None)
    after = evaluated(tmp_path / "after", "rl/two", problems, 1.0)
    run = RunInputs(
        workflow="post_training",
        execution=Execution(id="c3d4", started=1.0),
        settings=PipelineSettings(),
        stages=(),
        answers=before_and_after(before, after, problems),
    )

    page = write_report(run, tmp_path).read_text()

    assert "What does it answer?" in page
    assert 3 == page.count("base: no verdict: checked")
    assert 3 == page.count("rl/two says 0")
