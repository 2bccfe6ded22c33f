# pyright: reportMissingImports=false
"""Qwen3-MoE in vLLM with routers in fp32, whatever the precision of the rest.

vLLM computes a router's logits in the model's precision, Megatron-core in fp32
(`moe_router_dtype`). vLLM's own layer for it, `GateLinear`, reads the dtype of a weight that the
CPU's kernels have emptied, and computes nonsense there.
"""

from typing import Any

import torch
from vllm.model_executor.layers.linear import ReplicatedLinear
from vllm.model_executor.models.qwen3_moe import Qwen3MoeForCausalLM, Qwen3MoeSparseMoeBlock


class Fp32Router(ReplicatedLinear):
    """A router that takes the model's precision and returns logits in fp32."""

    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x.float())


class Fp32RouterQwen3Moe(Qwen3MoeForCausalLM):
    """Loads and names the same weights."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        for name, block in self.named_modules():
            if isinstance(block, Qwen3MoeSparseMoeBlock):
                router = Fp32Router(
                    block.gate.input_size,
                    block.gate.output_size,
                    bias=False,
                    params_dtype=torch.float32,
                    prefix=f"{name}.gate",
                )
                # The experts' runner computes the logits, by its own reference.
                assert block.experts.gate is block.gate
                block.gate = block.experts.gate = router
