"""The forward pass of a decoder for generation, on the modules of a transformers model.

transformers rebuilds masks, copies the whole cache and calls a hundred small modules for every
token; on a small model that is most of the time. Here a decoding step is a dozen kernels per
layer over a cache that is written in place. Operations and results are the same, as tests verify.

Letters: B decoding sequences, P prompts, T tokens, M tokens of all sequences, L layers,
H hidden, A query heads, G key-value heads, D head dimension, E experts, K experts per token.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from transformers import PreTrainedModel

from tasks.algorithms.expert_products import grouped, through_experts
from tasks.engines.support import refuse_rollout
from tasks.errors import SettingsError
from tasks.models.architectures import architecture_of, code_of

AGREEING_TOKENS = 16
"""On which the forward pass here is compared with that of a model of a user's own code."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """Result of a forward pass over whole, right-padded sequences."""

    keys: list[torch.Tensor]
    """Per layer [P, T, G, D]; undefined beyond a sequence's end."""
    values: list[torch.Tensor]
    hidden_PTH: torch.Tensor
    experts_PTLK: torch.Tensor
    """uint8 on the CPU, MoE layers only: L is 0 in a dense model."""


class DecoderForward:
    """The forward pass of one model; `refresh` after its weights have changed."""

    def __init__(self, model: PreTrainedModel) -> None:
        self.architecture = architecture_of(model.config.to_dict())
        refuse_rollout(self.architecture)
        self._model: Any = model
        self.device = model.device
        self._layers = [_Layer(layer) for layer in model.model.layers]
        self._head_dim = self._layers[0].head_dim
        self._half = self.architecture.rope.rotated // 2
        """Half of what is rotated, which may be a part of a head."""
        self._scale = self._head_dim**-0.5
        self._num_groups = self._layers[0].heads[1]
        self._rope_table = torch.empty(0), torch.empty(0)
        self.refresh()
        if code := code_of(model.config.to_dict()):
            self._require_agreement(code.partition("@")[0])

    def _require_agreement(self, code: str) -> None:
        """Refuse a family of a user's own whose model computes what its modules do not.

        Here the modules of a layer are called by their names; what stands in a `forward` around
        them would be in the trainer only.

        Raises:
            SettingsError: names the code and the difference.
        """
        tokens_1T = torch.arange(AGREEING_TOKENS, device=self.device)[None] % self.vocabulary
        with torch.inference_mode():
            own_TV = self._model(input_ids=tokens_1T).logits[0].float()
            here_TV = self.logits(self.prefill(tokens_1T).hidden_PTH[0])
        # The median, because in a low precision single tokens may be routed otherwise.
        gap = float(((here_TV - own_TV).abs().amax(dim=1) / own_TV.abs().amax(dim=1)).median())
        if not gap <= 16 * max(1e-5, torch.finfo(self._model.dtype).eps):
            raise SettingsError(
                f"rollout 'hf' computes other logits than the model of {code} (by {gap:.2g} of the "
                "largest): it calls embed_tokens, norms, self_attn, mlp and lm_head as modules. "
                "Put what differs into one of them, or into mlp.beside_experts"
            )

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return self._model.model.embed_tokens.num_embeddings

    @property
    def cache_bytes(self) -> int:
        """Bytes of one token's keys and values in all layers, and of its routes."""
        values = 2 * len(self._layers) * self._num_groups * self._head_dim
        routing, routed = self.architecture.routing, len(self.architecture.moe_layers)
        routes = routed * routing.top_k if routing else 0
        return values * self._model.dtype.itemsize + routes

    def refresh(self) -> None:
        """Fuse the projections of every layer again."""
        with torch.no_grad():
            for layer in self._layers:
                layer.join()

    def logits(self, hidden_MH: torch.Tensor) -> torch.Tensor:
        """Logits in float32."""
        return functional.linear(hidden_MH, self._model.lm_head.weight).float()

    def prefill(self, tokens_PT: torch.Tensor) -> Prefill:
        """Run whole right-padded sequences; causal attention ignores the padding."""
        count, width = tokens_PT.shape
        hidden_MH = self._model.model.embed_tokens(tokens_PT.flatten().to(self.device))
        rope = self._rope(hidden_MH, torch.arange(width, device=self.device))
        # From [T, 1, D], which is that of one sequence, to every sequence.
        rope = (rope[0].repeat(count, 1, 1), rope[1].repeat(count, 1, 1))
        keys, values, routes = [], [], []
        for layer in self._layers:
            query, key, value = (
                part.unflatten(0, (count, width)) for part in layer.project(hidden_MH, rope)
            )
            mixed = functional.scaled_dot_product_attention(
                query.transpose(1, 2),
                key.transpose(1, 2),
                value.transpose(1, 2),
                is_causal=True,
                enable_gqa=True,
            )
            hidden_MH = layer.finish(hidden_MH, mixed.transpose(1, 2).reshape(len(hidden_MH), -1))
            hidden_MH, experts_MK = layer.feed(hidden_MH)
            # Copies: the parts are views of a whole projection, which would stay in memory.
            keys.append(key.clone(memory_format=torch.contiguous_format))
            values.append(value.clone(memory_format=torch.contiguous_format))
            if experts_MK is not None:
                routes.append(experts_MK.to(torch.uint8))
        return Prefill(
            keys,
            values,
            self._model.model.norm(hidden_MH).unflatten(0, (count, width)),
            _stacked(routes, len(hidden_MH)).unflatten(0, (count, width)),
        )

    def decode(
        self,
        token_B: torch.Tensor,
        position_B: torch.Tensor,
        keys: list[torch.Tensor],
        values: list[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run one token per sequence, writing its keys and values into the cache.

        Args:
            token_B: on the CPU, as all that is not the model or its cache.
            position_B: where the token stands in its sequence.
            keys: per layer [at least B, at least max(position) + 1, G, D]; row b is sequence b.

        Returns:
            logits_BV in float32 and experts_BLK in uint8.
        """
        count, width = len(token_B), int(position_B.max()) + 1
        position_B = position_B.to(self.device)
        rows_B = torch.arange(count, device=self.device)
        hidden_BH = self._model.model.embed_tokens(token_B.to(self.device))
        rope = self._rope_at(hidden_BH, position_B, width)
        seen_BT = torch.arange(width, device=self.device) <= position_B[:, None]
        bias_BT = torch.zeros(seen_BT.shape, device=self.device).masked_fill_(~seen_BT, -torch.inf)
        routes = []
        for layer, keys_STGD, values_STGD in zip(self._layers, keys, values, strict=True):
            query_BAD, key_BGD, value_BGD = layer.project(hidden_BH, rope)
            keys_STGD[rows_B, position_B] = key_BGD
            values_STGD[rows_B, position_B] = value_BGD
            # The query heads of one key head are laid out as the tokens of a longer query.
            grouped = query_BAD.view(count, self._num_groups, -1, self._head_dim)
            # Two products: for one query torch's fused kernel is not faster.
            scores = grouped @ keys_STGD[:count, :width].permute(0, 2, 3, 1)
            weights = (scores.float() * self._scale + bias_BT[:, None, None]).softmax(dim=3)
            mixed = weights.to(scores.dtype) @ values_STGD[:count, :width].transpose(1, 2)
            hidden_BH = layer.finish(hidden_BH, mixed.reshape(count, -1))
            hidden_BH, experts_BK = layer.feed(hidden_BH)
            if experts_BK is not None:
                routes.append(experts_BK.to(torch.uint8))
        return self.logits(self._model.model.norm(hidden_BH)), _stacked(routes, count)

    def _rope_at(
        self, hidden_BH: torch.Tensor, position_B: torch.Tensor, width: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`_rope` of single positions below `width`, from a table: it depends on nothing else."""
        if width > len(self._rope_table[0]):
            positions_T = torch.arange(2 * width, device=self.device)
            self._rope_table = self._rope(hidden_BH, positions_T)
        cos_T1D, sin_T1D = self._rope_table
        return cos_T1D.index_select(0, position_B), sin_T1D.index_select(0, position_B)

    def _rope(
        self, hidden_MH: torch.Tensor, position_M: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and signed sines [M, 1, D]: rotating is then a product with swapped halves."""
        cos_MD, sin_MD = (
            part[0] for part in self._model.model.rotary_emb(hidden_MH, position_M[None])
        )
        sin_MD = torch.cat([-sin_MD[:, : self._half], sin_MD[:, self._half :]], dim=1)
        return cos_MD[:, None], sin_MD[:, None]


class _Layer:
    """The parts of a decoder layer that work on single tokens."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._attention = layer.self_attn
        self.head_dim = int(layer.self_attn.head_dim)
        self.heads = (
            layer.self_attn.q_proj.out_features // self.head_dim,
            layer.self_attn.k_proj.out_features // self.head_dim,
        )
        """Rotations of queries, and of keys and values."""
        self.block = layer.mlp if hasattr(layer.mlp, "experts") else None
        # Looked up once: a module raises an error for every name that it does not have.
        self._beside = getattr(self.block, "beside_experts", None)
        """Those of a family of a user's own."""
        self._shared = getattr(self.block, "shared_experts", None)
        self._gated_shared = getattr(self.block, "shared_expert", None)
        """That of Qwen2-MoE, whose gate is per token."""

    def join(self) -> None:
        """Fuse the weights of queries, keys and values: one matmul instead of three."""
        if self.block is not None:
            self._gate_up = self.block.get_parameter("experts.gate_up_proj")
            self._down = self.block.get_parameter("experts.down_proj")
        attention = self._attention
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        weights: list[torch.Tensor] = [part.weight for part in parts]
        self._weight = torch.cat(weights)
        biases: list[torch.Tensor] = [part.bias for part in parts if part.bias is not None]
        self._bias = torch.cat(biases) if biases else None
        self._norm_weight = None
        if hasattr(attention, "q_norm"):
            queries, groups = self.heads
            self._epsilon = attention.q_norm.variance_epsilon
            self._norm_weight = torch.cat(
                [
                    attention.q_norm.weight.expand(queries, -1),
                    attention.k_norm.weight.expand(groups, -1),
                ]
            )

    def project(
        self, hidden_MH: torch.Tensor, rope: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rotated queries [M, A, D] and keys [M, G, D], normalised before (Qwen3), and values."""
        queries, groups = self.heads
        normed_MH = self._layer.input_layernorm(hidden_MH)
        joined = functional.linear(normed_MH, self._weight, self._bias)
        joined = joined.view(len(joined), queries + 2 * groups, self.head_dim)
        turned, value = joined.split([queries + groups, groups], dim=1)
        if self._norm_weight is not None:
            wide = turned.float()
            scale = torch.rsqrt(wide.square().mean(dim=2, keepdim=True) + self._epsilon)
            turned = (wide * scale).to(hidden_MH.dtype) * self._norm_weight
        whole, width = turned, rope[0].shape[2]
        turned, half = whole[..., :width], width // 2
        swapped = torch.cat([turned[..., half:], turned[..., :half]], dim=2)
        turned = torch.addcmul(turned * rope[0], swapped, rope[1])
        if width < self.head_dim:
            turned = torch.cat([turned, whole[..., width:]], dim=2)
        query, key = turned.split([queries, groups], dim=1)
        return query, key, value

    def finish(self, hidden_MH: torch.Tensor, mixed_MC: torch.Tensor) -> torch.Tensor:
        """Add what attention found."""
        return hidden_MH + self._attention.o_proj(mixed_MC)

    def feed(self, hidden_MH: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Add what the experts say, and return whom they were; None in a dense layer."""
        normed_MH = self._layer.post_attention_layernorm(hidden_MH)
        if self.block is None:
            return hidden_MH + self._layer.mlp(normed_MH), None
        router = self.block.gate
        # A router in fp32 gives gates in fp32, whatever the precision of the experts.
        _, gates_MK, experts_MK = router(normed_MH.to(router.weight.dtype))
        gates_MK = gates_MK.to(normed_MH.dtype)
        added_MH = through_experts(
            normed_MH,
            gates_MK,
            experts_MK,
            len(self._down),
            gate_up=lambda rows, ends: grouped(rows, self._gate_up, ends),
            down=lambda rows, ends: grouped(rows, self._down, ends),
        )
        if self._beside is not None:
            added_MH = added_MH + self._beside(normed_MH, gates_MK, experts_MK)
        if self._shared is not None:
            added_MH = added_MH + self._shared(normed_MH)
        elif self._gated_shared is not None:
            opening_M1 = torch.sigmoid(self.block.shared_expert_gate(normed_MH))
            added_MH = added_MH + opening_M1 * self._gated_shared(normed_MH)
        return hidden_MH + added_MH, experts_MK


def _stacked(routes: list[torch.Tensor], num_tokens: int) -> torch.Tensor:
    """Routes of all MoE layers on the CPU, uint8 [M, L, K]; [M, 0, 0] in a dense model."""
    if not routes:
        return torch.empty(num_tokens, 0, 0, dtype=torch.uint8)
    return torch.stack(routes, dim=1).cpu()
