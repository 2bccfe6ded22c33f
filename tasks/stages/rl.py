"""Flyte shell of stages 4 and 5: one phase of RL, resumed where it stopped."""

import os
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    GradedRef,
    ReportRef,
    StoreRef,
)
from data_schemas.reports import SKIPPED_FILE
from data_schemas.rl_settings import AnyRecipe, RecipePhase, RLSettings
from data_schemas.rows import Domain, Parent
from tasks.durability.durable import keep_durable
from tasks.durability.preemption import listen_for_sigterm
from tasks.engines.chat import load_tokenizer
from tasks.errors import SettingsError
from tasks.gym.scoring.service import ScoringService
from tasks.pages.live import Publisher, page_name
from tasks.platform import resources, telemetry
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts, deck_while_running
from tasks.platform.progress import progress
from tasks.platform.retries import checkpoint
from tasks.platform.shell import shell
from tasks.provenance.lineage import finished
from tasks.provenance.lineage.base_model import read_judge, read_model
from tasks.provenance.lineage.stage import StageRecord, stage, workplace
from tasks.rl import phase as phases
from tasks.rl.learned import read_learned
from tasks.rl.recipe import open_recipe, pinned_source
from tasks.rl.reuse import read_responses
from tasks.rl.views import page_of_phase
from tasks.store import results
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.training.foundation.named_models import replace_models


class Trained(NamedTuple):
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
) -> Trained:
    """Train the start model on the graded problems of a phase.

    Args:
        settings: of the phase.
        name: 'rl/one' or 'rl/two'.
        start: model to train.
        graded: problems to train on.
        context: of the phases.
        max_tokens: stop after the step with this many generated tokens in total; 0 = all steps.
        earlier: of the phase before: what it has learned of the prompts, and responses that
            `engines.reuse` may reuse beside grading's.
        recipe: in place of that of the settings; from `pin_recipe`.

    The state of every committed step is on a disk and, uploaded in the background, in the store
    under a name made of settings, recipe, start model and problems: a phase that was killed resumes
    when it is run again, on this or another machine. One run at a time works on a phase; the next
    one waits for it and returns what it has committed.

    While it runs, `<store>/live/<execution>/rl-one.html` and the task's deck show its curves, the
    parts of its steps and the newest responses token by token.
    """
    digest = code_digest("rl")
    recipe = recipe or settings.recipe
    settings = settings.model_copy(update={"recipe": None})
    if recipe is not None:
        source = pinned_source(recipe).code
        if recipe.code != source:
            raise SettingsError(
                f"the source of {recipe.implementation} is {source[:12]}, and {recipe.code[:12]} "
                "was pinned; pass the settings through check_settings, or start again"
            )
        digest = sha256_bytes(f"{digest} {source}".encode())
    if not settings.steps:
        return _passed_on(settings, name, start, context, digest)
    # The disk may be lost with the machine; the store is durable.
    folder = phases.state_folder(
        Path(os.environ.get("EACHPROMPT_STATE") or workplace(context.store)),
        settings,
        start.digest,
        graded.digest,
        max_tokens,
        earlier.digest if earlier else "",
        recipe,
    )
    uri, slot = f"{context.store.uri}/state/{folder.name}", checkpoint()
    inputs = (start.digest, graded.digest, *([earlier.digest] if earlier else []))
    whole = settings if recipe is None else RecipePhase(rl=settings, recipe=recipe)
    with results.exclusive(f"{context.execution.id}, {name}", str(folder), uri) as check_lease:
        if (past := finished.find(uri, name, digest, whole, inputs)) and past.report:
            results.clear(folder, uri)
            return Trained(past.model, past.report)
        with (
            listen_for_sigterm(resources.STAGES["rl"].grace_s) as stop,
            keep_durable(folder, uri, slot, stop.seconds_left) as uploads,
            stage(name, whole, context, phases.all_code(folder, digest)) as record,
        ):
            model, problems = record.read("start", start), record.read("graded", graded)
            judge = read_judge(settings.rewards.judge, record, context.store)
            rows = phases.read_problems(problems, judge.kind)
            opened = open_recipe(_with_teachers(recipe, record, context.store), settings)
            reports = [record.read("earlier", earlier)] if earlier else []
            responses = read_responses(settings.engines.reuse, [problems, *reports])
            learned = read_learned(reports[0]) if reports else None
            pages = Publisher(
                context.store.uri, page_name(context.execution.id, name), deck_while_running
            )
            page = partial(
                page_of_phase, folder, load_tokenizer(model), f"{name} of {context.execution.id}"
            )
            phase = phases.Phase(
                settings, model, rows, folder, digest, max_tokens, responses, learned, opened
            )
            rewards = settings.rewards.model_copy(update={"judge": judge})
            with ScoringService(model, rewards) as scorer:
                scorer.check_canaries(phases.verifiers_in_use(phase))
                total = None if max_tokens else settings.steps  # tokens end it before
                for step in progress(phases.train(phase, scorer, stop), name, total):
                    check_lease()
                    record.metrics(step.report.step, step.report.metrics)
                    parts = {f"seconds/{part}": s for part, s in step.timing.seconds.items()}
                    telemetry.show(parts, {"stage": name, "execution": context.execution.id})
                    uploads.upload_newest()
                    pages.publish(partial(page, total, step.report.step, running=True))
            with record.output("model") as model_out, record.output("report") as report_out:
                facts = phases.finish(phase, model_out, report_out)
            with record.beside("report") as out:
                phases.write_times(phase, out)
            pages.publish(partial(page, total, int(facts["steps"]), running=False), last=True)
            record.facts(facts)
            record.rows(len(rows), int(facts["prompts"]))
            deck_of_facts(name, facts)
            trained = Trained(record.ref("model", CheckpointRef), record.ref("report", ReportRef))
        finished.record(uri, name, digest, context.execution.id, *trained)
        results.clear(folder, uri)
    return trained


def _with_teachers(
    recipe: AnyRecipe | None, record: StageRecord, store: StoreRef
) -> AnyRecipe | None:
    """Record the models that teach as inputs; name their local folders in the recipe."""
    if recipe is None:
        return None
    reader = cache(lambda role, address: str(read_model(role, address, record, store)))
    return replace_models(recipe, reader)


def _passed_on(
    settings: RLSettings, name: str, start: CheckpointRef, context: Context, digest: str
) -> Trained:
    reason = "settings.steps is 0: the start model is passed on"
    with stage(name, settings, context, digest) as record:
        record.read("start", start)
        with record.output("report") as out:
            write_bytes(out / SKIPPED_FILE, canonical_json({"reason": reason}))
        record.facts({"skipped": reason})
        return Trained(start, record.ref("report", ReportRef))
