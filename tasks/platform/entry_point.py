"""The decorator of workflows that are started by `pyflyte run workflows/NAME.py NAME`.

In addition to Flyte's `workflow` it

- checks inputs against the signature, whose types may have limits (`Annotated`),
- prints a `PipelineError` as one line, with the exit code of `tasks.platform.command_line`,
- tells MLflow and the webhook of an execution that failed on a cluster,
- makes the version of code that pyflyte registers depend on the variables of registration,
- merges settings, JSON or YAML, over those of their `parent` or of the workflow's preset, says
  which values differ, checks the settings of every choice, and pins a user's own code,
- keeps `--help` on one screen: a group of settings is one line, not its JSON schema and defaults.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_origin

import click
import rich_click.rich_click as help_defaults
from flytekit import Labels, LaunchPlan, workflow
from flytekit.core.context_manager import CompilationState, FlyteContext, FlyteContextManager
from flytekit.core.docstring import Docstring
from flytekit.core.interface import Interface
from flytekit.core.promise import Promise, VoidPromise
from flytekit.core.workflow import (
    PythonFunctionWorkflow,
    WorkflowFailurePolicy,
    WorkflowMetadata,
    WorkflowMetadataDefaults,
)
from flytekit.remote.remote import FlyteRemote
from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import from_json, to_json
from rich_click import RichContext

from data_schemas import presets
from data_schemas.faults import explain
from data_schemas.located import located
from data_schemas.machine_settings import Settings
from data_schemas.yaml_text import differs_in_1_1
from tasks.algorithms.choices import complete
from tasks.errors import SettingsError
from tasks.platform import command_line
from tasks.platform.local_cache import leave_out_damaged_cache
from tasks.platform.local_execution import local_execution
from tasks.platform.resources import LABELS, NOTIFY, REGISTRATION, STAGES
from tasks.platform.retries import FLYTE_2
from tasks.platform.settings_option import field_lines, is_settings, read_settings
from tasks.platform.shell import with_names
from tasks.plugins import pinned

Args = ParamSpec("Args")
Result = TypeVar("Result")

LINE = 96
"""Columns of a line of help on a terminal of 100."""
_AT_FAILURE = "tell_failure"
"""Stage that runs on a cluster when an execution has failed."""
_HELP_SECTIONS: list[Any] = ["help", "required"]
"""Parts of an option's help. Defaults are part of the descriptions: a preset's would fill two
screens."""


def entry_point(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Make a function a Flyte workflow that can be started, typed as the function."""
    help_defaults.OPTIONS_TABLE_HELP_SECTIONS = list(_HELP_SECTIONS)
    context = click.get_current_context(silent=True)
    if isinstance(context, RichContext):  # made by pyflyte before this file was read
        context.help_config.options_table_help_sections = list(_HELP_SECTIONS)
    if FLYTE_2:
        return cast("Callable[Args, Result]", with_names(workflow(_checked(function)), function))
    return cast("Callable[Args, Result]", EntryPoint(function))


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check inputs where a workflow is a plain task, and read settings as an entry point does."""
    inputs = Inputs(function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with command_line.print_errors_on_one_line():
            return function(*args, **inputs.checked(kwargs))

    run.__annotations__ = function.__annotations__ | inputs.readers
    return run


class Inputs:
    """The inputs of a workflow: their types, and how they are checked and read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters
        fields: dict[str, Any] = {
            name: (one.annotation, ... if one.default is one.empty else one.default)
            for name, one in parameters.items()
        }
        self._model = create_model(function.__name__, __base__=Settings, **fields)
        self.kinds = {name: _plain(one.annotation) for name, one in parameters.items()}
        self.readers = {
            name: _reader(name, kind, parameters[name].default) if is_settings(kind) else kind
            for name, kind in self.kinds.items()
        }

    def checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check inputs against the signature.

        Raises:
            SettingsError: names the input, its value and what is allowed.
        """
        try:
            checked = self._model.model_validate(values)
        except ValidationError as error:
            raise SettingsError(f"--{explain(error, self._model)}") from error
        return {name: getattr(checked, name) for name in values}


class EntryPoint(PythonFunctionWorkflow):
    """A workflow that can be started from the command line."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = Inputs(function)
        # Now: a task that is imported while a workflow is compiled becomes part of that workflow.
        handler = import_module(f"tasks.{STAGES[_AT_FAILURE].module}")
        self._tell_failure = getattr(handler, _AT_FAILURE)
        if command_line.is_typed_by_hand() and "--help" not in sys.argv:
            with command_line.print_errors_on_one_line():
                for name, kind in self._signature.kinds.items():
                    if is_settings(kind):
                        _check_file(name, sys.argv)
        function.__annotations__ |= self._signature.readers
        super().__init__(
            function,
            metadata=WorkflowMetadata(on_failure=WorkflowFailurePolicy.FAIL_IMMEDIATELY),
            default_metadata=WorkflowMetadataDefaults(interruptible=False),
            docstring=_InputDocstring(function),
        )
        functools.update_wrapper(self, function)
        self.__doc__ = _screen(function, self._signature.kinds)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the inputs, then run as a workflow does."""
        with command_line.print_errors_on_one_line():
            if command_line.is_typed_by_hand():
                command_line.refuse_repeated(sys.argv, list(self._signature.kinds))
                leave_out_damaged_cache()
            inputs = self._signature.checked(kwargs)
            with local_execution():
                result = super().__call__(*args, **inputs)
            return (
                WorkflowOutputs(result)
                if command_line.is_typed_by_hand() and _is_final(result)
                else result
            )

    def _validate_add_on_failure_handler(
        self, ctx: FlyteContext, prefix: str, wf_args: dict[str, Promise]
    ) -> None:
        """Wire the task that runs instead of what is left when an execution fails.

        It takes the store only; flytekit's own handlers take every input of the workflow, and run
        on one's own machine as well.
        """
        if "store" not in wf_args:
            return
        state = CompilationState(prefix=prefix, task_resolver=self)
        with FlyteContextManager.with_context(ctx.with_compilation_state(state)):
            self._tell_failure(store=wf_args["store"])
        (self._failure_node,) = state.nodes


def _is_final(result: Any) -> bool:
    """True for values; False for promises, which a workflow that calls this one gets."""
    values = result if isinstance(result, tuple) else (result,)
    return bool(values) and not any(
        value is None or isinstance(value, Promise | VoidPromise) for value in values
    )


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


class WorkflowOutputs:
    """The outputs of a workflow that was typed, which pyflyte prints: a line for each."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __str__(self) -> str:
        """Name every output; one alone has no name."""
        names: tuple[str, ...] = getattr(self.result, "_fields", ())
        width = max(map(len, names), default=0) + 2
        values = self.result if names else [self.result]
        lines = [
            ", ".join(str(getattr(one, "uri", one)) for one in _listed(value)) for value in values
        ]
        if not names:
            return lines[0]
        return "\n".join(f"{name:{width}}{line}" for name, line in zip(names, lines, strict=True))


class PresetLaunchPlan(LaunchPlan):
    """A launch plan that pyflyte starts with the plan's own values.

    pyflyte fills what the command line does not name from the interface, which is the workflow's
    in Flyte's own plans: each of them would run the workflow's preset.
    """

    @property
    def python_interface(self) -> Interface:
        """The workflow's, with the values of the plan as defaults."""
        interface, own = self.workflow.python_interface, self.saved_inputs
        defaults = {name: one[1] for name, one in interface.inputs_with_defaults.items()} | own
        inputs = {
            name: (_reader(name, kind, own[name]) if is_settings(kind) else kind, defaults[name])
            for name, kind in interface.inputs.items()
        }
        return Interface(inputs, interface.outputs)


def plan(
    name: str, function: Callable[..., object], inputs: Mapping[str, Any], **options: Any
) -> LaunchPlan:
    """Make a launch plan of an entry point.

    Args:
        name: of the plan, and of the variable that holds it, by which pyflyte finds it.
        function: the entry point.
        inputs: values that an execution may change; settings are one of them.
        options: of `LaunchPlan.get_or_create`.
    """
    entry = cast("EntryPoint", function)
    # Default inputs, since pyflyte sends the workflow's own default for a fixed one:
    # findings/flytekit_fixed_input_loses_to_the_default.sh
    labels = Labels(LABELS) if LABELS else None
    return PresetLaunchPlan.get_or_create(
        entry, name, default_inputs=dict(inputs), labels=labels, **options
    )


# flytekit hashes files and options only. Flyte never changes what it has under a version, so that
# other machines, images or secrets would silently be those of the first registration.
_VALUES = repr((sorted(REGISTRATION.variables.items()), LABELS, NOTIFY))
_hashed: Any = FlyteRemote._version_from_hash


def _version(*values: Any) -> str:
    return _hashed(*values, _VALUES)


FlyteRemote._version_from_hash = staticmethod(_version)  # pyright: ignore[reportAttributeAccessIssue]


class _InputDocstring(Docstring):
    """The descriptions of the inputs, from the docstring, with their defaults."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(callable_=function)
        self._defaults = {
            name: "" if one.default is one.empty else _default_text(one.default)
            for name, one in inspect.signature(function).parameters.items()
        }

    @property
    def input_descriptions(self) -> dict[str, str]:
        """Description by name of the input."""
        return {
            name: f"{text} {self._defaults.get(name, '')}".rstrip()
            for name, text in super().input_descriptions.items()
        }


def _default_text(default: object) -> str:
    # `eachprompt settings` prints the values of a preset.
    return "" if isinstance(default, BaseModel) or default in ("", []) else f"[default: {default}]"


def _plain(kind: Any) -> Any:
    """Return the type without its limits: flytekit gives `Annotated` a meaning of its own."""
    if hasattr(kind, "__metadata__"):
        return _plain(kind.__origin__)
    return list[_plain(get_args(kind)[0])] if get_origin(kind) is list else kind


def _reader(name: str, model: type[BaseModel], preset: object) -> type[BaseModel]:
    """Return a type by which pyflyte reads JSON as a model, with errors of one line.

    A user's own code is loaded here, on the machine of the command: so it is among what
    `pyflyte run --remote` ships.
    """

    def read(_: type[BaseModel], json_data: str | bytes | bytearray, **options: Any) -> BaseModel:
        with command_line.print_errors_on_one_line():
            if command_line.is_typed_by_hand() and (file := _file_of(name, sys.argv)):
                json_data = _located(json_data, Path(file).parent)
            base, settings = read_settings(name, model, preset, json_data, **options)
            complete(settings, f"--{name}: ")  # only their check: what is typed stays short
            own = pinned(settings, f"--{name}: ")
            if isinstance(base, BaseModel) and command_line.is_typed_by_hand():
                for line in presets.differences(base, settings):
                    click.echo(f"{name}.{line}", err=True)
            return own

    return type(
        model.__name__,
        (model,),
        {"__module__": model.__module__, "model_validate_json": classmethod(read)},
    )


def _check_file(name: str, arguments: Sequence[str]) -> None:
    """Refuse a file of settings that pyflyte cannot read, or reads in another way.

    Raises:
        SettingsError: there is no such file, it is not YAML, or means another value in YAML 1.1.
    """
    path = _file_of(name, arguments)
    if path.endswith((".yaml", ".yml")):
        try:
            text = differs_in_1_1(Path(path).read_bytes())
        except OSError as error:
            raise SettingsError(f"--{name}: there is no file {path}: {error.strerror}") from error
        except ValueError as error:
            raise SettingsError(f"--{name}: {path} {error}") from error
        if text:
            raise SettingsError(
                f"--{name}: {path}: {text} is another value to pyflyte, which reads YAML 1.1; put "
                "it in quotes if it is a text, or start the workflow with `eachprompt`"
            )


def _file_of(name: str, arguments: Sequence[str]) -> str:
    """Return the file that an option names; '' if it is JSON, or not given."""
    for place, argument in enumerate(arguments):
        option, equals, text = argument.partition("=")
        if option == f"--{name}":
            path = text if equals else "".join(arguments[place + 1 : place + 2])
            return path if path.endswith((".yaml", ".yml", ".json")) else ""
    return ""


def _located(text: str | bytes | bytearray, folder: Path) -> str | bytes | bytearray:
    """Let relative paths of settings begin at a folder; what is no object is left for reading."""
    try:
        content = from_json(text)
    except ValueError:
        return text
    return to_json(located(content, folder)) if isinstance(content, dict) else text


def _screen(function: Callable[..., Any], kinds: Mapping[str, Any]) -> str:
    """Return the text of `--help` above the options: the docstring, and one line per setting."""
    words, _, rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    _, returns, results = rest.partition("\n\nReturns:\n")
    paragraphs = [words]
    for name, kind in kinds.items():
        if is_settings(kind):
            head = f"{name}, as JSON; 'eachprompt settings' prints all of them with their defaults:"
            paragraphs.append("\n".join([head, *field_lines(kind, LINE)]))
    if returns:
        paragraphs.append(f"Returns:\n{results}")
    return "\n\n".join(paragraphs)
