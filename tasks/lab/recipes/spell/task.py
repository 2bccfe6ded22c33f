"""Flyte shells of the self-play study: the gate, the recipe of a variant, the table."""

from contextlib import closing
from typing import NamedTuple

from rich.console import Console

from data_schemas.arrow import read_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    ReportRef,
)
from data_schemas.rl_settings import RewardSettings
from data_schemas.rows import DEMONSTRATIONS, Demonstration
from data_schemas.settings import EvaluationSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.engines.select import open_rollout
from tasks.evaluation.respondents import Checkpoint, ScoredModel
from tasks.lab.recipes.spell import forms, table
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, Record, StageResult, Work, numbered, run
from tasks.store.files import canonical_json, write_bytes

FORMS_FILE = "forms.json"
START = "start"
"""Role of the evaluations of the start models."""


add_stages(
    {
        "check_forms": Stage("lab.recipes.spell.task", GPU_NODE, "rollout", hours=4, retries=3),
        "tabulate_self_play": Stage(
            "lab.recipes.spell.task", SMALL, "cpu", hours=WAIT, retries=2, cached=False
        ),
    }
)


class StartOutputs(NamedTuple):
    """A start model that has passed the gate, and what was measured."""

    model: CheckpointRef
    report: ReportRef


def _check(
    settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, work: Work
) -> StageResult:
    model = inputs["start"]
    prompts = forms.taught_prompts(read_table(inputs["curated"] / DEMONSTRATIONS, Demonstration))
    tokenizer = load_tokenizer(model)
    with (
        closing(open_rollout(settings.engines, model)) as engine,
        open_scoring(None, RewardSettings()) as scorer,
    ):
        answers = Checkpoint(engine, tokenizer, settings)
        shares = forms.valid_shares(ScoredModel(answers, tokenizer, scorer.score), prompts)
    forms.require_forms(shares)
    write_bytes(outputs["report"] / FORMS_FILE, canonical_json(shares))
    return StageResult(shares, values={"model": work.refs["start"]})


CHECK = Record("check_forms", _check, StartOutputs)


@shell("check_forms")
def check_forms(
    settings: EvaluationSettings, start: CheckpointRef, curated: DatasetRef, context: Context
) -> StartOutputs:
    """Refuse a start model that does not write the forms of the three roles.

    Args:
        settings: of sampling.
        start: the fine-tuned model.
        curated: has the demonstrations, whose prompts it is asked.
        context: of the run.
    """
    return run(CHECK, settings, {"start": start, "curated": curated}, context, name="spell/forms")


def _tabulate(
    settings: EvaluationSettings, inputs: Inputs, outputs: Outputs, work: Work, names: list[str]
) -> Facts:
    starts = [path for role, path in inputs.items() if role.startswith(f"{START}/")]
    before = {seed: table.read_scores(path) for seed, path in enumerate(starts)}
    cells = []
    for name in names:
        variant, _, seed = name.rpartition("/")
        folders = inputs[f"{name}/training"], inputs[f"{name}/held_out_evaluation"]
        cells.append(table.read_cell(variant, int(seed), *folders))
    lines, out = table.lines_of(cells, before, settings.seed), outputs["report"]
    write_bytes(out / "spell.json", canonical_json([line.model_dump() for line in lines]))
    write_bytes(out / "spell.md", table.markdown(lines).encode())
    work.entry.rows(len(cells), len(lines))
    Console(soft_wrap=True, highlight=False).print(table.markdown(lines), markup=False)
    return {f"tokens/{cell.variant}/{cell.seed}": cell.tokens for cell in cells}


TABULATE = Record("tabulate_self_play", _tabulate, ReportRef, "report")


@shell("tabulate_self_play")
def tabulate_self_play(
    settings: EvaluationSettings,
    names: list[str],
    starts: list[ReportRef],
    trainings: list[ReportRef],
    held_out_evaluations: list[ReportRef],
    context: Context,
) -> ReportRef:
    """Compare the variants, print and store the table.

    Args:
        settings: of the held-out evaluations.
        names: variant and seed of every cell, 'spell/0'; `trainings` and `held_out_evaluations`
            have the same order.
        starts: evaluations of the start models, by seed from 0.
        trainings: reports of the phases.
        held_out_evaluations: of their models.
        context: of the run.
    """
    reads = numbered(START, starts)
    for name, training, evaluation in zip(names, trainings, held_out_evaluations, strict=True):
        reads |= {f"{name}/training": training, f"{name}/held_out_evaluation": evaluation}
    return run(TABULATE, settings, reads, context, [names], name="spell")
