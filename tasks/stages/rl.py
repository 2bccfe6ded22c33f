"""Flyte shell of stages 4 and 5: one phase of RL, resumed where it stopped."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, ReportRef, StoreRef
from data_schemas.group import Settings
from data_schemas.machine_settings import Reuse
from data_schemas.mars_settings import MarsPhase, MarsRecipe
from data_schemas.reports import SKIPPED_FILE
from data_schemas.rl_settings import RLSettings
from data_schemas.scaffold_settings import ScaffoldSettings, with_scaffold
from data_schemas.spell_settings import SpellPhase, SpellRecipe
from tasks.durability.durable import keep_durable
from tasks.durability.preemption import listen_for_sigterm
from tasks.engines.chat import load_tokenizer
from tasks.gym.scoring.service import ScoringService
from tasks.pages.live.publisher import Publisher, page_name
from tasks.platform import resources
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts, deck_while_running
from tasks.platform.progress import progress
from tasks.platform.retries import checkpoint
from tasks.platform.shell import shell
from tasks.provenance.lineage.base_model import read_judge
from tasks.provenance.lineage.stage import stage, workplace
from tasks.rl import run
from tasks.rl.durability.views import page_of_phase
from tasks.rl.recipes.opening import open_recipe
from tasks.rl.rollouts.reuse import read_responses
from tasks.store import results
from tasks.store.files import canonical_json, write_bytes


class Trained(NamedTuple):
    """Outputs of a phase."""

    model: CheckpointRef
    report: ReportRef


@shell("rl")
def rl(
    settings: RLSettings,
    name: str,
    start: CheckpointRef,
    graded: DatasetRef,
    store: StoreRef,
    execution: Execution,
    max_tokens: int = 0,
    earlier: ReportRef | None = None,
) -> Trained:
    """Train the start model on the graded problems of a phase.

    Args:
        settings: of the phase.
        name: 'rl/one' or 'rl/two'.
        start: model to train.
        graded: problems to train on.
        store: of the run.
        execution: of the workflow.
        max_tokens: stop after the step with this many generated tokens in total; 0 = all steps.
        earlier: of the phase before, whose responses `engines.reuse` may reuse beside grading's.

    The state of every committed step is on a disk and, uploaded in the background, in the store
    under a name made of settings, start model and problems: a phase that was killed resumes when it
    is run again, on this or another machine. One run at a time works on a phase; the next one waits
    for it and returns what it has committed.

    While it runs, `<store>/live/<execution>/rl-one.html` and the task's deck show its curves, the
    parts of its steps and the newest responses token by token.
    """
    digest = code_digest("rl")
    if not settings.steps:
        return _passed_on(settings, name, start, store, execution, digest)
    before = earlier if settings.engines.reuse is Reuse.PREFIX else None
    work = _Work(settings, settings, name, digest, max_tokens, before)
    return _train(work, start, graded, store, execution)


@shell("rl_agents")
def rl_agents(
    settings: RLSettings,
    recipe: MarsRecipe,
    name: str,
    start: CheckpointRef,
    graded: DatasetRef,
    store: StoreRef,
    execution: Execution,
) -> Trained:
    """Train the start model as solver, verifier and corrector of the graded problems.

    As `rl`, whose loop, state, ledger and report it shares.

    Args:
        settings: of the phase.
        recipe: which turns follow a solver's group.
        name: 'rl/mars'.
        start: model to train.
        graded: problems to train on.
        store: of the run.
        execution: of the workflow.
    """
    told = MarsPhase(rl=settings, recipe=recipe)
    work = _Work(told, settings, name, code_digest("rl_agents"), recipe=recipe)
    return _train(work, start, graded, store, execution)


@shell("rl_self_play")
def rl_self_play(
    settings: RLSettings,
    recipe: SpellRecipe,
    name: str,
    start: CheckpointRef,
    graded: DatasetRef,
    store: StoreRef,
    execution: Execution,
    max_tokens: int = 0,
) -> Trained:
    """Train the start model as questioner, responder and verifier on clusters of documents.

    As `rl`, whose loop, state, ledger and report it shares.

    Args:
        settings: of the phase.
        recipe: what the roles are shown, and which of them train.
        name: 'rl/spell'.
        start: model to train, whose responses have the forms of the three roles.
        graded: the clusters.
        store: of the run.
        execution: of the workflow.
        max_tokens: stop after the step with this many generated tokens in total; 0 = all steps.
    """
    told = SpellPhase(rl=settings, recipe=recipe)
    digest = code_digest("rl_self_play")
    work = _Work(told, settings, name, digest, max_tokens, recipe=recipe)
    return _train(work, start, graded, store, execution)


@shell("rl_scaffolded")
def rl_scaffolded(
    settings: RLSettings,
    scaffold: ScaffoldSettings,
    name: str,
    start: CheckpointRef,
    graded: DatasetRef,
    store: StoreRef,
    execution: Execution,
    max_tokens: int = 0,
) -> Trained:
    """Train the start model on problems with rubrics, whose criteria its prompts show for a while.

    As `rl`, whose loop, state, ledger and report it shares.

    Args:
        settings: of the phase; the scaffold's curve spans its steps.
        scaffold: which criteria a step and a sample see.
        name: 'rl/scaffold'.
        start: model to train.
        graded: problems to train on.
        store: of the run.
        execution: of the workflow.
        max_tokens: stop after the step with this many generated tokens in total; 0 = all steps.
    """
    told = with_scaffold(settings, scaffold)
    work = _Work(told, told, name, code_digest("rl_scaffolded"), max_tokens)
    return _train(work, start, graded, store, execution)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a phase does, besides its artifacts."""

    told: Settings
    """In its statement."""
    settings: RLSettings
    name: str
    digest: str
    """Of the code."""
    max_tokens: int = 0
    before: ReportRef | None = None
    recipe: MarsRecipe | SpellRecipe | None = None


def _train(
    work: _Work, start: CheckpointRef, graded: DatasetRef, store: StoreRef, execution: Execution
) -> Trained:
    """Do a phase, or what is left of it."""
    settings, name, digest, before = work.settings, work.name, work.digest, work.before
    folder = run.state_folder(
        Path(os.environ.get("EACHPROMPT_STATE") or workplace(store)),
        settings,
        start.digest,
        graded.digest,
        work.max_tokens,
        before.digest if before else "",
        work.recipe,
    )
    # The disk may be lost with the machine; the store is durable.
    uri, slot = f"{store.uri}/state/{folder.name}", checkpoint()
    with results.exclusive(f"{execution.id}, {name}", str(folder), uri) as check_lease:
        if (done := results.find(uri, name, digest)) and done.report:
            results.clear(folder, uri)
            return Trained(done.model, done.report)
        with (
            listen_for_sigterm(resources.STAGES["rl"].grace_s) as stop,
            keep_durable(folder, uri, slot, stop.seconds_left) as keeper,
        ):
            code = run.all_code(folder, digest)
            with stage(name, work.told, store, execution, code) as record:
                model, problems = record.read("start", start), record.read("graded", graded)
                judge = read_judge(settings.rewards.judge, record, store)
                rows = run.read_problems(problems, judge.kind)
                folders = [problems, *([record.read("earlier", before)] if before else [])]
                responses = read_responses(settings.engines.reuse, folders)
                pages = Publisher(store.uri, page_name(execution.id, name), deck_while_running)
                show = partial(
                    page_of_phase, folder, load_tokenizer(model), f"{name} of {execution.id}"
                )
                course = run.Phase(
                    settings,
                    model,
                    rows,
                    folder,
                    digest,
                    work.max_tokens,
                    responses,
                    open_recipe(work.recipe),
                )
                rewards = settings.rewards.model_copy(update={"judge": judge})
                with ScoringService(model, rewards) as scorer:
                    scorer.check_canaries(run.verifiers_in_use(course))
                    total = None if work.max_tokens else settings.steps  # tokens end it before
                    for step in progress(run.train(course, scorer, stop), name, total):
                        check_lease()
                        record.metrics(step.report.step, step.report.metrics)
                        keeper.upload_newest()
                        pages.publish(partial(show, total, step.report.step, running=True))
                with record.output("model") as model_out, record.output("report") as report_out:
                    facts = run.finish(course, model_out, report_out)
                shown = partial(show, total, int(facts["steps"]), running=False)
                pages.publish(shown, last=True)
                record.facts(facts)
                record.rows(len(rows), int(facts["prompts"]))
                deck_of_facts(name, facts)
                trained = Trained(
                    record.ref("model", CheckpointRef), record.ref("report", ReportRef)
                )
        results.record(uri, name, digest, execution.id, *trained)
        results.clear(folder, uri)
    return trained


def _passed_on(
    settings: RLSettings,
    name: str,
    start: CheckpointRef,
    store: StoreRef,
    execution: Execution,
    digest: str,
) -> Trained:
    reason = "settings.steps is 0: the start model is passed on"
    with stage(name, settings, store, execution, digest) as record:
        record.read("start", start)
        with record.output("report") as out:
            write_bytes(out / SKIPPED_FILE, canonical_json({"reason": reason}))
        record.facts({"skipped": reason})
        return Trained(start, record.ref("report", ReportRef))
