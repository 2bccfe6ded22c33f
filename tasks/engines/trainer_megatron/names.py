"""One model under two sets of names: Hugging Face's tensors and Megatron's parameters.

A slot is one Megatron parameter and the Hugging Face tensors it is made of, fused along the
first axis:

    WHOLE    one tensor as it is
    QKV      per key-value head: its query heads, its key, its value
    GATE_UP  gate, then up; of every tensor-parallel rank's own part

Megatron names are those of its local spec; `canonical` turns Transformer Engine's into them.
Nothing here needs Megatron.

Letters: E experts, F inner size of an expert, H hidden.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import torch

from tasks.engines.trainer_megatron.geometry import Geometry

_ENGINE_NAMES = (
    (re.compile(r"self_attention\.linear_qkv\.layer_norm_weight$"), "input_layernorm.weight"),
    (re.compile(r"mlp\.linear_fc1\.layer_norm_weight$"), "pre_mlp_layernorm.weight"),
    (
        re.compile(r"mlp\.experts\.linear_fc([12])\.weight(\d+)$"),
        r"mlp.experts.local_experts.\2.linear_fc\1.weight",
    ),
)

ROUTER, ROUTER_BIAS = "mlp.router.weight", "mlp.router.expert_bias"
"""How Megatron's names of a router's parameter and buffer end."""


class Fusion(StrEnum):
    """How a slot's tensors are fused into one parameter."""

    WHOLE = "whole"
    QKV = "qkv"
    GATE_UP = "gate_up"


@dataclass(frozen=True, slots=True)
class TensorPart:
    """A Hugging Face tensor, or some rows of one."""

    name: str
    shape: tuple[int, ...]
    first: int = 0
    """Its first row in the tensor of files."""
    whole: int = 0
    """Rows of that tensor; 0 = those of the part."""


@dataclass(frozen=True, slots=True)
class ParameterSlot:
    """A Megatron parameter of the whole model, before anything is divided."""

    parameter: str
    parts: tuple[TensorPart, ...]
    fusion: Fusion = Fusion.WHOLE
    divided: int | None = None
    """Axis of the parts that tensor-parallel ranks divide; None = every rank has all."""


def canonical(name: str) -> str:
    """Megatron's local-spec name of a parameter, without wrappers."""
    while name.startswith("module."):
        name = name.removeprefix("module.")
    for pattern, local in _ENGINE_NAMES:
        name = pattern.sub(local, name)
    return name


def embedding_slot(geometry: Geometry) -> ParameterSlot:
    """The token embedding of the first stage."""
    name = geometry.names.in_file("model.embed_tokens.weight")
    part = TensorPart(name, (geometry.vocab, geometry.hidden))
    return ParameterSlot("embedding.word_embeddings.weight", (part,), divided=0)


def final_norm_slot(geometry: Geometry) -> ParameterSlot:
    """The norm behind the last layer."""
    part = TensorPart("model.norm.weight", (geometry.hidden,))
    return ParameterSlot("decoder.final_layernorm.weight", (part,))


def head_slot(geometry: Geometry) -> ParameterSlot:
    """The output head; if tied, it uses the embedding's tensor."""
    name = "model.embed_tokens.weight" if geometry.tied else "lm_head.weight"
    part = TensorPart(geometry.names.in_file(name), (geometry.vocab, geometry.hidden))
    return ParameterSlot("output_layer.weight", (part,), divided=0)


def layer_slots(geometry: Geometry, layer: int, place: int) -> Iterator[ParameterSlot]:
    """All of a layer but its experts, in transformers' order.

    Args:
        layer: number in the model, from 0.
        place: number in the stage that holds it, from 0.
    """
    theirs, ours = f"model.layers.{layer}.", f"decoder.layers.{place}."
    hidden = geometry.hidden
    queries, keys = geometry.heads * geometry.head_size, geometry.groups * geometry.head_size
    rows = {"q": queries, "k": keys, "v": keys}
    in_file = geometry.names.in_file
    parts = tuple(
        TensorPart(f"{theirs}self_attn.{x}_proj.weight", (rows[x], hidden)) for x in "qkv"
    )
    if geometry.names.fused_qkv:
        fused = in_file(f"{theirs}self_attn.query_key_value.weight")
        firsts = (0, queries, queries + keys)
        parts = tuple(
            TensorPart(fused, part.shape, first, queries + 2 * keys)
            for part, first in zip(parts, firsts, strict=True)
        )
    yield ParameterSlot(f"{ours}self_attention.linear_qkv.weight", parts, Fusion.QKV, divided=0)
    if geometry.qkv_bias:
        yield ParameterSlot(
            f"{ours}self_attention.linear_qkv.bias",
            tuple(TensorPart(f"{theirs}self_attn.{x}_proj.bias", (rows[x],)) for x in "qkv"),
            Fusion.QKV,
            divided=0,
        )
    output = TensorPart(in_file(f"{theirs}self_attn.o_proj.weight"), (hidden, queries))
    yield ParameterSlot(f"{ours}self_attention.linear_proj.weight", (output,), divided=1)
    if geometry.qk_norm:
        for x in "qk":
            norm = TensorPart(in_file(f"{theirs}self_attn.{x}_norm.weight"), (geometry.head_size,))
            yield ParameterSlot(f"{ours}self_attention.{x}_layernorm.weight", (norm,))
    if layer in geometry.moe_layers:
        yield from _router_slots(geometry, theirs, ours)
    else:
        yield from _dense_slots(geometry, f"{theirs}mlp.", f"{ours}mlp.", geometry.dense_size)
    for norm, name in (
        ("input_layernorm", "input_layernorm"),
        ("pre_mlp_layernorm", "post_attention_layernorm"),
    ):
        yield ParameterSlot(
            f"{ours}{norm}.weight", (TensorPart(f"{theirs}{name}.weight", (hidden,)),)
        )


def _router_slots(geometry: Geometry, theirs: str, ours: str) -> Iterator[ParameterSlot]:
    """The router of a layer, its bias, and the shared experts."""
    in_file, routing = geometry.names.in_file, geometry.routing
    gate = TensorPart(in_file(f"{theirs}mlp.gate.weight"), (geometry.experts, geometry.hidden))
    yield ParameterSlot(f"{ours}{ROUTER}", (gate,))
    if routing is not None and routing.biased:
        bias = in_file(f"{theirs}mlp.gate.e_score_correction_bias")
        yield ParameterSlot(f"{ours}{ROUTER_BIAS}", (TensorPart(bias, (geometry.experts,)),))
    if geometry.shared_size:
        shared = "shared_expert" if geometry.shared_gated else "shared_experts"
        yield from _dense_slots(
            geometry, f"{theirs}mlp.{shared}.", f"{ours}mlp.shared_experts.", geometry.shared_size
        )
    if geometry.shared_gated:
        opening = TensorPart(f"{theirs}mlp.shared_expert_gate.weight", (1, geometry.hidden))
        yield ParameterSlot(f"{ours}mlp.shared_experts.gate_weight", (opening,))


def _dense_slots(geometry: Geometry, theirs: str, ours: str, size: int) -> Iterator[ParameterSlot]:
    """A feed-forward that every token passes."""
    inner, outer = (size, geometry.hidden), (geometry.hidden, size)
    yield ParameterSlot(
        f"{ours}linear_fc1.weight",
        tuple(TensorPart(f"{theirs}{x}_proj.weight", inner) for x in ("gate", "up")),
        Fusion.GATE_UP,
        divided=0,
    )
    yield ParameterSlot(
        f"{ours}linear_fc2.weight", (TensorPart(f"{theirs}down_proj.weight", outer),), divided=1
    )


def expert_slots(
    geometry: Geometry, layer: int, place: int, expert: int, seat: int
) -> tuple[ParameterSlot, ParameterSlot]:
    """Gate and up, then down, of one expert, which is never divided.

    Args:
        expert: number in the layer.
        seat: number on the rank that holds it.
    """
    theirs, in_file = f"model.layers.{layer}.mlp.experts.{expert}.", geometry.names.in_file
    ours = f"decoder.layers.{place}.mlp.experts.local_experts.{seat}."
    inner, outer = (geometry.expert_size, geometry.hidden), (geometry.hidden, geometry.expert_size)
    return (
        ParameterSlot(
            f"{ours}linear_fc1.weight",
            tuple(TensorPart(in_file(f"{theirs}{x}_proj.weight"), inner) for x in ("gate", "up")),
            Fusion.GATE_UP,
        ),
        ParameterSlot(
            f"{ours}linear_fc2.weight", (TensorPart(in_file(f"{theirs}down_proj.weight"), outer),)
        ),
    )


def expert_parts(geometry: Geometry, layer: int) -> tuple[list[TensorPart], list[TensorPart]]:
    """Hugging Face names of a layer's experts: those of all gates and ups, those of all downs."""
    pairs = [expert_slots(geometry, layer, 0, expert, 0) for expert in range(geometry.experts)]
    return (
        [part for first, _ in pairs for part in first.parts],
        [part for _, second in pairs for part in second.parts],
    )


def all_parts(geometry: Geometry) -> Iterator[tuple[TensorPart, str]]:
    """Every tensor of the model, in the order of export, with the parameter that it is of."""

    def of(slot: ParameterSlot) -> Iterator[tuple[TensorPart, str]]:
        return ((part, slot.parameter) for part in slot.parts)

    yield from of(embedding_slot(geometry))
    for layer in range(geometry.layers):
        for slot in layer_slots(geometry, layer, 0):
            yield from of(slot)
        if layer in geometry.moe_layers:
            for parts in expert_parts(geometry, layer):
                yield from ((part, "") for part in parts)
    yield from of(final_norm_slot(geometry))
    if not geometry.tied:
        yield from of(head_slot(geometry))


def fuse(fusion: Fusion, parts: list[torch.Tensor], head_size: int) -> torch.Tensor:
    """Make the parameter of one rank from its shards of the parts."""
    if fusion is not Fusion.QKV:
        return parts[0] if len(parts) == 1 else torch.cat(parts)
    groups = parts[1].shape[0] // head_size
    by_group = [part.unflatten(0, (groups, -1)) for part in parts]
    return torch.cat(by_group, dim=1).flatten(0, 1)


def split(fusion: Fusion, fused: torch.Tensor, geometry: Geometry) -> list[torch.Tensor]:
    """Split a rank's parameter, the inverse of fuse. Returns views if possible."""
    if fusion is Fusion.WHOLE:
        return [fused]
    if fusion is Fusion.GATE_UP:
        return list(fused.chunk(2))
    size = geometry.head_size
    queries = geometry.heads // geometry.groups * size
    by_group = fused.unflatten(0, (-1, queries + 2 * size))
    return [part.flatten(0, 1) for part in by_group.split([queries, size, size], dim=1)]
