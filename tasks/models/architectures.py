"""What a model's config.json says, in one record for all families and engines.

A `Family` reads what is its own, and teaches transformers to open it. `FAMILIES` has the built-in
ones by model type; any other is code of a user's own, which config.json names under `CODE`. What
the engines need (Megatron's geometry, vLLM's facts, the shape of a memory budget) are views of
`Architecture`; which family an engine refuses is in tasks/engines/support.py.

A model from outside does not choose the code that opens it: settings name it, or it is part of
this project (`adopted_code`). What is in the store has been through that door.

Nothing here imports torch or transformers.
"""

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from data_schemas.references import ObjectReference
from data_schemas.routing import Routing
from tasks.errors import SettingsError
from tasks.models import chat_trial
from tasks.models.config_file import CONFIG, GENERATION, check_values, read_object
from tasks.plugins import GUIDE, load, pin

CODE = "eachprompt_architecture"
"""Key of config.json: the code of a family that is not built in, as a reference."""
BAILING_MOE = "bailing_moe"
"""Model type of Ling and Ring, of both generations (bailing_moe.py)."""

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary position embedding: rotates halves against each other, not neighbours."""

    theta: float
    kind: str = "default"
    """'llama3', 'yarn', ... as in `rope_parameters`."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Numbers of a kind that is not the default: its factor and bounds."""
    rotated: int = 0
    """First entries of a head that are rotated; the rest is left as it is."""


@dataclass(frozen=True, slots=True)
class Names:
    """How tensors are named in files, where it is not as transformers names them in memory."""

    renames: tuple[tuple[str, str], ...] = ()
    """Parts of a name in memory, and in files. Each occurs nowhere else in the family's names."""
    fused_qkv: bool = False
    """Query, key and value are one tensor in files: all queries, then all keys, then all values."""

    @property
    def plain(self) -> bool:
        """Whether files have the names of memory."""
        return not self.renames and not self.fused_qkv

    def in_file(self, name: str) -> str:
        """Name a tensor as files do; its name in memory has one entry per expert."""
        for ours, theirs in self.renames:
            name = name.replace(ours, theirs)
        return name

    def in_memory(self, name: str) -> str:
        """Undo `in_file`."""
        for ours, theirs in self.renames:
            name = name.replace(theirs, ours)
        return name


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder with RMS norms and gated feed-forwards. Counts are of the whole model."""

    family: str
    """Its model type."""
    layers: int
    hidden: int
    heads: int
    groups: int
    """Key-value heads."""
    head_size: int
    vocab: int
    positions: int
    """Longest sequence the model was made for, in tokens."""
    norm_epsilon: float
    rope: Rope
    dense_size: int
    """Inner size of a dense feed-forward, 0 if no layer has one."""
    tied: bool = False
    """The output head has the weights of the embedding."""
    activation: str = "silu"
    qk_norm: Literal["none", "head", "projection"] = "none"
    """Whether query and key are normalised: every head by itself, or the whole projection."""
    qkv_bias: bool = False
    output_bias: bool = False
    """Biases beside those of query, key and value."""
    latent: bool = False
    """Keys and values are compressed (multi-head latent attention)."""
    window: bool = False
    """Layers attend within a sliding window."""
    routing: Routing | None = None
    """None in a dense model."""
    moe_layers: tuple[int, ...] = ()
    """Layers with a router, from 0."""
    expert_size: int = 0
    shared_size: int = 0
    """Inner size of what every token passes beside its experts: all shared experts together."""
    shared_gated: bool = False
    """A gate per token scales the shared experts."""
    extra_experts: int = 0
    """Experts of another size beside the routed ones of a layer, in parameters that are divided as
    these are; which of them a token uses follows from the routed ones."""
    extra_size: int = 0
    extra_active: float = 0.0
    """Extra experts of a layer that a token is expected to use."""
    mtp_layers: int = 0
    """Layers of multi-token prediction behind the last: kept and exported, not trained."""
    dtype: str = "float32"
    """Dtype of the files, such as 'bfloat16'."""
    oddities: tuple[str, ...] = ()
    """Options of config.json that change the computation and that no engine here has."""
    only_embedded: str = ""
    """What engines outside of this process lack; '' if they may open it."""
    names: Names = field(default=Names(), repr=False)

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer; 0 in a dense model."""
        return self.routing.experts if self.routing else 0

    def is_mtp(self, name: str) -> bool:
        """Return whether a tensor belongs to a layer of multi-token prediction."""
        return any(
            name.startswith(f"model.layers.{layer}.")
            for layer in range(self.layers, self.layers + self.mtp_layers)
        )


class Family(Protocol):
    """One model type: what differs from the common reading, and what transformers must be told."""

    def read(self, architecture: Architecture, config: Config) -> Architecture:
        """Add what this family reads of config.json.

        Args:
            architecture: what all families have in common.
            config: of the model.

        Raises:
            SettingsError: a size is missing.
        """
        ...

    def register(self) -> None:
        """Let the Auto classes of transformers open the type; called before every opening."""
        ...


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    """A family by a function, the names of its files, and the module of its classes."""

    reader: Callable[[Architecture, Config], Architecture]
    names: Names = Names()
    module: str = ""
    """Has `register`; '' if transformers has the type."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the class of transformers takes for a key that is missing, where families differ."""

    def read(self, architecture: Architecture, config: Config) -> Architecture:
        return self.reader(replace(architecture, names=self.names), config)

    def register(self) -> None:
        # Imported here: 2 s that stages without models are spared.
        if self.module:
            importlib.import_module(self.module).register()


def _experts(
    architecture: Architecture,
    config: Config,
    *,
    size: str = "moe_intermediate_size",
    **routing: Any,
) -> Architecture:
    """Add a router to every layer, softmax and renormalised unless said otherwise."""
    experts = config.get("num_experts", config.get("num_local_experts"))
    experts = config.get("n_routed_experts", 0) if experts is None else experts
    if not experts:
        return architecture
    return replace(
        architecture,
        routing=Routing(experts, _size(config, "num_experts_per_tok"), **routing),
        moe_layers=tuple(range(architecture.layers)),
        expert_size=_size(config, size),
    )


def _dense_layers(architecture: Architecture, dense: set[int]) -> Architecture:
    layers = tuple(layer for layer in architecture.moe_layers if layer not in dense)
    return replace(
        architecture, moe_layers=layers, dense_size=architecture.dense_size if dense else 0
    )


def _llama(architecture: Architecture, config: Config) -> Architecture:
    biased = bool(config.get("attention_bias"))
    return replace(
        architecture, qkv_bias=biased, output_bias=biased or bool(config.get("mlp_bias"))
    )


def _slides(config: Config) -> bool:
    """Return whether a layer attends within a window, by the flag or by its own type."""
    types = config.get("layer_types") or ()
    return bool(config.get("use_sliding_window")) or "sliding_attention" in types


def _qwen2(architecture: Architecture, config: Config) -> Architecture:
    return replace(architecture, qkv_bias=True, window=_slides(config))


def _qwen3(architecture: Architecture, config: Config) -> Architecture:
    biased = bool(config.get("attention_bias"))
    architecture = replace(architecture, qkv_bias=biased, output_bias=biased, qk_norm="head")
    return replace(architecture, window=_slides(config))


def _mixed(architecture: Architecture, config: Config) -> Architecture:
    """Leave the layers dense that Qwen's configs name, or that are not every n-th."""
    every = config.get("decoder_sparse_step") or 1
    dense = {layer for layer in range(architecture.layers) if (layer + 1) % every}
    return _dense_layers(architecture, dense | set(config.get("mlp_only_layers") or ()))


def _qwen3_moe(architecture: Architecture, config: Config) -> Architecture:
    renormalised = bool(config.get("norm_topk_prob", False))
    return _mixed(_experts(_qwen3(architecture, config), config, renormalised=renormalised), config)


def _qwen2_moe(architecture: Architecture, config: Config) -> Architecture:
    architecture = replace(
        architecture,
        qkv_bias=bool(config.get("qkv_bias", True)),
        window=_slides(config),
    )
    renormalised = bool(config.get("norm_topk_prob", False))
    architecture = _experts(architecture, config, renormalised=renormalised)
    shared = config.get("shared_expert_intermediate_size", 5632)
    return _mixed(replace(architecture, shared_size=shared, shared_gated=True), config)


def _mixtral(architecture: Architecture, config: Config) -> Architecture:
    architecture = _experts(architecture, config, size="intermediate_size")
    odd = ("router_jitter_noise",) if config.get("router_jitter_noise") else ()
    window = config.get("sliding_window") is not None
    return replace(
        architecture, dense_size=0, oddities=(*architecture.oddities, *odd), window=window
    )


def _sigmoid(architecture: Architecture, config: Config, **defaults: Any) -> Architecture:
    """Read what DeepSeek-V3, GLM-4.5 and Ling 2.0 have in common."""
    architecture = _experts(
        architecture,
        config,
        score="sigmoid",
        renormalised=bool(config.get("norm_topk_prob", True)),
        scale=float(config.get("routed_scaling_factor") or defaults["scale"]),
        biased=True,
        groups=config.get("n_group") or defaults["groups"],
        kept_groups=config.get("topk_group") or defaults["kept_groups"],
    )
    first = config.get("first_k_dense_replace", defaults["dense"])
    shared = config.get("n_shared_experts", 1) * architecture.expert_size
    return _dense_layers(replace(architecture, shared_size=shared), set(range(first)))


def _glm4_moe(architecture: Architecture, config: Config) -> Architecture:
    architecture = replace(
        architecture,
        qkv_bias=bool(config.get("attention_bias")),
        qk_norm="head" if config.get("use_qk_norm") else "none",
    )
    architecture = _rotated(architecture, config, share=0.5)
    return _sigmoid(architecture, config, scale=1.0, groups=1, kept_groups=1, dense=1)


def _deepseek_v3(architecture: Architecture, config: Config) -> Architecture:
    odd = ("scoring_func",) if config.get("scoring_func", "sigmoid") != "sigmoid" else ()
    architecture = replace(architecture, latent=True, oddities=(*architecture.oddities, *odd))
    return _sigmoid(architecture, config, scale=2.5, groups=8, kept_groups=4, dense=3)


def _bailing_moe(architecture: Architecture, config: Config) -> Architecture:
    """Read Ling 1.5 and Ring-lite (softmax), and Ling 2.0 (sigmoid): one model type for both."""
    second = is_second_bailing(config)
    score = config.get("score_function") or ("sigmoid" if second else "softmax")
    architecture = _experts(
        architecture,
        config,
        score=score,
        renormalised=bool(config.get("norm_topk_prob", True)),
        scale=float(config.get("routed_scaling_factor") or 1.0),
        biased=bool(config.get("moe_router_enable_expert_bias")),
        groups=config.get("n_group") or 1,
        kept_groups=config.get("topk_group") or 1,
    )
    shared = config.get("num_shared_experts", config.get("n_shared_experts")) or 0
    odd = ("norm_head",) if config.get("norm_head") else ()
    architecture = replace(
        _rotated(architecture, config, share=1.0),
        qkv_bias=bool(config.get("use_qkv_bias", config.get("attention_bias"))),
        output_bias=bool(config.get("use_bias")),
        qk_norm="head" if config.get("use_qk_norm", second) else "none",
        shared_size=shared * architecture.expert_size,
        oddities=(*architecture.oddities, *odd),
    )
    return _dense_layers(architecture, set(range(config.get("first_k_dense_replace") or 0)))


def is_second_bailing(config: Config) -> bool:
    """Return whether a `bailing_moe` is of the second generation, whose defaults differ."""
    return any("V2" in str(name) for name in config.get("architectures") or ())


def _rotated(architecture: Architecture, config: Config, *, share: float) -> Architecture:
    rope = config.get("rope_parameters") or {}
    share = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", share))
    return replace(
        architecture, rope=replace(architecture.rope, rotated=int(architecture.head_size * share))
    )


_MIXTRAL_NAMES = Names(
    (
        (".mlp.", ".block_sparse_moe."),
        (".gate_proj.", ".w1."),
        (".up_proj.", ".w3."),
        (".down_proj.", ".w2."),
    )
)
_BAILING_NAMES = Names(
    (
        ("model.embed_tokens.", "model.word_embeddings."),
        (".self_attn.o_proj.", ".attention.dense."),
        (".self_attn.q_norm.", ".attention.query_layernorm."),
        (".self_attn.k_norm.", ".attention.key_layernorm."),
        (".self_attn.query_key_value.", ".attention.query_key_value."),
        (".e_score_correction_bias", ".expert_bias"),
    ),
    fused_qkv=True,
)
FAMILIES: dict[str, Family] = {
    "qwen3_moe": _BuiltIn(_qwen3_moe, defaults={"num_key_value_heads": 4}),
    "qwen3": _BuiltIn(_qwen3, defaults={"num_key_value_heads": 32, "head_dim": 128}),
    "qwen2": _BuiltIn(_qwen2, defaults={"num_key_value_heads": 32}),
    "llama": _BuiltIn(_llama),
    "qwen2_moe": _BuiltIn(_qwen2_moe, defaults={"num_key_value_heads": 16}),
    "mixtral": _BuiltIn(
        _mixtral,
        _MIXTRAL_NAMES,
        defaults={"num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1e6},
    ),
    BAILING_MOE: _BuiltIn(_bailing_moe, _BAILING_NAMES, module="tasks.models.bailing_moe"),
    "glm4_moe": _BuiltIn(_glm4_moe, defaults={"num_key_value_heads": 8, "rms_norm_eps": 1e-5}),
    "deepseek_v3": _BuiltIn(_deepseek_v3, defaults={"num_key_value_heads": 128}),
}


def code_of(config: Config) -> str:
    """Return the reference to the code of a family; '' if it is built in, or none is named."""
    return "" if config.get("model_type") in FAMILIES else str(config.get(CODE) or "")


def adopted_code(config: Config, reference: str) -> str:
    """Return the pinned code of a model from outside; '' if its family is built in or unknown.

    Args:
        config: its config.json.
        reference: `architecture` of the settings, which comes first; '' = they name none.

    Raises:
        SettingsError: config.json names code that neither the settings name nor this project has;
            or the code is not there.
    """
    if config.get("model_type") in FAMILIES:
        return ""
    code = code_of(config)
    if reference or is_part_of_project(code):
        return pin(reference or _without_pin(code))
    if code:
        raise SettingsError(
            f"config.json names code that opens the model, {code.partition('@')[0]}. If you trust "
            f"it, name it in the settings as `architecture` ({GUIDE})"
        )
    return ""


def refuse_foreign_code(folder: Path) -> None:
    """Refuse a model from outside whose config.json names code, where no settings could name it.

    Raises:
        SettingsError: names the code.
    """
    adopted_code(config_in(folder), "")


def is_part_of_project(reference: str) -> bool:
    """Return whether code is that of this project, which any model may name."""
    parts = ObjectReference.parse(reference)
    return parts is not None and not parts.is_file and parts.place.startswith("tasks.")


def _without_pin(reference: str) -> str:
    return reference.partition("@")[0]


def is_known(config: Config) -> bool:
    """Return whether a family is built in, or its code is named."""
    return config.get("model_type") in FAMILIES or bool(code_of(config))


def family_of(config: Config) -> Family:
    """Return what reads a config.json.

    Raises:
        SettingsError: its model type is not in `FAMILIES` and it names no code; or that code is
            missing, has changed, or is no `Family`.
    """
    built_in = FAMILIES.get(str(config.get("model_type")))
    if built_in is not None:
        return built_in
    code = code_of(config)
    if not code:
        raise SettingsError(
            f"config.json has model_type {config.get('model_type')!r}; supported are "
            f"{', '.join(FAMILIES)}, and others by code of your own ({GUIDE})"
        )
    # Part of the project, its digest keeps results apart but locks out no older model.
    return load(_without_pin(code) if is_part_of_project(code) else code, Family)


def architecture_of(config: Config) -> Architecture:
    """Read a config.json, or the `to_dict` of a config of transformers.

    Raises:
        SettingsError: there is no family of its model type, or a size is missing or absurd.
    """
    check_values(config)
    family, code = family_of(config), code_of(config)
    if isinstance(family, _BuiltIn):
        config = {**family.defaults, **config}
    heads = _size(config, "num_attention_heads")
    head_size = config.get("head_dim") or _size(config, "hidden_size") // heads
    common = Architecture(
        family=str(config["model_type"]),
        layers=_size(config, "num_hidden_layers"),
        hidden=_size(config, "hidden_size"),
        heads=heads,
        groups=config.get("num_key_value_heads") or heads,
        head_size=head_size,
        vocab=_size(config, "vocab_size"),
        positions=_size(config, "max_position_embeddings"),
        norm_epsilon=float(config.get("rms_norm_eps", 1e-6)),
        rope=_rope(config, head_size),
        dense_size=_size(config, "intermediate_size"),
        tied=bool(config.get("tie_word_embeddings")),
        activation=str(config.get("hidden_act", "silu")),
        mtp_layers=config.get("num_nextn_predict_layers", config.get("num_mtp_layers")) or 0,
        dtype=str(config.get("dtype") or config.get("torch_dtype") or "float32"),
        only_embedded=f"the layers of {code.partition('@')[0]}"
        if (code := code_of(config))
        else "",
    )
    return family.read(common, config)


def read_architecture(folder: Path) -> Architecture:
    """Read the config.json of a model directory.

    Raises:
        SettingsError: there is none, no family of its model type, or a size is missing.
    """
    config = read_object(folder / CONFIG, "Give a model directory with its config.json.")
    try:
        return architecture_of(config)
    except SettingsError as error:
        raise SettingsError(f"{folder}: {error}") from error


def _rope(config: Config, head_size: int) -> Rope:
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    kind = str(rope.pop("rope_type", rope.pop("type", "default")))
    theta = rope.pop("rope_theta", None) or config.get("rope_theta") or 10000.0
    numbers = {name: value for name, value in rope.items() if isinstance(value, int | float)}
    numbers.pop("partial_rotary_factor", None)
    if kind == "default":
        numbers = {}
    return Rope(float(theta), kind, tuple(sorted(numbers.items())), rotated=head_size)


def _size(config: Config, name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingsError(f"config.json has no integer {name}")
    return value


def config_in(folder: Path) -> Config:
    """Read the config.json of a folder, {} if it has none: whoever opens it says what is wrong."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def architecture(folder: Path) -> str:
    """Return the model type of a folder, '' if it has none."""
    return str(config_in(folder).get("model_type", ""))


def needs_registration(folder: Path) -> bool:
    """Return whether transformers needs a module to open a folder; it imports torch."""
    config = config_in(folder)
    built_in = FAMILIES.get(str(config.get("model_type")))
    return built_in.module != "" if isinstance(built_in, _BuiltIn) else bool(code_of(config))


def register_architecture(folder: Path) -> None:
    """Let the Auto classes of transformers open this folder, if its family is known."""
    config = config_in(folder)
    if is_known(config):
        family_of(config).register()


def end_ids(folder: Path, own: int) -> tuple[int, ...]:
    """Ids of all tokens that end a response: the tokenizer's, then those of the model's configs,
    and the one of its chat template.

    A base model ends a text with one token and its chat template a turn with another; SFT teaches
    the tokenizer's, and the model may still answer with the other.

    Args:
        folder: model directory; its config.json and generation_config.json may be missing.
        own: end token of the tokenizer.
    """
    ends: list[int | None] = [own]
    for name in (CONFIG, GENERATION):
        try:
            entry = json.loads((folder / name).read_bytes()).get("eos_token_id")
        except (OSError, ValueError, AttributeError):
            continue  # whoever opens the model says what is wrong with it
        ends += entry if isinstance(entry, list) else [entry]
    ends.append(chat_trial.end_of_turn(folder))
    return tuple(dict.fromkeys(end for end in ends if isinstance(end, int) and end >= 0))


def opening_of_responses(folder: Path) -> str:
    """Return what the chat template already says of a response; see `chat_trial.opening`.

    Raises:
        SettingsError: the template cannot be rendered.
    """
    try:
        return chat_trial.opening(folder)
    except Exception as error:
        raise SettingsError(
            f"the chat template of {folder} does not render a question: {type(error).__name__}: "
            f"{error}. Take it from the checkpoint as it was published."
        ) from error
