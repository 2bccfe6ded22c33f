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
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.evaluation import questions
from tasks.stages.runner import Facts, Inputs, Outputs, Record, Work, numbered, run
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


def _measure(settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, work: Work) -> Facts:
    folders = inputs["before"], inputs["after"]
    problems, _ = questions(inputs["curated"])
    with (
        open_scoring(folders[0], RewardSettings()) as scorer,
        opened_rollouts(settings.engines, folders) as engines,
    ):
        models = []
        for folder, engine in zip(folders, engines, strict=True):
            tokenizer = load_tokenizer(folder)
            answers = respondents.Checkpoint(engine, tokenizer, settings)
            models.append(respondents.ScoredModel(answers, tokenizer, scorer.score))
        rows = measures.measure(models[0], models[1], problems, settings.samples)
    write_table(outputs["report"] / measures.ROWS_FILE, measures.AgentRow, rows)
    work.entry.rows(len(problems), len(rows))
    return {}


MEASURE = Record("measure_agents", _measure, ReportRef, "report")


@shell("measure_agents")
def measure_agents(
    settings: EvaluationSettings,
    before: CheckpointRef,
    after: CheckpointRef,
    curated: DatasetRef,
    context: Context,
) -> ReportRef:
    """Measure verifier and corrector of two models on every held-out problem."""
    reads = {"before": before, "after": after, "curated": curated}
    return run(MEASURE, settings, reads, context)


def _tabulate(settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, _: Work) -> Facts:
    tables = [read_table(path / measures.ROWS_FILE, measures.AgentRow) for path in inputs.values()]
    result, out = measures.claims(tables, settings.seed), outputs["report"]
    write_bytes(out / "agents.json", canonical_json([claim.model_dump() for claim in result]))
    write_bytes(out / "agents.md", measures.markdown(result).encode())
    Console(soft_wrap=True, highlight=False).print(measures.markdown(result), markup=False)
    return {claim.claim: claim.mean for claim in result}


TABULATE = Record("tabulate_agents", _tabulate, ReportRef, "report")


@shell("tabulate_agents")
def tabulate_agents(
    settings: EvaluationSettings, parts: list[ReportRef], context: Context
) -> ReportRef:
    """Pool the measurements of several seeds, print the table and store it."""
    return run(TABULATE, settings, numbered("part", parts), context)
