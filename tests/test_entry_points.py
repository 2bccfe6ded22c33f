"""What people start: the command is the file's name, and its help fits on one screen."""

import ast
import inspect
import json
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main
from flytekit.core.condition import BranchNode
from flytekit.core.workflow import PythonFunctionWorkflow

import workflows
from data_schemas import presets
from data_schemas.artifacts import CheckpointRef, ReportRef
from tasks.platform.entry_point import WorkflowOutputs
from tasks.platform.resources import STAGES
from workflows.post_training import RunOutputs

FOLDER = Path(workflows.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
RECIPES = sorted(
    f"lab/recipes/{path.stem}"
    for path in FOLDER.glob("lab/recipes/*.py")
    if path.stem != "__init__"
)
SEVERAL = {
    "lineage": ["trace", "compare", "forget"],
    "lab/recipes/grove_moe": ["upcycle", "grove"],
}
"""Files with commands of other names."""
# launch_plans has one command per preset.
COMMANDS = [
    pytest.param(name, command, marks=[pytest.mark.slow] if name in RECIPES else [])
    for name in (*FILES, *RECIPES)
    if name != "launch_plans"
    for command in SEVERAL.get(name, [name.rpartition("/")[2]])
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


def cases(node) -> list:
    """The nodes of a branch; of any other node itself."""
    if not isinstance(node.flyte_entity, BranchNode):
        return [node]
    block = node.flyte_entity._ifelse_block
    found = [block.case.then_node, *(one.then_node for one in block.other or [])]
    return [*found, *([block.else_node] if block.else_node else [])]


def before(node) -> list:
    """The nodes that a node waits for, those that its cases read too."""
    return [one for each in (node, *cases(node)) for one in each.upstream_nodes]


def task_of(node) -> str:
    return getattr(node.flyte_entity, "name", "").rpartition(".")[2]


def opened(entry):
    """Yield each node of a workflow and its parts that opens an execution, with its siblings."""
    for node in entry.nodes:
        for part in cases(node):
            if isinstance(part.flyte_entity, PythonFunctionWorkflow):
                yield from opened(part.flyte_entity)
        if task_of(node) in ("open_store", "open_night"):
            yield node, entry.nodes


def tasks_that_end(nodes) -> set[str]:
    """Names of the tasks that nodes end with, those of branches and of parts too."""
    names = set()
    for node in [case for one in nodes for case in cases(one)]:
        if isinstance(node.flyte_entity, PythonFunctionWorkflow):
            inner = node.flyte_entity.nodes
            followed = {one.id for each in inner for one in before(each)}
            names |= tasks_that_end([one for one in inner if one.id not in followed])
        else:
            names.add(task_of(node))
    return names


def last_of(opening, nodes) -> set[str]:
    """Names of the tasks of an execution that none of its other tasks waits for."""
    own = {node.id: node for node in nodes if any(map(partial(is_of, opening), cases(node)))}
    waited_for, seen = set[str](), set[int]()
    for node in own.values():
        left = before(node)
        while left:
            one = left.pop()
            if id(one) not in seen:  # there are many more paths than nodes
                seen.add(id(one))
                waited_for.add(one.id)
                left += before(one)
    return tasks_that_end([node for name, node in own.items() if name not in waited_for])


def is_of(opening, node) -> bool:
    """Whether a node reads the execution that another one opened."""
    promises = [one.binding.promise for one in node.bindings if one.var == "execution"]
    return any(one is not None and one.node_id == opening.id for one in promises)


def named_last(opening) -> set[str]:
    """Names of the last tasks that an execution is opened with."""
    if task_of(opening) == "open_night":
        return {"night_page"}
    (named,) = (one.binding.scalar for one in opening.bindings if one.var == "last")
    return set(named.primitive.string_value.split(","))


OPENING = ["post_training", "curate", "evaluate", "verify_answers", "distil", "retrain", "judge"]
OPENING += ["retrain_demo", "pretrain", "lab/study"]
# Each imports a recipe, or all of them.
OPENING += [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("recipe", *RECIPES)
    if "av_speaker" not in name
]


@pytest.mark.parametrize("name", OPENING)
def test_what_ends_an_execution_in_mlflow_are_the_tasks_that_nothing_follows(name):
    module = import_module(f"workflows.{name}".replace("/", "."))
    commands = SEVERAL.get(name, [name.rpartition("/")[2]])
    found = [one for command in commands for one in opened(getattr(module, command))]

    assert found
    for opening, nodes in found:
        assert named_last(opening) == last_of(opening, nodes)
        assert not any(STAGES[task].cached for task in named_last(opening))  # a hit says nothing


def test_a_cell_of_a_study_is_ended_by_what_measures_it():
    """It is wired in a dynamic task, which calls that one last."""
    from workflows.lab import cells

    (own,) = (one for one in cells._chain(None, None, False) if one.result == "context")
    assert {"workflow": "study", "last": "measure_cell"} == own.constants
    assert not STAGES["measure_cell"].cached


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
    reports = [ReportRef.model_construct(uri=f"runs/objects/{digit}") for digit in "12"]
    assert "runs/objects/1, runs/objects/2" == str(WorkflowOutputs(reports))
