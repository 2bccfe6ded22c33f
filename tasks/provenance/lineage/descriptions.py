"""What MLflow's pages show about a run beside its numbers: tags, source and description.

Tags of an execution are on its own run and on the runs of its stages, which are nested in it.
`mlflow.*` tags are those that MLflow's pages read; `row_source` names the adapters whose rows led
to a run, in alphabetical order and joined by commas.
"""

import getpass
import os
from collections.abc import Mapping, Sequence

from data_schemas.artifacts import Execution
from data_schemas.statements import Statement
from tasks.platform.source import commit

EXECUTION = "eachprompt.execution"
STAGE = "eachprompt.stage"
CODE = "eachprompt.code"
STORE = "eachprompt.store"
WORKFLOW = "eachprompt.workflow"
STARTED = "eachprompt.started"
"""Start of the execution, Unix time in seconds."""
FLYTE_EXECUTION = "flyte.execution"
"""project/domain/name; only on a cluster."""
ERROR = "eachprompt.error"
OUTCOME = "eachprompt.outcome"
"""Tag of an execution: how it ended, in a sentence."""
LAUNCH_PLAN = "flyte.launch_plan"
"""project/domain/name, as Flyte tells it to a pod."""
VERSION = "flyte.version"
"""Under which the task was registered."""
NODE = "flyte.node"
"""Tag of a stage's run: the node of the execution that ran it."""
LAST = "eachprompt.last"
"""Tag of an execution: the tasks after which it is over, joined by commas."""
ENDED = "eachprompt.ended."
"""Tag of an execution, followed by one of its last tasks that has ended: the time, in
milliseconds."""
REPORTED = "eachprompt.reported"
"""Tag of an execution that did not end well: for which execution of Flyte people were told so."""
ROW_SOURCE = "row_source"
USER = "mlflow.user"
PARENT = "mlflow.parentRunId"
NOTE = "mlflow.note.content"
"""Description of a run or an experiment, in Markdown."""
EXPERIMENT_TAGS = {
    # Without it MLflow guesses from what it finds and may open the view for traces of GenAI apps.
    "mlflow.experimentKind": "custom_model_development",
    NOTE: (
        "One run per execution of a workflow, with the runs of its stages nested in it. The same "
        "stage has the same name, metrics and steps in every execution: filter by "
        "`attributes.run_name = 'rl/one'` and compare. `tags.row_source = 'gsm8k'` finds what "
        "rows of one adapter led to, `LIKE '%gsm8k%'` what they led to among others. "
        "MLflow is a catalogue; the statements in the store are the evidence."
    ),
}
_OF_EXECUTION = (EXECUTION, STORE, WORKFLOW, STARTED, LAST, FLYTE_EXECUTION, LAUNCH_PLAN, VERSION)
_PURPOSES = {
    "ablation": "Tabulates the effect of each feature of RL.",
    "approve": "Records that somebody said yes: to files that a night held, or to a release.",
    "collect_comparisons": "Collects graded comparisons that a judge is measured on.",
    "compare": "Compares the candidate with every earlier model, on the same held-out problems.",
    "curate": "Filters, deduplicates, decontaminates and splits the raw rows.",
    "curate_part": "Reads, checks and verifies some of the raw rows, each by itself.",
    "evaluate": "Answers and scores every held-out problem with one model.",
    "grade": "Measures how often the start model solves each problem.",
    "ingest": "Copies what comes from outside into the store, by content.",
    "intake": "Copies the files of the inbox that were not processed yet.",
    "measure_judge": "Measures a judge on graded comparisons.",
    "merge": "Merges the fine-tuned models by TIES.",
    "pretrain": "Trains the base model.",
    "reject": "Records that somebody said no to files that a night held.",
    "release": "Applies the release gate, writes the model card and registers the model.",
    "rl": "One phase of reinforcement learning.",
    "rollback": "Points the alias `released` at an earlier version.",
    "sft": "Supervised fine-tuning.",
}
"""First word of a stage's name -> what it does."""
_MAX_NOTE = 5000
"""Characters; MLflow takes 8000 bytes."""
_FLYTE_PARTS = ("PROJECT", "DOMAIN", "ID")
IDENTITY = "EACHPROMPT_STARTED_BY"
"""Variable with who started the execution; pod templates read it from a label of Flyte's."""


def run_tags(
    execution: Execution, stage: str, code: Sequence[str], store_id: str
) -> dict[str, str]:
    """Return the tags of a stage's run in MLflow when it begins."""
    return {
        **execution_tags(execution, store_id),
        STAGE: stage,
        CODE: ",".join(code),
        NOTE: describe_stage(stage),
        **({NODE: node} if (node := flyte_node()) else {}),
    }


def execution_tags(execution: Execution, store_id: str) -> dict[str, str]:
    """Return the tags of the run of an execution when it begins."""
    tags = {
        EXECUTION: execution.id,
        STORE: store_id,
        STARTED: str(execution.started),
        **_source_tags(),
    }
    if execution.workflow:
        tags |= {
            WORKFLOW: execution.workflow,
            "mlflow.source.name": f"workflows/{execution.workflow}.py",
        }
    if execution.last:
        tags[LAST] = ",".join(execution.last)
    return tags


def tags_for_execution(tags: Mapping[str, str]) -> dict[str, str]:
    """Select those tags of a stage's run that its execution has, too."""
    return {
        name: value
        for name, value in tags.items()
        if name in _OF_EXECUTION or (name.startswith("mlflow.") and name not in (NOTE, PARENT))
    }


def execution_name(tags: Mapping[str, str]) -> str:
    """Name the run of an execution: '20260131-235959-a1b2c3 post_training'."""
    return f"{tags[EXECUTION]} {tags.get(WORKFLOW, '')}".strip()


def describe_execution(tags: Mapping[str, str], model: str = "", *, released: bool = False) -> str:
    """Describe the run of an execution.

    Args:
        tags: of the run.
        model: version that it registered, 'models:/NAME/3'; '' = none.
        released: whether that passed the gate.
    """
    workflow = tags.get(WORKFLOW, "")
    started = f"Execution `{tags[EXECUTION]}`" + (f" of `{workflow}`" if workflow else "")
    if not model:
        return f"{started}."
    name, _, number = model.removeprefix("models:/").rpartition("/")
    outcome = "released" if released else "refused by the gate"
    return (
        f"{started}. It registered [{name} version {number}](#/models/{name}/versions/{number}), "
        f"{outcome}. Model card and report are among the artifacts."
    )


def describe_stage(
    stage: str, statement: Statement | None = None, digest: str = "", error: str = ""
) -> str:
    """Describe the run of a stage.

    Args:
        stage: its name.
        statement: of a stage that has finished.
        digest: of the statement.
        error: that ended it, '' if none did.
    """
    parts = [_PURPOSES.get(stage.split("/")[0], "")]
    if statement is not None:
        inputs = ", ".join(f"{item.role} `{item.digest[:12]}`" for item in statement.inputs)
        outputs = ", ".join(f"{item.role} `{item.digest[:12]}`" for item in statement.outputs)
        parts += [
            f"Read {inputs or 'nothing'}; made {outputs or 'nothing'}.",
            f"Statement `{digest}`.",
        ]
    if error:
        parts.append(f"It failed:\n\n    {error}")
    return "\n\n".join(part for part in parts if part)[:_MAX_NOTE]


def flyte_execution() -> str:
    """Return project/domain/name of the execution of this pod; '' outside of a cluster."""
    environment = os.environ
    if "FLYTE_INTERNAL_EXECUTION_ID" not in environment:
        return ""
    return "/".join(
        environment.get(f"FLYTE_INTERNAL_EXECUTION_{part}", "") for part in _FLYTE_PARTS
    )


def flyte_node() -> str:
    """Return the node that this pod runs, 'n3' or 'n0-0-dn2'; '' if Flyte does not say.

    Flyte names it in the address of its console, if it knows one, and in the pod's name unless
    that would be too long: EXECUTION-NODE-ATTEMPT.
    """
    _, _, place = os.environ.get("FLYTE_EXECUTION_URL", "").partition("/nodeId/")
    if not place:
        name = os.environ.get("FLYTE_INTERNAL_EXECUTION_ID", "")
        before, own, place = os.environ.get("HOSTNAME", "").partition(f"{name}-")
        place = place if name and own and not before else ""
    return place.partition("/")[0].rpartition("-")[0]


def _source_tags() -> dict[str, str]:
    """Who and what runs: user, commit, image; on a cluster execution, launch plan and version."""
    environment = os.environ
    flyte = flyte_execution()
    tags = {
        USER: _user(),
        "mlflow.source.type": "JOB" if flyte else "LOCAL",
        "mlflow.source.git.commit": commit(),
        "mlflow.docker.image.uri": environment.get("FLYTE_INTERNAL_IMAGE", ""),
        FLYTE_EXECUTION: flyte,
        LAUNCH_PLAN: environment.get("FLYTE_INTERNAL_EXECUTION_LAUNCHPLAN", "").replace(":", "/"),
        VERSION: environment.get("FLYTE_INTERNAL_TASK_VERSION", ""),
    }
    return {name: value for name, value in tags.items() if value}


def _user() -> str:
    """Return who started the execution: on a cluster whom Flyte names, else this machine's user."""
    if identity := os.environ.get(IDENTITY):
        return identity
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())
