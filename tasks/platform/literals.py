"""Pydantic models between tasks: equal values have equal literals, and so equal cache keys.

Flyte's propeller resolves an attribute of a model, such as `settings.sft`, by decoding the model
and encoding the attribute again, with the keys of its maps in Go's random order
(flyteorg/flyte#6517). That literal is part of the cache key of the task that takes it, which would
then miss its cache. A string keeps its bytes: the parts of a model that tasks take are therefore
canonical JSON inside of it, after the record separator of RFC 7464, which no setting starts with.
"""

import copy
import json
from typing import Annotated, Any, cast

import msgpack
from flytekit import FlyteContext
from flytekit.core.hash import HashMethod
from flytekit.core.type_engine import TypeEngine
from flytekit.extras.pydantic_transformer.transformer import PydanticTransformer
from flytekit.models.literals import Binary, Literal, Scalar
from flytekit.models.types import LiteralType
from pydantic import BaseModel

from data_schemas.artifacts import StoreRef
from data_schemas.machine_settings import Settings
from tasks.store.files import canonical_json, sha256_bytes

MESSAGEPACK = "msgpack"
RECORD_SEPARATOR = "\x1e"


def _identity(store: StoreRef) -> str:
    return sha256_bytes(canonical_json([store.uri, store.id]))


KeyedStore = Annotated[StoreRef, HashMethod(_identity)]
"""A store as a task returns it: MLflow's address is no part of the cache keys of later tasks."""


class CanonicalTransformer(PydanticTransformer):
    """flytekit's transformer of models, with canonical literals."""

    def __init__(self) -> None:
        super().__init__()
        self._types: dict[type[BaseModel], LiteralType] = {}

    def get_literal_type(self, t: type[BaseModel]) -> LiteralType:
        """Describe a model once, not anew for each of the interfaces that name it.

        Each gets a description of its own: flytekit replaces the fields of a union's member in it.
        """
        if t not in self._types:
            self._types[t] = super().get_literal_type(t)
        # findings/flytekit_union_stamps_a_shared_literal_type.sh
        return copy.copy(self._types[t])

    def to_literal(
        self,
        ctx: FlyteContext,
        python_val: BaseModel,
        python_type: type[BaseModel],
        expected: LiteralType,
    ) -> Literal:
        """Encode a model."""
        payload = cast("bytes", msgpack.dumps(packed(python_val)))
        binary = Binary(value=payload, tag=MESSAGEPACK)
        return Literal(scalar=Scalar(binary=binary))

    def from_binary_idl(
        self, binary_idl_object: Binary, expected_python_type: type[BaseModel]
    ) -> BaseModel:
        """Decode a model, or the part of one that an attribute names."""
        decoded = msgpack.loads(binary_idl_object.value, strict_map_key=False)
        return expected_python_type.model_validate_json(canonical_json(unpacked(decoded)))

    def to_python_value(
        self, ctx: FlyteContext, lv: Literal, expected_python_type: type[BaseModel]
    ) -> BaseModel:
        """Decode what another task returned, an attribute of it, or what Flyte's console sends."""
        primitive = lv.scalar.primitive if lv.scalar else None
        if primitive is not None:  # the form that newer propellers give to strings
            text = canonical_json(unpacked(primitive.string_value))
            return expected_python_type.model_validate_json(text)
        return super().to_python_value(ctx, lv, expected_python_type)


def packed(model: BaseModel) -> dict[str, Any]:
    """Dump a model, with its groups of settings and its references as canonical JSON."""
    dumped = unpacked(RECORD_SEPARATOR + canonical_json(model).decode())
    for name, part in model:
        if isinstance(part, BaseModel):
            dumped[name] = (
                RECORD_SEPARATOR + canonical_json(part).decode()
                if isinstance(part, Settings) or not _has_parts(part)
                else packed(part)  # Flyte can resolve another attribute of it
            )
    return dumped


def unpacked(value: Any) -> Any:
    """Undo `packed`; nested maps, as Flyte's console and older registrations send them, stay."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: unpacked(part) for name, part in fields.items()}
    if isinstance(value, str) and value.startswith(RECORD_SEPARATOR):
        return json.loads(value[1:])
    return value


def _has_parts(model: BaseModel) -> bool:
    return any(isinstance(part, BaseModel) for _, part in model)


def register() -> None:
    """Let Flyte use these literals for all models in this process."""
    TypeEngine.register_additional_type(CanonicalTransformer(), BaseModel, override=True)
