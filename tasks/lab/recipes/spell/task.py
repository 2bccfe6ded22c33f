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
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.resources import GPU_NODE, SMALL, WAIT, Stage, add_stages
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
from tasks.store.files import canonical_json, write_bytes

FORMS_FILE = "forms.json"


add_stages(
    {
        "check_forms": Stage("lab.recipes.spell.task", GPU_NODE, "rollout", hours=4, retries=3),
        "tabulate_self_play": Stage(
            "lab.recipes.spell.task", SMALL, "cpu", hours=WAIT, retries=2, cached=False
        ),
    }
)


class Formed(NamedTuple):
    """A start model that has passed the gate, and what was measured."""

    model: CheckpointRef
    report: ReportRef


@shell("check_forms")
def check_forms(
    settings: EvaluationSettings, start: CheckpointRef, curated: DatasetRef, context: Context
) -> Formed:
    """Refuse a start model that does not write the forms of the three roles.

    Args:
        settings: of sampling.
        start: the fine-tuned model.
        curated: has the demonstrations, whose prompts it is asked.
        context: of the run.
    """
    with stage("spell/forms", settings, context, code_digest("check_forms")) as record:
        model = record.read("start", start)
        table = read_table(record.read("curated", curated) / DEMONSTRATIONS, Demonstration)
        prompts = forms.taught_prompts(table)
        tokenizer = load_tokenizer(model)
        with (
            closing(open_rollout(settings.engines, model)) as engine,
            open_scoring(None, RewardSettings()) as scorer,
        ):
            scored_model = ScoredModel(
                Checkpoint(engine, tokenizer, settings), tokenizer, scorer.score
            )
            shares = forms.valid_shares(scored_model, prompts)
        forms.require_forms(shares)
        with record.output("report") as out:
            write_bytes(out / FORMS_FILE, canonical_json(shares))
        record.facts(shares)
        deck_of_facts("spell/forms", shares)
        return Formed(start, record.ref("report", ReportRef))


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
    with stage("spell", settings, context, code_digest("tabulate_self_play")) as record:
        before = {
            seed: table.read_scores(record.read(f"start/{seed}", ref))
            for seed, ref in enumerate(starts)
        }
        cells = []
        for name, training, evaluation in zip(names, trainings, held_out_evaluations, strict=True):
            variant, _, seed = name.rpartition("/")
            folders = (
                record.read(f"{name}/training", training),
                record.read(f"{name}/held_out_evaluation", evaluation),
            )
            cells.append(table.read_cell(variant, int(seed), *folders))
        lines = table.lines_of(cells, before, settings.seed)
        with record.output("report") as out:
            write_bytes(out / "spell.json", canonical_json([line.model_dump() for line in lines]))
            write_bytes(out / "spell.md", table.markdown(lines).encode())
        facts = {f"tokens/{cell.variant}/{cell.seed}": cell.tokens for cell in cells}
        record.facts(facts)
        record.rows(len(cells), len(lines))
        deck_of_facts("spell", facts)
        Console(soft_wrap=True, highlight=False).print(table.markdown(lines), markup=False)
        return record.ref("report", ReportRef)
