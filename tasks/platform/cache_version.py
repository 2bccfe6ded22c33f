"""The digest of the source files that the result of a stage depends on.

The digest is the cache version of the stage and is recorded in its statement. It covers the
source text of the task function, every first-party module that the function imports, directly or
indirectly, the data files beside these modules, and the lock files of the machine that the stage
runs on. A change to grading therefore does not invalidate the cache of
curation; a change to a comment does invalidate that of its own stage. Paths are relative to the
source root, so that the digest is the same on a laptop, at registration and in a container.

Not covered: modules that only run, record or display (the runner, lineage, platform, pages), and
the settings models, whose values are inputs of the stage and therefore part of its cache key.
"""

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from data_schemas import presets
from tasks.errors import SettingsError
from tasks.platform.resources import STAGES

ROOT = Path(__file__).resolve().parents[2]
_ENGINES = "containers/lock_engines.txt"
LOCKS = {
    "cpu": ("lock_cpu.txt",),
    "rollout": ("lock_cpu.txt", "containers/lock_rollout.txt", _ENGINES),
    "trainer": (
        "lock_cpu.txt",
        "containers/lock_trainer.txt",
        "containers/lock_transformer_engine.txt",
        _ENGINES,
    ),
}
"""Image of a stage -> what pins the packages that compute it.

On one's own machine it runs in the environment of the first lock, or of the engines'.
"""
REGISTERED = "EACHPROMPT_CODE"
"""Variable of a pod: digest of its stage's code where it was registered."""
_NO_DATA = (".py", ".pyc", ".typed", ".md")
"""Endings of files beside modules that no module reads."""
OURS = ("tasks", "data_schemas")
NOT_COVERED = (
    "tasks.provenance.lineage",
    "tasks.platform",
    "tasks.pages",
    "tasks.stages.runner",
    "data_schemas.settings",
)


def code_digest(name: str, without: tuple[str, ...] = ()) -> str:
    """Hash the source files that the result of a stage depends on; `without` as below."""
    stage = STAGES[name]
    return shell_digest(f"tasks.{stage.module}", name, without, image=stage.image)


def require_registered_code() -> None:
    """Refuse to run a stage in a pod whose files are others than those that were registered.

    `pyflyte run --remote` ships imported modules only, and data files, presets and locks are then
    the image's: what ran would not be what the cache version and the statement name.

    Raises:
        SettingsError: they differ.
    """
    registered = os.environ.get(REGISTERED, "")
    name = os.environ.get("FLYTE_INTERNAL_TASK_NAME", "").rpartition(".")[2]
    if registered and name in STAGES and code_digest(name) != registered:
        raise SettingsError(
            f"the code, data or lock files of {name} in this pod are not those that were "
            "registered: the image has others. Ship all files, with --copy all, or build the image "
            "of this commit."
        )


@functools.cache
def shell_digest(
    module: str, function: str, without: tuple[str, ...] = (), image: str = "cpu"
) -> str:
    """Hash everything that the result of one task function depends on.

    Args:
        module: of the function.
        function: its name.
        without: packages that the function imports only where settings ask for them, and these do
            not; a cache version leaves nothing out.
        image: of the machine that it runs on.

    Raises:
        SettingsError: there is no such function, or a lock file is missing.
    """
    shell = read_shell(module, function)
    digest = hashlib.sha256(shell.text.encode())
    modules = sorted(reachable(shell.imports, without))
    for name in modules:
        digest.update(f"\n{name}\n".encode() + _module_digest(name))
    for folder in sorted({_file(name).parent for name in modules}):
        digest.update(data_digest(folder))
    for lock in (ROOT / file for file in LOCKS[image]):
        if not lock.is_file():
            raise SettingsError(f"{lock} is missing; it is part of cache versions. Restore it.")
        digest.update(lock.read_bytes())
    return digest.hexdigest()


@functools.cache
def _module_digest(name: str) -> bytes:
    digest = hashlib.sha256(_file(name).read_bytes())
    if name == presets.__name__:  # its values are in files
        for path in sorted(presets.FOLDER.glob("*.yaml")):
            digest.update(path.read_bytes())
    return digest.digest()


@functools.cache
def data_digest(folder: Path) -> bytes:
    """Hash the data files of a package: in its folder, and below it where there are no modules."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")):
            continue
        if path.is_dir():
            if not any(path.glob("*.py")):
                digest.update(path.name.encode() + data_digest(path))
        elif path.suffix not in _NO_DATA:
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def source_digest(module: str) -> str:
    """Hash a module and every first-party module that it imports, directly or indirectly."""
    digest = hashlib.sha256()
    for name in sorted(reachable([module])):
        digest.update(f"\n{name}\n".encode())
        digest.update(_file(name).read_bytes())
    return digest.hexdigest()


def is_module(name: str) -> bool:
    """Say whether there is a first-party module of a name."""
    return _file(name).is_file()


@dataclass(frozen=True, slots=True)
class Shell:
    """One function of a file of shells, with the definitions of that file that it uses."""

    text: str
    """Its source and that of the definitions it uses, without comments."""
    imports: frozenset[str]
    """First-party modules that these definitions import."""


def read_shell(module: str, function: str) -> Shell:
    """Collect the definitions that one function of a module uses; the others are left out.

    Raises:
        SettingsError: the module has no such function.
    """
    body = _parse(module).body
    bound = {name: target for node in body for name, target in _bindings(node)}
    defined = {name: node for node in body for name in _defined_names(node)}
    if function not in defined:
        raise SettingsError(f"{module} has no function {function}; see tasks/platform/resources.py")
    used = {function}
    waiting = [function]
    while waiting:
        for node in ast.walk(defined[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id not in used:
                used.add(node.id)
                waiting.extend({node.id} & defined.keys())
    texts = [ast.unparse(defined[name]) for name in sorted(used & defined.keys())]
    return Shell("\n".join(texts), frozenset(bound[name] for name in used & bound.keys()))


def reachable(modules: Iterable[str], without: tuple[str, ...] = ()) -> set[str]:
    """Follow imports from these modules through first-party code, themselves included."""
    left_out = NOT_COVERED + without
    modules_seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in modules_seen and not module.startswith(left_out):
            modules_seen.add(module)
            waiting.extend(_imports(module))
    return modules_seen


# "from tasks.rl import phase, step" and "import tasks.rl.phase as phase"; names in brackets may
# stand on lines of their own. Every process that opens a workflow reads all files, and syntax
# trees of them would be a fifth of its start.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<package>[\w.]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n(]+)"
    r"|import[ \t]+(?P<modules>[^\n]+))",
    re.MULTILINE,
)


@functools.cache
def _imports(module: str) -> frozenset[str]:
    return imports_of(_file(module).read_text())


def imports_of(text: str) -> frozenset[str]:
    """Return the first-party modules that a source imports, inside of functions and texts too."""
    lines = [match[0].strip() for match in _IMPORT.finditer(text)]
    ours = [line for line in lines if any(name in line for name in OURS)]
    try:
        nodes = [node for line in ours for node in ast.parse(line).body]
    except SyntaxError:  # a bracket in a comment cut names off, or a text only looks like an import
        nodes = list(ast.walk(ast.parse(text)))
    return frozenset(target for node in nodes for _, target in _bindings(node))


def _bindings(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (bound name, first-party module) for each name that a statement imports."""
    if isinstance(node, ast.Import):
        for item in node.names:
            if item.name.startswith(OURS) and is_module(item.name):
                yield item.asname or item.name.split(".")[0], item.name
    if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS):
        for item in node.names:
            inner = f"{node.module}.{item.name}"
            yield item.asname or item.name, inner if is_module(inner) else node.module


def _defined_names(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


@functools.cache
def _parse(module: str) -> ast.Module:
    return ast.parse(_file(module).read_bytes())


@functools.cache
def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
