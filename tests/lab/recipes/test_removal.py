"""The core knows no recipe and no laboratory: whoever deletes a folder of it breaks nothing."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_process

ROOT = Path(__file__).parents[3]
CODE = ("tasks", "workflows", "data_schemas")
NAMES = sorted(path.name for path in (ROOT / "tasks" / "lab" / "recipes").glob("[a-z]*"))
LAYOUT = "test_every_folder_is_a_package or test_the_map_of_the_floors or test_the_import_contracts"


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return [path for path in found if "lab" not in path.relative_to(ROOT).parts[:2]]


def imported(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [item.name for item in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{item.name}" for item in node.names)]
    return names


@pytest.mark.slow  # daily: the import contracts
def test_nothing_outside_of_the_laboratory_imports_it():
    assert {} == {
        str(path.relative_to(ROOT)): names
        for path in sources(*CODE)
        if "lab" in path.read_text()
        and (names := [name for name in imported(path) if name.split(".")[1:2] == ["lab"]])
    }


def copy_without(names: list[str], folder: Path) -> Path:
    for part in (*CODE, "tests", ".github", "containers"):
        # With what is compiled: the times of files are copied, too.
        ignored = shutil.ignore_patterns("*.safetensors")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for path in ROOT.glob("*.t*ml"):
        shutil.copy(path, folder)
    for path in (ROOT / "lock_cpu.txt", ROOT / "README.md", ROOT / "Makefile"):
        shutil.copy(path, folder)
    for name in names:
        shutil.rmtree(folder / "tasks" / "lab" / "recipes" / name)
        shutil.rmtree(folder / "tests" / "lab" / "recipes" / name)
        (folder / "workflows" / "lab" / "recipes" / f"{name}.py").unlink(missing_ok=True)
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return run_process([sys.executable, *arguments], cwd=folder, env=environment, check=False)


def modules_of(folder: Path) -> list[str]:
    return [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for part in CODE
        for path in sorted((folder / part).rglob("*.py"))
        if not {"rollout_vllm", "trainer_megatron", "elastic.py"} & set(path.parts)
    ]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # imports everything in a fresh process
@pytest.mark.parametrize("names", [NAMES, *([name] for name in NAMES)], ids=str)
def test_the_rest_stands_without_a_recipe(names, tmp_path):
    folder = copy_without(names, tmp_path / "copy")

    done = run(folder, "-c", "\n".join(f"import {name}" for name in modules_of(folder)))
    options = ("-q", "--noconftest", "-p", "no:cacheprovider", "-k", LAYOUT)
    layout = run(folder, "-m", "pytest", *options, "tests/test_layout.py")

    assert NAMES
    assert 0 == done.returncode, done.stderr[-2000:]
    assert 0 == layout.returncode, layout.stdout[-2000:]


@pytest.mark.slow
@pytest.mark.timeout(1800)  # imports everything in a fresh process
def test_the_rest_stands_without_the_laboratory(tmp_path):
    folder = copy_without([], tmp_path / "copy")
    shutil.rmtree(folder / "tasks" / "lab")
    shutil.rmtree(folder / "workflows" / "lab")

    done = run(folder, "-c", "\n".join(f"import {name}" for name in modules_of(folder)))
    command = run(folder, "-m", "tasks.platform.eachprompt", "--help")

    assert 0 == done.returncode, done.stderr[-2000:]
    assert 0 == command.returncode, command.stderr[-2000:]
