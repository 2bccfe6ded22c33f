"""Our loss against that of TRL's DPOTrainer, whose own method runs on a record of numbers."""

import math
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch

from tasks.algorithms.losses import dpo

PAIRS, TOKENS, BETA = 3, 7, 0.1


def random_batch(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal():
        return torch.randn(2 * PAIRS, TOKENS, generator=generator, dtype=torch.float64)

    lengths = torch.randint(1, TOKENS + 1, (2 * PAIRS, 1), generator=generator)
    return 2 * normal(), 2 * normal(), torch.arange(TOKENS) < lengths


def same(value):
    return value


def of_trl(logprobs, reference, mask):
    """Loss and gradient by DPOTrainer._compute_loss, which has all chosen sequences first."""
    dpo_trainer = pytest.importorskip(
        "trl.trainer.dpo_trainer", reason="trl is a test dependency: pip install trl==1.16.0"
    )
    order = torch.cat([torch.arange(0, 2 * PAIRS, 2), torch.arange(1, 2 * PAIRS, 2)])
    leaf = logprobs.clone().requires_grad_()
    kept = (leaf * mask)[order]
    sums = (reference * mask).sum(dim=1)[order]
    first = torch.zeros(2 * PAIRS, 1, dtype=torch.long)

    class Model:
        training = True

        def __call__(self, **_):
            zeros = torch.zeros_like(kept)
            return SimpleNamespace(
                log_probs=kept, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool()
            )

    trainer = SimpleNamespace(
        model=Model(),
        accelerator=SimpleNamespace(device="cpu", gather=same, gather_for_metrics=same),
        aux_loss_enabled=False,
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        beta=BETA,
        label_smoothing=0.0,
        use_weighting=False,
        _metrics={"train": defaultdict(list)},
        _total_train_tokens=0,
        _tp_size=1,
    )
    inputs = {
        "input_ids": torch.zeros(2 * PAIRS, TOKENS + 1, dtype=torch.long),
        "attention_mask": torch.ones(2 * PAIRS, TOKENS + 1, dtype=torch.long),
        "completion_mask": torch.cat([first, mask[order].long()], dim=1),
        "ref_chosen_logps": sums[:PAIRS],
        "ref_rejected_logps": sums[PAIRS:],
    }
    value = dpo_trainer.DPOTrainer._compute_loss(trainer, Model(), inputs, False)
    value.backward()
    return value.detach(), leaf.grad


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_gradient_are_those_of_trl(seed):
    logprobs, reference, mask = random_batch(seed)
    theirs, their_gradient = of_trl(logprobs, reference, mask)

    margins = dpo.margins(logprobs, reference, mask, BETA)
    gradient = dpo.weights(margins, BETA)[:, None] * mask

    torch.testing.assert_close(theirs, dpo.loss(margins))
    torch.testing.assert_close(their_gradient, gradient)


def test_at_the_start_the_loss_is_ln_2_and_both_responses_have_the_same_weight():
    logprobs, _, mask = random_batch(3)

    margins = dpo.margins(logprobs, logprobs, mask, BETA)

    assert math.log(2.0) == pytest.approx(float(dpo.loss(margins)))
    expected = BETA / 2 / PAIRS
    assert [-expected, expected] * PAIRS == pytest.approx(dpo.weights(margins, BETA).tolist())


def test_a_pair_with_a_large_margin_has_no_weight_left():
    found = dpo.weights(torch.tensor([1e4, 0.0], dtype=torch.float64), BETA)

    assert [0.0, 0.0, -BETA / 4, BETA / 4] == pytest.approx(found.tolist())
