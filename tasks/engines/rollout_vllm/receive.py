# pyright: reportMissingImports=false
"""The worker's side of a weight sync: hash and install tensors from packets or files.

This is a backend of vLLM's own update path (start, update per packet or file, finish), registered
when a worker imports this module as its extension. The digest is computed from the bytes received
here.

On a CPU vLLM 0.30 omits two steps of that path, and then computes wrong results without an error:
experts are packed for their kernel when a model is loaded, but not when it is updated; and a head
that is tied to the embedding keeps the packed copy of the old one. `pack_experts` and `pack_heads`
add these steps, and refuse unknown kernels.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from vllm import __version__ as vllm_version
from vllm.config import LoadConfig, ModelConfig
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.layers.fused_moe.experts.cpu_moe import CPUUnquantizedExperts
from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader import DefaultModelLoader, register_model_loader
from vllm.model_executor.model_loader.reload import (
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)
from vllm.model_executor.models import ModelRegistry
from vllm.platforms import current_platform

from tasks.algorithms.digests import joint_digest, weight_digest
from tasks.engines.rollout_vllm.broadcast import Entry, Rendezvous, receive_packet
from tasks.engines.weight_sync import Hasher
from tasks.errors import EngineError
from tasks.models.architectures import read_architecture

BACKEND = "eachprompt"
"""Name of the backend in vLLM's registry."""
WITHOUT_MTP = "eachprompt"
"""Name of the loader among vLLM's load formats."""
ROUTER_ARCHITECTURE = "Fp32RouterQwen3Moe"
"""Name of the class in `fp32_router`."""
PACKED_BY_HAND = "0.30."
"""Versions of vLLM known to omit the packing; packing twice would corrupt the weights."""

Loader = Callable[[Iterator[tuple[str, torch.Tensor]]], set[str]]
"""A vLLM model's `load_weights`: returns the names of the loaded parameters."""


@dataclass
class RendezvousInfo(Rendezvous, WeightTransferInitInfo):
    """Rendezvous with the owner; sent only if weights arrive as packets."""


@dataclass
class UpdateContents(WeightTransferUpdateInfo):
    """One of: tensors of this process, contents of the next packet, a safetensors file."""

    path: str = ""
    tensors: Iterator[tuple[str, torch.Tensor]] | None = None
    entries: Sequence[Entry] = ()


class TensorTransfer(WeightTransferEngine[RendezvousInfo, UpdateContents]):
    """Installs tensors under Hugging Face names."""

    init_info_cls = RendezvousInfo
    update_info_cls = UpdateContents
    _group: Any = None

    def init_transfer_engine(self, init_info: RendezvousInfo) -> None:
        """Join the group of the owner and the other workers."""
        self._group = init_info.join_as_worker(self.parallel_config.rank + 1)

    def start_weight_update(self) -> None:
        """Restore every layer to its loadable form."""
        self.hasher = Hasher()
        # The scales of quantised layers are parameters without weights in the sync.
        whole = self.model_config.quantization is None
        names = [name for name, _ in self.model.named_parameters()] if whole else []
        # load_weights omits one module from the names of experts.
        self._left = {name.replace(".routed_experts.", ".") for name in names}
        initialize_layerwise_reload(self.model)

    def receive_weights(self, update_info: UpdateContents) -> None:
        """Load tensors; a layer is processed as soon as it is complete."""
        weights = self._incoming(update_info)
        loader: Loader = self.model.load_weights  # pyright: ignore[reportAssignmentType]
        try:
            self._left -= loader(self._hash_tensors(weights))
        except BaseException:
            # Otherwise a partial layer would be counted as part of the next update.
            finalize_layerwise_reload(self.model, self.model_config)
            raise

    def finish_weight_update(self) -> None:
        """Process the remaining layers and apply the packing that vLLM omits.

        Raises:
            EngineError: a parameter received no weights, or its packing is unknown.
        """
        finalize_layerwise_reload(self.model, self.model_config)
        pack_experts(self.model)
        pack_heads(self.model)
        if self._left:
            raise EngineError(
                f"no weights received for {sorted(self._left)[:3]} of the rollout model"
            )

    def shutdown(self) -> None:
        """Leave the group."""
        self._group = None

    def _incoming(self, update: UpdateContents) -> Iterator[tuple[str, torch.Tensor]]:
        if update.tensors is not None:
            return _copy_tensors(update.tensors)
        if update.entries:
            return receive_packet(self._group, update.entries, self.device)
        return tensors_of(Path(update.path))

    def _hash_tensors(
        self, weights: Iterator[tuple[str, torch.Tensor]]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in weights:
            self.hasher.add(name, tensor)
            yield name, tensor


class TransferExtension:
    """Methods added to vLLM's worker."""

    weight_transfer_engine: TensorTransfer

    def received_digest(self) -> str:
        """Digest of the tensors of the last update, as received."""
        hasher = self.weight_transfer_engine.hasher
        digest = joint_digest(hasher.digests())
        hasher.close()
        return digest

    def folder_digest(self, folder: str) -> str:
        """Digest of the model directory that this worker was opened on."""
        files = sorted(Path(folder).glob("*.safetensors"))
        return weight_digest(entry for path in files for entry in tensors_of(path))


def _copy_tensors(
    weights: Iterator[tuple[str, torch.Tensor]],
) -> Iterator[tuple[str, torch.Tensor]]:
    """Copy tensors, because the trainer may reuse their memory before a layer is complete."""
    for name, tensor in weights:
        yield name, tensor.detach().clone()


def tensors_of(path: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Read a safetensors file tensor by tensor."""
    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118, it is not a dictionary
            yield name, file.get_tensor(name)


def pack_experts(model: torch.nn.Module) -> int:
    """Pack the updated experts of every layer as the CPU kernel reads them.

    Returns:
        Number of packed layers: 0 on a GPU or without experts.

    Raises:
        EngineError: the packing of a kernel is unknown.
    """
    if not current_platform.is_cpu():
        return 0
    layers: list[Any] = [one for one in model.modules() if isinstance(one, RoutedExperts)]
    for layer in layers:
        kernel = layer.quant_method.moe_kernel
        experts: Any = kernel.fused_experts if kernel is not None else None
        if not isinstance(experts, CPUUnquantizedExperts):
            raise EngineError(
                f"an update of {type(experts).__name__} may leave its weights unpacked; "
                "only the packing of CPUUnquantizedExperts of vLLM 0.30 is known"
            )
        if not vllm_version.startswith(PACKED_BY_HAND):
            raise EngineError(
                f"vLLM {vllm_version} may pack experts on an update itself; "
                f"packing twice corrupts them, and only {PACKED_BY_HAND}* was checked"
            )
        experts.process_weights_after_loading(layer)
    return len(layers)


def pack_heads(model: torch.nn.Module) -> int:
    """Pack the output heads of an updated model again; this can be repeated safely.

    Returns:
        Number of packed heads: 0 on a GPU.
    """
    if not current_platform.is_cpu():
        return 0
    heads: list[Any] = [one for one in model.modules() if isinstance(one, ParallelLMHead)]
    for head in heads:
        head.quant_method.process_weights_after_loading(head)
    return len(heads)


class WithoutMTP(DefaultModelLoader):
    """Reads model directories without their layers of multi-token prediction.

    Most of vLLM's models refuse tensors that they have no parameter for.
    """

    def __init__(self, load_config: LoadConfig) -> None:
        super().__init__(replace(load_config, load_format="safetensors"))

    def get_all_weights(
        self, model_config: ModelConfig, model: torch.nn.Module
    ) -> Generator[tuple[str, torch.Tensor]]:
        architecture = read_architecture(Path(model_config.model))
        for name, tensor in super().get_all_weights(model_config, model):
            if not architecture.is_mtp(name):
                yield name, tensor


def register() -> None:
    """Register backend, loader and the model with routers in fp32 with vLLM here; idempotent."""
    if BACKEND not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine(BACKEND, TensorTransfer)
        register_model_loader(WITHOUT_MTP)(WithoutMTP)
        ModelRegistry.register_model(
            ROUTER_ARCHITECTURE, f"tasks.engines.rollout_vllm.fp32_router:{ROUTER_ARCHITECTURE}"
        )


# A worker imports this module by the name of its extension, before it looks for the backend.
register()
