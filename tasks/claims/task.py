"""Flyte shell of the claims: one page from the reports of a study and of a judge."""

from data_schemas.artifacts import Execution, ReportRef, StoreRef
from data_schemas.settings import EvaluationSettings
from tasks.ablation.report import AblationReport
from tasks.ablation.task import REPORT_FILE
from tasks.claims import table, text
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
from tasks.store.files import write_bytes
from tasks.training.judge.measurement import REPORT_FILE as JUDGE_FILE
from tasks.training.judge.report import JudgeReport

MARKDOWN_FILE = "claims.md"
PAGE_FILE = "claims.html"


@shell("compare_claims")
def compare_claims(
    settings: EvaluationSettings,
    study: ReportRef,
    judge: ReportRef,
    store: StoreRef,
    execution: Execution,
) -> ReportRef:
    """Set the papers' numbers beside those of a study and of a judge; print and store the page.

    Args:
        settings: of the held-out evaluations.
        study: report of the ablation.
        judge: report of the judge.
        store: of the run.
        execution: of the workflow.
    """
    with stage("claims", settings, store, execution, code_digest("compare_claims")) as record:
        studied = record.read("study", study) / REPORT_FILE
        judged = record.read("judge", judge) / JUDGE_FILE
        evidence = table.Evidence(
            AblationReport.model_validate_json(studied.read_bytes()),
            JudgeReport.model_validate_json(judged.read_bytes()),
        )
        sheet = text.sheet(evidence)
        with record.output("report") as out:
            write_bytes(out / MARKDOWN_FILE, sheet.markdown.encode())
            write_bytes(out / PAGE_FILE, sheet.page.encode())
        verdicts = [row[-1] for row in table.rows(evidence)]
        record.facts({"claims": len(verdicts), "shown": verdicts.count(table.SHOWN)})
        record.rows(len(verdicts), verdicts.count(table.SHOWN))
        deck(sheet.page)
        sheet.show()
        return record.ref("report", ReportRef)
