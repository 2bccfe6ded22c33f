"""Flyte shell of stages 4 and 5: one phase of RL, resumed where it stopped."""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import (
    AnyRef,
    CheckpointRef,
    Context,
    GradedRef,
    ReportRef,
)
from data_schemas.rl_settings import AnyRecipe, RecipePhase, RLSettings
from data_schemas.rows import Domain, Parent
from tasks.algorithms.token_uses import goodput
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_scoring
from tasks.pages.publisher import Publisher, page_name
from tasks.platform import telemetry
from tasks.platform.deck import deck_while_running
from tasks.platform.progress import ProgressBar
from tasks.platform.shell import shell
from tasks.provenance.lineage.base_model import read_model
from tasks.provenance.lineage.judges import read_judge
from tasks.provenance.lineage.stage import StageRecord
from tasks.rl import phase as phases
from tasks.rl.learned import read_learned
from tasks.rl.recipe import code_of, open_recipe, pinned_source, with_recipe, without_recipe
from tasks.rl.state import past_code
from tasks.rl.views import page_of_phase
from tasks.stages.runner import Facts, Inputs, Outputs, PassThrough, Record, Work, run
from tasks.training.foundation.named_models import replace_models

GOODPUT = "tokens/accepted_per_s"
"""Metric in MLflow: accepted tokens per second times freshness; it differs from run to run, so that
it is in no report."""
NO_STEPS = "settings.steps is 0: the start model is passed on"


class PhaseOutputs(NamedTuple):
    """Outputs of a phase."""

    model: CheckpointRef
    report: ReportRef


@shell("pin_recipe")
def pin_recipe(recipe: AnyRecipe) -> AnyRecipe:
    """Add the digest of its source to a recipe, which is then part of what a phase is cached by."""
    return pinned_source(recipe)


@shell("with_teachers")
def with_teachers(
    settings: RLSettings,
    taught_by: dict[Domain, Parent],
    reasoning: CheckpointRef,
    commerce: CheckpointRef,
) -> RLSettings:
    """Let the parents of a merge teach a phase, each its domains; one without a recipe stays."""
    if settings.recipe is None:
        return settings
    parents = {Parent.REASONING: reasoning.address, Parent.COMMERCE: commerce.address}
    teachers = {str(domain): parents[parent] for domain, parent in taught_by.items()}
    recipe = settings.recipe.model_copy(update={"teachers": teachers})
    return settings.model_copy(update={"recipe": recipe})


@shell("rl")
def rl(
    settings: RLSettings,
    name: str,
    start: CheckpointRef,
    graded: GradedRef,
    context: Context,
    max_tokens: int = 0,
    earlier: ReportRef | None = None,
    recipe: AnyRecipe | None = None,
) -> PhaseOutputs:
    """Train the start model on the graded problems of a phase.

    Args:
        settings: of the phase.
        name: 'rl/one' or 'rl/two'.
        start: model to train.
        graded: problems to train on.
        context: of the phases.
        max_tokens: stop after the step with this many generated tokens in total; 0 = all steps.
        earlier: of the phase before: what it has learned of the prompts.
        recipe: in place of that of the settings; from `pin_recipe`.

    The state of every committed step is on a disk and, uploaded in the background, in the store
    under a name made of settings, recipe, start model and problems: a phase that was killed resumes
    when it is run again, on this or another machine. One run at a time works on a phase; the next
    one waits for it and returns what it has committed.

    While it runs, `<store>/live/<execution>/rl-one.html` and the task's deck show its curves, the
    parts of its steps and the newest responses token by token.
    """
    reads = {"start": start, "graded": graded, "earlier": earlier}
    return run(RL, with_recipe(settings, recipe), reads, context, [max_tokens], name=name)


def _train(
    settings: RLSettings | RecipePhase,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    max_tokens: int,
) -> Facts:
    settings, recipe = without_recipe(settings)
    context, state, record = work.context, work.state, work.entry
    model, problems = inputs["start"], inputs["graded"]
    judge = read_judge(settings.rewards.judge, record)
    rows = phases.read_problems(problems, judge.kind)
    opened = open_recipe(_with_teachers(recipe, record), settings)
    learned = read_learned(inputs["earlier"]) if "earlier" in inputs else None
    pages = Publisher(
        context.store.uri, page_name(context.execution.id, work.name), deck_while_running
    )
    title = f"{work.name} of {context.execution.id}"
    page = partial(page_of_phase, state.folder, load_tokenizer(model), title)
    phase = phases.Phase(
        settings, model, rows, state.folder, work.code, max_tokens, learned, opened
    )
    rewards = settings.rewards.model_copy(update={"judge": judge})
    with open_scoring(model, rewards) as scorer:
        scorer.check_canaries(phases.verifiers_in_use(phase))
        total = None if max_tokens else settings.steps  # tokens end it before
        with ProgressBar(work.name, total) as bar:
            for step in phases.train(phase, scorer, state.stop):
                state.commit()
                record.metrics(step.report.step, step.report.metrics)
                if (score := goodput([(step.report, step.timing)])) is not None:
                    record.metrics(step.report.step, {GOODPUT: score})
                parts = {f"seconds/{part}": s for part, s in step.timing.seconds.items()}
                telemetry.show(parts, {"stage": work.name, "execution": context.execution.id})
                pages.publish(partial(page, total, step.report.step, running=True))
                bar.advance()
    facts = phases.finish(phase, outputs["model"], outputs["report"])
    phases.write_times(phase, outputs.beside("report"))
    pages.publish(partial(page, total, int(facts["steps"]), running=False), last=True)
    record.rows(len(rows), int(facts["prompts"]))
    return facts


def _skip(settings: RLSettings | RecipePhase, *_: object) -> PassThrough | None:
    steps = without_recipe(settings)[0].steps
    return None if steps else PassThrough("start", NO_STEPS)


def _state(settings: RLSettings | RecipePhase, refs: Mapping[str, AnyRef], max_tokens: int) -> str:
    plain, recipe = without_recipe(settings)
    earlier = refs["earlier"].digest if "earlier" in refs else ""
    digests = refs["start"].digest, refs["graded"].digest
    return phases.state_folder(Path(), plain, *digests, max_tokens, earlier, recipe).name


RL = Record(
    "rl",
    _train,
    PhaseOutputs,
    skip=_skip,
    once=True,
    past_code=past_code,
    code=code_of,
    work=_state,
)


def _with_teachers(recipe: AnyRecipe | None, record: StageRecord) -> AnyRecipe | None:
    """Record the models that teach as inputs; name their local folders in the recipe."""
    if recipe is None:
        return None
    reader = cache(lambda role, address: str(read_model(role, address, record)))
    return replace_models(recipe, reader)
