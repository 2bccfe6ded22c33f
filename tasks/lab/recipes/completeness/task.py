"""Flyte task of definition completeness: let a judge measure explanations."""

from pathlib import Path

from rich.console import Console

from data_schemas.artifacts import Context, ReportRef
from data_schemas.rl_settings import JudgeSettings
from tasks.engines.scoring import open_judge
from tasks.errors import typed
from tasks.lab.recipes.completeness import measurement
from tasks.platform.resources import SMALL, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, run
from tasks.store import location
from tasks.store.files import canonical_json, write_bytes

# Reads files from outside.
add_stages(
    {
        "measure_completeness": Stage(
            "lab.recipes.completeness.task", SMALL, "cpu", hours=24, retries=2, cached=False
        )
    }
)


def _measure(judge: JudgeSettings, _: Inputs, outputs: Outputs, work: Work, file: str) -> Facts:
    path = Path(location.existing_file(file, "--file"))
    work.entry.source("explanations", path)
    with typed("--file"):
        explanations = measurement.read_explanations(path.read_text(encoding="utf-8"), file)
    rows = measurement.judge_rows(open_judge(judge), explanations)
    result = measurement.rates_by_style(explanations, rows)
    write_bytes(outputs["report"] / "rates.json", canonical_json(result))
    work.entry.rows(len(rows), sum(one.judged for one in result.values()))
    Console().print(measurement.table(result))
    return measurement.facts(result)


MEASURE = Record("measure_completeness", _measure, ReportRef, "report")


@shell("measure_completeness")
def measure_completeness(judge: JudgeSettings, file: str, context: Context) -> ReportRef:
    """Let a judge say which explanations of ambiguous words name all of their meanings.

    Args:
        judge: asked twice about every explanation.
        file: explanations as JSON lines: word, response, style, senses.
        context: of the run.
    """
    return run(MEASURE, judge, {}, context, [file])
