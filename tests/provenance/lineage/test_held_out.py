"""The held-out problems of a model are those of its last evaluation."""

from pathlib import Path

from data_schemas.arrow import write_table
from data_schemas.artifacts import Context, DatasetRef, Execution, ReportRef
from data_schemas.rows import HELD_OUT, Domain, Problem
from data_schemas.settings import EvaluationSettings, MergeSettings
from tasks.provenance.lineage.held_out import held_out_of
from tasks.provenance.lineage.stage import stage
from tests.provenance.lineage.small_chain import make_raw, train
from tests.records import problem_of


def test_the_problems_are_found_by_the_statements_behind_an_evaluation(store, execution: Execution):
    context = Context(store, execution)
    problem = problem_of(
        "Which?", "{}", id="shop/1", domain=Domain.CHOICE, verifier="choice", source="shop"
    )
    model = train(store, execution, make_raw(store, execution))
    with stage("curate", MergeSettings(), context, "code-5") as record, record.output("set") as out:
        write_table(Path(out) / HELD_OUT, Problem, [problem])
    curated = record.ref("set", DatasetRef)
    with stage("evaluate/sft", EvaluationSettings(), context, "code-6") as record:
        record.read("model", model)
        record.read("curated", curated)
        with record.output("report") as out:
            (out / "report.json").write_text("{}")
    report = record.ref("report", ReportRef)

    assert [problem] == held_out_of(report.statement, store)
    assert [] == held_out_of(model.statement, store)
