"""The parts of a Hugging Face config.json that Megatron needs.

Three families are supported: Qwen3-MoE, dense Qwen3, and Qwen2 (biases at query, key and value,
no norm on them). Unsupported options of a config are refused by name, never ignored.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_schemas.machine_settings import LayoutSettings
from tasks.errors import SettingsError

FAMILIES = ("qwen3_moe", "qwen3", "qwen2")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes and choices of one architecture. Counts are of the whole model."""

    family: str
    layers: int
    hidden: int
    heads: int
    groups: int
    """Key-value heads."""
    head_size: int
    vocab: int
    positions: int
    """Longest sequence the model was made for, in tokens."""
    dense_size: int
    """Inner size of a dense feed-forward; a MoE has none of them."""
    experts: int
    """Per layer; 0 in a dense model."""
    top_k: int
    expert_size: int
    renormalised: bool
    """Whether the chosen experts' probabilities are made to sum to one."""
    norm_epsilon: float
    rope_theta: float
    tied: bool
    """Whether the output head is tied to the embedding."""
    qk_norm: bool
    qkv_bias: bool
    dtype: str
    """Dtype of the files, such as 'bfloat16'."""

    def padded_vocab(self, tensor: int) -> int:
        """Rows of the embedding, a multiple of the tensor-parallel size; the last are unused."""
        return -(-self.vocab // tensor) * tensor

    def check(self, layout: LayoutSettings) -> None:
        """Refuse a layout that does not divide this model.

        Raises:
            SettingsError: names the setting and what it does not divide.
        """
        divided = {
            "tensor": {"attention heads": self.heads, "key-value heads": self.groups},
            "pipeline": {"layers": self.layers},
            "expert": {"experts": self.experts},
        }
        if not self.experts:
            divided["tensor"]["feed-forward units"] = self.dense_size
            if layout.expert > 1:
                raise SettingsError(
                    f"layout.expert is {layout.expert}, but {self.family} has no experts"
                )
        sizes = {"tensor": layout.tensor, "pipeline": layout.pipeline, "expert": layout.expert}
        for setting, counts in divided.items():
            for what, count in counts.items():
                if count % sizes[setting]:
                    raise SettingsError(
                        f"layout.{setting} is {sizes[setting]}, which does not divide "
                        f"the model's {count} {what}"
                    )


def read_geometry(folder: Path) -> Geometry:
    """Read config.json of a Hugging Face directory.

    Raises:
        SettingsError: no such file, another family, or an unsupported option.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise SettingsError(f"{folder} has no readable config.json: {error}") from error
    family = config.get("model_type")
    if family not in FAMILIES:
        raise SettingsError(
            f"engines.trainer 'megatron' builds {', '.join(FAMILIES)}; {folder} is a '{family}'"
        )
    _refuse(config, folder)
    rope = config.get("rope_parameters") or {}
    is_moe = family == "qwen3_moe"
    return Geometry(
        family=family,
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        groups=config["num_key_value_heads"],
        head_size=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        vocab=config["vocab_size"],
        positions=config["max_position_embeddings"],
        dense_size=0 if is_moe else config["intermediate_size"],
        experts=config.get("num_experts", config.get("num_local_experts", 0)) if is_moe else 0,
        top_k=config["num_experts_per_tok"] if is_moe else 0,
        expert_size=config["moe_intermediate_size"] if is_moe else 0,
        renormalised=bool(config.get("norm_topk_prob", False)),
        norm_epsilon=config["rms_norm_eps"],
        rope_theta=float(rope.get("rope_theta", config.get("rope_theta", 10000.0))),
        tied=bool(config.get("tie_word_embeddings", False)),
        qk_norm=family != "qwen2",
        qkv_bias=family == "qwen2",
        dtype=config.get("dtype") or config.get("torch_dtype") or "float32",
    )


def _refuse(config: dict[str, Any], folder: Path) -> None:
    """Refuse a config with unsupported options."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    odd = {
        "hidden_act": config.get("hidden_act", "silu") != "silu",
        "attention_bias": bool(config.get("attention_bias")),
        "use_sliding_window": bool(config.get("use_sliding_window")),
        "rope_type": kind != "default",
        "mlp_only_layers": bool(config.get("mlp_only_layers")),
        "decoder_sparse_step": config.get("decoder_sparse_step", 1) != 1,
        "num_experts_per_tok": config.get("num_experts_per_tok") == 1
        and bool(config.get("norm_topk_prob")),
    }
    named = [name for name, is_odd in odd.items() if is_odd]
    if named:
        raise SettingsError(
            f"{folder}/config.json sets {', '.join(named)} to what engines.trainer 'megatron' "
            "does not build; use 'torch'"
        )
