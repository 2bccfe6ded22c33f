"""What Flyte's compiler and admin refuse at registration, for messages of flyteidl.

The rules of propeller's `pkg/compiler/validators` and of flyteadmin's `pkg/manager/impl/validation`
(1.16), as far as they concern what flytekit can send: names and types of bindings, attribute paths,
unions, branches, outputs, the number of nodes, limits of containers, inputs of launch plans and
executions. Each function returns its findings as text; none means that it would be accepted.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from flyteidl.core.types_pb2 import NONE, STRING, STRUCT, LiteralType, SimpleType
from google.protobuf.json_format import MessageToDict

Types = Mapping[str, LiteralType]
START = ("", "start-node")
_SCALARS = {"none_type": NONE, "generic": STRUCT, "error": 7}
_PRIMITIVES = {
    "integer": 1,
    "float_value": 2,
    "string_value": STRING,
    "boolean": 4,
    "datetime": 5,
    "duration": 6,
}
_UNITS = {"m": "1e-3", "": "1", "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_RESOURCES = {1: "cpu", 2: "gpu", 3: "memory", 5: "ephemeral-storage"}


@dataclass(frozen=True, slots=True)
class Platform:
    """The settings of Flyte that registration depends on."""

    max_nodes: int = 100
    """`registration.maxWorkflowNodes`: of one workflow's own template."""
    limits: Mapping[str, str] | None = None
    """`task_resources.limits` by resource; None = none is checked."""


@dataclass(frozen=True, slots=True)
class Interface:
    """Inputs and outputs by name."""

    inputs: Types
    outputs: Types


def castable(upstream: LiteralType, downstream: LiteralType) -> bool:
    """True if an output of one type may feed an input of another."""
    if downstream.HasField("union_type"):
        return _fits_union(upstream, downstream)
    for member in ("collection_type", "map_value_type"):
        if downstream.HasField(member):
            return upstream.HasField(member) and castable(
                getattr(upstream, member), getattr(downstream, member)
            )
    if downstream.HasField("blob"):
        same = upstream.blob.dimensionality == downstream.blob.dimensionality
        formats = upstream.blob.format, downstream.blob.format
        return upstream.HasField("blob") and same and (not all(formats) or len(set(formats)) == 1)
    if _is_simple(downstream, NONE):
        return _is_simple(upstream, NONE)
    return _fits_plain(upstream, downstream)


def _fits_union(upstream: LiteralType, downstream: LiteralType) -> bool:
    members = downstream.union_type.variants
    if upstream.HasField("union_type"):
        return all(
            any(castable(one, member) for member in members) for one in upstream.union_type.variants
        )
    # Two members that fit are refused as ambiguous.
    return sum(castable(upstream, member) for member in members) == 1


def _fits_plain(upstream: LiteralType, downstream: LiteralType) -> bool:
    if upstream.HasField("enum_type") and _is_simple(downstream, STRING):
        return True
    if downstream.HasField("enum_type") and _is_simple(upstream, STRING):
        return True
    if upstream.structure.tag and upstream.structure.tag != downstream.structure.tag:
        return False
    if _is_simple(upstream, STRUCT) and _is_simple(downstream, STRUCT):
        if not (upstream.HasField("metadata") and downstream.HasField("metadata")):
            return True
        return _contains(MessageToDict(upstream.metadata), MessageToDict(downstream.metadata))
    return _bare(upstream) == _bare(downstream)


def _is_simple(kind: LiteralType, simple: SimpleType) -> bool:
    return kind.WhichOneof("type") == "simple" and kind.simple == simple


def _contains(whole: Any, part: Any) -> bool:
    """True if a JSON schema is a part of another one, or equal."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(name in whole and _contains(whole[name], part[name]) for name in part)
    if isinstance(whole, list) and isinstance(part, list):
        pairs = zip(whole, part, strict=False)
        return len(part) <= len(whole) and all(_contains(one, other) for one, other in pairs)
    return bool(whole == part)


def _bare(kind: LiteralType) -> bytes:
    copy = LiteralType()
    copy.CopyFrom(kind)
    for name in ("structure", "metadata", "annotation"):
        copy.ClearField(name)
    return copy.SerializeToString(deterministic=True)


def shown(kind: LiteralType) -> str:
    """Name a type in a finding."""
    match kind.WhichOneof("type"):
        case "simple":
            title = kind.metadata.fields["title"].string_value if kind.HasField("metadata") else ""
            return title or SimpleType.Name(kind.simple)
        case "union_type":
            return " | ".join(map(shown, kind.union_type.variants))
        case "collection_type":
            return f"list[{shown(kind.collection_type)}]"
        case other:
            return str(other)


def compile_workflow(
    spec: Any, tasks: Mapping[str, Any], platform: Platform, plans: Mapping[str, Interface]
) -> list[str]:
    """Compile a workflow with its sub-workflows.

    Args:
        spec: admin's WorkflowSpec, or a DynamicJobSpec's template in its form.
        tasks: registered task templates by name.
        platform: limit of nodes.
        plans: interfaces of registered launch plans by name.
    """
    templates = [spec.template, *spec.sub_workflows]
    interfaces = {one.id.name: interface_of(one) for one in templates}
    called = _Called(tasks, interfaces, plans)
    count = len(spec.template.nodes)
    too_many = [
        f"number of nodes in workflow {spec.template.id.name} exceeds limit "
        f"({count} > {platform.max_nodes})"
    ]
    findings = too_many if count > platform.max_nodes else []
    for template in templates:
        if not template.nodes:
            findings.append(f"NoNodesFound: workflow {template.id.name} has none")
        findings += _Template(template, called).findings()
    return findings


def interface_of(template: Any) -> Interface:
    """Read the interface of a template of a task or a workflow."""
    sides = template.interface.inputs.variables, template.interface.outputs.variables
    inputs, outputs = ({name: one.type for name, one in side.items()} for side in sides)
    return Interface(inputs, outputs)


@dataclass(frozen=True, slots=True)
class _Called:
    """What nodes can call."""

    tasks: Mapping[str, Any]
    workflows: Mapping[str, Interface]
    plans: Mapping[str, Interface]

    def interface(self, node: Any) -> Interface | str:
        """Return what a node calls, or what is missing; branches are read by `_Template`."""
        match node.WhichOneof("target"):
            case "task_node":
                name = node.task_node.reference_id.name
                found = self.tasks.get(name)
                return interface_of(found) if found is not None else f"task {name}"
            case "workflow_node":
                kind = node.workflow_node.WhichOneof("reference")
                name = getattr(node.workflow_node, kind).name
                table = self.plans if kind == "launchplan_ref" else self.workflows
                return table.get(name, f"{kind} {name}")
            case "array_node":
                return self.interface(node.array_node.node)
            case other:
                return f"a node of the kind {other}"


class _Template:
    """One workflow's own nodes."""

    def __init__(self, template: Any, called: _Called) -> None:
        self._template = template
        for node in template.nodes:
            _scope(node)
        self._called = called
        self._name = template.id.name
        self._own = interface_of(template)
        self._nodes: dict[str, Interface] = {}

    def findings(self) -> list[str]:
        """Check every node's inputs, then the workflow's outputs."""
        nodes = [*self._template.nodes]
        if self._template.HasField("failure_node"):
            nodes.append(self._template.failure_node)
        found = [text for node in nodes for text in self._enter(node)]
        for node in nodes:
            found += self._check_node(node)
        found += self._check_bindings("end-node", self._template.outputs, self._own.outputs)
        return [f"{self._name}: {text}" for text in found]

    def _enter(self, node: Any) -> Iterator[str]:
        """Note what a node and those in its branches take and return."""
        if node.id in START or node.id == "end-node":
            return
        if not node.HasField("branch_node"):
            interface = self._called.interface(node)
            if isinstance(interface, str):
                yield f"node {node.id}: {interface} is not registered"
            else:
                self._nodes[node.id] = interface
            return
        outputs: list[Types] = []
        for side in _sides(node):
            yield from self._enter(side)
            outputs.append(self._nodes[side.id].outputs if side.id in self._nodes else {})
        common = {
            name: kind
            for name, kind in outputs[0].items()
            if all(name in other for other in outputs[1:])
        }
        for name, kind in common.items():
            if any(not _same(kind, other[name]) for other in outputs[1:]):
                yield f"node {node.id}: the sides of the branch differ in the type of {name}"
        self._nodes[node.id] = Interface({}, common)

    def _check_node(self, node: Any) -> list[str]:
        if node.HasField("branch_node"):
            inputs = {one.var: one.binding for one in node.inputs}
            found = [text for side in _sides(node) for text in self._check_node(side)]
            for expression in _comparisons(node.branch_node.if_else):
                found += self._check_comparison(node.id, expression, inputs)
            return found
        if node.id not in self._nodes:
            return []
        return self._check_bindings(node.id, node.inputs, self._nodes[node.id].inputs)

    def _check_bindings(self, node: str, bindings: Any, wanted: Types) -> list[str]:
        found = [
            f"node {node}: there is no input {one.var}" for one in bindings if one.var not in wanted
        ]
        bound = {one.var: one.binding for one in bindings if one.var in wanted}
        for name, kind in wanted.items():
            if name in bound:
                found += self._check_binding(f"node {node}", name, bound[name], kind)
            elif not _is_optional(kind):
                found.append(f"node {node}: input {name} is not bound")
        return found

    def _check_binding(self, node: str, name: str, binding: Any, wanted: LiteralType) -> list[str]:
        form = binding.WhichOneof("value")
        if form in ("collection", "map"):
            return self._check_parts(node, name, binding, wanted)
        if form == "promise":
            source = self._resolve(binding.promise)
            what = f"output {binding.promise.node_id}.{binding.promise.var}"
        else:
            source, what = type_of_scalar(binding.scalar), "a constant"
        if isinstance(source, str):
            return [f"{node}: input {name}: {source}"]
        if castable(source, wanted):
            return []
        return [
            f"{node}: MismatchingTypes: {what} has type [{shown(source)}], but it is assigned to "
            f"input {name} of type [{shown(wanted)}]"
        ]

    def _check_parts(self, node: str, name: str, binding: Any, wanted: LiteralType) -> list[str]:
        if wanted.HasField("union_type"):
            members = wanted.union_type.variants
            fitting = [one for one in members if not self._check_parts(node, name, binding, one)]
            if len(fitting) == 1:
                return []
            return [f"{node}: {len(fitting)} members of the union fit {name}"]
        if binding.HasField("collection"):
            parts, form = list(binding.collection.bindings), "collection_type"
        else:
            parts, form = list(binding.map.bindings.values()), "map_value_type"
        if not wanted.HasField(form):
            return [f"{node}: input {name} is [{shown(wanted)}], but is given a {form}"]
        member = getattr(wanted, form)
        return [text for one in parts for text in self._check_binding(node, name, one, member)]

    def _resolve(self, promise: Any) -> LiteralType | str:
        """Return the type that a promise has, attribute by attribute, or what is wrong with it."""
        if promise.node_id in START:
            outputs = self._own.inputs
        elif promise.node_id in self._nodes:
            outputs = self._nodes[promise.node_id].outputs
        else:
            return f"node {promise.node_id} is not there"
        if promise.var not in outputs:
            return f"node {promise.node_id} has no output {promise.var}"
        kind = outputs[promise.var]
        for step in promise.attr_path:
            if kind.HasField("collection_type"):
                kind = kind.collection_type
            elif kind.HasField("map_value_type"):
                kind = kind.map_value_type
            elif kind.structure.dataclass_type:
                if step.string_value not in kind.structure.dataclass_type:
                    return f"FieldNotFound: {shown(kind)} has no field {step.string_value}"
                kind = kind.structure.dataclass_type[step.string_value]
            # Otherwise the type stays that of the whole model.
        return kind

    def _check_comparison(self, node: str, one: Any, inputs: Mapping[str, Any]) -> list[str]:
        kinds: list[LiteralType] = []
        for operand in (one.left_value, one.right_value):
            form = operand.WhichOneof("val")
            if form == "primitive":
                kind = type_of_primitive(operand.primitive)
            elif form == "scalar":
                kind = type_of_scalar(operand.scalar)
            elif operand.var not in inputs:
                return [f"node {node}: its condition names {operand.var}, which is no input"]
            else:
                kind = self._resolve(inputs[operand.var].promise)
            if isinstance(kind, str):
                return [f"node {node}: its condition: {kind}"]
            if kind.WhichOneof("type") != "simple" or kind.simple not in _PRIMITIVES.values():
                return [f"node {node}: its condition compares [{shown(kind)}], no primitive value"]
            kinds.append(kind)
        if not _same(*kinds):
            return [f"node {node}: its condition compares {shown(kinds[0])} and {shown(kinds[1])}"]
        return []


def _scope(node: Any) -> None:
    """Name the sides of a branch after it: flytekit gives them numbers that others have, too."""
    if node.HasField("branch_node"):
        for number, side in enumerate(_sides(node)):
            side.id = f"{node.id}-{number}"
            _scope(side)


def _sides(node: Any) -> list[Any]:
    branch = node.branch_node.if_else
    sides = [branch.case.then_node, *(one.then_node for one in branch.other)]
    return [*sides, branch.else_node] if branch.HasField("else_node") else sides


def _comparisons(branch: Any) -> Iterator[Any]:
    def inside(condition: Any) -> Iterator[Any]:
        if condition.HasField("comparison"):
            yield condition.comparison
        elif condition.HasField("conjunction"):
            yield from inside(condition.conjunction.left_expression)
            yield from inside(condition.conjunction.right_expression)

    for case in (branch.case, *branch.other):
        yield from inside(case.condition)


def _same(one: LiteralType, other: LiteralType) -> bool:
    return castable(one, other) and castable(other, one)


def _is_optional(kind: LiteralType) -> bool:
    members = kind.union_type.variants
    return kind.HasField("union_type") and any(_is_simple(one, NONE) for one in members)


def type_of_primitive(primitive: Any) -> LiteralType:
    """Return the type of a number, text, truth value or time."""
    return LiteralType(simple=_PRIMITIVES[primitive.WhichOneof("value")])


def type_of_scalar(scalar: Any) -> LiteralType | str:
    """Return the type that Flyte sees in a constant; a model's schema is not part of it."""
    form = scalar.WhichOneof("value")
    if form == "primitive":
        return type_of_primitive(scalar.primitive)
    if form == "binary":
        return LiteralType(simple=STRUCT if scalar.binary.tag else 8)
    if form == "union":
        kind = LiteralType()
        kind.union_type.variants.append(scalar.union.type)
        return kind
    if form == "blob":
        return LiteralType(blob=scalar.blob.metadata.type)
    if form in _SCALARS:
        return LiteralType(simple=_SCALARS[form])
    return f"a constant of the form {form}"


def type_of(literal: Any) -> LiteralType | str:
    """Return the type that Flyte sees in a literal."""
    match literal.WhichOneof("value"):
        case "scalar":
            return type_of_scalar(literal.scalar)
        case "collection":
            kinds = [type_of(one) for one in literal.collection.literals]
            member = kinds[0] if kinds else LiteralType(simple=NONE)
            return member if isinstance(member, str) else LiteralType(collection_type=member)
        case other:
            return f"a literal of the form {other}"


def _fits(literal: Any, wanted: LiteralType) -> bool:
    if literal.WhichOneof("value") == "collection" and wanted.HasField("collection_type"):
        return all(_fits(one, wanted.collection_type) for one in literal.collection.literals)
    kind = type_of(literal)
    return not isinstance(kind, str) and castable(kind, wanted)


def check_resources(task: Any, platform: Platform) -> list[str]:
    """Compare what a task requests with the limits of the platform.

    Args:
        task: its template; of a pod only the primary container counts.
        platform: `limits`.
    """
    if platform.limits is None:
        return []
    name = task.id.name
    return [
        f"{name}: Requested {resource.upper()} {kind} [{value}] is greater than current limit set "
        f"in the platform configuration [{platform.limits[resource]}]"
        for kind, values in _containers(task).items()
        for resource, value in values.items()
        if resource in platform.limits and _number(value) > _number(platform.limits[resource])
    ]


def _containers(task: Any) -> dict[str, dict[str, str]]:
    if task.HasField("k8s_pod"):
        spec = MessageToDict(task.k8s_pod.pod_spec)
        primary = task.config.get("primary_container_name", "")
        (container,) = [one for one in spec["containers"] if one["name"] == primary]
        return {kind: container["resources"].get(kind, {}) for kind in ("requests", "limits")}
    resources = task.container.resources
    return {
        kind: {_RESOURCES[one.name]: one.value for one in getattr(resources, kind)}
        for kind in ("requests", "limits")
    }


def _number(quantity: str) -> Decimal:
    match = re.fullmatch(r"([0-9.]+)(m|Ki|Mi|Gi|Ti|)", quantity)
    assert match, quantity
    return Decimal(match[1]) * Decimal(_UNITS[match[2]])


def compile_plan(plan: Any, workflow: Types) -> list[str]:
    """Check the inputs of a launch plan against its workflow, and its schedule.

    Args:
        plan: admin's LaunchPlanSpec.
        workflow: its inputs.
    """
    found = []
    defaults, fixed = plan.default_inputs.parameters, plan.fixed_inputs.literals
    found += [f"unexpected default_input {name}" for name in defaults if name not in workflow]
    found += [f"unexpected fixed_input {name}" for name in fixed if name not in workflow]
    for name, parameter in defaults.items():
        if name in workflow and not castable(parameter.var.type, workflow[name]):
            found.append(f"invalid default_input {name} of another type")
        if parameter.HasField("default") and not _fits(parameter.default, parameter.var.type):
            found.append(f"invalid default_input {name} with a value of another type")
    for name, literal in fixed.items():
        if name in workflow and not _fits(literal, workflow[name]):
            found.append(f"invalid fixed_input {name} of another type")
    schedule = plan.entity_metadata.schedule
    if schedule.WhichOneof("ScheduleExpression"):
        unbound = [
            name
            for name in workflow
            if name not in fixed
            and not (name in defaults and defaults[name].HasField("default"))
            and name != schedule.kickoff_time_input_arg
        ]
        found += [f"a schedule with the unbound required input {name}" for name in unbound]
    return found


def check_execution(plan: Any, inputs: Mapping[str, Any]) -> list[str]:
    """Check what starts a launch plan.

    Args:
        plan: admin's LaunchPlanSpec.
        inputs: literals by name.
    """
    defaults = plan.default_inputs.parameters
    # A fixed input and an unknown one are refused in the same words.
    found = [f"invalid input {name}" for name in inputs if name not in defaults]
    for name, parameter in defaults.items():
        if name not in inputs:
            if not parameter.HasField("default"):
                found.append(f"expected input {name} missing")
        elif not _fits(inputs[name], parameter.var.type):
            found.append(f"invalid {name} input wrong type")
    return found
