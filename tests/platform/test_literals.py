"""Equal settings and references have equal cache keys, whatever order propeller gives to maps.

`resolve` does what flytepropeller/pkg/controller/nodes/attr_path_resolver.go does with an attribute
of a model: decode the model, encode the attribute with the keys of its maps in random order.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import msgpack
import pytest
from flytekit import FlyteContextManager
from flytekit.core.condition import BranchNode
from flytekit.core.context_manager import FlyteEntities
from flytekit.core.local_cache import _calculate_cache_key
from flytekit.core.node import Node
from flytekit.core.type_engine import TypeEngine
from flytekit.core.workflow import WorkflowBase
from flytekit.extras.pydantic_transformer.transformer import PydanticTransformer
from flytekit.models.literals import Binary, Literal, LiteralMap, Primitive, Scalar
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from pydantic import BaseModel

from data_schemas import presets
from data_schemas.artifacts import (
    NO_DATASET,
    NOT_GRADED,
    CheckpointRef,
    DatasetRef,
    Execution,
    GradedRef,
    RawRef,
    ReportRef,
    StoreRef,
)
from data_schemas.intake import (
    Assessment,
    Examination,
    IntakeDecision,
    IntakeOutcome,
    Lesson,
    Teaching,
)
from data_schemas.rl_settings import AnyRecipe
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings, PretrainSettings, RetrainSettings
from data_schemas.sources import Part
from data_schemas.study import InjectedNoise, JudgeStudySettings, StudyCell, TrainingPairs
from tasks.platform import resources
from tasks.platform.literals import KeyedStore
from tasks.stages.opening import open_store

ROOT = Path(__file__).parents[2]
CONTEXT = FlyteContextManager.current_context()
CORE = {
    name: stage
    for name, stage in resources.STAGES.items()
    if not stage.module.startswith("lab.")  # whether another test imported them or not
}
ORDERS = range(8)
DECISION = IntakeDecision(outcome=IntakeOutcome.LEARN, reason="new rows")
DATASET = DatasetRef(uri="s3://shop/objects/d", digest="d", statement="s")
GRADED = GradedRef(uri="s3://shop/objects/g", digest="g", statement="s")
LESSON = Lesson(curated=DATASET, graded=GRADED, phase=presets.NIGHTLY.rl)
STORE = StoreRef(uri="s3://shop", id="i", tracking_uri="http://mlflow.shop.example")
GROUPS = {type(group): group for _, group in presets.CPU_SMOKE if isinstance(group, BaseModel)}
SAMPLES = GROUPS | {
    PretrainSettings: presets.SHIPPED_BASE,
    PipelineSettings: presets.CPU_SMOKE,
    InjectedNoise: InjectedNoise(),
    RetrainSettings: presets.NIGHTLY,
    AnyRecipe | None: AnyRecipe(implementation="my_recipe.py:opened", extra={"b": 1, "a": [2]}),
    Lesson: LESSON,
    Examination: Examination(decision=DECISION, curated=DATASET),
    Assessment: Assessment(decision=DECISION, lesson=LESSON),
    CheckpointRef: CheckpointRef(uri="s3://shop/objects/c", digest="c", statement="s"),
    ReportRef: ReportRef(uri="s3://shop/objects/r", digest="r", statement="s"),
    ReportRef | None: ReportRef(uri="s3://shop/objects/r", digest="r", statement="s"),
    list[ReportRef]: [ReportRef(uri="s3://shop/objects/r", digest="r", statement="s")],
    RawRef: RawRef(uri="s3://shop/objects/f", digest="f", statement="s"),
    GradedRef: GRADED,
    list[GradedRef]: [GRADED],
    DatasetRef: DATASET,
    list[DatasetRef]: [DATASET],
    DatasetRef | None: DATASET,
    Part: Part(number=1, of=2),
    StoreRef: STORE,
    Execution: Execution(id="e", started=0.0),
    Parent: Parent.REASONING,
    Teaching: Teaching.SFT,
    TrainingPairs: TrainingPairs(noise=0.1),
    JudgeStudySettings: JudgeStudySettings(),
    StudyCell: StudyCell(
        variant="a", seed=0, run="r", settings="{}", checkpoints=("base",), max_tokens=0
    ),
    list[str]: ["a"],
    str: "rl/one",
    int: 7,
    float: 0.5,
}
"""A value of every type that a task takes or that an attribute is taken of."""


def literal(value: object, kind: type) -> Literal:
    return TypeEngine.to_literal(CONTEXT, value, kind, TypeEngine.to_literal_type(kind))


def shuffled(value: object, draw: random.Random) -> object:
    if isinstance(value, list):
        return [shuffled(item, draw) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: shuffled(value[key], draw) for key in draw.sample(sorted(value), len(value))}


def resolve(model: Literal, path: list[str], order: int) -> Literal:
    """Take an attribute as propeller does; every second order as its newer versions do."""
    part = msgpack.loads(model.scalar.binary.value)
    for name in path:
        part = part[name]
    if isinstance(part, str) and order % 2:
        return Literal(scalar=Scalar(primitive=Primitive(string_value=part)))
    payload = msgpack.dumps(shuffled(part, random.Random(order)))
    return Literal(scalar=Scalar(binary=Binary(value=payload, tag="msgpack")))


def all_nodes(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node.flyte_entity, BranchNode):
            block = node.flyte_entity._ifelse_block
            cases = [block.case, *(block.other or [])]
            yield from all_nodes([*(case.then_node for case in cases), block.else_node])
        else:
            yield node


def kind_of(workflow: WorkflowBase, node: Node, name: str) -> type:
    if not node.id:
        return workflow.python_interface.inputs[name]
    maker = next(all_nodes([node])).flyte_entity  # both sides of a branch return the same
    return maker.python_interface.outputs[name]


def attributes_of(modules: Iterable[str]) -> dict[tuple, type]:
    """Every attribute that workflows of these modules pass: (model, path) -> type of the input."""
    prefixes = tuple(f"{module}." for module in modules)
    attributes = {}
    for workflow in [one for one in FlyteEntities.entities if isinstance(one, WorkflowBase)]:
        if not workflow.name.startswith(prefixes):  # another test may have imported others
            continue
        for node in all_nodes(workflow.nodes):
            for binding in node.bindings:
                promise = binding.binding.promise
                if promise is not None and promise.attr_path:
                    model = kind_of(workflow, promise.node, promise.var)
                    kind = node.flyte_entity.python_interface.inputs[binding.var]
                    attributes[model, tuple(promise.attr_path)] = kind
    return attributes


def check_attributes(attributes: Mapping[tuple, type], samples: Mapping[Any, object]) -> None:
    """Take every attribute of a sample as propeller does, in several orders of its keys."""
    for (model, path), kind in attributes.items():
        base = next(one for one in samples if one in model.__mro__)
        expected = samples[base]
        for name in path:
            expected = getattr(expected, name)
        for order in ORDERS:
            resolved = resolve(literal(samples[base], model), list(path), order)

            assert expected == TypeEngine.to_python_value(CONTEXT, resolved, kind)


@pytest.fixture(scope="module")
def attributes() -> dict[tuple, type]:
    """Attributes of the core; recipes test their own."""
    folder = ROOT / "workflows"
    own = [f"workflows.{path.stem}" for path in sorted(folder.glob("[a-z]*.py"))]
    own += [f"workflows.parts.{path.stem}" for path in sorted((folder / "parts").glob("[a-z]*.py"))]
    for module in own:
        import_module(module)
    return attributes_of(own)


def test_an_attribute_is_what_the_model_holds_in_any_order(attributes):
    assert (PipelineSettings, ("sft",)) in attributes
    assert (Lesson, ("phase",)) in attributes

    check_attributes(attributes, SAMPLES)


@pytest.mark.parametrize("name", [name for name, stage in CORE.items() if stage.cached])
def test_a_cached_task_has_one_key_for_equal_inputs(attributes, name):
    task = getattr(import_module(f"tasks.{resources.STAGES[name].module}"), name)
    kinds = task.python_interface.inputs

    def inputs(order: int, **changed: object) -> LiteralMap:
        """Bind every model through each attribute by which one of its type is passed."""
        literals = {}
        for variable, kind in kinds.items():
            passed = [key for key, target in attributes.items() if target is kind]
            for place, (model, path) in enumerate(passed):
                base = next(one for one in SAMPLES if one in model.__mro__)
                whole = literal(SAMPLES[base], base)
                literals[f"{variable}{place}"] = resolve(whole, list(path), order)
            returned = KeyedStore if kind is StoreRef else kind
            literals[variable] = literal(changed.get(variable, SAMPLES[kind]), returned)
        return LiteralMap(literals)

    def key(literals: LiteralMap) -> str:
        return _calculate_cache_key(name, "version", literals, ("execution",))

    elsewhere = STORE.model_copy(update={"tracking_uri": "http://elsewhere.shop.example"})
    recreated = STORE.model_copy(update={"id": "another"})

    assert 1 == len({key(inputs(order)) for order in ORDERS[::2]})
    assert 1 == len({key(inputs(order)) for order in ORDERS[1::2]})
    if "store" in kinds:
        assert key(inputs(0)) == key(inputs(0, store=elsewhere))
        assert key(inputs(0)) != key(inputs(0, store=recreated))


def test_every_workflow_gets_its_store_from_a_task_that_leaves_mlflow_out_of_keys():
    assert KeyedStore == open_store.python_interface.outputs["store"]


def test_propellers_order_would_change_keys_of_plain_literals():
    plain = PydanticTransformer().to_literal(CONTEXT, presets.CPU_SMOKE, PipelineSettings, None)
    payloads = {resolve(plain, ["rl_one"], order).scalar.binary.value for order in ORDERS}

    assert len(payloads) == len(ORDERS)


def test_settings_of_flytes_console_and_of_older_registrations_are_read():
    document = presets.CPU_SMOKE.model_dump(mode="json")
    console = Literal(scalar=Scalar(generic=ParseDict(document, Struct())))
    older = PydanticTransformer().to_literal(CONTEXT, presets.CPU_SMOKE, PipelineSettings, None)

    for given in (console, older):
        assert presets.CPU_SMOKE == TypeEngine.to_python_value(CONTEXT, given, PipelineSettings)


def test_what_is_absent_stays_absent():
    waiting = IntakeDecision(outcome=IntakeOutcome.WAIT, reason="three rows")
    without_rows = Lesson(curated=NO_DATASET, graded=NOT_GRADED, phase=presets.NIGHTLY.rl)
    nothing = Assessment(decision=waiting, lesson=without_rows)

    assert nothing == TypeEngine.to_python_value(CONTEXT, literal(nothing, Assessment), Assessment)
