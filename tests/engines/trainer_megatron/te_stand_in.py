# pyright: reportMissingImports=false
"""Transformer Engine without a GPU: modules of plain torch under its names and signatures.

`install` puts them in the place of `transformer_engine`, before megatron.core is imported. Only
what Megatron-core 0.16.1 asks for is here, with the parameters of Transformer Engine 2.11: an
argument that it does not take is a TypeError here as there. Its kernels are not here, nor fp8, nor
context parallelism.

Letters: M packed rows, A attention heads, G key-value heads, D head size.
"""

import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib.machinery import ModuleSpec
from itertools import pairwise
from types import ModuleType
from typing import Any

import torch
from torch import distributed
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention

VERSION = "2.11.0"


class TransformerEngineBaseModule(torch.nn.Module):
    """What all of its layers have."""

    fp8 = fp8_calibration = False

    def __init__(self) -> None:
        super().__init__()
        self.fp8_meta: dict[str, Any] = {"fp8_checkpoint": False, "recipe": None}

    def init_fp8_metadata(self, num_gemms: int = 1) -> None:
        """Nothing is in fp8."""

    def get_extra_state(self) -> torch.Tensor:
        """An empty tensor, as without fp8."""
        return torch.empty(0, dtype=torch.uint8)

    def set_extra_state(self, state: torch.Tensor | None) -> None:
        """Take an empty tensor back."""
        assert state is None or not state.numel()


def _parameter(
    owner: torch.nn.Module, name: str, shape: tuple[int, ...], dtype: torch.dtype, **marks: Any
) -> None:
    parameter = torch.nn.Parameter(torch.empty(shape, dtype=dtype))
    vars(parameter).update(marks)
    owner.register_parameter(name, parameter)


def _divided(mode: str | None, weight: bool = True) -> dict[str, Any]:
    """Marks of a parameter that tensor ranks divide."""
    if not weight and mode != "column":
        return {}
    marks = {"partition_dim": int(mode == "row"), "partition_stride": 1}
    return {"tensor_model_parallel": True, **marks}


class _Gather(torch.autograd.Function):
    """Rows of all tensor ranks; of the gradient every rank gets the sum for its own."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return _all_gather(rows, group)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, slope: torch.Tensor
    ) -> Any:
        return _reduce_scatter(slope, ctx.group), None


class _Scatter(torch.autograd.Function):
    """The sum over tensor ranks, of which every rank has its own rows."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, group: Any) -> torch.Tensor:
        ctx.group = group
        return _reduce_scatter(rows, group)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, slope: torch.Tensor
    ) -> Any:
        return _all_gather(slope, ctx.group), None


def _all_gather(rows: torch.Tensor, group: Any) -> torch.Tensor:
    parts = [torch.empty_like(rows) for _ in range(group.size())]
    distributed.all_gather(parts, rows.contiguous(), group=group)
    return torch.cat(parts)


def _reduce_scatter(rows: torch.Tensor, group: Any) -> torch.Tensor:
    total = rows.contiguous().clone()
    distributed.all_reduce(total, group=group)
    return total.chunk(group.size())[group.rank()].contiguous()


class Linear(TransformerEngineBaseModule):
    """A linear layer, divided over tensor ranks by columns or rows."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        sequence_parallel: bool = False,
        fuse_wgrad_accumulation: bool = False,
        tp_group: Any = None,
        tp_size: int = 1,
        get_rng_state_tracker: Callable[[], Any] | None = None,
        rng_tracker_name: str | None = None,
        init_method: Callable[[torch.Tensor], Any] | None = None,
        bias: bool = True,
        return_bias: bool = False,
        params_dtype: torch.dtype = torch.float32,
        parallel_mode: str | None = None,
        parameters_split: Any = None,
        device: Any = "cuda",
        ub_overlap_ag: bool = False,
        ub_overlap_rs: bool = False,
        ub_overlap_rs_dgrad: bool = False,
        ub_bulk_dgrad: bool = False,
        ub_bulk_wgrad: bool = False,
        ub_name: str | None = None,
        delay_wgrad_compute: bool = False,
        symmetric_ar_type: str | None = None,
        save_original_input: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features // (tp_size if parallel_mode == "row" else 1)
        self.out_features = out_features // (tp_size if parallel_mode == "column" else 1)
        self.tp_group, self.tp_size, self.parallel_mode = tp_group, tp_size, parallel_mode
        self.sequence_parallel = sequence_parallel and tp_size > 1
        self.use_bias, self.return_bias = bias, return_bias
        shape = (self.out_features, self.in_features)
        _parameter(self, "weight", shape, params_dtype, **_divided(parallel_mode))
        if bias:
            marks = _divided(parallel_mode, weight=False)
            _parameter(self, "bias", shape[:1], params_dtype, **marks)
        else:
            self.bias = torch.empty(0, dtype=params_dtype)

    def forward(
        self,
        inp: torch.Tensor,
        is_first_microbatch: bool | None = None,
        fp8_output: bool = False,
        fp8_grad: bool = False,
    ) -> Any:
        """Multiply; the bias is added, or given back."""
        parallel = self.tp_size > 1 and self.parallel_mode is not None
        assert not parallel or self.sequence_parallel, "written for sequence parallelism only"
        if parallel and self.parallel_mode == "column":
            inp = _Gather.apply(inp, self.tp_group)
        rows = linear(inp, self.get_parameter("weight"))
        if parallel and self.parallel_mode == "row":
            rows = _Scatter.apply(rows, self.tp_group)
        if self.return_bias:
            return rows, self.bias
        return rows + self.bias if self.use_bias else rows


class RMSNorm(TransformerEngineBaseModule):
    """RMS norm, computed in fp32."""

    def __init__(
        self,
        normalized_shape: int | None = None,
        eps: float = 1e-5,
        sequence_parallel: bool | None = None,
        params_dtype: torch.dtype = torch.float32,
        zero_centered_gamma: bool = False,
        hidden_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        assert kwargs.keys() <= {"device"}
        assert not zero_centered_gamma
        size = normalized_shape or hidden_size or 0
        _parameter(self, "weight", (size,), params_dtype, sequence_parallel=sequence_parallel)
        self.eps = eps

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Normalise the last axis."""
        return _normed(rows, self.get_parameter("weight"), self.eps)


def _normed(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return rms_norm(rows.float(), rows.shape[-1:], weight.float(), eps).to(rows.dtype)


class LayerNormLinear(Linear):
    """An RMS norm, and a linear layer divided by columns."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        eps: float = 1e-5,
        sequence_parallel: bool = False,
        fuse_wgrad_accumulation: bool = False,
        tp_group: Any = None,
        tp_size: int = 1,
        get_rng_state_tracker: Callable[[], Any] | None = None,
        init_method: Callable[[torch.Tensor], Any] | None = None,
        bias: bool = True,
        normalization: str = "LayerNorm",
        return_bias: bool = False,
        params_dtype: torch.dtype = torch.float32,
        parallel_mode: str | None = None,
        return_layernorm_output: bool = False,
        return_layernorm_output_gathered: bool = False,
        parameters_split: Any = None,
        zero_centered_gamma: bool = False,
        device: Any = "cuda",
        ub_overlap_ag: bool = False,
        ub_overlap_rs: bool = False,
        ub_overlap_rs_dgrad: bool = False,
        ub_bulk_wgrad: bool = False,
        ub_bulk_dgrad: bool = False,
        ub_name: str | None = None,
        delay_wgrad_compute: bool = False,
        symmetric_ar_type: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            sequence_parallel=sequence_parallel,
            tp_group=tp_group,
            tp_size=tp_size,
            bias=bias,
            return_bias=return_bias,
            params_dtype=params_dtype,
            parallel_mode=parallel_mode,
        )
        assert normalization == "RMSNorm"
        assert not zero_centered_gamma
        assert not return_layernorm_output
        self.eps, self.normalization = eps, normalization
        marks = {"sequence_parallel": sequence_parallel}
        _parameter(self, "layer_norm_weight", (in_features,), params_dtype, **marks)

    def forward(
        self,
        inp: torch.Tensor,
        is_first_microbatch: bool | None = None,
        fp8_output: bool = False,
        fp8_grad: bool = False,
    ) -> Any:
        """Normalise and multiply."""
        return super().forward(_normed(inp, self.get_parameter("layer_norm_weight"), self.eps))


class GroupedLinear(TransformerEngineBaseModule):
    """A linear layer per expert, for consecutive rows."""

    def __init__(
        self,
        num_gemms: int,
        in_features: int,
        out_features: int,
        sequence_parallel: bool = False,
        fuse_wgrad_accumulation: bool = False,
        tp_group: Any = None,
        tp_size: int = 1,
        get_rng_state_tracker: Callable[[], Any] | None = None,
        rng_tracker_name: str | None = None,
        init_method: Callable[[torch.Tensor], Any] | None = None,
        bias: bool = True,
        return_bias: bool = False,
        params_dtype: torch.dtype = torch.float32,
        parallel_mode: str | None = None,
        device: Any = "cuda",
        ub_overlap_rs: bool = False,
        ub_overlap_ag: bool = False,
        ub_name: str | None = None,
        delay_wgrad_compute: bool = False,
        save_original_input: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        assert tp_size == 1
        assert not bias
        self.num_gemms, self.use_bias = num_gemms, bias
        self.in_features, self.out_features = in_features, out_features
        for number in range(num_gemms):
            shape = (out_features, in_features)
            _parameter(self, f"weight{number}", shape, params_dtype, **_divided(parallel_mode))

    def forward(
        self, inp: torch.Tensor, m_splits: list[int], is_first_microbatch: bool | None = None
    ) -> torch.Tensor:
        """Multiply the rows of every expert by its weight."""
        assert isinstance(m_splits, list)
        assert len(m_splits) == self.num_gemms
        assert sum(m_splits) == len(inp)
        weights = [self.get_parameter(f"weight{number}") for number in range(self.num_gemms)]
        parts = map(linear, inp.split(m_splits), weights)
        return torch.cat(list(parts))


class DotProductAttention(TransformerEngineBaseModule):
    """Causal attention of packed sequences."""

    def __init__(
        self,
        num_attention_heads: int,
        kv_channels: int | tuple[int, int],
        num_gqa_groups: int | None = None,
        attention_dropout: float = 0.0,
        qkv_format: str = "sbhd",
        attn_mask_type: str = "causal",
        window_size: tuple[int, int] | None = None,
        sequence_parallel: bool = False,
        tp_size: int = 1,
        get_rng_state_tracker: Callable[[], Any] | None = None,
        tp_group: Any = None,
        layer_number: int | None = None,
        attention_type: str = "self",
        cp_group: Any = None,
        cp_global_ranks: Any = None,
        cp_stream: Any = None,
        cp_comm_type: str = "p2p",
        softmax_scale: float | None = None,
        softmax_type: str = "vanilla",
        return_max_logit: bool = False,
    ) -> None:
        super().__init__()
        assert cp_group is None, "written without context parallelism"
        assert attention_dropout == 0.0
        size = kv_channels if isinstance(kv_channels, int) else kv_channels[0]
        self.scale = softmax_scale or 1.0 / math.sqrt(size)

    def forward(
        self,
        query_layer: torch.Tensor,
        key_layer: torch.Tensor,
        value_layer: torch.Tensor,
        attention_mask: None = None,
        qkv_format: str | None = None,
        cu_seqlens_q: torch.Tensor | None = None,
        cu_seqlens_kv: torch.Tensor | None = None,
        cu_seqlens_q_padded: None = None,
        cu_seqlens_kv_padded: None = None,
        max_seqlen_q: int | None = None,
        max_seqlen_kv: int | None = None,
        attn_mask_type: str | None = None,
        window_size: tuple[int, int] | None = None,
        checkpoint_core_attention: bool = False,
        core_attention_bias_type: str = "no_bias",
        core_attention_bias: torch.Tensor | None = None,
        alibi_slopes: torch.Tensor | None = None,
        fast_zero_fill: bool = True,
        inference_params: Any = None,
        pad_between_seqs: bool | None = None,
        fp8_output: bool = False,
        num_splits: int | None = 1,
    ) -> torch.Tensor:
        """Attend within every sequence; [M, A, D] to [M, A x D], as its kernels for 'thd'."""
        assert qkv_format == "thd"
        assert attn_mask_type == "padding_causal"
        assert query_layer.ndim == 3
        assert cu_seqlens_q is not None
        assert cu_seqlens_q.dtype == torch.int32
        bounds = cu_seqlens_q.tolist()
        assert max_seqlen_q == max(stop - start for start, stop in pairwise(bounds))
        assert bounds[-1] == len(query_layer)
        parts = [
            scaled_dot_product_attention(
                query_layer[start:stop].transpose(0, 1)[None],
                key_layer[start:stop].transpose(0, 1)[None],
                value_layer[start:stop].transpose(0, 1)[None],
                is_causal=True,
                scale=self.scale,
                enable_gqa=True,
            )[0].transpose(0, 1)
            for start, stop in pairwise(bounds)
        ]
        return torch.cat(parts).flatten(1)


def apply_rotary_pos_emb(
    t: torch.Tensor,
    freqs: torch.Tensor,
    tensor_format: str = "sbhd",
    start_positions: torch.Tensor | None = None,
    interleaved: bool = False,
    fused: bool = False,
    cu_seqlens: torch.Tensor | None = None,
    cp_size: int = 1,
    cp_rank: int = 0,
) -> torch.Tensor:
    """Rotate the first part of every head by its position within the sequence; [M, A, D]."""
    assert (tensor_format, fused, interleaved, cp_size) == ("thd", True, False, 1)
    assert cu_seqlens is not None
    lengths = cu_seqlens.diff().tolist()
    places_M = torch.cat([torch.arange(length) for length in lengths])
    angles_M11R = freqs[places_M].flatten(1)[:, None]
    rotated, rest = t[..., : freqs.shape[-1]], t[..., freqs.shape[-1] :]
    first, second = rotated.float().chunk(2, dim=-1)
    turned = torch.cat([-second, first], dim=-1)
    rows = rotated.float() * angles_M11R.cos() + turned * angles_M11R.sin()
    return torch.cat([rows.to(t.dtype), rest], dim=-1)


def moe_permute_with_probs(
    inp: torch.Tensor, probs: torch.Tensor, routing_map: torch.Tensor, num_out_tokens: int = -1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows of every expert, one expert after the other, with their gates and their places."""
    expert_S, token_S = routing_map.T.nonzero(as_tuple=True)
    assert num_out_tokens in {-1, len(token_S)}, "nothing is dropped"
    return inp.index_select(0, token_S), probs[token_S, expert_S], token_S


def moe_unpermute(
    inp: torch.Tensor,
    row_id_map: torch.Tensor,
    merging_probs: torch.Tensor | None = None,
    restore_shape: torch.Size | None = None,
    map_type: str = "mask",
    probs: torch.Tensor | None = None,
) -> torch.Tensor:
    """Add the rows of every token up."""
    assert (merging_probs, map_type, probs) == (None, "mask", None)
    assert restore_shape is not None
    return inp.new_zeros(restore_shape).index_add(0, row_id_map, inp)


def moe_sort_chunks_by_index(
    inp: torch.Tensor, split_sizes: torch.Tensor, sorted_index: torch.Tensor
) -> torch.Tensor:
    """Put chunks of rows in another order."""
    chunks = inp.split(split_sizes.flatten().tolist())
    return torch.cat([chunks[place] for place in sorted_index.tolist()])


def moe_sort_chunks_by_index_with_probs(
    inp: torch.Tensor, probs: torch.Tensor, split_sizes: torch.Tensor, sorted_index: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Put chunks of rows and of their gates in another order."""
    return (
        moe_sort_chunks_by_index(inp, split_sizes, sorted_index),
        moe_sort_chunks_by_index(probs, split_sizes, sorted_index),
    )


class FusedAdam(torch.optim.Optimizer):
    """AdamW; the number of steps is a group's, as there, not a parameter's."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        bias_correction: bool = True,
        adam_w_mode: bool = True,
        capturable: bool = False,
        master_weights: bool = False,
        master_weight_dtype: torch.dtype = torch.float32,
        exp_avg_dtype: torch.dtype = torch.float32,
        exp_avg_sq_dtype: torch.dtype = torch.float32,
        use_decoupled_grad: bool = False,
        store_param_remainders: bool = False,
        set_grad_none: bool | None = None,
    ) -> None:
        assert adam_w_mode
        assert bias_correction
        assert not amsgrad
        assert not capturable
        assert not master_weights
        assert not use_decoupled_grad
        defaults = {"lr": lr, "bias_correction": True, "betas": betas, "eps": eps}
        super().__init__(params, defaults | {"weight_decay": weight_decay})

    @torch.no_grad()
    def step(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, closure: None = None, grad_scaler: None = None
    ) -> None:
        """Take a step; a group without parameters does not count it."""
        for group in self.param_groups:
            if not group["params"]:
                continue
            group["step"] = group.get("step", 0) + 1
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: torch.Tensor, group: dict[str, Any]) -> None:
        state, slope = self.state[parameter], parameter.grad
        assert slope is not None
        for name in ("exp_avg", "exp_avg_sq"):
            if name not in state:
                state[name] = torch.zeros_like(parameter)
        first, second = group["betas"]
        mean = state["exp_avg"].lerp_(slope, 1 - first)
        square = state["exp_avg_sq"].mul_(second).addcmul_(slope, slope, value=1 - second)
        wide = (square / (1 - second ** group["step"])).sqrt() + group["eps"]
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.addcdiv_(mean / (1 - first ** group["step"]), wide, value=-group["lr"])


class MultiTensorApply:
    """Calls a kernel on lists of tensors."""

    def __init__(self, chunk_size: int) -> None:
        self.chunk_size = chunk_size

    def __call__(
        self,
        op: Callable[..., Any],
        noop_flag_buffer: torch.Tensor,
        tensor_lists: Any,
        *args: Any,
    ) -> Any:
        return op(self.chunk_size, noop_flag_buffer, tensor_lists, *args)


def multi_tensor_l2norm(
    _: int, __: torch.Tensor, tensor_lists: Any, per_tensor: bool
) -> tuple[torch.Tensor, None]:
    """The norm of all tensors together."""
    assert not per_tensor
    norms = [tensor.float().norm() for tensor in tensor_lists[0]]
    return torch.stack(norms).norm().reshape(1), None


def multi_tensor_scale(_: int, __: torch.Tensor, tensor_lists: Any, scale: float) -> None:
    """Copy tensors, scaled."""
    for source, target in zip(*tensor_lists, strict=True):
        target.copy_(source * scale)


class _Absent:
    """A name that is imported and never used without fp8."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("not in the stand-in of Transformer Engine")


class FP8GlobalStateManager:
    """Its state of fp8, which is off."""

    @classmethod
    def is_fp8_enabled(cls) -> bool:
        return False


MEMBERS: dict[str, dict[str, Any]] = {
    "": {"__version__": VERSION},
    "common": {},
    "common.recipe": dict.fromkeys(("DelayedScaling", "Format", "Recipe"), _Absent),
    "pytorch": {
        "Linear": Linear,
        "LayerNormLinear": LayerNormLinear,
        "GroupedLinear": GroupedLinear,
        "DotProductAttention": DotProductAttention,
        "RMSNorm": RMSNorm,
        "fp8_autocast": lambda **_: nullcontext(),
        **dict.fromkeys(("LayerNorm", "TransformerLayer", "Fp8Padding", "Fp8Unpadding"), _Absent),
    },
    "pytorch.permutation": {
        "moe_permute": _Absent,
        "moe_permute_with_probs": moe_permute_with_probs,
        "moe_sort_chunks_by_index": moe_sort_chunks_by_index,
        "moe_sort_chunks_by_index_with_probs": moe_sort_chunks_by_index_with_probs,
        "moe_unpermute": moe_unpermute,
    },
    "pytorch.ops": dict.fromkeys(("FusibleOperation", "Sequential"), _Absent),
    "pytorch.fp8": {
        "FP8GlobalStateManager": FP8GlobalStateManager,
        "fp8_autocast": lambda **_: nullcontext(),
        "fp8_model_init": lambda **_: nullcontext(),
    },
    "pytorch.attention": {},
    "pytorch.attention.rope": {"apply_rotary_pos_emb": apply_rotary_pos_emb},
    "pytorch.distributed": {
        "CudaRNGStatesTracker": type("CudaRNGStatesTracker", (), {}),
        "activation_recompute_forward": _Absent,
        "is_fp8_activation_recompute_enabled": lambda: False,
    },
    "pytorch.router": dict.fromkeys(
        (
            "fused_compute_score_for_moe_aux_loss",
            "fused_moe_aux_loss",
            "fused_topk_with_score_function",
        ),
        _Absent,
    ),
    "pytorch.optimizers": {
        "FusedAdam": FusedAdam,
        "FusedSGD": _Absent,
        "MultiTensorApply": MultiTensorApply,
        "multi_tensor_applier": MultiTensorApply(2**16),
        "multi_tensor_l2norm": multi_tensor_l2norm,
        "multi_tensor_scale": multi_tensor_scale,
    },
    "pytorch.tensor": {"QuantizedTensor": type("QuantizedTensor", (), {})},
    "pytorch.tensor.float8_tensor": {"Float8Tensor": type("Float8Tensor", (), {})},
    "pytorch.float8_tensor": {"Float8Tensor": type("Float8Tensor", (), {})},
    "pytorch.module": {},
    "pytorch.module.base": {"TransformerEngineBaseModule": TransformerEngineBaseModule},
}
"""By module, counted from transformer_engine."""


def install() -> None:
    """Take the place of transformer_engine in this process."""
    assert "megatron.core" not in sys.modules, "megatron.core has already looked for it"
    for name, members in MEMBERS.items():
        full = f"transformer_engine.{name}".rstrip(".")
        module = ModuleType(full)
        vars(module).update(members, __path__=[], __spec__=ModuleSpec(full, None))
        sys.modules[full] = module
        parent, _, last = full.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
