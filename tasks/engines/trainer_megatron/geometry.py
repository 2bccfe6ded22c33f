"""The parts of a Hugging Face config.json that Megatron needs.

A view of the registry of architectures. What megatron-core cannot express is refused by name,
never ignored (tasks/engines/support.py).
"""

from dataclasses import dataclass, field
from pathlib import Path

from data_schemas.machine_settings import LayoutSettings
from data_schemas.routing import Routing
from tasks.engines.support import refuse_megatron
from tasks.errors import SettingsError
from tasks.models.architectures import Names, read_architecture


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
    """Inner size of a dense feed-forward, 0 if no layer has one."""
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
    routing: Routing | None = None
    """None in a dense model."""
    moe_layers: tuple[int, ...] = ()
    """Layers with a router, from 0."""
    shared_size: int = 0
    """Inner size of the shared experts of a layer."""
    shared_gated: bool = False
    rotated_share: float = 1.0
    """Share of a head, which rotary embeddings turn."""
    llama3_factor: float = 0.0
    """Scale of llama3's rotary embedding; 0 = the default one."""
    names: Names = field(default=Names(), repr=False)
    """How files name the tensors."""

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
        for what, size in (
            ("feed-forward units", self.dense_size),
            ("units of shared experts", self.shared_size),
        ):
            if size:
                divided["tensor"][what] = size
        if not self.experts and layout.expert > 1:
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
        if self.experts:
            per_stage = self.layers // layout.pipeline
            if len({layer // per_stage for layer in self.moe_layers}) < layout.pipeline:
                raise SettingsError(
                    f"layout.pipeline is {layout.pipeline}, and a stage of dense layers only would "
                    "have no router; use fewer stages"
                )


def read_geometry(folder: Path) -> Geometry:
    """Read config.json of a Hugging Face directory.

    Raises:
        SettingsError: no such file, another family, or an unsupported option.
    """
    architecture = read_architecture(folder)
    try:
        refuse_megatron(architecture)
    except SettingsError as error:
        raise SettingsError(f"{folder}/config.json: {error}") from error
    rope, routing = architecture.rope, architecture.routing
    return Geometry(
        family=architecture.family,
        layers=architecture.layers,
        hidden=architecture.hidden,
        heads=architecture.heads,
        groups=architecture.groups,
        head_size=architecture.head_size,
        vocab=architecture.vocab,
        positions=architecture.positions,
        dense_size=architecture.dense_size
        if len(architecture.moe_layers) < architecture.layers
        else 0,
        experts=architecture.num_experts,
        top_k=routing.top_k if routing else 0,
        expert_size=architecture.expert_size,
        renormalised=bool(routing and routing.renormalised),
        norm_epsilon=architecture.norm_epsilon,
        rope_theta=rope.theta,
        tied=architecture.tied,
        qk_norm=architecture.qk_norm == "head",
        qkv_bias=architecture.qkv_bias,
        dtype=architecture.dtype,
        routing=routing,
        moe_layers=architecture.moe_layers,
        shared_size=architecture.shared_size,
        shared_gated=architecture.shared_gated,
        rotated_share=rope.rotated / architecture.head_size,
        llama3_factor=dict(rope.parameters)["factor"] if rope.kind == "llama3" else 0.0,
        names=architecture.names,
    )
