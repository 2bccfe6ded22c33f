"""The JSON files of a model directory: read within limits, and their values checked.

Whoever made the directory decides what its config.json makes us allocate. So a size is refused
before anything is built from it.
"""

import json
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from data_schemas.json_text import each_key_once
from tasks.errors import SettingsError

CONFIG = "config.json"
GENERATION = "generation_config.json"
CONFIG_BYTES = 16 * 2**20
TOKENIZER_BYTES = 512 * 2**20
"""That of a vocabulary of 250,000 has 35 MB."""
_COUNTS = {
    "hidden_size": 2**20,
    "num_attention_heads": 2**14,
    "num_key_value_heads": 2**14,
    "head_dim": 2**16,
    "intermediate_size": 2**24,
    "moe_intermediate_size": 2**24,
    "shared_expert_intermediate_size": 2**24,
    "num_hidden_layers": 2**12,
    "vocab_size": 2**24,
    "max_position_embeddings": 2**26,
    "num_experts": 2**14,
    "num_local_experts": 2**14,
    "n_routed_experts": 2**14,
    "num_experts_per_tok": 2**14,
    "num_shared_experts": 2**10,
    "n_shared_experts": 2**10,
    "n_group": 2**14,
    "topk_group": 2**14,
    "num_nextn_predict_layers": 2**8,
    "num_mtp_layers": 2**8,
    "decoder_sparse_step": 2**12,
    "first_k_dense_replace": 2**12,
    "sliding_window": 2**26,
}
"""Largest values; several times those of any model that was published."""
_MAY_BE_ZERO = {
    *("num_experts", "num_local_experts", "n_routed_experts", "num_experts_per_tok"),
    *("num_shared_experts", "n_shared_experts", "shared_expert_intermediate_size"),
    *("intermediate_size", "moe_intermediate_size", "n_group", "topk_group", "sliding_window"),
    *("num_nextn_predict_layers", "num_mtp_layers", "decoder_sparse_step", "first_k_dense_replace"),
}
_POSITIVE = ("rms_norm_eps", "rope_theta", "routed_scaling_factor", "partial_rotary_factor")
_SAME = (
    ("num_experts", "num_local_experts", "n_routed_experts"),
    ("num_shared_experts", "n_shared_experts"),
    ("num_nextn_predict_layers", "num_mtp_layers"),
    ("dtype", "torch_dtype"),
)
"""Names of one value: engines differ in which of them they read."""


def read_object(file: Path, advice: str, largest: int = CONFIG_BYTES) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        file: JSON.
        advice: what to do about a file that is none.
        largest: bytes.

    Raises:
        SettingsError: it is missing, no regular file, too large, no JSON, no object, nested too
            deeply, or has a key twice.
    """
    try:
        result = file.stat()
        if not stat.S_ISREG(result.st_mode):
            raise SettingsError(f"{file} is no regular file. {advice}")
        if result.st_size > largest:
            raise SettingsError(f"{file} has {result.st_size} bytes, more than {largest}. {advice}")
        loaded = json.loads(file.read_bytes(), object_pairs_hook=each_key_once)
    except SettingsError:
        raise
    except FileNotFoundError as error:
        raise SettingsError(f"{file} is missing. {advice}") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}. {advice}") from error
    except RecursionError as error:
        raise SettingsError(f"{file} is nested too deeply to be read. {advice}") from error
    if not isinstance(loaded, dict):
        raise SettingsError(f"{file} cannot be read: it is no JSON object. {advice}")
    return cast("dict[str, Any]", loaded)


def check_values(config: Mapping[str, Any]) -> None:
    """Refuse a config.json whose sizes no model has, or whose values contradict each other.

    Raises:
        SettingsError: names the key and its value.
    """
    for name, largest in _COUNTS.items():
        value, least = config.get(name), int(name not in _MAY_BE_ZERO)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= largest:
            raise SettingsError(
                f"config.json has {name} {_excerpt(value)}; it must be a whole number from {least} "
                f"to {largest}. Correct it, or download the checkpoint again."
            )
    rope = _object(config, "rope_parameters") | _object(config, "rope_scaling")
    for name in _POSITIVE:
        for value in (config.get(name), rope.get(name)):
            if value is not None and not _is_positive(value):
                raise SettingsError(
                    f"config.json has {name} {_excerpt(value)}; it must be a positive number. "
                    "Correct it, or download the checkpoint again."
                )
    _check_names_of_one_value(config, rope)
    _check_experts(config)


_RANGES = {
    "temperature": (0.0, 1e3),
    "top_p": (1e-9, 1.0),
    "min_p": (0.0, 1.0),
    "top_k": (0, 2**24),
    "repetition_penalty": (1e-9, 1e3),
    "num_beams": (1, 2**10),
    "min_length": (0, 2**26),
    "min_new_tokens": (0, 2**26),
    "max_length": (1, 2**26),
    "max_new_tokens": (1, 2**26),
}
"""Smallest and largest values that `generate` and servers can sample with."""


def check_generation(generation: Mapping[str, Any]) -> None:
    """Refuse a generation_config.json with which nothing can be generated.

    What it says is copied into releases, where `generate` and servers follow it.

    Raises:
        SettingsError: names the key and its value.
    """
    for name, (least, most) in _RANGES.items():
        value = generation.get(name)
        kinds = int if isinstance(most, int) else int | float
        is_number = isinstance(value, kinds) and not isinstance(value, bool)
        if value is not None and not (is_number and least <= value <= most):
            raise SettingsError(
                f"{GENERATION} has {name} {_excerpt(value)}; it must be a number from {least:g} to "
                f"{most:g}. Correct it, or delete the file: it is optional."
            )


def _check_names_of_one_value(config: Mapping[str, Any], rope: Mapping[str, Any]) -> None:
    for names in _SAME:
        values = {name: config[name] for name in names if config.get(name) is not None}
        if len({str(value).removeprefix("torch.") for value in values.values()}) > 1:
            raise SettingsError(_contradiction(values))
    theta, inner = config.get("rope_theta"), rope.get("rope_theta")
    if theta is not None and inner is not None and float(theta) != float(inner):
        raise SettingsError(_contradiction({"rope_theta": theta, "rope_parameters": inner}))


def _check_experts(config: Mapping[str, Any]) -> None:
    experts = next((config[name] for name in _SAME[0] if config.get(name)), 0)
    active = config.get("num_experts_per_tok")
    if experts and isinstance(active, int) and not 1 <= active <= experts:
        raise SettingsError(
            f"config.json has num_experts_per_tok {active}, but {experts} experts. Set it to 1 to "
            f"{experts}, as the model was trained."
        )
    groups, top = config.get("n_group") or 1, config.get("topk_group") or 1
    if experts and (experts % groups or top > groups):
        raise SettingsError(
            f"config.json has n_group {groups} and topk_group {top}, but {experts} experts: equal "
            "groups, of which at most all are kept. Correct them."
        )


def _contradiction(values: Mapping[str, object]) -> str:
    entries = " and ".join(f"{name} {_excerpt(value)}" for name, value in values.items())
    return f"config.json has {entries}, which name the same value. Leave the wrong one out."


def _object(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    entry = config.get(name)
    return cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}


def _is_positive(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > 0 and math.isfinite(value)


def _excerpt(value: object) -> str:
    return repr(value)[:60]
