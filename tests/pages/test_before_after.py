"""Twenty answers before and after, which nobody chose."""

from collections import Counter
from pathlib import Path

from data_schemas.arrow import write_table
from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.reports import EvaluationReport
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.pages.before_after import before_and_after


def problem(number: int) -> Problem:
    domain = Domain.MATHS if number < 50 else Domain.CHOICE
    return Problem(
        id=f"p/{number}",
        domain=domain,
        language="en",
        messages=(Message(role=Role.USER, content=f"ask {number}"),),
        verifier="final_answer",
        answer='{"value":"7"}',
        source="hand",
        source_row="0" * 64,
    )


def evaluated(folder: Path, model: str, problems: list[Problem], score: float | None) -> Path:
    folder.mkdir()
    report = EvaluationReport(
        model=model,
        checkpoint="c",
        suites=(),
        truncated_share=0.0,
        mean_response_tokens=1.0,
        mean_entropy_nats=None,
    )
    (folder / "report.json").write_text(report.model_dump_json())
    rows = [
        SampleResult(
            problem_id=one.id,
            domain=one.domain,
            language="en",
            source="hand",
            sample=sample,
            text=f"{model} says {sample}",
            score=score,
            reason="checked",
            tokens=3,
            truncated=False,
            surprisal_nats=None,
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
    assert "p/0" not in {one.title.rpartition(" ")[2] for one in shown}
    first = shown[0].answers
    assert [("base", "base says 0", "no"), ("rl/two", "rl/two says 0", "yes")] == [
        (answer.model, answer.text, answer.kind) for answer in first
    ]
    assert shown == before_and_after(before, after, problems[::-1])
