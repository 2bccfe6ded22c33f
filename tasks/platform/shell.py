"""The decorators that make Flyte tasks, workflows and branches out of plain functions.

A stage takes its line of `tasks.platform.resources` by name:

    @shell("curate")
    def curate(...): ...
"""

import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast, get_type_hints

from flytekit import (
    Cache,
    PodTemplate,
    PythonFunctionTask,
    Resources,
    Secret,
    conditional,
    dynamic,
    map_task,
    task,
    workflow,
)
from flytekit.core.condition import Condition
from flytekit.core.context_manager import BranchEvalMode, FlyteContextManager
from flytekit.core.promise import Promise
from flytekit.extras.accelerators import GPUAccelerator
from flytekit.types.error import FlyteError
from kubernetes.client import V1Container, V1PodSpec

from data_schemas.artifacts import Context, Execution
from tasks.errors import SettingsError
from tasks.platform import literals, log_lines, temporary
from tasks.platform.cache_version import REGISTERED, code_digest
from tasks.platform.resources import (
    IMAGES,
    NODES,
    POD_TEMPLATES,
    PROCESSES,
    REGISTRATION,
    SECRETS,
    STAGES,
    Stage,
)
from tasks.platform.retries import FLYTE_2, recoverable

Args = ParamSpec("Args")
Result = TypeVar("Result")

Failure = FlyteError
"""Why an execution failed, with the node that did; Flyte fills it in."""
PRIMARY = "primary"
"""Name of the container of a pod that the stage runs in."""


class _Parts(NamedTuple):
    """A context in Flyte's interfaces.

    Two values, because a cache key has the store and never the execution, and Flyte leaves whole
    inputs out of a key, no parts of one.
    """

    store: literals.KeyedStore
    execution: Execution


_CONTEXT = "context"
"""Name of the parameter of a function that takes a context."""

# Importing flytekit creates temporary folders.
temporary.tidy()
log_lines.configure()
literals.register()


def shell(
    name: str,
) -> Callable[[Callable[Args, Result]], Callable[Args, Result]]:
    """Make a function the Flyte task of one stage of the table; errors are mapped for retries."""

    def make(function: Callable[Args, Result]) -> Callable[Args, Result]:
        arguments = task_arguments(name)
        if STAGES[name].team and NODES * PROCESSES > 1:
            body = _in_processes(unfolded(function), STAGES[name], arguments)
        else:
            body = _with_interface(recoverable(function, _joined(function)), function)
        # In a workflow a call returns promises; for the type checker they are the results.
        return cast("Callable[Args, Result]", with_names(task(body, **arguments), function))

    return make


def fan_out(
    name: str,
) -> Callable[[Callable[Args, Result]], Callable[Args, Result]]:
    """Make a function that calls tasks, as many as its inputs say, a dynamic task of Flyte."""

    def make(function: Callable[Args, Result]) -> Callable[Args, Result]:
        flyte_task = dynamic(**task_arguments(name))(unfolded(function))
        return cast("Callable[Args, Result]", with_names(flyte_task, function))

    return make


def map_over(
    function: Callable[..., Result], name: str, values: Sequence[object], **others: object
) -> list[Result]:
    """Wire a map task of Flyte; its tasks run at once, whatever the limit of the launch plan.

    Args:
        function: a task.
        name: of the input that differs.
        values: of that input, one for each task.
        others: inputs that are the same for all tasks.
    """
    others = _with_parts(others)
    if FLYTE_2:
        return cast(
            "list[Result]", map_task(cast("Any", partial(function, **others)))(list(values))
        )
    return cast("list[Result]", _mapped(function, name)(**{name: list(values)}, **others))


@cache
def _mapped(function: Callable[..., object], name: str) -> Callable[..., object]:
    """Make the map task of a task once: Flyte refuses a second one under its name."""
    target = cast("PythonFunctionTask[object]", function)
    others = set(target.python_interface.inputs) - {name}
    return map_task(target, concurrency=0, bound_inputs=others)  # 0 = no limit


def _in_processes(
    function: Callable[Args, Result], stage: Stage, arguments: dict[str, Any]
) -> Callable[Args, Result | None]:
    """Make the function of a stage, and the arguments of its task, run in several processes.

    Raises:
        SettingsError: the Elastic plugin is not installed.
    """
    if importlib.util.find_spec("flytekitplugins") is None:
        if (
            log_lines.in_pod()
        ):  # the pod of another stage imports this file, in an image without the plugin
            return recoverable(function)
        raise SettingsError(
            f"EACHPROMPT_PROCESSES {PROCESSES} and EACHPROMPT_NODES {NODES} need the package "
            "flytekitplugins-kfpytorch, part of every lock file but lock_cpu.txt"
        )
    # Imported here: an installation for one process has no Elastic plugin.
    from tasks.platform.elastic import in_team, team

    arguments["task_config"] = team(stage.grace_s)
    return in_team(function)


def subworkflow(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Make a function a Flyte workflow that other workflows call, typed as the function."""
    return cast("Callable[Args, Result]", with_names(workflow(unfolded(function)), function))


def unfolded(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Give a function that takes or returns a context the interface that Flyte has for it.

    One without a context stays as it is.
    """
    inputs_of = _joined(function)

    @wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        return cast("Callable[..., Result]", function)(*args, **inputs_of(kwargs))

    return _with_interface(run, function) if _has_context(function) else function


def unfold(function: Callable[[Any], Result]) -> Callable[..., Result]:
    """Give a function of one record an input for each of its fields, as a workflow passes them.

    Flyte's promises cannot be put into a record before the task runs.
    """
    (parameter,) = inspect.signature(function).parameters
    hints = get_type_hints(function)
    record = hints[parameter]
    kinds = get_type_hints(record)

    @wraps(function)
    def run(**values: Any) -> Result:
        return function(record(**values))

    run.__annotations__ = kinds | {"return": hints["return"]}
    flyte_function: Any = run
    flyte_function.__signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            for name, kind in kinds.items()
        ],
        return_annotation=hints["return"],
    )
    return run


def _has_context(function: Callable[..., object]) -> bool:
    """Look up whether a function takes or returns a context."""
    return Context in get_type_hints(function, include_extras=True).values()


def _joined(function: Callable[..., object]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return how the inputs of a function are made of those that Flyte has."""
    takes, parts = _CONTEXT in inspect.signature(function).parameters, get_type_hints(Context)

    def join(inputs: Mapping[str, Any]) -> dict[str, Any]:
        values = dict(inputs)
        if takes:
            values[_CONTEXT] = Context(**{name: values.pop(name) for name in parts})
        return values

    return join


def _with_interface(run: Callable[..., Result], function: Callable[..., object]) -> Any:
    """Let Flyte see the inputs and outputs of a function, with a context as its two parts."""
    if not _has_context(function):
        return run
    signature = inspect.signature(function)
    hints, parts = get_type_hints(function, include_extras=True), get_type_hints(Context)
    parameters: list[inspect.Parameter] = []
    for one in signature.parameters.values():
        inner = parts.items() if one.name == _CONTEXT else [(one.name, hints[one.name])]
        parameters += [one.replace(name=name, annotation=kind) for name, kind in inner]
    result = _Parts if hints.get("return") is Context else hints.get("return")
    run.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": result}
    flyte_function: Any = run
    flyte_function.__signature__ = signature.replace(
        parameters=parameters, return_annotation=result
    )
    return run


def with_names(flyte_task: Any, function: Callable[..., object]) -> Any:
    """Let a call of a task take a context, and a call of Flyte 2 return a function's named tuple.

    Flyte 1 returns promises that have the names already, Flyte 2 a plain tuple.
    """
    kinds: dict[str, Any] = get_type_hints(function)
    result = kinds.get("return") if FLYTE_2 else None
    make = getattr(result, "_make", None)
    if _CONTEXT not in kinds and make is None:
        return flyte_task
    base: Any = type(flyte_task)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = base.__call__(self, *args, **_with_parts(kwargs))
        return make(values) if make else values

    flyte_task.__class__ = type(base.__name__, (base,), {"__call__": call})
    return flyte_task


def _with_parts(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a call as Flyte has them."""
    if _CONTEXT not in inputs:
        return dict(inputs)
    others = {name: value for name, value in inputs.items() if name != _CONTEXT}
    return others | {name: getattr(inputs[_CONTEXT], name) for name in _Parts._fields}


def either(
    name: str, question: bool, then: Callable[[], Result], otherwise: Callable[[], Result]
) -> Result:
    """Wire a branch of a workflow: the promise of a yes or no decides which side runs.

    The sides are given as functions because Flyte looks at what is called between its
    `if_` and its `then`. A side may be a workflow with branches of its own.
    """
    if not isinstance(question, Promise):  # Flyte 2, where a workflow is a task that calls tasks
        return then() if question else otherwise()
    context = FlyteContextManager.current_context()
    state = context.execution_state
    if state is None or state.branch_eval_mode is not BranchEvalMode.BRANCH_ACTIVE:
        return _branch(name, question, then, otherwise)
    # Inside of a side that runs here, flytekit would run both sides of the inner branch:
    # findings/flytekit_nested_condition_runs_both_sides.sh
    inner = context.new_builder()
    inner.in_a_condition = False
    with FlyteContextManager.with_context(inner):
        return _branch(name, question, then, otherwise)


def _branch(
    name: str, question: bool, then: Callable[[], Result], otherwise: Callable[[], Result]
) -> Result:
    answer = cast("Promise", question).is_true()
    yes = conditional(name).if_(answer).then(cast("Promise", then()))
    return cast("Result", cast("Condition", yes).else_().then(cast("Promise", otherwise())))


def task_arguments(name: str) -> dict[str, Any]:
    """Return the arguments of Flyte's `task` for one stage of the table."""
    stage = STAGES[name]
    needs = Resources(
        cpu=stage.machine.cpu,
        mem=stage.machine.memory,
        ephemeral_storage=stage.machine.disk,
        gpu=str(stage.machine.gpus) if stage.machine.gpus else None,
    )
    return {
        "container_image": IMAGES[stage.image],
        **_by_generation(needs),
        "accelerator": _Accelerator(stage.machine.accelerator) if stage.machine.gpus else None,
        "retries": stage.retries_over(NODES),
        "timeout": timedelta(hours=stage.hours),
        "interruptible": stage.interruptible_over(NODES),
        "pod_template": _pod(stage.grace_s) if stage.grace_s else None,
        "pod_template_name": POD_TEMPLATES[stage.image] or None,
        "secret_requests": _secrets() or None,
        "cache": _cache(name) if stage.cached else False,
        "environment": REGISTRATION.variables | {REGISTERED: code_digest(name)},
        # NCCL and vLLM exchange data in /dev/shm, of which a pod has 64 MiB without this.
        "shared_memory": bool(stage.machine.gpus) or (stage.team and NODES * PROCESSES > 1),
        "enable_deck": True,
    }


def _by_generation(needs: Resources) -> dict[str, Any]:
    """Kubernetes takes a GPU only if the limit equals the request, and Flyte 2 one value for both.

    flytekit's own `resources` sets no limit in a pod that has a template. Decks of inputs are off.
    """
    if FLYTE_2:
        return {"resources": needs}
    return {"requests": needs, "limits": needs, "deck_fields": ()}


class _Accelerator(GPUAccelerator):
    """A GPU by the label of its nodes; as text by the name that Flyte 2 has for it."""

    def __str__(self) -> str:
        """Name the model alone: Flyte 2 knows 'H100' where nodes are labelled 'nvidia-h100'."""
        return self._device.removeprefix("nvidia-").removeprefix("tesla-").upper()


@dataclass(frozen=True, slots=True)
class _SaltedCache:
    """A cache of Flyte 2, in the form in which flyte-migrate reads one of flytekit.

    It has no version: with one, results are stored in a local execution and never read. The digest
    of the code salts the version that Flyte 2 makes of the function's own source.
    """

    salt: str
    ignored_inputs: tuple[str, ...]
    serialize: bool = True


def _cache(name: str) -> Any:
    # The execution does not change the result, so it is not part of the cache key.
    version, ignored = code_digest(name)[:32], ("execution",)
    if FLYTE_2:
        return _SaltedCache(version, ignored)
    return Cache(version=version, serialize=True, ignored_inputs=ignored)


def _secrets() -> list[Secret]:
    """Ask for secrets as variables: their values are in the pod only, not in what is registered."""
    as_variable = Secret.MountType.ENV_VAR
    return [
        Secret(group=group, key=key, env_var=variable, mount_requirement=as_variable)
        for variable, (group, key) in SECRETS.items()
    ]


def _pod(grace_s: int) -> PodTemplate:
    containers = [V1Container(name=PRIMARY)]
    pod = V1PodSpec(containers=containers, termination_grace_period_seconds=grace_s)
    return PodTemplate(primary_container_name=PRIMARY, pod_spec=pod)
