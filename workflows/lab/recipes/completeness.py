"""Whether explanations of ambiguous words name all of their meanings, by a judge.

pyflyte run workflows/lab/recipes/completeness.py completeness --file explanations.jsonl \\
    --judge '{"kind":"http","address":"http://host:8000/v1","model":"judge"}'
"""

from data_schemas.artifacts import ReportRef
from data_schemas.rl_settings import JudgeSettings
from tasks.lab.recipes.completeness.task import measure_completeness
from tasks.platform.entry_point import entry_point
from tasks.stages.opening import open_store


@entry_point
def completeness(judge: JudgeSettings, file: str, store: str = "runs") -> ReportRef:
    """Ask a judge for markers and definitions of every explanation, and report rates by style.

    Args:
        judge: endpoint or model directory; it is asked twice about every explanation.
        file: JSON lines with word and response, and if wanted style ('simple language') and senses;
            words.yaml of the project has the senses of 37 words of shops.
        store: folder or s3:// prefix where artifacts and lineage are kept.

    Returns:
        rates.json: complete, full, marker and aware by style, with bounds for rows without verdict.
    """
    context = open_store(store=store, workflow="completeness", last="measure_completeness")
    return measure_completeness(judge=judge, file=file, context=context)
