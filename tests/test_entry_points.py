"""What people start: the command is the file's name, and its help fits on one screen."""

import ast
import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main
from flytekit.core.condition import BranchNode
from flytekit.core.workflow import PythonFunctionWorkflow

import workflows
from data_schemas import presets
from data_schemas.artifacts import CheckpointRef
from tasks.platform.entry_point import WorkflowOutputs
from tasks.platform.resources import STAGES
from workflows.post_training import RunOutputs

FOLDER = Path(workflows.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
RECIPES = sorted(
    f"recipes/{path.stem}" for path in FOLDER.glob("recipes/*.py") if path.stem != "__init__"
)
SEVERAL = {
    "lineage": ["trace", "compare", "forget"],
    "recipes/grove_moe": ["upcycle", "grove"],
}
"""Files with commands of other names."""
# launch_plans has one command per preset.
COMMANDS = [
    (name, command)
    for name in (*FILES, *RECIPES)
    if name != "launch_plans"
    for command in SEVERAL.get(name, [name.removeprefix("recipes/")])
]
SCREEN = (100, 40)
"""Columns and lines."""


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_the_command_is_the_name_of_the_file(name, command):
    entry = getattr(import_module(f"workflows.{name}".replace("/", ".")), command)

    assert isinstance(entry, PythonFunctionWorkflow)
    assert f"workflows.{name}.{command}".replace("/", ".") == entry.name


def test_the_list_of_entry_points_is_the_files():
    listed = [
        line.split()[0] for line in inspect.getdoc(workflows).splitlines()[2:-2] if line[:1].strip()
    ]

    assert FILES == sorted(listed)


def endings(nodes) -> set[str]:
    """Names of the tasks that no other task of a workflow follows, those of its branches too."""
    followed = {one.id for node in nodes for one in node.upstream_nodes}
    names = set()
    for node in nodes:
        if node.id in followed:
            continue
        entity = node.flyte_entity
        if isinstance(entity, BranchNode):
            block = entity._ifelse_block
            cases = [block.case.then_node, *(one.then_node for one in block.other or [])]
            names |= endings([*cases, *([block.else_node] if block.else_node else [])])
        elif isinstance(entity, PythonFunctionWorkflow):
            names |= endings(entity.nodes)
        else:
            names.add(entity.name.rpartition(".")[2])
    return names


@pytest.mark.parametrize(
    "command",
    ["post_training", "curate", "evaluate", "verify_answers", "distil", "retrain", "retrain_demo"],
)
def test_what_ends_an_execution_in_mlflow_are_the_tasks_that_nothing_follows(command):
    source = (FOLDER / f"{command}.py").read_text()
    (last,) = re.findall(r'(?:opening|open_store)\([^)]*last="([\w,]+)"', source) or ["night_page"]

    entry = getattr(import_module(f"workflows.{command}"), command)
    assert set(last.split(",")) == endings(entry.nodes)
    assert not any(STAGES[name].cached for name in last.split(","))  # a hit would say nothing


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_the_example_of_the_file_is_its_own_command(name, command):
    doc = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))

    assert f"pyflyte run workflows/{name}.py {command}" in doc


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_help_fits_on_one_screen(name, command):
    columns, lines = SCREEN
    runner = CliRunner(env={"COLUMNS": str(columns), "TERMINAL_WIDTH": str(columns)})

    shown = runner.invoke(main, ["run", f"workflows/{name}.py", command, "--help"])

    assert 0 == shown.exit_code, shown.output
    assert len(shown.output.splitlines()) <= lines
    assert "$defs" not in shown.output
    assert '{"' not in shown.output


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("judge", {"epochs": 2}, presets.JUDGE.model_copy(update={"epochs": 2})),
        ("retrain_demo", presets.NIGHTLY.model_dump(mode="json"), presets.NIGHTLY),
    ],
)
def test_settings_that_are_not_given_are_those_of_the_workflows_preset(name, given, expected):
    kind = getattr(
        import_module(f"workflows.{name}".replace("/", ".")), name
    ).python_interface.inputs["settings"]

    assert expected == kind.model_validate_json(json.dumps(given))


def test_outputs_are_lines_and_no_objects_of_the_code():
    model = CheckpointRef(uri="runs/objects/3f2a", digest="0" * 64)

    shown = str(WorkflowOutputs(RunOutputs(model=model, page="runs/reports/1.html")))

    assert ["model  runs/objects/3f2a", "page   runs/reports/1.html"] == shown.splitlines()
    assert "one message" == str(WorkflowOutputs("one message"))
