"""Code of a user's own: what a name in the settings, a mapping file or an adapter refers to.

A name is that of a built-in, an entry of a `Table`, or a reference: `my_rewards.py:short_enough`
or `package.module:name` (data_schemas/references.py). A file is looked for in the working folder,
then beside `tasks/`, where Flyte unpacks what was registered.

Which code a reference means is part of it: `pin` adds the digest of the file, of the modules that
it imports from its own folder or package, and of other files that it names by a reference. A pinned
name is in the settings of every stage and in the rows of every data set, so it reaches statements,
the state folder of RL and Flyte's cache keys without further bookkeeping; code that changed since
is refused as it is loaded.

What is in `tasks` and `data_schemas` is not part of the digest, because stages hash their own
source; except for what stands beside code of ours that is referred to, such as a recipe's.
"""

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from data_schemas.faults import did_you_mean, explain
from data_schemas.machine_settings import Choice
from data_schemas.references import ObjectReference, Pluggable, is_reference
from tasks.errors import SettingsError

ROOT = Path(__file__).resolve().parents[1]
OURS = ("tasks", "data_schemas", "workflows")
GUIDE = "docs/extend.md"
_DEFINED = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)

FormT = TypeVar("FormT")
ValueT = TypeVar("ValueT")
ModelT = TypeVar("ModelT", bound=BaseModel)
ChoiceT = TypeVar("ChoiceT", bound=Choice)


class Table(UserDict[str, ValueT]):
    """Built-ins by name; a reference is looked up as well, and becomes an entry by `own`.

    Iteration is over the built-ins.

    Args:
        entries: the built-ins.
        own: makes an entry of a reference.

    Raises:
        KeyError: on look-up, of a name that is neither; `own` raises it where code of a user's own
            has no entry in this table.
        SettingsError: on look-up, of a reference whose code is missing, changed or of another form.
    """

    def __init__(self, entries: Mapping[str, ValueT], own: Callable[[str], ValueT]) -> None:
        super().__init__(entries)
        self._own = own

    def __missing__(self, name: str) -> ValueT:
        if is_reference(name):
            return self._own(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and (name in self.data or bool(self[name]) or True)
        except KeyError:
            return False

    def find(self, name: str, where: str) -> ValueT:
        """Return the entry of a name.

        Raises:
            SettingsError: there is none; names the setting `where` it was written.
        """
        try:
            return self[name]
        except KeyError:
            raise unknown(name, list(self.data), where) from None
        except SettingsError as error:
            raise SettingsError(f"{where}: {error}") from error

    def with_entries(self, entries: Mapping[str, ValueT]) -> "Table[ValueT]":
        """Return the same table with some entries replaced or added."""
        return Table({**self.data, **entries}, self._own)


class ChoiceTable(UserDict[str, type[ModelT]]):
    """Built-in choices by name, each a model of its own settings; a reference names another one.

    Args:
        form: the base of all choices of the table.
        entries: references to the built-ins, which are imported now: so Flyte ships their files.
    """

    def __init__(self, form: type[ModelT], entries: Mapping[str, str]) -> None:
        super().__init__({name: type(load(entry, form)) for name, entry in entries.items()})
        self._form = form

    def choose(self, settings: Choice, where: str) -> ModelT:
        """Make the choice with the settings of its own; those that are not given are its defaults.

        Args:
            settings: of the choice.
            where: dotted name of the settings, 'rl_one.loss', for messages; '' if they are all.

        Raises:
            SettingsError: there is none of that name, a reference is to code that is missing,
                changed or of another form, or a setting is none of its own.
        """
        kind, place = settings.chosen, f"{_within(where)}{settings.CHOSEN_BY}"
        if kind in self.data:
            default = self.data[kind]()
        elif is_reference(kind):
            try:
                default = load(kind, self._form)
            except SettingsError as error:
                raise SettingsError(f"{place}: {error}") from error
        else:
            raise unknown(kind, list(self.data), place)
        try:
            return default.model_validate({**dict(default), **settings.own})
        except ValidationError as error:
            raise self._unfit(settings, error, type(default), where) from error

    def complete(self, settings: ChoiceT, where: str) -> ChoiceT:
        """Write all settings of its own beside the name of a choice, those by default included.

        Raises:
            SettingsError: as `choose`.
        """
        own = self.choose(settings, where).model_dump(mode="json")
        return settings.model_copy(update=own)

    def _unfit(
        self, settings: Choice, error: ValidationError, model: type[BaseModel], where: str
    ) -> SettingsError:
        """Explain a setting that a choice refuses; name the choices that have it."""
        text = f"{_within(where)}{explain(error, model)}"
        fault = error.errors()[0]
        if fault["type"] != "extra_forbidden":
            return SettingsError(text)
        name = str(fault["loc"][0])
        kinds = [kind for kind, one in self.data.items() if name in one.model_fields]
        owners = f", but of {', '.join(kinds)}" if kinds else ""
        place = _within(where.rpartition(" ")[2]) + settings.CHOSEN_BY  # without '--settings: '
        return SettingsError(f"{text}; {place} is {settings.chosen!r}{owners}")


def _within(where: str) -> str:
    """Return what stands in front of a field of a group: of 'rl_one.loss', with the point."""
    return where if where.endswith((".", " ")) or not where else f"{where}."


def complete(
    settings: ModelT, tables: Mapping[type[Choice], ChoiceTable[Any]], where: str = ""
) -> ModelT:
    """Complete every choice in settings; see `ChoiceTable.complete`.

    Args:
        settings: a group, with groups in it, or a choice. Without a choice in it, it comes back as
            it is.
        tables: of every kind of choice.
        where: what stands in front of its fields in messages, with what divides them.

    Raises:
        SettingsError: as `ChoiceTable.choose`; names the setting.
    """
    if isinstance(settings, Choice):
        settings = cast("ModelT", tables[type(settings)].complete(settings, where))
    return _with_parts(settings, tables, where)


def _with_parts(
    settings: ModelT, tables: Mapping[type[Choice], ChoiceTable[Any]], where: str
) -> ModelT:
    changes: dict[str, object] = {}
    for name in type(settings).model_fields:
        value: object = getattr(settings, name)
        new = _completed(value, tables, f"{where}{name}")
        if new != value:
            changes[name] = new
    return settings.model_copy(update=changes) if changes else settings


def _completed(
    value: object, tables: Mapping[type[Choice], ChoiceTable[Any]], where: str
) -> object:
    match value:
        case Choice():
            return _with_parts(tables[type(value)].complete(value, where), tables, f"{where}.")
        case BaseModel():
            return _with_parts(value, tables, f"{where}.")
        case tuple():
            parts = cast("tuple[object, ...]", value)
            return tuple(
                _completed(part, tables, f"{where}[{place}]") for place, part in enumerate(parts)
            )
        case _:
            return value


def unknown(name: str, names: Sequence[str], where: str) -> SettingsError:
    """Say that a setting names neither a built-in nor code of a user's own."""
    advice = did_you_mean(name, names) or f"use one of {', '.join(names)}"
    return SettingsError(
        f"{where} is {name!r}; {advice}, or code of your own as my_file.py:name ({GUIDE})"
    )


def load(reference: str, form: type[FormT]) -> FormT:
    """Return what a reference names, in a form that is asked for; a class is instantiated.

    Args:
        reference: with or without a pin.
        form: a Protocol: of functions, or of objects with its methods; or the abstract model of
            a choice.

    Raises:
        SettingsError: there is no such file or name, it cannot be imported, is not the code that it
            is pinned to, or is not of that form. One line, with an example of the form.
    """
    return _fitting(attribute(reference), form, reference)


def attribute(reference: str) -> object:
    """Return what a reference names, whatever its form; errors as in `load`."""
    parts = ObjectReference.parse(reference)
    if parts is None:
        raise SettingsError(f"{reference!r} is no reference; write my_file.py:name ({GUIDE})")
    of_ours = parts.place.partition(".")[0] in OURS and not parts.place.endswith(".py")
    return _fixed_attribute(parts) if parts.digest or of_ours else _attribute(parts)


@functools.cache
def _fixed_attribute(parts: ObjectReference) -> object:
    """Load a reference once: neither pinned code nor that of a running process's own changes."""
    return _attribute(parts)


def _attribute(parts: ObjectReference) -> object:
    path = path_of(parts)
    digest = _digest(path, parts)
    if parts.digest and digest != parts.digest:
        raise SettingsError(
            f"{parts.place} has changed since {parts.name} was chosen (sha256 {digest[:12]}, then "
            f"{parts.digest[:12]}). Restore it, or start again without '@{parts.digest[:12]}...'"
        )
    module = _module(parts, path, digest)
    if parts.name not in vars(module):
        raise _nameless(parts, [name for name in vars(module) if not name.startswith("_")])
    value: object = vars(module)[parts.name]
    if not isinstance(value, type):
        return value
    if missing := sorted(getattr(value, "__abstractmethods__", ())):
        raise SettingsError(
            f"{parts.place}:{parts.name} cannot be used: it has no method {missing[0]} ({GUIDE})"
        )
    try:
        return value()
    except TypeError as error:
        raise SettingsError(
            f"{parts.place}:{parts.name} is a class that cannot be made without arguments: {error}"
        ) from error


def reference_to(function: Callable[..., object]) -> str:
    """Return what refers to a function of ours.

    Whoever writes it so imports the function, and Flyte ships what is imported.
    """
    return f"{function.__module__}:{function.__qualname__}"


def module_of(reference: str) -> ModuleType:
    """Import the module of a reference; errors as in `load`."""
    attribute(reference)
    parts = cast("ObjectReference", ObjectReference.parse(reference))
    path = path_of(parts)
    return _module(parts, path, _digest(path, parts))


def digest_of(reference: str) -> str:
    """Return the digest of the code of a reference; errors as in `load`."""
    attribute(reference)
    parts = cast("ObjectReference", ObjectReference.parse(reference))
    return _digest(path_of(parts), parts)


def pin(reference: str) -> str:
    """Add the digest of its code to a reference, unless it has one; load it in any case.

    Loaded, its files are among those that `pyflyte run --remote` and `pyflyte register` ship under
    `--copy auto`, if they lie below the project.

    Raises:
        SettingsError: as in `load`.
    """
    attribute(reference)
    parts = cast("ObjectReference", ObjectReference.parse(reference))
    for file in _named_files(path_of(parts), parts):
        _module(file, path_of(file), _digest(path_of(file), file))
    if parts.digest:
        return reference
    place = _portable(parts)
    return str(ObjectReference(place, parts.name, _digest(path_of(parts), parts)))


def pinned(settings: ModelT, where: str = "") -> ModelT:
    """Pin every reference in settings; see `pin`. Settings without any come back as they are.

    Args:
        settings: a group, with groups in it.
        where: dotted name of the group in front of its fields, for messages.

    Raises:
        SettingsError: as `pin`; names the setting.
    """
    changes: dict[str, object] = {}
    for name, field in type(settings).model_fields.items():
        value: object = getattr(settings, name)
        pluggable = any(isinstance(one, Pluggable) for one in field.metadata)
        new = _pinned_value(value, pluggable, f"{where}{name}")
        if new != value:
            changes[name] = new
    return settings.model_copy(update=changes) if changes else settings


def _pinned_value(value: object, pluggable: bool, where: str) -> object:
    match value:
        case BaseModel():
            return pinned(value, f"{where}.")
        case tuple():
            parts = cast("tuple[object, ...]", value)
            return tuple(
                _pinned_value(part, pluggable, f"{where}[{place}]")
                for place, part in enumerate(parts)
            )
        case str() if pluggable and is_reference(value):
            try:
                return pin(value)
            except SettingsError as error:
                raise SettingsError(f"{where}: {error}") from error
        case _:
            return value


def references_in(settings: BaseModel, where: str = "") -> Iterator[tuple[str, ObjectReference]]:
    """Yield every reference in settings behind the dotted name of its setting."""
    for name, field in type(settings).model_fields.items():
        value: object = getattr(settings, name)
        parts = cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, BaseModel):
                yield from references_in(part, f"{where}{name}.")
            elif any(isinstance(one, Pluggable) for one in field.metadata):
                reference = ObjectReference.parse(str(part))
                if reference:
                    yield f"{where}{name}", reference


def path_of(parts: ObjectReference) -> Path:
    """Return the file of a reference.

    Raises:
        SettingsError: there is none.
    """
    if parts.is_file:
        for folder in (Path.cwd(), ROOT):
            path = folder / Path(parts.place).expanduser()  # an absolute one stays as it is
            if path.is_file():
                return path.resolve()
        raise SettingsError(
            f"{parts.place} is in neither {Path.cwd()} nor {ROOT}. Correct the path; on a cluster, "
            "register with --copy all, or keep the file below the project"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(parts.place)
    except (ImportError, ValueError) as error:
        raise SettingsError(f"{parts.place} cannot be imported: {error}") from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise SettingsError(
            f"{parts.place} is no module that can be imported here. Install it, set PYTHONPATH, or "
            "write the path of a file: my_file.py:name"
        )
    return Path(spec.origin).resolve()


def require_name(parts: ObjectReference) -> None:
    """Refuse what a file cannot have under a name, without running the file.

    Raises:
        SettingsError: names the one that was meant.
    """
    path = path_of(parts)
    text = path.read_text(errors="replace")
    may_hide = path.suffix != ".py" or "import *" in text or "globals()" in text
    if not may_hide and not re.search(rf"\b{parts.name}\b", text):
        raise _nameless(parts, _DEFINED.findall(text))


def _nameless(parts: ObjectReference, names: Sequence[str]) -> SettingsError:
    likely = did_you_mean(parts.name, names)
    return SettingsError(f"{parts.place} has no {parts.name!r}{likely and f'; {likely}'}")


def _portable(parts: ObjectReference) -> str:
    """Write a file below the project or the working folder relative to it: so a pod has it."""
    if not parts.is_file:
        return parts.place
    path = path_of(parts)
    for folder in (Path.cwd().resolve(), ROOT):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.as_posix()


def _module(parts: ObjectReference, path: Path, digest: str) -> ModuleType:
    """Import the code of a reference.

    Raises:
        SettingsError: it raises.
    """
    try:
        if not parts.is_file:
            return importlib.import_module(parts.place)
        # Named by its content, so that no file hides another module, or an older state of itself.
        name = f"own_{path.stem}_{digest[:12]}"
        if name in sys.modules:
            return sys.modules[name]
        if str(path.parent) not in sys.path:
            sys.path.append(str(path.parent))  # it may import its neighbours
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None, f"{path} ends in .py"
        assert spec.loader is not None, f"{path} is a file"
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(
            f"{parts.place} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _digest(path: Path, parts: ObjectReference) -> str:
    """Hash the files that a reference stands for, by content and by place beside the first."""
    digest = hashlib.sha256()
    for file in sorted(_closure(path, parts)):
        digest.update(f"{os.path.relpath(file, path.parent)}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _closure(path: Path, parts: ObjectReference) -> set[Path]:
    """The file, the modules that it imports from its folder or package, and files that it names."""
    files: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in files:
            continue
        files.add(file)
        waiting.extend(_imported(file, path, parts))
        waiting.extend(path_of(place) for place in _references(file))
    return files


def _named_files(path: Path, parts: ObjectReference) -> Iterator[ObjectReference]:
    for file in _closure(path, parts):
        yield from _references(file)


def _references(file: Path) -> Iterator[ObjectReference]:
    """Yield references to other files among the texts of a file: an adapter names a verifier."""
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = ObjectReference.parse(node.value)
            if parts and parts.is_file:
                yield parts


def _imported(file: Path, first: Path, parts: ObjectReference) -> Iterator[Path]:
    """Yield the files of a module's imports that belong to the same folder or package."""
    depth = 0 if parts.is_file else parts.place.count(".") + (first.name == "__init__.py")
    root = first.parent if parts.is_file else first.parents[depth]
    package = parts.place.partition(".")[0]
    for node in ast.walk(_parsed(file)):
        for folder, names in _targets(node, file, root):
            top = names[0] if names else ""
            ours = folder == root and top in OURS
            if folder == root and not parts.is_file and top != package:
                continue
            for end in range(1, len(names) + 1):
                inner = folder.joinpath(*names[:end])
                for path in (inner.with_suffix(".py"), inner / "__init__.py"):
                    # Of ours, what stands beside it: the folder of a recipe.
                    if path.is_file() and (not ours or path.parent == first.parent):
                        yield path.resolve()


def _targets(node: ast.AST, file: Path, root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield (folder, path of names below it) of everything that a statement may import."""
    if isinstance(node, ast.Import):
        for item in node.names:
            yield root, item.name.split(".")
    if isinstance(node, ast.ImportFrom):
        folder = file.parents[node.level - 1] if node.level else root
        names = node.module.split(".") if node.module else []
        for item in node.names:
            yield folder, [*names, item.name]


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except SyntaxError as error:
        raise SettingsError(
            f"{file} cannot be imported: line {error.lineno}: {error.msg}"
        ) from error


def _fitting(value: object, form: type[FormT], reference: str) -> FormT:
    """Check a value against a Protocol: its methods are there, and can be called as it says.

    Raises:
        SettingsError: one is not.
    """
    if issubclass(form, BaseModel) and not isinstance(value, form):
        _refuse(reference, form, f"it is not derived from {form.__module__}.{form.__name__}")
    for name, method in _methods(form).items():
        own: Any = value if name == "__call__" else getattr(value, name, None)
        label = "" if name == "__call__" else f".{name}"
        if not callable(own):
            _refuse(reference, form, f"it has no method {name}" if label else "it is no function")
        _, *expected = inspect.signature(method).parameters.values()  # without self
        places = [one.name for one in expected if one.kind is not one.KEYWORD_ONLY]
        keywords = {one.name: None for one in expected if one.kind is one.KEYWORD_ONLY}
        try:
            inspect.signature(own).bind(*places, **keywords)
        except TypeError as error:
            _refuse(reference, form, f"{reference.partition('@')[0]}{label} {_plainly(error)}")
        except ValueError:
            pass  # a function in C, without a signature
    return cast("FormT", value)


def _plainly(error: TypeError) -> str:
    return str(error).replace("missing a required argument", "needs another argument")


def _refuse(reference: str, form: type[object], reason: str) -> None:
    parts = cast("ObjectReference", ObjectReference.parse(reference))
    example = _example(form, parts.name)
    raise _unfit(parts, form.__name__, f"{reason}. Example: {example} ({GUIDE})")


def _unfit(parts: ObjectReference, form: str, reason: str) -> SettingsError:
    return SettingsError(f"{parts.place}:{parts.name} is no {form}: {reason}")


def _methods(form: type[object]) -> dict[str, Callable[..., object]]:
    return {
        name: method
        for name, method in vars(form).items()
        if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_"))
    }


def _example(form: type[object], name: str) -> str:
    """Write the form as a user would."""
    methods = _methods(form)
    if "__call__" in methods:
        return _head(name, methods["__call__"], own=False)
    heads = "; ".join(_head(each, method, own=True) for each, method in methods.items())
    base = f"({form.__name__})" if issubclass(form, BaseModel) else ""
    return f"class {name}{base}: {heads}"


def _head(name: str, method: Callable[..., object], *, own: bool) -> str:
    texts: list[str] = []
    for one in list(inspect.signature(method).parameters.values())[0 if own else 1 :]:
        if one.kind is one.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        texts.append(one.name)
    result = inspect.signature(method).return_annotation
    return f"def {name}({', '.join(texts)}) -> {inspect.formatannotation(result, 'data_schemas')}"
