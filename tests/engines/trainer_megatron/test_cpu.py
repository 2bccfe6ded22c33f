# pyright: reportMissingImports=false
"""Megatron runs without CUDA, and nothing else in the process notices."""

import importlib
from types import FunctionType, ModuleType

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")

from tasks.engines.trainer_megatron import without_gpu
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import expected_logits

pytestmark = [
    pytest.mark.engines,
    pytest.mark.skipif(torch.cuda.is_available(), reason="nothing is respelt where CUDA is"),
]


def members() -> dict[str, object]:
    """Everything torch offers, and how its functions are compiled."""
    found: dict[str, object] = {}
    for owner in (torch, torch.cuda, torch.cpu, torch.Tensor, torch.nn.Module, torch.nn.functional):
        for name, member in vars(owner).items():
            if isinstance(member, ModuleType):
                continue
            found[f"{owner.__name__}.{name}"] = member
            if isinstance(member, FunctionType):
                found[f"{owner.__name__}.{name}()"] = member.__code__
    return found


def changed_members() -> list[str]:
    """What installing twice changes in torch, in a process that never did."""
    import megatron.core.optimizer
    import megatron.core.pipeline_parallel  # noqa: F401 - what they import belongs to before

    before = members()
    assert [True, True] == [without_gpu.install(), without_gpu.install()]
    after = members()
    names = before.keys() | after.keys()
    return [name for name in names if before.get(name) is not after.get(name)]


def places_left() -> list[str]:
    """Functions of the modules used here that still ask for CUDA."""
    without_gpu.install()
    left = []
    for area in (
        "tensor_parallel.layers",
        "tensor_parallel.mappings",
        "optimizer.optimizer",
        "optimizer.clip_grads",
        "optimizer.distrib_optimizer",
        "transformer.moe.router",
        "distributed.param_and_grad_buffer",
        "pipeline_parallel.schedules",
        "pipeline_parallel.p2p_communication",
        "models.gpt.gpt_model",
    ):
        name = f"megatron.core.{area}"
        for member in vars(importlib.import_module(name)).values():
            owned = vars(member).values() if isinstance(member, type) else [member]
            for one in owned:
                function = getattr(one, "__func__", one)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    code = function.__code__
                    if "cuda" in code.co_names or "cuda" in code.co_consts:
                        left.append(f"{name}.{function.__qualname__}")
    return left


def behaviour(folder) -> tuple[torch.Tensor, str, str, str, str]:
    """What the process-wide patch of others was seen to break."""
    without_gpu.install()
    tensor = torch.zeros(1)
    with torch.device("meta"):
        meta = torch.zeros(1).device.type
    asked_for_cuda = "runs"
    try:
        torch.zeros(1, device="cuda")
    except (AssertionError, RuntimeError):
        asked_for_cuda = "refused"
    return expected_logits(folder), tensor.type(), tensor.device.type, meta, asked_for_cuda


def test_nothing_in_torch_is_touched():
    assert [[]] == run_world(changed_members, 1)


def test_nothing_used_here_asks_for_cuda_any_more():
    assert [[]] == run_world(places_left, 1)


def test_transformers_and_devices_behave_as_before(small_models):
    logits_MV, kind, device, meta, asked_for_cuda = run_world(behaviour, 1, small_models["moe"])[0]

    assert torch.equal(expected_logits(small_models["moe"]), logits_MV)
    assert ("torch.FloatTensor", "cpu", "meta", "refused") == (kind, device, meta, asked_for_cuda)


def test_another_version_is_refused_by_name():
    with pytest.raises(SettingsError, match=r"0\.17\.0 .* 0\.16\.1"):
        without_gpu.check_version("0.17.0")


def test_functions_come_back_respelt_and_otherwise_the_same():
    def function(scale, *, device="elsewhere"):
        kinds = ["torch.cuda.HalfTensor", "torch.cuda.BFloat16Tensor"]
        return [scale * torch.ones(1, device="cuda").cuda().item() for _ in kinds], device

    function.__code__ = without_gpu._respelt(function.__code__)

    assert ([3.0, 3.0], "elsewhere") == function(3.0)
