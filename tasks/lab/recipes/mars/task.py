"""Flyte tasks of MarsRL: measure verifier and corrector, and tabulate what RL changed."""

from rich.console import Console

from data_schemas.arrow import read_table, write_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.rl_settings import RewardSettings
from data_schemas.settings import EvaluationSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.engines.select import opened_rollouts
from tasks.evaluation import respondents
from tasks.lab.recipes.mars import measures
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
from tasks.stages.evaluation import questions
from tasks.store.files import canonical_json, write_bytes

add_stages(
    {
        "measure_agents": Stage("lab.recipes.mars.task", GPU_NODE, "rollout", hours=24, retries=3),
        # Prints its table.
        "tabulate_agents": Stage(
            "lab.recipes.mars.task", SMALL, "cpu", hours=WAIT, retries=2, cached=False
        ),
    }
)


@shell("measure_agents")
def measure_agents(
    settings: EvaluationSettings,
    before: CheckpointRef,
    after: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> ReportRef:
    """Measure verifier and corrector of two models on every held-out problem."""
    code = code_digest("measure_agents")
    with stage("measure_agents", settings, context, code) as record:
        folders = record.read("before", before), record.read("after", after)
        problems, _ = questions(record.read("curated", curated))
        with (
            open_scoring(folders[0], RewardSettings()) as scorer,
            opened_rollouts(settings.engines, folders) as engines,
            record.output("report") as out,
        ):
            models = []
            for folder, engine in zip(folders, engines, strict=True):
                tokenizer = load_tokenizer(folder)
                answers = respondents.Checkpoint(engine, tokenizer, settings)
                models.append(respondents.ScoredModel(answers, tokenizer, scorer.score))
            rows = measures.measure(models[0], models[1], problems, settings.samples)
            write_table(out / measures.ROWS_FILE, measures.AgentRow, rows)
        record.rows(len(problems), len(rows))
        return record.ref("report", ReportRef)


@shell("tabulate_agents")
def tabulate_agents(
    settings: EvaluationSettings, parts: list[ReportRef], context: Context
) -> ReportRef:
    """Pool the measurements of several seeds, print the table and store it."""
    code = code_digest("tabulate_agents")
    with stage("tabulate_agents", settings, context, code) as record:
        folders = [record.read(f"part/{place}", ref) for place, ref in enumerate(parts, start=1)]
        tables = [read_table(folder / measures.ROWS_FILE, measures.AgentRow) for folder in folders]
        result = measures.claims(tables, settings.seed)
        with record.output("report") as out:
            write_bytes(out / "agents.json", canonical_json([c.model_dump() for c in result]))
            write_bytes(out / "agents.md", measures.markdown(result).encode())
        record.facts({claim.claim: claim.mean for claim in result})
        deck_of_facts("tabulate_agents", {claim.claim: claim.mean for claim in result})
        Console(soft_wrap=True, highlight=False).print(measures.markdown(result), markup=False)
        return record.ref("report", ReportRef)
