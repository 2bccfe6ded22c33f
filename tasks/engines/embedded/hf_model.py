"""Open a Hugging Face model directory for the embedded engines."""

from pathlib import Path
from threading import Lock
from typing import cast

import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.utils import logging as transformers_logging

from tasks.algorithms.expert_products import Projection, through_experts
from tasks.engines.driver import device_here
from tasks.engines.embedded.router_replay import named_routers
from tasks.engines.expert_names import names_of
from tasks.errors import SettingsError
from tasks.models.architectures import read_architecture, register_architecture
from tasks.models.weights import Weights, check_tensors

SMALL_MODEL = 2**23
"""Weights: of 0.8 M and 135 M, which were measured, one is below and one far above."""

# Other projections for the experts of a transformers model than its own.


def are_experts(module: nn.Module) -> bool:
    """Return whether a module is all experts of a layer: two stacked tensors, in every family."""
    parameters = dict(module.named_parameters(recurse=False))
    return {"gate_up_proj", "down_proj"} <= parameters.keys() and parameters["down_proj"].ndim == 3


def use_projections(experts: nn.Module, gate_up: Projection, down: Projection) -> None:
    """Compute a layer's experts with other projections than its own from now on."""
    num_experts = len(experts.get_parameter("down_proj"))

    def forward(
        hidden_MH: torch.Tensor, experts_MK: torch.Tensor, gates_MK: torch.Tensor
    ) -> torch.Tensor:
        return through_experts(
            hidden_MH,
            gates_MK,
            experts_MK,
            num_experts,
            gate_up=gate_up,
            down=down,
            skips=bool(getattr(experts, "skips", False)),
        )

    experts.forward = forward


_LOADING = Lock()
"""transformers replaces `tie_weights` of all models while it loads one: of two threads, the second
would restore the replacement, and every later model would have an output layer of random values."""


def load_model(folder: Path, *, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load a causal LM, a mixture of experts with grouped expert matmuls.

    `grouped_mm` runs all experts of a layer in one call; on CPU the default loop over
    experts was 10 to 40 times slower in training.

    Raises:
        SettingsError: the folder is not a loadable model.
    """
    # Progress bars over shards would overwrite the stage's progress bar.
    transformers_logging.disable_progress_bar()
    register_architecture(folder)
    try:
        experts = {}
        if read_architecture(folder).routing:
            experts = {"experts_implementation": "grouped_mm"}
        with _LOADING:
            check_tensors(folder)  # transformers would draw random values for a missing one
            model = AutoModelForCausalLM.from_pretrained(
                folder, dtype=dtype, local_files_only=True, **experts
            )
    except (OSError, ValueError, KeyError) as error:
        raise SettingsError(
            f"{folder} is not a loadable Hugging Face model: {str(error).rstrip('.')}. "
            "Give a folder with config.json, *.safetensors and a tokenizer."
        ) from error
    return model.eval()


def load_on_device(folder: Path, *, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load a model on this process's GPU, if there is one."""
    device = device_here()
    model = load_model(folder, dtype=dtype)
    torch.nn.Module.to(model, device)
    return model


def weights_in_memory(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """Return the parameters of a model, and the buffers that files hold, as they are in memory."""
    saved = model.state_dict().keys()
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in saved}
    return {**dict(model.named_parameters()), **buffers}


def is_small(model: PreTrainedModel) -> bool:
    """Whether starting its kernels takes a large part of the time of a small pass."""
    return model.num_parameters() < SMALL_MODEL


def weight_bytes(model: PreTrainedModel) -> int:
    """Count the bytes of a model's parameters."""
    return sum(parameter.nbytes for parameter in model.parameters())


def widen_routers(model: PreTrainedModel, folder: Path) -> None:
    """Give the routers of a model in a lower precision their weights in fp32, from its folder.

    Raises:
        SettingsError: the model is dense.
    """
    routers = named_routers(model)
    if not routers:
        raise SettingsError("engines.fp32_router is set, but a dense model has no router")
    names = names_of(model)
    with Weights(folder) as weights:
        for name, router in routers.items():
            whole = weights.read(names.in_file(f"{name}.weight"))
            whole = whole.to(cast("torch.Tensor", router.weight).device, torch.float32)
            router.weight = torch.nn.Parameter(whole)
