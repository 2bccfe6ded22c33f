"""Log-probabilities over the sets that truncated sampling drew from, and what a record must be."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from data_schemas.rollouts import KeptSets
from tasks.algorithms import logprobs
from tasks.algorithms.kept_sets import (
    KeptTokens,
    check_kept,
    end_to_end,
    join_kept,
    kept_at,
    kept_behind,
    sets_of,
)
from tasks.algorithms.logprobs import scores_from_hidden, trainable_scores
from tasks.errors import DataError

VECTORS = json.loads((Path(__file__).parent / "kept_sets_vectors.json").read_text())
TOLERANCE = 2e-6


def tokens_of(sets) -> KeptTokens:
    return KeptTokens(
        torch.tensor([token for one in sets for token in one], dtype=torch.int32),
        torch.tensor([len(one) for one in sets]),
    )


def scores(logits, tokens, sets, temperature=VECTORS["temperature"]):
    """Scores of a head of the identity: the hidden states are the logits."""
    hidden = torch.tensor(logits, dtype=torch.float32, requires_grad=True)
    found = trainable_scores(
        hidden,
        torch.eye(hidden.shape[1]),
        torch.tensor(tokens),
        temperature,
        with_entropy=True,
        sets=None if sets is None else tokens_of(sets),
    )
    return hidden, *found


@pytest.mark.parametrize("row", VECTORS["rows"], ids=lambda row: row["rule"])
def test_log_probs_and_gradients_over_a_set_are_those_worked_by_hand(row):
    hidden, logprob, entropy = scores([VECTORS["trainer_logits"]], [row["token"]], [row["kept"]])
    _, of_rollout, _ = scores([VECTORS["rollout_logits"]], [row["token"]], [row["kept"]])
    _, full, _ = scores([VECTORS["trainer_logits"]], [row["token"]], None)
    (slope,) = torch.autograd.grad(logprob.sum(), hidden)

    assert logprob.item() == pytest.approx(row["trainer_logprob_replayed"], abs=TOLERANCE)
    assert of_rollout.item() == pytest.approx(row["rollout_logprob"], abs=TOLERANCE)
    assert full.item() == pytest.approx(row["trainer_logprob_full"], abs=TOLERANCE)
    assert (full - logprob).exp().item() == pytest.approx(row["kept_mass_trainer"], abs=TOLERANCE)
    assert entropy.item() == pytest.approx(row["entropy_full"], abs=TOLERANCE)
    assert slope[0].tolist() == pytest.approx(row["grad_replayed_wrt_logits"], abs=TOLERANCE)


def test_without_replay_a_response_of_100_tokens_looks_off_policy():
    """Equal weights, and 95 % of the mass kept: every ratio is the kept mass."""
    case = VECTORS["sequence"]
    logits = [[np.log(0.95), np.log(0.05)]] * case["tokens"]
    _, full, _ = scores(logits, [0] * case["tokens"], None, temperature=1.0)
    _, replayed, _ = scores(logits, [0] * case["tokens"], [[0]] * case["tokens"], temperature=1.0)

    assert full.sum().exp().item() == pytest.approx(case["product_of_ratios_without_replay"], 1e-3)
    assert replayed.sum().item() == 0.0


def test_a_set_of_the_whole_vocabulary_changes_no_bit():
    generator = torch.Generator().manual_seed(0)
    hidden, head = (torch.randn(n, 4, generator=generator) for n in (7, 9))
    tokens, everything = torch.arange(7), tokens_of([range(9)] * 7)

    def run(kept):
        given = hidden.clone().requires_grad_(), head.clone().requires_grad_()
        found, _ = trainable_scores(*given, tokens, 0.7, with_entropy=False, sets=kept)
        plain = scores_from_hidden(hidden, head, tokens, 0.7, kept)
        return (found, *plain, *torch.autograd.grad(found.square().sum(), given))

    assert all(
        torch.equal(one, other) for one, other in zip(run(None), run(everything), strict=True)
    )


@pytest.mark.parametrize("rows_at_once", [1, 2, 7])
def test_chunks_find_their_own_sets(rows_at_once, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    hidden, head = (torch.randn(n, 4, generator=generator).requires_grad_() for n in (7, 9))
    slopes = torch.randn(2, 7, generator=generator)
    tokens = torch.arange(7)
    sets = [sorted({row, (3 * row) % 9, *range(row % 3)}) for row in range(7)]
    monkeypatch.setattr(logprobs, "CHUNK_LOGITS", 9 * rows_at_once)

    def by_autograd():
        logits = hidden @ head.T / 0.6
        outside = torch.ones(7, 9, dtype=torch.bool)
        for row, one in enumerate(sets):
            outside[row, one] = False
        over = logits.masked_fill(outside, -torch.inf).log_softmax(1).gather(1, tokens[:, None])
        whole = logits.log_softmax(1)
        return over[:, 0], -(whole.exp() * whole).sum(1)

    def slopes_of(found):
        total = (found[0] * slopes[0]).sum() + (found[1] * slopes[1]).sum()
        return (*found, *torch.autograd.grad(total, (hidden, head)))

    kept = tokens_of(sets)
    found = trainable_scores(hidden, head, tokens, 0.6, with_entropy=True, sets=kept)
    for one, other in zip(slopes_of(by_autograd()), slopes_of(found), strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert torch.allclose(scores_from_hidden(hidden, head, tokens, 0.6, kept)[0], found[0])


def test_a_record_is_the_sets_end_to_end():
    case = VECTORS["csr"]
    mask = torch.zeros(4, 100, dtype=torch.bool)
    for row, one in enumerate(case["supports"]):
        mask[row, one] = True

    kept = end_to_end(sets_of(mask))

    assert case["ids"] == kept.ids.tolist()
    assert np.diff(case["offsets"]).tolist() == kept.counts.tolist()
    assert case["bytes_ids_int32"] == kept.ids.nbytes


def test_parts_of_a_response_join_and_sequences_keep_their_sets():
    one = end_to_end([np.array([3, 4]), np.array([7])])
    other = join_kept(one, KeptSets(np.array([5], np.int32), np.array([1, 0], np.int32)))
    assert other is not None

    sequences = [kept_behind(2, one), kept_behind(1, other)]
    response = torch.zeros(2, 5, dtype=torch.bool)
    response[0, 2:4] = response[1, 1:4] = True
    cut = response.clone()
    cut[0, 2] = cut[1, 3] = False  # as by a token budget

    assert [[0, 0, 2, 1], [0, 2, 1, 1, 0]] == [one.counts_R.tolist() for one in sequences]
    assert [3, 4, 7, 3, 4, 7, 5] == kept_at(sequences, response).ids.tolist()
    assert [7, 3, 4, 7] == kept_at(sequences, cut).ids.tolist()
    assert [1, 2, 1] == kept_at(sequences, cut).counts_R.tolist()
    assert [7, 3, 4, 7, 5] == kept_at(sequences[::-1], response.flip(0)).take(
        torch.tensor([4, 0, 1, 2])
    ).ids.tolist()
    assert not len(kept_at([], response[:0]).ids)
    assert join_kept(None, None) is None


@pytest.mark.parametrize(
    ("sets", "sampled", "message"),
    [
        ([[0, 1], [2]], None, "response token 0 is not in the set"),
        ([[0, 5], []], None, "response token 1 has 0 tokens"),
        ([[0, 5], [2]], [True, False], "response token 1 has 1 tokens"),
        ([[5, 0], [2]], None, "not in ascending order"),
        ([[5]], None, "1 sets with 1 tokens do not fit 2 tokens"),
    ],
)
def test_a_record_that_cannot_be_is_refused_and_never_repaired(sets, sampled, message):
    kept = end_to_end([np.array(one, np.int32) for one in sets])

    with pytest.raises(DataError, match=message):
        check_kept(
            kept,
            np.array([5, 2], np.int32),
            None if sampled is None else np.array(sampled),
        )


def test_a_token_of_an_environment_has_no_set():
    kept = end_to_end([np.array([1, 5], np.int32), np.array([], np.int32)])

    check_kept(kept, np.array([5, 2], np.int32), np.array([True, False]))
