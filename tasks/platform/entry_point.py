"""The decorator of workflows that are started by `pyflyte run workflows/NAME.py NAME`.

In addition to Flyte's `workflow` it

- checks inputs against the signature, whose types may have limits (`Annotated`),
- prints a `PipelineError` as one line, with the exit code of `tasks.platform.command_line`,
- merges settings over those of the workflow's preset,
- keeps `--help` on one screen: a group of settings is one line, not its JSON schema and defaults.
"""

import functools
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast, get_args, get_origin

import click
import rich_click.rich_click as help_defaults
from flytekit.core.docstring import Docstring
from flytekit.core.workflow import (
    PythonFunctionWorkflow,
    WorkflowFailurePolicy,
    WorkflowMetadata,
    WorkflowMetadataDefaults,
)
from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import from_json, to_json
from rich_click import RichContext
from rich_click.rich_help_configuration import OptionHelpSectionType

from data_schemas.faults import explain
from data_schemas.group import Settings, merged_over
from tasks.errors import SettingsError
from tasks.platform import command_line

Args = ParamSpec("Args")
Result = TypeVar("Result")

LINE = 96
"""Columns of a line of help on a terminal of 100."""
_HELP_SECTIONS: list[OptionHelpSectionType] = ["help", "required"]
"""Of an option. Defaults are part of the descriptions: a preset's would fill two screens."""


def entry_point(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Make a function a Flyte workflow that can be started, typed as the function."""
    help_defaults.OPTIONS_TABLE_HELP_SECTIONS = list(_HELP_SECTIONS)
    context = click.get_current_context(silent=True)
    if isinstance(context, RichContext):  # made by pyflyte before this file was read
        context.help_config.options_table_help_sections = list(_HELP_SECTIONS)
    return cast("Callable[Args, Result]", EntryPoint(function))


class EntryPoint(PythonFunctionWorkflow):
    """A workflow that can be started from the command line."""

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters = inspect.signature(function).parameters
        fields: dict[str, Any] = {
            name: (one.annotation, ... if one.default is one.empty else one.default)
            for name, one in parameters.items()
        }
        self._signature_model = create_model(function.__name__, __base__=Settings, **fields)
        self._kinds = {name: _plain(one.annotation) for name, one in parameters.items()}
        function.__annotations__ |= {
            name: _reader(name, kind, parameters[name].default) if _is_settings(kind) else kind
            for name, kind in self._kinds.items()
        }
        super().__init__(
            function,
            metadata=WorkflowMetadata(on_failure=WorkflowFailurePolicy.FAIL_IMMEDIATELY),
            default_metadata=WorkflowMetadataDefaults(interruptible=False),
            docstring=_Described(function),
        )
        functools.update_wrapper(self, function)
        self.__doc__ = _screen(function, self._kinds)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the inputs, then run as a workflow does."""
        with command_line.print_errors_on_one_line():
            if command_line.is_typed_by_hand():
                command_line.refuse_repeated(sys.argv, list(self._kinds))
            return super().__call__(*args, **self._checked(kwargs))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Check inputs against the signature.

        Raises:
            SettingsError: names the input, its value and what is allowed.
        """
        try:
            checked = self._signature_model.model_validate(given)
        except ValidationError as error:
            raise SettingsError(f"--{explain(error, self._signature_model)}") from error
        return {name: getattr(checked, name) for name in given}


class _Described(Docstring):
    """The descriptions of the inputs, from the docstring, with their defaults."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(callable_=function)
        self._defaults = {
            name: "" if one.default is one.empty else _shown(one.default)
            for name, one in inspect.signature(function).parameters.items()
        }

    @property
    def input_descriptions(self) -> dict[str, str]:
        """Description by name of the input."""
        return {
            name: f"{text} {self._defaults.get(name, '')}".rstrip()
            for name, text in super().input_descriptions.items()
        }


def _shown(default: object) -> str:
    # `make settings` prints the values of a preset.
    return "" if isinstance(default, BaseModel) or default in ("", []) else f"[default: {default}]"


def _plain(kind: Any) -> Any:
    """Return the type without its limits: flytekit gives `Annotated` a meaning of its own."""
    if hasattr(kind, "__metadata__"):
        return _plain(kind.__origin__)
    return list[_plain(get_args(kind)[0])] if get_origin(kind) is list else kind


def _is_settings(kind: Any) -> bool:
    return get_origin(kind) is None and isinstance(kind, type) and issubclass(kind, BaseModel)


def _reader(name: str, model: type[BaseModel], preset: object) -> type[BaseModel]:
    """Return a type by which pyflyte reads JSON as a model, with errors of one line.

    What the JSON does not name keeps the value that it has in the workflow's preset.
    """

    def read(_: type[BaseModel], json_data: str | bytes | bytearray, **options: Any) -> BaseModel:
        with command_line.print_errors_on_one_line():
            try:
                return model.model_validate_json(_filled(preset, json_data), **options)
            except ValidationError as error:
                raise SettingsError(f"--{name}: {explain(error, model)}") from error

    return type(
        model.__name__,
        (model,),
        {"__module__": model.__module__, "model_validate_json": classmethod(read)},
    )


def _filled(preset: object, json_data: str | bytes | bytearray) -> str | bytes | bytearray:
    try:
        given = from_json(json_data)
        json.loads(json_data, object_pairs_hook=_refuse_repeated_keys)
    except SettingsError:
        raise
    except ValueError:  # for validation to say, as it says every other error
        return json_data
    if not isinstance(preset, BaseModel) or not isinstance(given, dict):
        return json_data
    merged = merged_over(preset, cast("dict[str, object]", given))
    return to_json(merged, inf_nan_mode="constants")


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> None:
    """Refuse a key that is given twice: only its last value would be used.

    Raises:
        SettingsError: names the key.
    """
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise SettingsError(f"--settings: {key} is given twice; give it once")
        seen.add(key)


def _screen(function: Callable[..., Any], kinds: Mapping[str, Any]) -> str:
    """Return the text of `--help` above the options: the docstring, and one line per setting."""
    words, _, rest = (inspect.getdoc(function) or "").partition("\n\nArgs:\n")
    _, returns, results = rest.partition("\n\nReturns:\n")
    paragraphs = [words]
    for name, kind in kinds.items():
        if _is_settings(kind):
            fields = kind.model_fields
            width = max(map(len, fields)) + 2
            lines = [f"    {field:{width}}{_about(info)}" for field, info in fields.items()]
            head = f"{name}, as JSON; 'make settings' prints all of them with their defaults:"
            paragraphs.append("\n".join([head, *(line[:LINE].rstrip() for line in lines)]))
    if returns:
        paragraphs.append(f"Returns:\n{results}")
    return "\n\n".join(paragraphs)


def _about(field: Any) -> str:
    """Return one line about a setting: its description, or that of its group."""
    if field.description or not _is_settings(field.annotation):
        return field.description or ""
    return (inspect.getdoc(field.annotation) or "").partition("\n")[0]
