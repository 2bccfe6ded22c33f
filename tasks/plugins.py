"""Code that a name in the settings or in a row refers to: `my_rewards.py:short_enough` or
`package.module:name`.

A table of built-ins looks a reference up as it looks up a name, so nothing that the core imports
has to know who uses it. A file is looked for in the working folder, then beside `tasks/`, where
Flyte unpacks what was registered.
"""

import hashlib
import importlib
import importlib.util
import re
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tasks.errors import SettingsError

ROOT = Path(__file__).resolve().parents[1]
_FORM = re.compile(r"(?P<place>[^\s:@]+\.py|[A-Za-z_]\w*(?:\.\w+)+):(?P<name>[A-Za-z_]\w*)")
"""`a/my_file.py:name`, or `package.module:name`."""

ValueT = TypeVar("ValueT")


class Table(UserDict[str, ValueT]):
    """Built-ins by name; a reference is looked up as well, and becomes an entry by `own`.

    Iteration is over the built-ins.

    Args:
        entries: the built-ins.
        own: makes an entry of a reference.

    Raises:
        KeyError: on look-up, of a name that is neither.
        SettingsError: on look-up, of a reference whose code is missing.
    """

    def __init__(self, entries: Mapping[str, ValueT], own: Callable[[str], ValueT]) -> None:
        super().__init__(entries)
        self._own = own

    def __missing__(self, name: str) -> ValueT:
        if is_reference(name):
            return self._own(name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.data or is_reference(name))

    def with_entries(self, entries: Mapping[str, ValueT]) -> "Table[ValueT]":
        """Return the same table with some entries replaced or added."""
        return Table({**self.data, **entries}, self._own)


def is_reference(text: str) -> bool:
    """Return whether a name refers to code outside of a table."""
    return _FORM.fullmatch(text) is not None


def reference_to(function: Callable[..., object]) -> str:
    """Return what refers to a function of ours.

    Whoever writes it so imports the function, and Flyte ships what is imported.
    """
    return f"{function.__module__}:{function.__qualname__}"


def attribute(reference: str) -> object:
    """Return what a reference names.

    Raises:
        SettingsError: there is no such file, module or name, or it cannot be imported.
    """
    module, name = module_of(reference), reference.rpartition(":")[2]
    if name not in vars(module):
        raise SettingsError(f"{reference}: {module.__name__} has no {name!r}")
    return vars(module)[name]


def module_of(reference: str) -> ModuleType:
    """Import the module of a reference; errors as in `attribute`."""
    found = _FORM.fullmatch(reference)
    if found is None:
        raise SettingsError(f"{reference!r} is no reference; write my_file.py:name")
    place = found["place"]
    try:
        return _from_file(place) if place.endswith(".py") else importlib.import_module(place)
    except ImportError as error:
        raise SettingsError(f"{reference} cannot be imported: {error}") from error


def file_of(reference: str) -> Path:
    """Return the file that a reference is in; errors as in `attribute`."""
    return Path(module_of(reference).__file__ or "")


def _from_file(place: str) -> ModuleType:
    """Import a file under a name made of its content, so that no file hides another module."""
    for folder in (Path.cwd(), ROOT):
        path = folder / Path(place).expanduser()  # an absolute one stays as it is
        if path.is_file():
            break
    else:
        raise SettingsError(f"{place} is in neither {Path.cwd()} nor {ROOT}. Correct the path")
    name = f"own_{path.stem}_{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None, f"{path} ends in .py"
        assert spec.loader is not None, f"{path} is a file"
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
