"""Routers use the routes they are given, in every layer, on every rank, forward and backward."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from megatron.core.transformer.moe.router import TopKRouter

from data_schemas.machine_settings import LayoutSettings
from data_schemas.rollouts import MISSING_ROUTE
from tasks.engines.chat import load_tokenizer
from tasks.engines.trainer_megatron.micro_batches import divide
from tasks.engines.trainer_megatron.router_replay import LayerReplay, ModelReplay, Routes
from tasks.errors import DataError, SettingsError
from tests.engines.trainer_megatron.batches import random_batch
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import configs, open_model, write_model
from tests.engines.trainer_megatron.trainings_of_world import replay

pytestmark = pytest.mark.engines

SMALL = {"micro_batch_tokens": 64}
LAYOUTS = {
    "one": (1, LayoutSettings(**SMALL)),
    "expert2_recompute": (2, LayoutSettings(expert=2, recompute=True, **SMALL)),
    "pipeline2_recompute": (2, LayoutSettings(pipeline=2, recompute=True, **SMALL)),
    "tensor2": (2, LayoutSettings(tensor=2, **SMALL)),
    "context2_tensor2": (4, LayoutSettings(context=2, tensor=2, **SMALL)),
    "everything": (4, LayoutSettings(tensor=2, pipeline=2, expert=2, recompute=True, **SMALL)),
}


class OneLayer(ModelReplay):
    """A model with one router, which is called by hand."""

    def __init__(self) -> None:
        super().__init__(torch.nn.Linear(1, 1))
        self.layers = [LayerReplay(self._running, 0)]

    def route(self, scores_ME):
        def top_k(scores, k, *_):
            return torch.topk(scores, k, dim=1)

        return self.layers[0].get_replay_topk(scores_ME, 2, default_compute_topk=top_k)[1].tolist()


def routes(*rows):
    return Routes(torch.tensor(rows)[:, None], torch.ones(len(rows)))


SCORES = torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
NATIVE = [[0, 1], [3, 2]]
FIRST, SECOND = [[1, 2], [0, 3]], [[2, 0], [1, 3]]


def test_a_row_without_a_route_keeps_the_native_choice():
    model = OneLayer()
    with model.forward(routes([2, 3], [MISSING_ROUTE, MISSING_ROUTE]), training=True):
        assert [[2, 3], NATIVE[1]] == model.route(SCORES)
    model.finish()


def test_probabilities_come_from_the_live_scores_of_the_replayed_experts():
    model = OneLayer()
    with model.forward(routes(*FIRST), training=True):
        values, _ = model.layers[0].get_replay_topk(
            SCORES, 2, default_compute_topk=lambda s, k, *_: torch.topk(s, k, dim=1)
        )

    assert [[3.0, 2.0], [1.0, 4.0]] == values.tolist()


@pytest.mark.parametrize("of_routes", ["cuda", "cpu"])
def test_on_a_gpu_nothing_of_a_replayed_choice_is_computed_on_the_cpu(of_routes):
    model = OneLayer()
    mixed = pytest.raises(RuntimeError, match="at least two devices, cpu and cuda:0")
    with FakeTensorMode():  # CUDA's refusals, without its kernels and without a backward pass
        scores_ME = torch.empty(9, 8, device="cuda")
        experts_MLK = torch.empty(9, 1, 2, dtype=torch.int64, device=of_routes)
        with (
            model.forward(Routes(experts_MLK, torch.empty(9)), training=True),
            mixed if of_routes == "cpu" else nullcontext(),
        ):
            found = model.layers[0].get_replay_topk(
                scores_ME, 2, default_compute_topk=lambda s, k, *_: torch.topk(s, k, dim=1)
            )
            assert ["cuda", "cuda"] == [one.device.type for one in found]


def test_what_is_computed_again_uses_the_routes_of_its_own_forward_pass():
    model = OneLayer()
    for one in (FIRST, SECOND):  # as in 1F1B: the second comes before the first goes back
        with torch.no_grad(), model.forward(routes(*one), training=True):
            assert one == model.route(SCORES)

    assert FIRST == model.route(SCORES)
    assert SECOND == model.route(SCORES)
    model.finish()


def test_without_checkpoints_nothing_waits_for_a_second_time():
    model = OneLayer()
    for one in (FIRST, SECOND):
        with model.forward(routes(*one), training=True):
            model.route(SCORES)

    model.finish()
    assert NATIVE == model.route(SCORES)


def test_scoring_leaves_nothing_behind():
    model = OneLayer()
    with torch.no_grad(), model.forward(routes(*FIRST), training=False):
        model.route(SCORES)

    model.finish()


def test_a_step_that_leaves_routes_over_is_caught():
    model = OneLayer()
    with torch.no_grad(), model.forward(routes(*FIRST), training=True):
        model.route(SCORES)

    with pytest.raises(AssertionError, match="left over"):
        model.finish()
    model.finish()  # and does not spoil the next one


def test_the_native_choice_is_recorded_also_where_another_is_replayed():
    model = OneLayer()
    with model.forward(routes(*FIRST), training=False, record=True):
        assert FIRST == model.route(SCORES)

    assert NATIVE == model.recorded()[:, 0].tolist()


def test_routes_of_another_number_of_rows_are_refused():
    model = OneLayer()

    with (
        pytest.raises(DataError, match="but its router chooses"),
        model.forward(routes([0, 1]), training=True),
    ):
        model.route(SCORES)


def test_a_fused_router_is_refused_because_it_would_not_replay():
    router = TopKRouter.__new__(TopKRouter)
    torch.nn.Module.__init__(router)
    router.config = SimpleNamespace(moe_router_fusion=True)

    with pytest.raises(SettingsError, match="moe_router_fusion off"):
        ModelReplay(torch.nn.Sequential(router))


@pytest.fixture(scope="module")
def two_models(tiny_moe, tmp_path_factory):
    """A model, and the same with its weights far from where they were."""
    one, other = (tmp_path_factory.mktemp(name) for name in ("one", "other"))
    model = open_model(write_model(configs()["moe_tied"], tiny_moe, one))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * parameter.std() * torch.randn_like(parameter))
    model.save_pretrained(other)
    load_tokenizer(one).save_pretrained(other)
    return one, other


@pytest.mark.parametrize("layout", LAYOUTS)
def test_experts_used_are_those_recorded_however_far_the_weights_have_moved(two_models, layout):
    size, settings = LAYOUTS[layout]
    batch = random_batch()
    ranks = settings.expert if layout == "expert2_recompute" else 1
    micros = divide(batch.lengths_N.tolist(), num_ranks=ranks, max_tokens=64)
    calls = len(micros[0]) * (2 if settings.recompute else 1)

    for found in run_world(replay, size, *two_models, settings, batch):
        recorded = found.recorded.sort(dim=3).values
        moved = (recorded != found.native.sort(dim=3).values).any(dim=3)

        assert torch.equal(recorded, found.used.sort(dim=3).values)
        assert 0.2 < float(moved.float().mean())
        assert calls > 1
        assert {calls} == set(found.calls)
        assert 0 == found.strange
