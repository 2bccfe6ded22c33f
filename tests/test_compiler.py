"""The compiler of the tests refuses what Flyte's refuses: one wrong workflow for each rule."""

from collections import OrderedDict
from enum import Enum
from typing import cast

import pytest
from flyteidl.admin import launch_plan_pb2
from flyteidl.core.tasks_pb2 import TaskTemplate
from flytekit import CronSchedule, LaunchPlan, PodTemplate, Resources, task, workflow
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.core.context_manager import FlyteContext
from flytekit.core.type_engine import TypeEngine
from flytekit.tools.translator import get_serializable
from kubernetes.client import V1Container, V1PodSpec
from pydantic import BaseModel

from data_schemas.artifacts import DatasetRef, GradedRef, RawRef
from tasks.platform.shell import either, subworkflow
from tests.compiler import (
    Platform,
    castable,
    check_execution,
    check_resources,
    compile_plan,
    compile_workflow,
    interface_of,
)


class Rows(BaseModel):
    """A model."""

    place: str = ""
    count: int = 0


class Place(BaseModel):
    """A model that is a part of Rows."""

    place: str = ""


class Found(BaseModel):
    """A model with an optional part."""

    rows: Rows | None = None
    others: Rows = Rows()


class Colour(Enum):
    """A choice."""

    RED = "red"


@task
def rows(name: str = "") -> Rows:
    """Make a model."""
    return Rows(place=name)


@task
def found() -> Found:
    """Make a model of models."""
    return Found()


@task
def count(of: Rows) -> int:
    """Take a model."""
    return of.count


@task
def count_perhaps(of: Rows | None) -> int:
    """Take a model or nothing."""
    return of.count if of else 0


@task
def count_either(of: int | float) -> int:
    """Take one of two."""
    return int(of)


@task
def double(number: int) -> int:
    """Take a number."""
    return 2 * number


@task
def total(numbers: list[int]) -> int:
    """Take a list."""
    return sum(numbers)


@task
def is_red(colour: Colour) -> bool:
    """Take a choice."""
    return colour is Colour.RED


@workflow
def right() -> int:
    """Everything fits."""
    of = found()
    first, second = count(of=of.others), count_perhaps(of=rows())
    return total(numbers=[first, second, count_either(of=1), double(number=of.others.count)])


@workflow
def a_text_for_a_choice(name: str) -> bool:
    """A string feeds an enum."""
    return is_red(colour=name)  # type: ignore[arg-type]


@subworkflow
def branched(answer: bool, number: int) -> int:
    """Its sides have the same outputs."""
    return either("side", answer, lambda: double(number=number), lambda: double(number=2))


@workflow
def another_type() -> int:
    """A model feeds a number."""
    return double(number=rows())  # type: ignore[arg-type]


@workflow
def a_union_for_a_plain_input() -> int:
    """An optional part feeds an input that is not."""
    return count(of=cast("Rows", found().rows))


@workflow
def a_field_that_is_not_there() -> int:
    """An attribute that the type does not name."""
    return count(of=found().others)


@workflow
def an_output_of_another_type() -> str:
    """A number is returned as a string."""
    return double(number=1)  # type: ignore[return-value]


@workflow
def a_list_with_a_model() -> int:
    """A member of a list of numbers is a model."""
    return total(numbers=[1, rows()])  # type: ignore[list-item]


@workflow
def many_nodes() -> int:
    """More nodes than a platform takes."""
    one = double(number=1)
    two = double(number=one)
    return double(number=two)


@workflow
def required(name: str, number: int = 3) -> int:
    """An input without a default."""
    rows(name=name)
    return double(number=number)


LARGE = Resources(cpu="4", mem="8Gi")


@task(requests=LARGE, limits=LARGE)
def large() -> int:
    """Request more than a platform allows."""
    return 1


@task(
    requests=LARGE,
    limits=LARGE,
    pod_template=PodTemplate(
        primary_container_name="primary",
        pod_spec=V1PodSpec(
            containers=[V1Container(name="sidecar"), V1Container(name="primary")],
        ),
    ),
)
def large_pod() -> int:
    """The same in the primary container of a pod."""
    return 1


SETTINGS = SerializationSettings(
    project="p",
    domain="d",
    version="v",
    image_config=ImageConfig(default_image=Image("default", "registry.example/cpu", "1")),
    env={},
)


def serialised(entity):
    """The messages of an entity, and the templates of the tasks that were found with it."""
    found = OrderedDict()
    message = get_serializable(found, SETTINGS, entity).to_flyte_idl()
    specs = [one.to_flyte_idl() for one in found.values() if hasattr(one, "to_flyte_idl")]
    templates = [one.template for one in specs if hasattr(one, "template")]
    return message, {one.id.name: one for one in templates if isinstance(one, TaskTemplate)}


def findings(entity, *, max_nodes=100, spoil=None):
    message, tasks = serialised(entity)
    if spoil:
        spoil(message.template, tasks)
    return compile_workflow(message, tasks, Platform(max_nodes), {})


@pytest.mark.parametrize("entity", [right, a_text_for_a_choice, branched], ids=lambda one: one.name)
def test_what_fits_compiles(entity):
    assert [] == findings(entity)


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        (another_type, "output n0.o0 has type [Rows], but it is assigned to input number"),
        (a_union_for_a_plain_input, "has type [Rows | NONE], but it is assigned to input of"),
        (an_output_of_another_type, "node end-node: MismatchingTypes: output n0.o0 has type"),
        (a_list_with_a_model, "has type [Rows], but it is assigned to input numbers"),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_wrong_type_is_refused(entity, reason):
    (finding,) = findings(entity)

    assert reason in finding


def test_a_model_without_the_types_of_its_fields_is_taken_for_its_part_and_refused():
    def lose(template, tasks):
        found = tasks["tests.test_compiler.found"].interface.outputs.variables["o0"]
        found.type.structure.ClearField("dataclass_type")

    (finding,) = findings(a_field_that_is_not_there, spoil=lose)

    assert "MismatchingTypes: output n0.o0 has type [Found]" in finding


def test_an_attribute_that_no_field_has_is_refused():
    def misname(template, tasks):
        (node,) = [one for one in template.nodes if one.inputs]
        node.inputs[0].binding.promise.attr_path[0].string_value = "rest"

    (finding,) = findings(a_field_that_is_not_there, spoil=misname)

    assert "FieldNotFound: Found has no field rest" in finding


def test_an_input_that_is_not_bound_or_not_there_is_refused():
    def misname(template, tasks):
        template.nodes[0].inputs[0].var = "of"

    missing = findings(many_nodes, spoil=misname)

    assert ["there is no input of", "input number is not bound"] == [
        one.partition("node n0: ")[2] for one in missing
    ]


def test_more_nodes_than_the_platform_takes_are_refused():
    (finding,) = findings(many_nodes, max_nodes=2)

    assert "exceeds limit (3 > 2)" in finding
    assert [] == findings(many_nodes, max_nodes=3)


def test_a_workflow_without_nodes_is_refused():
    def empty(template, tasks):
        template.ClearField("nodes")
        template.ClearField("outputs")
        template.interface.ClearField("outputs")

    (finding,) = findings(many_nodes, spoil=empty)

    assert "NoNodesFound" in finding


def test_a_task_that_is_not_registered_is_refused():
    def forget(template, tasks):
        tasks.pop("tests.test_compiler.double")

    assert any("double is not registered" in one for one in findings(many_nodes, spoil=forget))


def test_sides_of_a_branch_with_other_outputs_are_refused():
    def change(template, tasks):
        (branch,) = [one for one in template.nodes if one.HasField("branch_node")]
        side = branch.branch_node.if_else.else_node
        side.task_node.reference_id.name = "tests.test_compiler.other"
        other = TaskTemplate()
        other.CopyFrom(tasks["tests.test_compiler.double"])
        other.interface.outputs.variables["o0"].type.simple = 3
        tasks["tests.test_compiler.other"] = other

    assert any("the sides of the branch differ" in one for one in findings(branched, spoil=change))


def test_a_condition_on_a_model_is_refused():
    def change(template, tasks):
        template.interface.inputs.variables["answer"].type.simple = 9

    assert any("no primitive value" in one for one in findings(branched, spoil=change))


def test_a_plain_type_that_fits_two_members_of_a_union_is_ambiguous():
    number = TypeEngine.to_literal_type(int).to_flyte_idl()
    union = TypeEngine.to_literal_type(int | str).to_flyte_idl()
    twice = type(union)()
    twice.CopyFrom(union)
    twice.union_type.variants.append(union.union_type.variants[0])

    assert castable(number, union)
    assert not castable(number, twice)


def test_a_member_of_a_union_feeds_no_plain_input():
    union = TypeEngine.to_literal_type(int | None).to_flyte_idl()

    assert not castable(union, TypeEngine.to_literal_type(int).to_flyte_idl())
    assert not castable(
        union.union_type.variants[0], TypeEngine.to_literal_type(int).to_flyte_idl()
    )


def test_a_model_feeds_one_whose_schema_is_a_part_of_its_own_and_not_the_reverse():
    whole, part = (TypeEngine.to_literal_type(kind).to_flyte_idl() for kind in (Rows, Rows))
    for name in ("count",):
        part.metadata.fields["properties"].struct_value.fields.pop(name)

    assert castable(whole, part)
    assert not castable(part, whole)
    assert not castable(whole, TypeEngine.to_literal_type(Place).to_flyte_idl())  # another title


def test_raw_files_curated_rows_and_graded_problems_never_stand_for_each_other():
    kinds = {kind: TypeEngine.to_literal_type(kind) for kind in (RawRef, DatasetRef, GradedRef)}

    for upstream, one in kinds.items():
        feeds = {
            kind
            for kind, other in kinds.items()
            if castable(one.to_flyte_idl(), other.to_flyte_idl())
        }
        assert {upstream} == feeds


@pytest.mark.parametrize("entity", [large, large_pod], ids=lambda one: one.name)
def test_requests_above_the_limits_of_the_platform_are_refused(entity):
    template = serialised(entity)[0].template

    reasons = check_resources(template, Platform(limits={"memory": "1Gi", "cpu": "8"}))

    asked = "[8Gi] is greater than current limit set in the platform configuration [1Gi]"
    assert [
        f"{template.id.name}: Requested MEMORY requests {asked}",
        f"{template.id.name}: Requested MEMORY limits {asked}",
    ] == reasons
    assert [] == check_resources(template, Platform(limits={"memory": "8192Mi", "cpu": "4000m"}))


def plan_of(name: str, **options):
    plan = LaunchPlan.get_or_create(workflow=required, name=name, **options)
    return get_serializable(OrderedDict(), SETTINGS, plan).to_flyte_idl().spec


def literals(**values):
    context = FlyteContext.current_context()
    kinds = required.interface.inputs
    return {
        name: TypeEngine.to_literal(context, value, type(value), kinds[name].type).to_flyte_idl()
        for name, value in values.items()
        if name in kinds
    }


def test_an_execution_may_set_no_fixed_and_no_unknown_input_and_lacks_none():
    plan = plan_of("fixed", fixed_inputs={"number": 4})

    assert [] == check_execution(plan, literals(name="a"))
    assert ["invalid input number"] == check_execution(plan, literals(name="a", number=5))
    assert ["expected input name missing"] == check_execution(plan, {})
    unknown = literals(name="a") | {"nam": literals(name="b")["name"]}
    assert ["invalid input nam"] == check_execution(plan, unknown)


def test_an_execution_takes_no_value_of_another_type():
    plan = plan_of("plain")
    wrong = {"name": literals(number=3)["number"]}

    assert ["invalid name input wrong type"] == check_execution(plan, wrong)


def test_a_schedule_needs_every_input():
    hourly = CronSchedule(schedule="0 * * * *")
    inputs = interface_of(serialised(required)[0].template).inputs

    (finding,) = compile_plan(plan_of("hourly", schedule=hourly), inputs)
    assert finding == "a schedule with the unbound required input name"
    named = plan_of("named", schedule=hourly, default_inputs={"name": "a"})
    assert [] == compile_plan(named, inputs)


def test_a_plan_names_inputs_of_its_workflow_with_their_types():
    inputs = interface_of(serialised(required)[0].template).inputs
    plan = launch_plan_pb2.LaunchPlanSpec()
    plan.CopyFrom(plan_of("wrong", default_inputs={"name": "a"}, fixed_inputs={"number": 1}))
    plan.fixed_inputs.literals["nombre"].CopyFrom(plan.fixed_inputs.literals["number"])
    plan.fixed_inputs.literals["number"].CopyFrom(plan.default_inputs.parameters["name"].default)

    expected = {"unexpected fixed_input nombre", "invalid fixed_input number of another type"}
    assert expected == set(compile_plan(plan, inputs))
