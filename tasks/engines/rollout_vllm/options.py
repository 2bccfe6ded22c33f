# pyright: reportMissingImports=false
"""vLLM's arguments from a model directory and the machine settings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from vllm.config import WeightTransferConfig
from vllm.triton_utils import HAS_TRITON
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.process_group import COLLECTIVE_LIMIT
from tasks.engines.rollout_vllm.receive import (
    BACKEND,
    ROUTER_ARCHITECTURE,
    WITHOUT_MTP,
    TransferExtension,
)
from tasks.errors import SettingsError
from tasks.models.architectures import (
    architecture,
    config_in,
    is_known,
    read_architecture,
    register_architecture,
)

SLOTS = 256
"""Number of sequences decoded concurrently."""
CPU_CACHE_BYTES = 512 * 2**20
"""Size of the KV cache without a GPU; sequences that do not fit wait."""
PREFILL_TOKENS = 8192
"""Per step, as the memory budget counts (capacity/memory.py); a GPU prefills longer prompts in
chunks, a CPU needs at least the longest sequence."""
FP8_BLOCK = 128
"""Rows of a block that shares a scale in vLLM's `fp8_per_block`."""
CPU_EXPERT_WIDTH = 32
"""vLLM's CPU kernel pads narrower experts, and padded experts cannot be updated."""
DTYPES = {
    Precision.FP32: "float32",
    Precision.BF16: "bfloat16",
    Precision.FP16: "float16",
    Precision.FP8: "bfloat16",
}
FP8_IGNORED_LAYERS = ("lm_head", "re:.*embed_tokens", "re:.*\\.mlp\\.gate$")
"""Layers never quantised to fp8, in addition to norms: head, embeddings, routers."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The parts of a model's configuration that the engine needs."""

    num_experts: int
    """0 without a router."""
    moe_layers: tuple[int, ...]
    """Which layers have a router, in model order."""
    max_tokens: int
    """Longest sequence, prompt and response, that the model has positions for."""
    expert_width: int
    head_width: int
    has_mtp: bool = False
    """Layers of multi-token prediction lie in the model directory."""


def model_facts(folder: Path) -> ModelFacts:
    """Read config.json.

    Raises:
        SettingsError: there is none.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise SettingsError(f"{folder} is not a model directory: it has no config.json")
    if not is_known(config_in(folder)):  # a dense model that screens problems
        config: Mapping[str, Any] = json.loads(path.read_text())
        return ModelFacts(
            num_experts=0,
            moe_layers=(),
            max_tokens=int(config["max_position_embeddings"]),
            expert_width=0,
            head_width=int(
                config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
            ),
        )
    model = read_architecture(folder)
    return ModelFacts(
        num_experts=model.num_experts,
        moe_layers=model.moe_layers,
        max_tokens=model.positions,
        expert_width=model.expert_size,
        head_width=model.head_size,
        has_mtp=model.mtp_layers > 0,
    )


def engine_options(
    folder: Path,
    facts: ModelFacts,
    *,
    precision: Precision,
    layout: LayoutSettings,
    fp32_router: bool,
    fp8_ignored_layers: Sequence[str],
    sleeps: bool,
    record_kept: bool,
) -> dict[str, Any]:
    """Return the keyword arguments of vLLM's EngineArgs, the same for both placements.

    Args:
        sleeps: it shares its GPUs with a trainer in this process.
        record_kept: calls may ask for the sets that tokens are drawn from.
    """
    register_architecture(folder)  # vLLM reads config.json with transformers' classes
    on_gpu = torch.cuda.is_available()
    options: dict[str, Any] = {
        "model": str(folder),
        # The model's generation_config must not change the sampling distribution.
        "generation_config": "vllm",
        "use_tqdm_on_load": False,
        "dtype": DTYPES[precision],
        "seed": 0,
        # As many of the model's positions as the cache can hold of one sequence: with all of them
        # (262,144 and more) vLLM would not start where a shorter sequence fits.
        "max_model_len": -1,
        "max_num_seqs": SLOTS,
        "max_num_batched_tokens": (
            PREFILL_TOKENS if on_gpu else max(PREFILL_TOKENS, facts.max_tokens)
        ),
        "tensor_parallel_size": layout.rollout_tensor,
        "distributed_timeout_seconds": round(COLLECTIVE_LIMIT.total_seconds()),
        "cpu_distributed_timeout_seconds": round(COLLECTIVE_LIMIT.total_seconds()),
        "enable_prefix_caching": True,
        "enable_return_routed_experts": facts.num_experts > 0,
        # Of what tokens are drawn from: after temperature and truncation, as the trainer computes.
        "logprobs_mode": "processed_logprobs",
        "weight_transfer_config": WeightTransferConfig(backend=BACKEND),
        "worker_extension_cls": f"{TransferExtension.__module__}.{TransferExtension.__qualname__}",
    }
    if fp32_router:
        if not facts.num_experts:
            raise SettingsError("engines.fp32_router is set, but a dense model has no router")
        if architecture(folder) != "qwen3_moe":
            raise SettingsError(
                f"engines.fp32_router is set, which rollout 'vllm' has for qwen3_moe only, not for "
                f"{architecture(folder)}; leave it out, or use precision 'fp32'"
            )
        options["hf_overrides"] = {"architectures": [ROUTER_ARCHITECTURE]}
    if record_kept:
        options["return_sampling_mask"] = True
    if facts.has_mtp:
        options["load_format"] = WITHOUT_MTP
    if precision is Precision.FP8:
        options["quantization"] = "fp8_per_block"
        options["quantization_config"] = {"ignore": [*FP8_IGNORED_LAYERS, *fp8_ignored_layers]}
    return options | (_gpu_options(facts, layout, sleeps) if on_gpu else _cpu_options())


def _gpu_options(facts: ModelFacts, layout: LayoutSettings, sleeps: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "gpu_memory_utilization": layout.rollout_memory,
        # A process can have one such engine only.
        "enable_sleep_mode": sleeps and not layout.dedicated_rollout_gpus,
    }
    if facts.num_experts:
        # Kernels with built-in routing recorded only zeros in some versions.
        options["moe_backend"] = "triton"
    return options


def _cpu_options() -> dict[str, Any]:
    return {
        "enforce_eager": True,
        "block_size": 32,
        "kv_cache_memory_bytes": CPU_CACHE_BYTES,
        # With chunked prefill vLLM rewinds a request's generator, which a CPU generator cannot.
        "enable_chunked_prefill": False,
    }


def refuse(
    facts: ModelFacts, precision: Precision, layout: LayoutSettings, *, record_kept: bool = False
) -> None:
    """Refuse settings that vLLM does not support on this machine, before it starts.

    Raises:
        SettingsError: names the setting.
    """
    if record_kept and not HAS_TRITON:  # where there is no GPU, vLLM says so of itself
        raise SettingsError(
            "top_p or top_k is set, and engines.rollout 'vllm' records what it draws from with "
            "its second model runner, which needs a GPU with Triton: there is none here. Set "
            "engines.rollout to 'hf', or leave top_p and top_k out"
        )
    if torch.cuda.is_available():
        _refuse_blocks(facts, precision, layout)
        return
    if precision is Precision.FP8:
        raise SettingsError(
            "engines.precision 'fp8' needs a GPU: vLLM's fp8 kernels do not run on this machine; "
            "use 'fp32' or 'bf16'"
        )
    widths = CPUAttentionBackend.get_supported_head_sizes()
    if facts.head_width not in widths:
        raise SettingsError(
            f"attention heads are {facts.head_width} wide: without a GPU vLLM supports {widths}; "
            "use engines.rollout 'hf'"
        )
    if facts.num_experts and (facts.expert_width // layout.rollout_tensor) % CPU_EXPERT_WIDTH:
        raise SettingsError(
            f"experts {facts.expert_width} wide over layout.rollout_tensor "
            f"{layout.rollout_tensor}: without a GPU a share must be a multiple of "
            f"{CPU_EXPERT_WIDTH}, or vLLM cannot update the weights"
        )


def _refuse_blocks(facts: ModelFacts, precision: Precision, layout: LayoutSettings) -> None:
    """Refuse experts whose share of a GPU is no whole number of fp8 blocks."""
    share = facts.expert_width / layout.rollout_tensor
    if precision is Precision.FP8 and facts.num_experts and share % FP8_BLOCK:
        raise SettingsError(
            f"experts {facts.expert_width} wide over layout.rollout_tensor "
            f"{layout.rollout_tensor}: with engines.precision 'fp8' a share must be a multiple of "
            f"{FP8_BLOCK}; use a smaller rollout_tensor, or 'bf16'"
        )
