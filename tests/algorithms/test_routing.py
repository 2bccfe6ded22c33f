import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from data_schemas.rollouts import MISSING_ROUTE, RouterTrace
from data_schemas.routing import Routing
from tasks.algorithms.routing import (
    Traces,
    check_trace,
    disagreement,
    disagreement_by_layer,
    gate_weights,
    missing_rows,
    replayed_choice,
)
from tasks.errors import DataError

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def test_replayed_gates_and_their_gradient_are_the_worked_numbers():
    vector = VECTORS["router_replay"]
    logits = torch.tensor([vector["train_logits"]], dtype=torch.float64, requires_grad=True)
    chosen = torch.tensor([vector["replay_topk"]])
    experts = torch.tensor(vector["expert_out"], dtype=torch.float64)

    gates = gate_weights(logits, chosen, Routing(4, 2))
    output = (gates.double()[0] * experts[chosen[0]]).sum()
    output.backward()

    assert vector["gate_replay_norm_topk"] == pytest.approx(gates[0].tolist(), abs=1e-6)
    assert vector["y_replay"] == pytest.approx(float(output.detach()), abs=1e-6)
    assert vector["dy_dlogits"] == pytest.approx(logits.grad[0].tolist(), abs=1e-6)


def test_gates_without_renormalisation_are_the_worked_numbers():
    vector = VECTORS["router_replay"]
    logits = torch.tensor([vector["train_logits"]])

    gates = gate_weights(
        logits, torch.tensor([vector["replay_topk"]]), Routing(4, 2, renormalised=False)
    )

    assert vector["gate_replay_softmax_no_renorm"] == pytest.approx(gates[0].tolist(), abs=1e-6)


def test_a_missing_row_keeps_the_native_experts():
    native = torch.tensor([[0, 1], [2, 3]])
    recorded = torch.tensor([[MISSING_ROUTE, MISSING_ROUTE], [5, 4]])

    assert [[0, 1], [5, 4]] == replayed_choice(native, recorded).tolist()


def trace_of(rows):
    return RouterTrace(np.array(rows, dtype=np.uint8)[:, None, :])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0, 1]], r"expected \[2, layers, k\]"),
        ([[0, 1], [0, 9]], "names expert 9, the model has 8"),
        ([[0, 0], [0, 0]], "repeats an expert"),
        ([[5, 1, 2, 3], [4, 5, 6, 4]], "repeats an expert"),
    ],
)
def test_a_trace_that_cannot_be_this_sequence_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        check_trace(trace_of(rows), num_tokens=3, num_experts=8)


def test_only_rows_that_are_there_are_checked():
    rows = np.array([[[-1, -1], [0, 1]], [[2, 3], [3, -1]]], dtype=np.int16)
    check_trace(RouterTrace(rows), num_tokens=3, num_experts=4)

    rows[0, 1] = 1
    with pytest.raises(DataError, match="repeats an expert"):
        check_trace(RouterTrace(rows), num_tokens=3, num_experts=4)
    rows[0, 1] = -2
    with pytest.raises(DataError, match="names expert"):
        check_trace(RouterTrace(rows), num_tokens=3, num_experts=4)


@given(
    arrays(
        np.int16,
        st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 8)),
        elements=st.integers(-1, 9),
    )
)
def test_a_repeated_expert_is_found_wherever_it_stands(experts):
    present = [row for row in experts.reshape(-1, experts.shape[2]).tolist() if -1 not in row]
    repeated = any(len(set(row)) < len(row) for row in present)

    if repeated:
        with pytest.raises(DataError, match="repeats an expert"):
            check_trace(RouterTrace(experts), len(experts) + 1, num_experts=10)
    else:
        check_trace(RouterTrace(experts), len(experts) + 1, num_experts=10)


def test_routes_that_were_checked_where_they_were_recorded_are_only_counted_again():
    checked = RouterTrace(np.zeros((3, 1, 2), np.uint8), digest="of another rank")

    check_trace(checked, 4, num_experts=10)
    with pytest.raises(DataError, match=r"expected \[4, layers, k\]"):
        check_trace(checked, 5, num_experts=10)


def test_padding_a_trace_leaves_the_rest_to_the_native_router():
    recorded = trace_of([[1, 2]]).experts_TLK
    found = Traces((recorded, None), num_layers=1, k=2).padded(3)

    assert [[1, 2], [-1, -1], [-1, -1]] == found[0, :, 0].tolist()
    assert (found[1] == MISSING_ROUTE).all()


def test_disagreement_ignores_order_and_missing_rows():
    native = torch.tensor([[[0, 1]], [[2, 3]], [[4, 5]]])
    recorded = torch.tensor([[[1, 0]], [[2, 7]], [[-1, -1]]])

    assert 0.5 == disagreement(native, recorded)


def test_disagreement_is_counted_in_each_layer_over_the_rows_that_it_recorded():
    """Three tokens in three layers; the last layer recorded none."""
    native = torch.tensor([[[0, 1], [0, 1], [0, 1]]]).expand(3, 3, 2)
    recorded = native.clone()
    recorded[0, 0] = torch.tensor([1, 0])  # the same experts
    recorded[1, 1] = torch.tensor([0, 2])
    recorded[2, 1] = MISSING_ROUTE
    recorded[:, 2] = MISSING_ROUTE

    assert [0.0, 0.5, 0.0] == disagreement_by_layer(native, recorded)
    assert 1 / 5 == disagreement(native, recorded)
    assert [] == disagreement_by_layer(native[:, :0], recorded[:, :0])


def test_tokens_that_should_have_a_route_and_have_none_are_counted():
    experts_NTLK = torch.zeros(2, 4, 3, 2, dtype=torch.int64)
    experts_NTLK[0, 3] = MISSING_ROUTE  # the last token of the first: never fed
    experts_NTLK[0, 1, 2, 0] = MISSING_ROUTE
    experts_NTLK[1, 2:] = MISSING_ROUTE  # its last token and padding
    experts_NTLK[1, 0] = MISSING_ROUTE

    assert 2 == missing_rows(experts_NTLK, torch.tensor([4, 3]))
