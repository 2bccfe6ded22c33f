"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from data_schemas import lora_settings, machine_settings, rl_settings, settings

ROOT = Path(__file__).parents[1]
PACKAGES = ("workflows", "tasks", "data_schemas")
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
BANNED = {"utils", "util", "common", "helpers", "misc", "manager"}
UNUSED_HERE = {
    "ScriptedRolloutEngine": "a fake that ships: users and our tests need no model",
    "ScriptedJudge": "a fake that ships: users and our tests need no judge",
    "preferring": "what ScriptedJudge says",
    "same_answer": "for benchmarks that compare two written answers without a response",
    "synchronize": "called by Megatron-core on what stands for a stream of CUDA",
}
"""What nothing in the project's own folders calls, and why it is there."""
REPLACED = {
    "tests/rl/durability/test_outage.py": "the shell of RL opens all it works with; what fails in "
    "its last function, or comes between two steps, cannot be handed to it",
}
"""Tests that replace a function of ours all the same, and why."""
MODELS = [
    model
    for model in {
        **vars(settings),
        **vars(rl_settings),
        **vars(lora_settings),
        **vars(machine_settings),
    }.values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model is not BaseModel
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", PACKAGES)
def test_no_installed_wheel_owns_our_package_names(name):
    assert name not in packages_distributions()
    assert ROOT / name == Path(__import__(name).__file__).parent


def test_every_folder_is_a_package_whose_init_imports_nothing():
    for folder in {path.parent for path in SOURCES}:
        init = ast.parse((folder / "__init__.py").read_text())
        assert ast.get_docstring(init), folder
        assert not [n for n in ast.walk(init) if isinstance(n, ast.Import | ast.ImportFrom)], folder


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_module_is_named_like_the_standard_library_or_like_nothing():
    stems = {path.stem: path for path in SOURCES}

    # Nobody runs engines/select.py as a script, which alone would put it before the other.
    shadowed = stems.keys() & sys.stdlib_module_names - {"select"}
    assert not {name: stems[name] for name in shadowed}
    assert not {name: stems[name] for name in stems.keys() & BANNED}


def test_the_test_folders_cannot_be_mistaken_for_the_code():
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not [path for path in (ROOT / "tests").rglob("*") if path.name in PACKAGES]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_settings_are_frozen_strict_and_few(model):
    assert model.model_config.get("frozen") is True
    assert model.model_config.get("extra") == "forbid"
    assert len(model.model_fields) <= 15


def declared(model: type[BaseModel]) -> list[str]:
    """What a user can set in a model itself: a group of settings is not a setting."""
    kinds = {name: model.model_fields[name].annotation for name in model.__annotations__}
    return [
        name
        for name, kind in kinds.items()
        if not (isinstance(kind, type) and issubclass(kind, BaseModel))
    ]


def test_what_is_done_to_a_model_has_at_most_a_hundred_settings():
    method = [model for model in MODELS if model.__module__ != machine_settings.__name__]

    assert sum(len(declared(model)) for model in method) <= 100


def test_contributing_says_how_many_values_a_user_can_set():
    stated = re.search(r"A user can set (\d+) values in all", CONTRIBUTING.read_text())

    assert sum(len(declared(model)) for model in MODELS) == int(stated[1])


def contract(name: str) -> dict[str, Any]:
    """One import contract of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (found,) = [
        item for item in project["tool"]["importlinter"]["contracts"] if item["name"] == name
    ]
    return found


def test_the_map_of_the_floors_is_the_contract_and_has_every_folder():
    text = ast.get_docstring(ast.parse((ROOT / "tasks" / "__init__.py").read_text()))
    drawn = re.sub(r"\n +\| ", " | ", text.split("\n\n")[1])
    floors = [re.match(r" {4}(\w+(?: \| \w+)*)", line) for line in drawn.splitlines()]
    floors = [floor[1] for floor in floors if floor]
    rooms = {name for floor in floors for name in floor.split(" | ")}

    assert contract("floors")["layers"] == floors
    assert {path.stem for path in (ROOT / "tasks").iterdir() if path.name[0] not in "_."} == rooms


def test_contributing_names_the_modules_that_import_flytekit():
    named = re.search(r"modules of `tasks/platform/` only \(([^)]*)\)", CONTRIBUTING.read_text())
    fence = contract("flyte only where shells are made")["ignore_imports"]

    assert {f"tasks.platform.{name} -> flytekit" for name in re.findall(r"`(\w+)`", named[1])} == {
        *fence
    }


def test_the_import_contracts_are_kept():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-3000:]


def test_formulas_stages_and_records_load_without_flyte_or_mlflow():
    fence = contract("flyte only where shells are made")["ignore_imports"]
    flyte = {line.removesuffix(" -> flytekit") for line in fence}
    adapters = {"rollout_vllm", "trainer_megatron"}
    pure = sorted(
        name_of(path).removesuffix(".py").replace("/", ".")
        for path in SOURCES
        if path.parts[len(ROOT.parts)] != "workflows"
        and path.name != "task.py"
        and name_of(path).removesuffix(".py").replace("/", ".") not in flyte
        and not adapters & set(path.parts)
        and path.name != "__init__.py"
    )
    code = "\n".join(
        [
            "import sys",
            *(f"import {name}" for name in pure),
            "print([name for name in ('flytekit', 'mlflow', 'vllm', 'megatron')",
            "       if name in sys.modules])",
        ]
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "[]"


def names_read(tree: ast.AST) -> Iterator[str]:
    """Names that code reads; the words of its strings too, as Flyte and vLLM take names in them."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield from re.findall(r"\w+", text)


def names_made(tree: ast.Module) -> Iterator[tuple[str, ast.AST | None]]:
    """Names a module defines, with the code that may read them without being a user.

    Left out: what a decorator registers, and methods that the base of their class calls.
    """
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, None
    own = {tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and not n.bases)}
    for parent in own:
        for node in ast.iter_child_nodes(parent):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name, decorator_list=[]):
                    yield name, node


def test_everything_has_a_user_outside_the_tests():
    trees = {path: ast.parse(path.read_text()) for path in SOURCES}
    read = Counter(name for tree in trees.values() for name in names_read(tree))
    unused = {
        name: name_of(path)
        for path, tree in trees.items()
        for name, node in names_made(tree)
        if not name.startswith("__")
        and name not in UNUSED_HERE
        and read[name] == (Counter(names_read(node))[name] if node else 0)
    }

    assert {} == unused


@pytest.mark.parametrize("path", TESTS, ids=name_of)
def test_no_test_replaces_what_we_wrote(path):
    """A constant may be another one; functions and classes are handed in."""
    tree = ast.parse(path.read_text())
    ours = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
    }
    replaced = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(place)), *_]
            ) if place.split(".")[0] in PACKAGES:
                replaced.append(place.rpartition(".")[2])
            case ast.Call(
                func=ast.Attribute(attr="setattr"),
                args=[ast.Name(id=owner), ast.Constant(value=str(name)), *_],
            ) if owner in ours:
                replaced.append(name)

    functions = [name for name in replaced if not name.isupper()]
    assert bool(functions) == (name_of(path) in REPLACED), functions
