"""Which engines, architectures and precisions are not there: refused by name.

Every function raises SettingsError with what the model has and which engine to use instead.
"""

import importlib.util
from collections.abc import Iterable

from pydantic import ValidationError

from data_schemas.faults import explain
from data_schemas.machine_settings import MachineSettings, Precision, RolloutKind, TrainerKind
from tasks.errors import SettingsError
from tasks.models.architectures import Architecture

STATIC_ROPES = ("default", "linear", "llama3", "yarn")
"""Rotary embeddings whose frequencies do not depend on the length of a batch."""
MEGATRON_ROPES = ("default", "llama3")
MEGATRON_LLAMA3 = {
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192.0,
}
"""Constants of megatron-core 0.16.1's `rope_scaling`; only the factor is an argument."""
LARGEST_UINT8 = 256
"""Experts whose numbers fit into a byte, as the embedded engine keeps routes."""


def in_precision(engines: MachineSettings, precision: Precision) -> MachineSettings:
    """Return the same engines in another precision.

    Raises:
        SettingsError: they do not have it; names one that does.
    """
    try:
        return MachineSettings.model_validate({**engines.model_dump(), "precision": precision})
    except ValidationError as error:
        raise SettingsError(f"--precision: {explain(error, MachineSettings)}") from error


def refuse_rollout(model: Architecture) -> None:
    """Refuse what the embedded rollout engine does not compute."""
    _refuse(
        model,
        "rollout 'hf'",
        "'vllm'",
        (*_odd(model), *_unknown_rope(model, STATIC_ROPES)),
        {
            "multi-head latent attention": model.latent,
            "norms over whole projections of query and key": model.qk_norm == "projection",
            f"{model.num_experts} experts": model.num_experts > LARGEST_UINT8,
        },
    )


def refuse_trainer(model: Architecture) -> None:
    """Refuse what the embedded trainer does not compute: it packs sequences."""
    _refuse(model, "trainer 'torch'", "'megatron'", _odd(model), {})


def refuse_vllm(model: Architecture) -> None:
    """Refuse what vLLM 0.30 computes otherwise, or does not open."""
    _refuse(
        model,
        "rollout 'vllm'",
        "'hf'",
        (*_outside(model), *model.oddities),
        {},
    )


def refuse_megatron(model: Architecture) -> None:
    """Refuse what megatron-core 0.16.1 cannot express.

    Its group-limited choice ranks a group by its best K / kept groups experts, the models by their
    best two, and it always renormalises sigmoid scores.
    """
    routing = model.routing
    sigmoid = routing is not None and routing.score == "sigmoid"
    llama3 = dict(model.rope.parameters)
    llama3.pop("factor", None)
    _refuse(
        model,
        "trainer 'megatron'",
        "'torch'",
        (*_outside(model), *_odd(model), *_unknown_rope(model, MEGATRON_ROPES)),
        {
            "multi-head latent attention": model.latent,
            "biases beside those of query, key and value": model.output_bias,
            "norms over whole projections of query and key": model.qk_norm == "projection",
            "other bounds of llama3's rotary embedding than 1, 4 and 8192": (
                model.rope.kind == "llama3" and llama3 != MEGATRON_LLAMA3
            ),
            "one expert per token, renormalised": (
                routing is not None and routing.top_k == 1 and routing.renormalised
            ),
            "sigmoid scores that are not renormalised": (
                routing is not None and sigmoid and not routing.renormalised
            ),
            "a bias of softmax scores": routing is not None and routing.biased and not sigmoid,
            "groups of experts with num_experts_per_tok other than twice topk_group": (
                routing is not None
                and routing.groups > 1
                and routing.top_k != 2 * routing.kept_groups
            ),
        },
    )


def refuse_lora(model: Architecture, rank: int) -> None:
    """Refuse adapters whose names no engine would find in the files of the model.

    Raises:
        SettingsError: names the setting.
    """
    if rank and not model.names.plain:
        raise SettingsError(
            f"lora.rank is {rank}, but files of {model.family} name projections otherwise than "
            "adapters do; set lora.rank to 0"
        )


def _odd(model: Architecture) -> tuple[str, ...]:
    return (
        *model.oddities,
        *((f"hidden_act {model.activation!r}",) if model.activation != "silu" else ()),
        *(("a sliding window",) if model.window else ()),
    )


def _outside(model: Architecture) -> tuple[str, ...]:
    return (model.only_embedded,) if model.only_embedded else ()


def _unknown_rope(model: Architecture, kinds: Iterable[str]) -> tuple[str, ...]:
    return () if model.rope.kind in kinds else (f"rope_type {model.rope.kind!r}",)


def _refuse(
    model: Architecture, engine: str, instead: str, always: Iterable[str], parts: dict[str, bool]
) -> None:
    has = [*always, *(part for part, is_there in parts.items() if is_there)]
    if has:
        raise SettingsError(
            f"engines.{engine} does not have {', '.join(has)} of this {model.family} model; "
            f"use {instead}"
        )


def require(engines: MachineSettings) -> None:
    """Refuse engines that are not installed, before anything expensive.

    Only for a process that opens both: the image of a stage holds what that stage opens.

    Raises:
        SettingsError: names the setting and what to install.
    """
    require_rollout(engines)
    require_trainer(engines)


def require_rollout(engines: MachineSettings) -> None:
    """Refuse a rollout engine that is not installed."""
    if engines.rollout is RolloutKind.VLLM:
        _find("vllm", "rollout", engines.rollout, RolloutKind.HF)


def require_trainer(engines: MachineSettings) -> None:
    """Refuse a trainer that is not installed."""
    if engines.trainer is TrainerKind.MEGATRON:
        _find("megatron", "trainer", engines.trainer, TrainerKind.TORCH)


def _find(package: str, setting: str, kind: str, instead: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise SettingsError(
            f"engines.{setting} '{kind}' is not installed here: build the environment of "
            f"containers/lock_engines.txt (make test-engines does), or use '{instead}'"
        )
