"""Two executions beside each other on one page."""

import json
import re
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.reports import EvaluationReport, SuiteScore
from data_schemas.rows import HELD_OUT, Problem
from data_schemas.statements import ExecutionRecord, Input, Output, Statement
from tasks.errors import SettingsError
from tasks.formats.progression import write_progression
from tasks.pages.commands import compare_runs
from tasks.provenance.lineage.signatures.pages import signers_of
from tasks.provenance.lineage.statements import save_execution, save_statement
from tasks.store.files import sha256_bytes, write_bytes
from tasks.store.interface import store_at
from tasks.store.location import identity
from tasks.store.manifest import MANIFEST, folder_manifest
from tasks.store.objects import publish
from tests.pages.test_before_after import evaluated, problem
from tests.records import filled, suite_score

PROBLEMS = [problem(number) for number in range(3)]


def kept(store: Path, folder: Path, role: str) -> Output:
    manifest = folder_manifest(folder)
    write_bytes(folder / MANIFEST, manifest)
    digest = sha256_bytes(manifest)
    return Output(role=role, uri=publish(folder, digest, str(store)), digest=digest)


def score(suite: str, accuracy: float) -> SuiteScore:
    return suite_score(accuracy, suite=suite, problems=3, samples=2)


def report(model: str, accuracy: float) -> EvaluationReport:
    suites = {"all": accuracy, "domain:maths": accuracy + 0.1, "domain:choice": accuracy - 0.1}
    return filled(
        EvaluationReport,
        model=model,
        suites=tuple(score(name, value) for name, value in suites.items()),
    )


def ran(store: Path, execution: str, *, steps: int, accuracy: float, tokens: int) -> None:
    """Write what curation, a phase of RL and the comparison of an execution leave behind."""
    work = store.parent / execution
    curated, progression = work / "curated", work / "progression"
    curated.mkdir(parents=True)
    progression.mkdir()
    write_table(curated / HELD_OUT, Problem, PROBLEMS)
    write_progression(progression, [report("base", 0.2), report("rl/two", accuracy)], [])
    answers = evaluated(work / "answers", f"rl/two of {execution}", PROBLEMS, 1.0)
    last = kept(store, answers, "candidate")
    for stage, settings, inputs, output, facts in (
        ("curate", {"seed": 1}, (), kept(store, curated, "curated"), {}),
        ("rl/two", {"steps": steps, "seed": 1}, (), None, {"generated_tokens": tokens}),
        ("compare", {}, (last,), kept(store, progression, "progression"), {}),
    ):
        statement = filled(
            Statement,
            stage=stage,
            settings=json.dumps(settings),
            inputs=tuple(Input(**one.model_dump(), statement="") for one in inputs),
            outputs=(output,) if output else (),
            facts=dict(facts),
        )
        save_execution(
            str(store),
            filled(
                ExecutionRecord,
                execution=execution,
                stage=stage,
                statement=save_statement(str(store), statement),
                started=1e9,
            ),
        )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "runs"
    store_at(str(place)).open()
    ran(place, "first", steps=4, accuracy=0.4, tokens=1000)
    ran(place, "second", steps=40, accuracy=0.65, tokens=12345)
    return place


def test_two_executions_stand_side_by_side_and_the_index_links_the_page(
    store: Path, capsys: pytest.CaptureFixture[str]
):
    compare_runs(["first", "second", "--store", str(store)])

    place = store / "reports" / "second-against-first.html"
    assert f"Page: {place}" in capsys.readouterr().out
    text = " ".join(re.sub(r"<[^>]+>", " ", place.read_text().partition("<body>")[2]).split())
    text = text.replace("\N{NO-BREAK SPACE}", " ")
    for expected in (
        "65.0 % of the held-out problems are solved, before 40.0 % (+25.0 points).",
        "setting stages before after steps rl/two 4 40 Which",  # and no other setting
        "base 20.0 % 15.0 to 25.0 20.0 % 15.0 to 25.0 0.0",
        "rl/two 40.0 % 35.0 to 45.0 65.0 % 60.0 to 70.0 +25.0",
        "maths 3 50.0 % 75.0 %",
        "rl/two generated 1,000 12,345",
        "before rl/two of first says 0",
        "after rl/two of second says 0",
    ):
        assert expected in text, text
    assert "reports/second-against-first.html" in (store / "index.html").read_text()
    (statement,) = (store / "pages" / "reports" / place.name).iterdir()
    assert signers_of(
        f"reports/{place.name}",
        sha256_bytes(place.read_bytes()),
        statement.read_bytes(),
        identity(str(store)),
    )


def test_an_execution_that_is_not_there_is_named_with_the_one_that_was_meant(store: Path):
    with pytest.raises(SettingsError, match=r"has no execution 'secnd'; did you mean `second`\?"):
        compare_runs(["first", "secnd", "--store", str(store)])
