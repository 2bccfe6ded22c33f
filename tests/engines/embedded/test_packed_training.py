"""Packed rows against padded ones: the same scores, losses and gradients."""

from dataclasses import replace

import pytest
import torch

from data_schemas.rl_settings import LossSettings
from tasks.algorithms.losses import table
from tasks.algorithms.losses.surrogate import TokenPlan, clipped_objective
from tasks.algorithms.router_losses import balance_loss, expert_loads, z_loss
from tasks.algorithms.router_shift import OLD_SCORES, SHIFT
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.router_losses import RouterTerms
from tasks.engines.embedded.router_replay import recording, replaying, routers, routing_of
from tasks.engines.embedded.trainer import GRAD_CLIP, TorchTrainer, divide
from tasks.engines.protocols import PACKED_ROWS, PADDING_ROWS, TokenBatch
from tasks.errors import SettingsError

SETTINGS = LossSettings()


def group_batch(*, with_routes: bool) -> TokenBatch:
    """Three prompts of several responses each, one response twice, in no order."""
    generator = torch.Generator().manual_seed(5)

    def draw(count):
        return torch.randint(1, 250, (count,), generator=generator).tolist()

    prompts = [draw(9), draw(4), draw(12)]
    rows, starts = [], []
    for prompt, lengths in zip(prompts, ([3, 8, 8, 1], [20, 2], [6, 11, 5]), strict=True):
        for length in lengths:
            rows.append(prompt + draw(length))
            starts.append(len(prompt))
    rows.append(list(rows[1]))
    starts.append(starts[1])
    order = torch.randperm(len(rows), generator=generator).tolist()
    lengths_N = torch.tensor([len(rows[i]) for i in order])
    width = int(lengths_N.max())
    tokens_NT = torch.tensor([rows[i] + [0] * (width - len(rows[i])) for i in order])
    place_T = torch.arange(width)
    response_NT = (place_T >= torch.tensor([starts[i] for i in order])[:, None]) & (
        place_T < lengths_N[:, None]
    )
    experts_NTLK = None
    if with_routes:
        # Routes are a function of the token, as an engine's would be of the beginning.
        first = (tokens_NT[:, :, None] + torch.arange(2)) % 8
        experts_NTLK = torch.stack([first, (first + 1 + tokens_NT[:, :, None] % 7) % 8], dim=3)
        experts_NTLK[place_T >= (lengths_N - 1)[:, None]] = -1
    return TokenBatch(tokens_NT, lengths_N, response_NT, experts_NTLK, {})


def padded_scores(model, batch):
    """Scores [R], hidden rows and logits by a padded pass, as any Hugging Face user would."""
    real_NT = torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]
    hidden = model.get_decoder()(
        input_ids=batch.tokens_NT, attention_mask=real_NT.long(), use_cache=False
    ).last_hidden_state
    sequence, position = batch.response_NT.nonzero(as_tuple=True)
    logits = hidden[sequence, position - 1] @ model.get_parameter("lm_head.weight").T / 0.9
    reference = torch.distributions.Categorical(logits=logits)
    return reference.log_prob(batch.tokens_NT[sequence, position]), reference.entropy()


def replayed_scores(model, batch):
    if batch.experts_NTLK is None:
        return padded_scores(model, batch)
    with replaying(model, batch.experts_NTLK.flatten(0, 1), routing_of(model)):
        return padded_scores(model, batch)


def trained_batch(batch, old_NT, entropy_NT):
    plan = table.plan(SETTINGS, entropy_NT, batch.response_NT, vocabulary=288)
    noise = torch.randn(old_NT.shape, generator=torch.Generator().manual_seed(1)) * 0.01
    columns = {
        "old_logprobs": old_NT + noise * batch.response_NT,
        "advantages": torch.linspace(-1, 1, len(old_NT))[:, None] * batch.response_NT,
    }
    return replace(batch, columns=columns | plan.columns())


def policy_loss(logprobs_NT, batch):
    column = batch.columns
    plan = TokenPlan(column["groups"], column["weights"], column["clip_low"], column["clip_high"])
    objective_N, _ = clipped_objective(
        logprobs_NT,
        column["old_logprobs"],
        column["advantages"],
        plan,
        ratio_mode=table.find(SETTINGS).ratio_form,
    )
    return -objective_N.sum() / 10, {"tokens": float(batch.response_NT.sum())}


@pytest.fixture(params=[8192, 50], ids=["one micro-batch", "several"])
def size(request) -> int:
    """Packed rows of a forward pass."""
    return request.param


@pytest.mark.parametrize("with_routes", [False, True], ids=["native", "replayed"])
def test_packed_scores_are_the_padded_ones(tiny_moe, size, with_routes):
    batch = group_batch(with_routes=with_routes)
    scores = TorchTrainer(tiny_moe, micro_batch_tokens=size).score(batch, temperature=0.9)

    with torch.no_grad():
        logprobs, entropy = replayed_scores(load_model(tiny_moe), batch)

    assert torch.allclose(logprobs, scores.logprobs_NT[batch.response_NT], atol=1e-5)
    assert torch.allclose(entropy, scores.entropy_NT[batch.response_NT], atol=1e-5)
    assert not scores.logprobs_NT[~batch.response_NT].any()


@pytest.mark.parametrize("with_routes", [False, True], ids=["native", "replayed"])
def test_packed_loss_and_gradients_are_the_padded_ones(tiny_moe, size, with_routes):
    trainer, model = TorchTrainer(tiny_moe, micro_batch_tokens=size), load_model(tiny_moe)
    batch = group_batch(with_routes=with_routes)
    old = trainer.score(batch, temperature=0.9)
    batch = trained_batch(batch, old.logprobs_NT, old.entropy_NT)

    found = trainer.update(batch, policy_loss, temperature=0.9, learning_rate=0.0)
    logprobs_R, _ = replayed_scores(model, batch)
    at = batch.response_NT.nonzero(as_tuple=True)
    loss, metrics = policy_loss(torch.zeros(batch.tokens_NT.shape).index_put(at, logprobs_R), batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)

    assert loss.item() == pytest.approx(found["loss"], abs=1e-6)
    assert metrics["tokens"] == found["tokens"]
    for (name, one), (_, other) in zip(
        model.named_parameters(), trainer._model.named_parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, atol=2e-5), name


def test_common_beginnings_are_computed_once(tiny_moe):
    batch = group_batch(with_routes=True)
    (part,) = divide(batch, 8192, 0, 1)
    micro = part.packed()
    beginnings = {
        tuple(row[: t + 1])
        for row, length in zip(batch.tokens_NT.tolist(), batch.lengths_N.tolist(), strict=True)
        for t in range(length)
    }

    # A last token has no recorded route; only a longer twin of it would tell.
    assert len(beginnings) == len(micro.packing.cells_M)
    assert int(batch.lengths_N.sum()) == int(micro.packing.copies_M.sum())
    assert len(beginnings) < 0.7 * int(batch.lengths_N.sum())


def test_recorded_routes_are_those_of_the_padded_pass(tiny_moe):
    batch = group_batch(with_routes=False)
    real_NT = torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]
    model = load_model(tiny_moe)
    with torch.inference_mode(), recording(model) as record:
        padded_scores(model, batch)
        native = record.take().unflatten(0, batch.tokens_NT.shape)

    found = TorchTrainer(tiny_moe).score(batch, temperature=1.0, record_routes=True).experts_NTLK

    assert torch.equal(native[real_NT].sort(dim=2).values, found[real_NT].sort(dim=2).values)
    assert (found[~real_NT] == -1).all()


def test_no_sequences_give_empty_scores(tiny_moe):
    batch = group_batch(with_routes=False).select(torch.zeros(0, dtype=torch.int64))

    scores = TorchTrainer(tiny_moe).score(batch, temperature=1.0, record_routes=True)

    assert (0, 0) == tuple(scores.logprobs_NT.shape)


@pytest.mark.parametrize("with_routes", [False, True], ids=["native", "replayed"])
def test_auxiliary_losses_are_their_formulas_on_native_logits(tiny_moe, with_routes):
    trainer, model = TorchTrainer(tiny_moe), load_model(tiny_moe)
    batch = group_batch(with_routes=with_routes)
    auxiliary = Auxiliary(entropy=0.3, balance=0.05, router_z=0.01)
    real_M = (torch.arange(batch.tokens_NT.shape[1]) < batch.lengths_N[:, None]).flatten()
    num_tokens, ones = int(batch.lengths_N.sum()), torch.ones(int(real_M.sum()))

    found = trainer.update(
        batch, zero_loss, temperature=0.9, learning_rate=0.0, auxiliary=auxiliary
    )
    logits, routing = [], routing_of(model)
    handles = [
        router.register_forward_hook(lambda _m, _a, output: logits.append(output[0][real_M]))
        for router in routers(model)
    ]
    _, entropy_R = replayed_scores(model, batch)
    for handle in handles:
        handle.remove()
    balance = sum(
        balance_loss(one, ones, expert_loads(one, ones, routing), num_tokens, routing)
        for one in logits
    ) / len(logits)
    z = sum(z_loss(one, ones, num_tokens) for one in logits) / len(logits)
    (0.05 * balance + 0.01 * z - 0.3 * entropy_R.mean()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)

    assert balance.item() == pytest.approx(found["auxiliary/balance"], rel=1e-5)
    assert z.item() == pytest.approx(found["auxiliary/router_z"], rel=1e-5)
    assert entropy_R.mean().item() == pytest.approx(found["auxiliary/entropy_nats"], rel=1e-5)
    assert 0.0 == found["loss"]
    for (name, one), (_, other) in zip(
        model.named_parameters(), trainer._model.named_parameters(), strict=True
    ):
        assert torch.allclose(one.grad, other.grad, atol=2e-5), name


def zero_loss(logprobs_NT, _batch):
    return logprobs_NT.sum() * 0.0, {}


def test_auxiliary_losses_that_are_off_leave_no_trace(tiny_moe):
    batch = group_batch(with_routes=False)
    trainer = TorchTrainer(tiny_moe)
    watched = []
    routers(trainer._model)[0].register_forward_hook(lambda *_: watched.append(1))

    found = trainer.update(batch, zero_loss, temperature=1.0, learning_rate=0.0)

    assert {"loss", "grad_norm", PACKED_ROWS, PADDING_ROWS} == found.keys()
    assert [1] == watched  # one forward pass


def test_router_losses_of_a_model_without_routers_are_refused_by_name():
    terms = RouterTerms(Auxiliary(balance=1e-5), num_tokens=4)

    with (
        pytest.raises(SettingsError, match="leave the terms balance and router_z out"),
        terms.collect_logits(torch.nn.Linear(2, 2)),
    ):
        pass


def test_balance_pulls_loads_together(tiny_moe):
    batch = group_batch(with_routes=False)
    trainer = TorchTrainer(tiny_moe)
    auxiliary = Auxiliary(balance=1.0)

    values = [
        trainer.update(batch, zero_loss, temperature=1.0, learning_rate=3e-3, auxiliary=auxiliary)[
            "auxiliary/balance"
        ]
        for _ in range(12)
    ]

    assert values[-1] < values[0] - 0.05


def test_training_leaves_the_models_own_attention_in_place(tiny_moe, tmp_path):
    trainer = TorchTrainer(tiny_moe)
    before = trainer._model.config._attn_implementation
    trainer.score(group_batch(with_routes=False), temperature=1.0)
    trainer.export(tmp_path)

    assert before == trainer._model.config._attn_implementation
    assert (tiny_moe / "config.json").read_text() == (tmp_path / "config.json").read_text()


def test_a_sliding_window_is_refused_by_name(tiny_moe):
    trainer = TorchTrainer(tiny_moe)
    for layer in trainer._model.get_decoder().layers:
        layer.self_attn.sliding_window = 4

    with pytest.raises(SettingsError, match="does not support a sliding window"):
        trainer.score(group_batch(with_routes=False), temperature=1.0)


def test_the_same_update_gives_the_same_bits(tiny_moe):
    batch = group_batch(with_routes=True)
    auxiliary = Auxiliary(entropy=0.1, balance=0.1, router_z=0.1)
    one, other = TorchTrainer(tiny_moe), TorchTrainer(tiny_moe)
    old = one.score(batch, temperature=1.0)
    batch = trained_batch(batch, old.logprobs_NT, old.entropy_NT)
    for each in (one, other):
        for _ in range(2):
            each.update(
                batch, policy_loss, temperature=1.0, learning_rate=1e-3, auxiliary=auxiliary
            )

    for (name, left), (_, right) in zip(one.weights(), other.weights(), strict=True):
        assert torch.equal(left, right), name


def test_the_loss_is_given_what_routers_score_otherwise_than_before_the_step(tiny_moe, size):
    batch, given = group_batch(with_routes=True), []

    def loss(logprobs_NT, micro):
        given.append(micro)
        return -logprobs_NT.sum(), {}

    trainer = TorchTrainer(tiny_moe, micro_batch_tokens=size)
    columns = {"row": torch.arange(len(batch.lengths_N))}
    watched = replace(batch, columns={OLD_SCORES: trainer.router_scores(batch), **columns})
    trainer.update(watched, loss, temperature=1.0, learning_rate=1e-2)

    assert all(one.columns[SHIFT].abs().max() < 1e-5 for one in given)
    given.clear()
    now_NTLK = trainer.router_scores(batch)
    trainer.update(watched, loss, temperature=1.0, learning_rate=1e-2)

    for micro in given:
        width, rows_N = micro.tokens_NT.shape[1], micro.columns["row"]
        gap_NTLK = (now_NTLK - watched.columns[OLD_SCORES])[rows_N, :width].abs()
        assert torch.allclose(micro.columns[SHIFT], -gap_NTLK.mean(dim=(2, 3)), atol=1e-5)
        assert micro.columns[SHIFT].min() < -1e-3
        assert OLD_SCORES not in micro.columns
