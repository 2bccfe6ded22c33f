"""A trainer that is divided over ranks does what the embedded trainer does in one process."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("megatron.core.models.gpt.gpt_layer_specs")
pytest.importorskip("megatron.core.optimizer")

from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.partial_batch import Share
from tasks.engines.protocols import PACKED_ROWS, PADDING_ROWS
from tasks.errors import SettingsError
from tests.engines.trainer_megatron.batches import beginnings, grouped_batch, random_batch
from tests.engines.trainer_megatron.gloo_world import run_world
from tests.engines.trainer_megatron.small_models import configs, open_model, write_model
from tests.engines.trainer_megatron.trainings_of_world import (
    DECAY,
    FIRST,
    Buffers,
    buffers,
    leak,
    learn,
    micro_batches_in_memory,
    report,
    router_rows,
    score_together_and_alone,
    shares,
    train,
    train_in_team,
    updates,
    weighted,
    without_rows,
)
from tests.engines.trainer_megatron.world_of_trainers import RemoteTrainer, trainer_world

pytestmark = pytest.mark.engines

SMALL = {"micro_batch_tokens": 64}  # several micro-batches per rank
LAYOUTS = {
    "one": (1, LayoutSettings(**SMALL)),
    "one_recompute": (1, LayoutSettings(recompute=True, **SMALL)),
    "data2": (2, LayoutSettings(**SMALL)),
    "expert2": (2, LayoutSettings(expert=2, **SMALL)),
    "pipeline2": (2, LayoutSettings(pipeline=2, **SMALL)),
    "pipeline2_recompute": (2, LayoutSettings(pipeline=2, recompute=True, **SMALL)),
    "tensor2": (2, LayoutSettings(tensor=2, **SMALL)),
    "tensor2_expert2": (2, LayoutSettings(tensor=2, expert=2, **SMALL)),
    "tensor2_data2": (4, LayoutSettings(tensor=2, **SMALL)),
    "context2": (2, LayoutSettings(context=2, **SMALL)),
    "context2_pipeline2_recompute": (
        4,
        LayoutSettings(context=2, pipeline=2, expert=2, recompute=True, **SMALL),
    ),
    "context2_tensor2": (4, LayoutSettings(context=2, tensor=2, expert=4, **SMALL)),
    "everything": (4, LayoutSettings(tensor=2, pipeline=2, expert=2, recompute=True, **SMALL)),
}


@pytest.fixture(scope="module")
def models(tiny_moe, tmp_path_factory):
    return {
        name: write_model(config, tiny_moe, tmp_path_factory.mktemp(name))
        for name, config in configs().items()
    }


@pytest.fixture(scope="module")
def batch():
    """Answers that share prompts: the layouts without context parallelism compute these once."""
    return grouped_batch()


def embedded(folder, batch):
    graded = TorchTrainer(folder)
    trainer = TorchTrainer(folder, weight_decay=DECAY)
    return report(graded, graded._optimizer.param_groups, trainer, batch)


@pytest.fixture(scope="module")
def expected(models, batch):
    return embedded(models["moe_tied"], batch)


def assert_equal(expected, found, rows=None):
    """Equal, padding aside; a layout without shared prompts has other rows."""
    for one, other in ((expected.replayed, found.replayed), (expected.native, found.native)):
        assert torch.allclose(one.logprobs_NT, other.logprobs_NT, rtol=0, atol=1e-5)
        assert torch.allclose(one.entropy_NT, other.entropy_NT, rtol=0, atol=1e-5)
        assert torch.equal(one.experts_NTLK.sort(3).values, other.experts_NTLK.sort(3).values)
    assert expected.gradient.keys() == found.gradient.keys()
    for name, slope in expected.gradient.items():
        largest = float(slope.abs().max())
        assert largest > 1e-5, name
        assert torch.allclose(slope, found.gradient[name], rtol=0, atol=2e-3 * largest), name
    for one, other in zip(expected.updates, found.updates, strict=True):
        assert pytest.approx(without_rows(one), rel=1e-5) == without_rows(other)
        assert (rows or one[PACKED_ROWS]) == other[PACKED_ROWS] - other[PADDING_ROWS]
    for name, tensor in expected.weights.items():
        assert torch.allclose(tensor, found.weights[name], rtol=0, atol=1e-4), name


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scores_gradients_and_updates_equal_the_embedded_trainers(models, batch, expected, layout):
    size, settings = LAYOUTS[layout]
    rows = float(batch.lengths_N.sum()) if settings.context > 1 else None

    for found in run_world(train, size, models["moe_tied"], settings, batch):
        assert_equal(expected, found, rows)


TEAMS = {
    "data2_expert2": (2, LayoutSettings(expert=2, **SMALL)),
    "pipeline2": (2, LayoutSettings(pipeline=2, **SMALL)),
    "data2_pipeline2_expert2_recompute": (
        4,
        LayoutSettings(pipeline=2, expert=2, recompute=True, **SMALL),
    ),
}


@pytest.mark.parametrize("layout", TEAMS)
def test_ranks_that_are_sent_their_shares_alone_do_the_same(models, batch, expected, layout):
    size, settings = TEAMS[layout]
    single = batch.select(FIRST)
    alone = updates(TorchTrainer(models["moe_tied"], weight_decay=DECAY), single, 1)

    told, *others = run_world(train_in_team, size, models["moe_tied"], settings, batch)
    found, found_alone = told
    assert others == [None] * (size - 1)
    assert_equal(expected, found)
    assert list(map(without_rows, found_alone)) == [
        pytest.approx(without_rows(one), rel=1e-5) for one in alone
    ]


def test_a_team_computes_bit_for_bit_what_ranks_with_the_whole_batch_do(models, batch):
    size, settings = TEAMS["data2_expert2"]
    whole = run_world(train, size, models["moe_tied"], settings, batch)[0]
    (found, _), _ = run_world(train_in_team, size, models["moe_tied"], settings, batch)

    assert whole.updates == found.updates
    for one, other in ((whole.replayed, found.replayed), (whole.native, found.native)):
        assert torch.equal(one.logprobs_NT, other.logprobs_NT)
        assert torch.equal(one.experts_NTLK, other.experts_NTLK)
    for name, tensor in whole.weights.items():
        assert torch.equal(tensor, found.weights[name]), name


def test_the_shares_of_all_ranks_are_every_route_once(models, batch):
    size, settings = TEAMS["data2_pipeline2_expert2_recompute"]
    found = run_world(shares, size, models["moe_tied"], settings, batch)
    held = [(sum(one.buckets, ()), one.layers) for one in found]
    cells = [(row, layer) for rows, layers in held for row in rows for layer in layers]
    count = len(batch.lengths_N)

    assert sorted(cells) == [(row, layer) for row in range(count) for layer in range(2)]
    assert all(len(rows) < count and len(layers) == 1 for rows, layers in held)


def test_of_no_sequences_every_rank_has_a_share(models, batch):
    size, settings = TEAMS["pipeline2"]
    nothing = batch.select(torch.empty(0, dtype=torch.int64))

    found = run_world(shares, size, models["moe_tied"], settings, nothing)
    assert [Share(((),), (0,)), Share(((),), (1,))] == found


@pytest.mark.parametrize("layout", [LayoutSettings(), LayoutSettings(pipeline=2, recompute=True)])
@pytest.mark.parametrize("with_routes", [True, False], ids=["replayed", "native"])
def test_routers_see_a_prompt_once(models, batch, layout, with_routes):
    batch = batch if with_routes else replace(batch, experts_NTLK=None)

    for found in run_world(router_rows, layout.pipeline, models["moe_tied"], layout, batch):
        assert {beginnings(batch)} == found
    assert beginnings(batch) < 0.75 * int(batch.lengths_N.sum())


@pytest.mark.parametrize(("pipeline", "most"), [(1, 1), (2, 2)])
def test_micro_batches_are_cut_when_it_is_their_turn(models, pipeline, most):
    layout, long = LayoutSettings(pipeline=pipeline, **SMALL), random_batch(20)

    *_, last = run_world(micro_batches_in_memory, pipeline, models["moe_tied"], layout, long)
    count, *in_memory = last
    assert count == len(in_memory) >= 5
    assert max(in_memory) <= most


@pytest.mark.parametrize("with_routes", [True, False], ids=["replayed", "native"])
def test_an_answer_has_the_scores_that_it_has_alone(models, batch, with_routes):
    batch = batch if with_routes else replace(batch, experts_NTLK=None)
    together, alone = run_world(
        score_together_and_alone, 1, models["moe_tied"], LayoutSettings(), batch
    )[0]

    assert float(together.logprobs_NT.abs().max()) > 1.0
    for row, one in enumerate(alone):
        width = one.logprobs_NT.shape[1]
        for name in ("logprobs_NT", "entropy_NT"):
            expected, found = getattr(one, name)[0], getattr(together, name)[row, :width]
            assert torch.allclose(expected, found, rtol=0, atol=1e-5)
        found = together.experts_NTLK[row, :width].sort(2).values
        assert torch.equal(one.experts_NTLK[0].sort(2).values, found)


@pytest.mark.parametrize("name", ["moe_not_renormalised", "moe_odd_vocabulary"])
def test_so_do_those_of_other_moe_models_on_two_tensor_ranks(models, batch, name):
    settings = LayoutSettings(tensor=2, **SMALL)

    for found in run_world(train, 2, models[name], settings, batch):
        assert_equal(embedded(models[name], batch), found)


@pytest.mark.parametrize("name", ["dense", "qwen2"])
def test_dense_models_train_resume_and_say_that_they_have_no_router(models, batch, tmp_path, name):
    plain = replace(batch, experts_NTLK=None)
    settings = {"temperature": 1.0, "learning_rate": 1e-3}
    with torch.no_grad():
        logits_NTV = open_model(models[name])(batch.tokens_NT).logits  # padding stands behind
    steps_NTV = logits_NTV.log_softmax(dim=2)[:, :-1]
    expected_NT = steps_NTV.gather(2, batch.tokens_NT[:, 1:, None])[:, :, 0]
    with trainer_world(2) as ranks:
        layout = LayoutSettings(tensor=2, **SMALL)
        trainer, resumed = (RemoteTrainer(ranks, models[name], layout) for _ in range(2))
        found_NT = trainer.score(plain, temperature=1.0).logprobs_NT[:, 1:]
        response_NT = batch.response_NT[:, 1:]
        assert torch.allclose(expected_NT[response_NT], found_NT[response_NT], atol=1e-5)
        first = trainer.update(plain, weighted, **settings)
        trainer.save(tmp_path)
        resumed.restore(tmp_path)
        second = trainer.update(plain, weighted, **settings)
        assert second["loss"] < first["loss"]
        assert second == resumed.update(plain, weighted, **settings)
        with pytest.raises(SettingsError, match="no MoE router"):
            trainer.score(batch, temperature=1.0)
        with pytest.raises(SettingsError, match="no MoE router"):
            trainer.score(plain, temperature=1.0, record_routes=True)


def test_a_second_model_in_the_process_sees_nothing_of_a_replay(models, batch):
    layout = LayoutSettings(recompute=True, **SMALL)
    (same,) = run_world(leak, 1, models["moe_tied"], layout, batch)

    assert len(same) > 4
    assert all(same)


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.BF16])
def test_gradient_buffers_have_memory_during_an_update_only(models, batch, precision):
    layout = LayoutSettings(precision=precision, **SMALL)
    (found,) = run_world(buffers, 1, models["moe_tied"], layout, batch)
    size = found.allocated

    assert size > 0
    assert Buffers(0, {size}, after=0, after_an_error=0, allocated=size) == found


@pytest.mark.parametrize("layout", [LayoutSettings(), LayoutSettings(pipeline=2, recompute=True)])
def test_training_in_bf16_learns(models, batch, layout):
    layout = layout.model_copy(update={"precision": Precision.BF16, **SMALL})
    for losses in run_world(learn, layout.pipeline, models["moe_tied"], layout, batch):
        assert losses[-1] < 0.9 * losses[0]
        assert losses == sorted(losses, reverse=True)
