"""The house rules that a machine can check."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel

from data_schemas import machine_settings, rl_settings, settings
from data_schemas.rl_settings import AnyRecipe
from tasks.gym.table import ENTRIES
from tasks.platform.eachprompt import foreign_package
from tests.processes import run_process

ROOT = Path(__file__).parents[1]
PACKAGES = ("workflows", "tasks", "data_schemas")
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
TOOLS = [*(ROOT / "tests" / "bench").rglob("*.py"), *(ROOT / "tests" / "examiner").rglob("*.py")]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BANNED = {"utils", "util", "common", "helpers", "misc", "manager"}
UNUSED_HERE = {
    "ScriptedRolloutEngine": "a fake that ships: users and our tests need no model",
    "ScriptedJudge": "a fake that ships: users and our tests need no judge",
    "preferring": "what ScriptedJudge says",
    "NOISE": "a run that workflows/lab/studies/reward_noise.yaml names",
    "Greso": "a rule of skips that workflows/lab/studies/skips.yaml names",
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
        **vars(machine_settings),
    }.values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model is not BaseModel
    # What is chosen by name checks the settings of its own, and refuses the keys that are none.
    if model is not AnyRecipe and not issubclass(model, machine_settings.Choice)
]


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed once for all tests."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file, walked once for all tests."""
    return list(ast.walk(tree_of(path)))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_installed_distribution_owns_our_package_names():
    assert "" == foreign_package()
    for name in PACKAGES:
        assert ROOT / name == Path(import_module(name).__file__).parent


def test_every_folder_is_a_package_whose_init_imports_nothing():
    for folder in {path.parent for path in SOURCES}:
        init = folder / "__init__.py"
        assert ast.get_docstring(tree_of(init)), folder
        assert not [n for n in nodes_of(init) if isinstance(n, ast.Import | ast.ImportFrom)], folder


def test_every_file_says_what_it_is():
    assert [] == [name_of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))]


def test_a_public_class_name_is_used_once():
    names = Counter(
        node.name
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert [] == [name for name, times in names.items() if times > 1]


def headings(path: Path) -> list[int]:
    """Lines behind the first definition where a block of comments stands alone."""
    first = next((n.lineno for n in tree_of(path).body if isinstance(n, DEFINITIONS)), None)
    lines = path.read_text().splitlines()
    return [
        number
        for number in range(first or len(lines), len(lines))
        if lines[number - 1].startswith("#") and not lines[number].strip()
    ]


def test_no_file_has_a_second_header():
    """What begins with a header of its own is a file of its own."""
    assert {} == {name_of(path): found for path in SOURCES if (found := headings(path))}


def test_a_text_beside_a_name_says_what_it_is():
    """One that begins with "Of" needs the name to be a sentence."""
    begins = re.compile(r'^\s*"""Of ', re.MULTILINE)

    assert [] == [name_of(path) for path in SOURCES + TESTS if begins.search(path.read_text())]


def test_every_file_that_the_table_of_formulas_names_is_there():
    page = ROOT / "tasks" / "algorithms" / "README.md"
    table = page.read_text().partition("| formula |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    places = [place for row in rows for place in re.findall("`(.*?)`", row.split("|")[2])]

    assert len(places) > 30
    assert [] == [place for place in places if not (page.parent / place).exists()]


def test_no_module_is_named_like_the_standard_library_or_like_nothing():
    stems = {path.stem: path for path in SOURCES}

    # Nobody runs engines/select.py as a script, which alone would put it before the other.
    shadowed = stems.keys() & sys.stdlib_module_names - {"select"}
    assert not {name: stems[name] for name in shadowed}
    assert not {name: stems[name] for name in stems.keys() & BANNED}


def test_the_test_folders_cannot_be_mistaken_for_the_code():
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not [path for path in (ROOT / "tests").rglob("*") if path.name in PACKAGES]


def test_the_stub_of_transformers_names_its_classes():
    stub = ast.parse((ROOT / "tests" / "stubs" / "transformers" / "__init__.pyi").read_text())
    places = {
        name.asname or name.name: (node.module, name.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    others = {
        node.targets[0].id: places[node.value.id]
        for node in stub.body
        if isinstance(node, ast.Assign)
    }

    for name, (module, original) in (places | others).items():
        defined = getattr(import_module(module), original)
        assert defined is getattr(import_module("transformers"), name), name


def test_settings_are_frozen_and_refuse_unknown_keys():
    assert [] == [
        model.__name__
        for model in MODELS
        if not model.model_config.get("frozen") or model.model_config.get("extra") != "forbid"
    ]


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
    assert {
        path.stem
        for path in (ROOT / "tasks").iterdir()
        if path.name[0] not in "_." and path.suffix not in (".md", ".typed")
    } == rooms


def test_contributing_names_the_modules_that_import_flytekit():
    named = re.search(r"modules of `tasks/platform/` only \(([^)]*)\)", CONTRIBUTING.read_text())
    fence = contract("flyte only where shells are made")["ignore_imports"]

    assert {f"tasks.platform.{name} -> flytekit" for name in re.findall(r"`(\w+)`", named[1])} == {
        *fence
    }


@pytest.mark.slow
def test_formulas_stages_and_records_load_without_flyte_or_mlflow():
    fence = contract("flyte only where shells are made")["ignore_imports"]
    flyte = {line.removesuffix(" -> flytekit") for line in fence}
    adapters = {"rollout_vllm", "trainer_megatron"}
    pure = sorted(
        name_of(path).removesuffix(".py").replace("/", ".")
        for path in SOURCES
        if path.parts[len(ROOT.parts)] != "workflows"
        and "stages" not in path.parts
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

    done = run_process([sys.executable, "-c", code], cwd=ROOT)

    assert done.stdout.strip() == "[]"


def names_read(nodes: Collection[ast.AST]) -> Iterator[str]:
    """Names that code reads; the words of its strings too, as Flyte and vLLM take names in them."""
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield from re.findall(r"\w+", text)


def names_made(path: Path) -> Iterator[tuple[str, ast.AST | None]]:
    """Names that a module defines, with the code that may read them without being a user.

    Left out: what a decorator registers, and methods that the base of their class calls.
    """
    tree = tree_of(path)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, None
    own = {tree, *(n for n in nodes_of(path) if isinstance(n, ast.ClassDef) and not n.bases)}
    for parent in own:
        for node in ast.iter_child_nodes(parent):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name, decorator_list=[]):
                    yield name, node


def test_everything_has_a_user_outside_the_tests():
    reads = {path: Counter(names_read(nodes_of(path))) for path in SOURCES}
    read = Counter(name for nodes in map(nodes_of, TOOLS) for name in names_read(nodes))
    for counted in reads.values():
        read.update(counted)
    unused = {
        name: name_of(path)
        for path in SOURCES
        for name, node in names_made(path)
        if read[name] == reads[path][name]  # no other file reads it
        and not name.startswith("__")
        and name not in UNUSED_HERE
        and read[name] == (Counter(names_read(list(ast.walk(node))))[name] if node else 0)
    }

    assert {} == unused


def functions_replaced(path: Path) -> list[str]:
    """Functions and classes of ours for which a test file sets another one."""
    if "setattr" not in path.read_text():
        return []
    nodes = nodes_of(path)
    ours = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
    }
    replaced = []
    for node in nodes:
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
    return [name for name in replaced if not name.isupper()]


def test_no_test_replaces_what_we_wrote():
    """A constant may be another one; functions and classes are handed in."""
    replaced = {name_of(path): functions_replaced(path) for path in TESTS}

    assert REPLACED.keys() == {name for name, functions in replaced.items() if functions}


def imported_rooms() -> dict[str, set[str]]:
    """Which rooms of tasks/ each of them imports."""
    rooms: dict[str, set[str]] = {}
    for path in (ROOT / "tasks").rglob("*.py"):
        own = path.relative_to(ROOT / "tasks").parts[0].removesuffix(".py")
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tasks."):
                rooms.setdefault(own, set()).add(str(node.module).split(".")[1])
    return {room: found - {room} for room, found in rooms.items() if room != "__init__"}


def longest_ways(edges: dict[str, set[str]]) -> list[str]:
    """The arrows of a picture: an import that others lead to as well is left out."""

    def below(room: str) -> set[str]:
        found = set(edges.get(room, ()))
        return found.union(*map(below, found))

    return sorted(
        f"    {room} --> {target}"
        for room, targets in edges.items()
        for target in targets
        if not any(target in below(other) for other in targets - {target})
    )


def test_the_picture_of_the_rooms_is_drawn_from_the_imports():
    page = (ROOT / "tasks" / "README.md").read_text()
    (picture,) = re.findall(r"```mermaid\nflowchart TD\n(.*?)```", page, re.DOTALL)

    assert longest_ways(imported_rooms()) == picture.rstrip("\n").split("\n")


@pytest.mark.slow
def test_what_the_code_imports_is_installed_without_the_tools_of_development():
    """`uv tool install .` installs the dependencies and nothing of the groups beside them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [Requirement(one).name for one in project["dependencies"]]
    installed: set[str] = set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in installed:
            continue
        installed.add(name)
        with suppress(PackageNotFoundError):  # for another system
            needed = map(Requirement, requires(name) or [])
            waiting += [r.name for r in needed if not r.marker or r.marker.evaluate({"extra": ""})]
    makers = packages_distributions()
    missing = set()
    for path in SOURCES:
        for node in nodes_of(path):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for top in {name.partition(".")[0] for name in names}:
                made = {canonicalize_name(one) for one in makers.get(top, [])}
                if top not in sys.stdlib_module_names and top not in PACKAGES:
                    missing |= set() if made & installed else {top}

    # The engines of a cluster, each an extra of its own.
    assert missing <= {"vllm", "megatron", "flytekitplugins"}


VERIFIER_LISTS = {
    "tasks/curation/adapters/mapped.py": "the form of the built-in golds that a table fills",
    "tasks/curation/cleaning/golds.py": "the form of the built-in golds whose texts may be damaged",
    "tasks/curation/commands.py": "what a command offers",
    "tasks/evaluation/agreement.py": "the two verifiers that the command compares",
    "tasks/lab/recipes/rusca/criteria.py": "the form of golds that have criteria",
    "tasks/lab/recipes/rusca/defence.py": "the form of golds that have criteria",
}


def test_what_a_verifier_is_stands_in_its_entry_and_not_in_a_list_of_names():
    lists = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        if len(names := [one.value for one in node.elts if isinstance(one, ast.Constant)]) > 1
        if all(isinstance(name, str) and name in ENTRIES.data for name in names)
    }

    assert VERIFIER_LISTS.keys() == lists


# "(?:ab|c)*+", "(?:ab|c){0,3}+" and "(?>ab|c)"; of one character, as "[ab]*+", all versions agree.
_GROUP_WITHOUT_A_WAY_BACK = re.compile(r"(?<!\\)\)(?:[*+?]|\{+[\w, ]+(?:\{\w+\})?\}+)\+|\(\?>")


def test_no_pattern_needs_possessive_groups_which_python_matches_wrongly_before_3_11_5():
    assert _GROUP_WITHOUT_A_WAY_BACK.search("r'(?:(?!<).)*+<'")
    assert _GROUP_WITHOUT_A_WAY_BACK.search("rf'(?:{word}{_GAP}){{0,{MOST}}}+'")

    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text().split("\n")
        if _GROUP_WITHOUT_A_WAY_BACK.search(line) and not line.lstrip().startswith("#")
    ]

    assert not found


def test_the_top_level_holds_what_a_visitor_looks_for():
    command = ["git", "ls-files"]
    paths = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = {path.partition("/")[0] for path in paths.split()}

    assert {name for name in names if not name.startswith(".")} == {
        *("AGENTS.md", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "pyproject.toml"),
        *("lock_cpu.txt", "containers", "data_schemas", "docs", "findings"),
        *("tasks", "tests", "workflows"),
    }
