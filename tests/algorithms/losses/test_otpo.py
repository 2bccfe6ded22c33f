"""Weights by optimal transport against numbers worked by hand and against scipy's solvers."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize

from tasks.algorithms.losses import dpo
from tasks.algorithms.losses.otpo import TransportedTokens, pair_weights, transport_plan
from tasks.errors import SettingsError

BETA = 0.1


def costs(rows, columns, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).random((rows, columns)))


def test_of_two_by_two_tokens_the_plan_is_the_one_worked_by_hand():
    # By symmetry both scalings are u, with u = (u (1 + 1/e)) ** (-1/2), so u^2 = (1 + 1/e)^(-2/3).
    plan = transport_plan(torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double(), entropy=1, relaxation=1)

    near = (1 + 1 / math.e) ** (-2 / 3)
    expected = [[near, near / math.e], [near / math.e, near]]
    torch.testing.assert_close(torch.tensor(expected).double(), plan)


def test_one_token_against_two_pays_the_nearer_one_by_hand():
    # Masses of the two are as exp(-d / 2), for relaxation / (relaxation + entropy) is 1/2.
    near, far = torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 0.0]])

    chosen, rejected = pair_weights(near, torch.cat([near, far]), entropy=1.0, relaxation=1.0)

    share = 1 / (1 + math.exp(-0.5))
    assert [1.0] == pytest.approx(chosen.tolist())
    assert [share, 1 - share] == pytest.approx(rejected.tolist())


@pytest.mark.parametrize("shape", [(3, 3), (5, 5)])
def test_without_entropy_and_leaving_nothing_behind_it_is_the_linear_program(shape):
    cost = costs(*shape)
    rows, columns = shape
    marginals = np.vstack(
        [
            np.kron(np.eye(rows), np.ones(columns)),
            np.kron(np.ones(rows), np.eye(columns)),
        ]
    )
    exact = linprog(cost.flatten().numpy(), A_eq=marginals, b_eq=np.ones(rows + columns))

    plan = transport_plan(cost, entropy=0.02, relaxation=10.0)

    assert exact.fun == pytest.approx(float((plan * cost).sum()), rel=0.05)
    np.testing.assert_allclose(np.ones(rows), plan.sum(dim=1).numpy(), atol=0.1)


@pytest.mark.parametrize(("entropy", "relaxation"), [(1.0, 0.2), (0.1, 0.2), (0.3, 2.0)])
def test_the_plan_minimises_the_objective_of_the_docstring(entropy, relaxation):
    cost = costs(3, 2, seed=1).numpy()

    def excess(mass):
        return (mass * np.log(mass) - mass + 1).sum()

    def objective(logs):
        plan = np.exp(logs).reshape(cost.shape)
        kept = excess(plan.sum(axis=1)) + excess(plan.sum(axis=0))
        return (plan * cost).sum() + entropy * excess(plan) + relaxation * kept

    found = minimize(objective, np.zeros(cost.size), method="BFGS", options={"gtol": 1e-9})

    plan = transport_plan(torch.from_numpy(cost), entropy=entropy, relaxation=relaxation)
    np.testing.assert_allclose(np.exp(found.x).reshape(cost.shape), plan.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("entropy", "relaxation", "first"),
    [(1.0, 0.2, (0.53714747, 0.37232853)), (0.1, 0.2, (0.17554514, 0.01444384))],
)
def test_the_plan_is_that_of_the_authors_solver(entropy, relaxation, first):
    # First row of ot.unbalanced.sinkhorn_unbalanced(ones(3), ones(2), costs, entropy,
    # (relaxation,), method="sinkhorn_stabilized", numItermax=5000, stopThr=1e-12) of POT 0.9.4.
    plan = transport_plan(costs(3, 2, seed=1), entropy=entropy, relaxation=relaxation)

    assert list(first) == pytest.approx(plan[0].tolist(), abs=1e-7)


def test_both_responses_weigh_as_much_as_the_shorter_has_tokens():
    generator = torch.Generator().manual_seed(0)
    states = [torch.randn(length, 8, generator=generator) for length in (2, 5)]

    chosen, rejected = pair_weights(*states, entropy=1.0, relaxation=0.2)

    assert [2.0, 2.0] == pytest.approx([float(chosen.sum()), float(rejected.sum())])
    assert (rejected > 0).all()


def test_a_token_that_both_responses_share_weighs_more_than_one_that_is_alone():
    shared, alone, other = torch.eye(3)

    chosen, rejected = pair_weights(
        torch.stack([shared, alone]), torch.stack([shared, other]), entropy=0.1, relaxation=0.2
    )

    assert chosen[0] > 1.0 > chosen[1]
    torch.testing.assert_close(chosen, rejected)


def test_the_order_of_tokens_does_not_matter():
    generator = torch.Generator().manual_seed(1)
    left, right = (torch.randn(length, 4, generator=generator) for length in (4, 3))
    order = torch.tensor([2, 0, 3, 1])

    weights, _ = pair_weights(left, right, entropy=0.5, relaxation=0.2)
    permuted, _ = pair_weights(left[order], right, entropy=0.5, relaxation=0.2)

    torch.testing.assert_close(weights[order], permuted)


def test_responses_of_equal_states_weigh_as_in_dpo():
    states = [torch.ones(3, 4), torch.ones(3, 4)]
    mask = torch.tensor([[False, True, True, True], [True, True, True, False]])

    torch.testing.assert_close(
        dpo.EqualTokens().token_weights(mask, states),
        TransportedTokens().token_weights(mask, states),
    )


def test_the_gradient_is_that_of_dpo_with_weights():
    generator = torch.Generator().manual_seed(2)
    logprobs = torch.randn(4, 5, generator=generator, dtype=torch.float64).requires_grad_()
    reference = torch.randn(4, 5, generator=generator, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[3], [5], [1], [2]])
    states = [torch.randn(int(one.sum()), 6, generator=generator) for one in mask]
    weights = TransportedTokens().token_weights(mask, states)

    margins = dpo.margins(logprobs, reference, weights, BETA)
    dpo.loss(margins).backward()

    torch.testing.assert_close(
        logprobs.grad, dpo.weights(margins.detach(), BETA)[:, None] * weights, check_dtype=False
    )


def test_scalings_that_do_not_converge_are_refused():
    with pytest.raises(SettingsError, match=r"did not converge in .* raise the entropy"):
        transport_plan(costs(4, 4), entropy=1e-6, relaxation=1e3)
