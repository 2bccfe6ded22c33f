"""Flyte shell of stages 4 and 5: one phase of RL, resumed where it stopped."""

import os
from pathlib import Path
from typing import NamedTuple

from data_schemas.artifacts import CheckpointRef, DatasetRef, Execution, ReportRef, StoreRef
from data_schemas.settings import RLSettings
from tasks import resources
from tasks.lineage.stage import stage, workplace
from tasks.progress import progress
from tasks.rewards.service import ScoringService
from tasks.rl import run


class Trained(NamedTuple):
    """What a phase leaves behind."""

    model: CheckpointRef
    report: ReportRef


@resources.shell("rl")
def rl(
    settings: RLSettings,
    name: str,
    start: CheckpointRef,
    graded: DatasetRef,
    store: StoreRef,
    execution: Execution,
    max_tokens: int = 0,
) -> Trained:
    """Train the start model on the graded problems of a phase.

    Args:
        settings: of the phase.
        name: 'rl/one' or 'rl/two'.
        start: model to train.
        graded: problems to train on.
        store: of the run.
        execution: of the workflow.
        max_tokens: stop after the step by which this many tokens were generated; 0 = all steps.

    The state of every committed step lies in the store under a name made of settings, start
    model and problems, so that a phase that was killed goes on when it is run again.
    """
    digest = resources.code_digest("rl")
    # A pod on another node finds the state again only on a disk that all nodes share.
    place = Path(os.environ.get("EACHPROMPT_STATE") or workplace(store))
    folder = run.state_folder(place, settings, start.digest, graded.digest, max_tokens)
    code = run.all_code(folder, digest)
    with stage(name, settings, store, execution, code) as record:
        model, problems = record.read("start", start), record.read("graded", graded)
        course = run.Phase(settings, model, run.read_problems(problems), folder, digest, max_tokens)
        with ScoringService(model, settings.rewards) as scorer:
            scorer.check_canaries()
            for step in progress(run.train(course, scorer), name, settings.steps):
                record.metrics(step.report.step, step.report.metrics)
        with record.output("model") as model_out, record.output("report") as report_out:
            facts = run.finish(course, model_out, report_out)
        record.facts(facts)
        record.rows(len(course.problems), int(facts["prompts"]))
        resources.deck_of_facts(name, facts)
        trained = Trained(record.ref("model", CheckpointRef), record.ref("report", ReportRef))
    run.clear(course)
    return trained
