"""A micro-batch on a GPU, without its kernels: CUDA's refusals, and what the host waits for."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.trainer_megatron.forward_backward import ForwardBackward
from tasks.engines.trainer_megatron.micro_batches import MicroBatch, cut
from tasks.engines.trainer_megatron.router_replay import LayerReplay, ModelReplay
from tests.engines.trainer_megatron.batches import grouped_batch, random_batch, shared_micro
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import configs, write_model
from tests.engines.trainer_megatron.waits_of_world import watch

pytestmark = pytest.mark.engines

TOKENS, HIDDEN = 300, 6
GPU = torch.device("cuda")


class TwoLayers(ModelReplay):
    """Routers of two layers, which the model below calls."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(1, 1))
        self.layers = [LayerReplay(self._running, layer) for layer in range(2)]


@dataclass
class OnTheCPU:
    """A micro-batch whose masks have chosen their rows: on the CPU, where a batch lies."""

    tokens_M: torch.Tensor
    parts: tuple[int, ...]
    copies_M: torch.Tensor
    rows: tuple[torch.Tensor, torch.Tensor] | None
    experts_MLK: torch.Tensor

    @classmethod
    def of(cls, micro: MicroBatch) -> "OnTheCPU":
        rows, experts_MLK = micro.attention_rows(), micro.routes_MLK()
        return cls(micro.tokens_M, micro.parts, micro.copies_M, rows, experts_MLK)

    def attention_rows(self):
        return self.rows

    def routes_MLK(self):
        return self.experts_MLK


class Passes(ForwardBackward):
    """One rank without a model of its own."""

    def __init__(self, head_VH: torch.Tensor) -> None:
        self._gpt, self._replay = SimpleNamespace(post_process=True), TwoLayers()
        self._ranks = SimpleNamespace(device=GPU, context=1, tensor=1, tensor_rank=0)
        self.places_L, self.head_VH = [0, 1], head_VH

    def model(self, tokens, *, packed_seq_params, **_):
        """Embedding, the core of attention's rows and back, two routers."""
        hidden_MH = nn.functional.embedding(tokens[0], self.head_VH)
        if packed_seq_params.packed_W is not None:
            hidden_MH = hidden_MH[packed_seq_params.packed_W][packed_seq_params.attention_M]
        assert GPU.type == packed_seq_params.cu_seqlens_q.device.type
        for layer in self._replay.layers:
            chosen = layer.get_replay_topk(
                hidden_MH @ self.head_VH[:8].T,
                2,
                default_compute_topk=lambda s, k, *_: torch.topk(s, k, dim=1),
            )
            assert [GPU.type] * 2 == [one.device.type for one in chosen]
        return hidden_MH[:, None]


@pytest.mark.parametrize(
    "make", [lambda batch: cut(batch, [1, 4, 0]), shared_micro], ids=["packed", "prompts shared"]
)
def test_on_a_gpu_rows_routes_and_positions_of_a_micro_batch_lie_there(make, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda one: one)  # not of a fake tensor
    micro = OnTheCPU.of(make(grouped_batch()))
    with FakeTensorMode(allow_non_fake_inputs=True):
        passes = Passes(torch.empty(TOKENS, HIDDEN, device=GPU))
        hidden = passes._forward(passes.model, micro, training=True, record=False)

    assert (GPU.type, (len(micro.tokens_M), 1, HIDDEN)) == (hidden.device.type, hidden.shape)


@pytest.mark.parametrize("num_sequences", [5, 20])
def test_the_host_waits_once_per_micro_batch_of_an_update_and_once_per_pass(
    num_sequences, tiny_moe, tmp_path
):
    folder = write_model(configs()["moe"], tiny_moe, tmp_path / "model")
    layout, batch = LayoutSettings(micro_batch_tokens=64), random_batch(num_sequences)
    (on_cpu,), (on_device,) = (
        run_world(watch, 1, folder, layout, batch, on_device) for on_device in (False, True)
    )

    routers = "auxiliary.RouterAuxiliaryLoss"
    assert {
        f"{routers}.count_loads": 1,  # of the pass that counts, whatever its layers
        f"{routers}.metrics.<locals>.<dictcomp>": 2,  # of the update: two numbers
        "forward_backward.ForwardBackward.train.<locals>.finish": on_device.num_micros,
    } == on_device.update_waits
    assert {"forward_backward.ForwardBackward.score": 1} == on_device.score_waits
    assert {} == on_cpu.update_waits | on_cpu.score_waits
    # What was computed there is what a CPU computes, but for its fused norms and attention.
    assert on_cpu.metrics == pytest.approx(on_device.metrics, rel=1e-5)
    assert torch.allclose(on_cpu.scores.logprobs_NT, on_device.scores.logprobs_NT, atol=1e-5)
    for name, gradient in on_cpu.gradients.items():
        assert torch.allclose(gradient, on_device.gradients[name], atol=1e-5), name
