"""The embedded engines on a device that is not the CPU: no operation mixes the two."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.machine_settings import Precision
from tasks.algorithms.kept_sets import end_to_end, kept_behind
from tasks.algorithms.terms.protocol import Auxiliary
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling, TokenBatch
from tasks.engines.weight_sync import Outgoing
from tests.engines.embedded.second_device import GPU, SecondDeviceError, second_device
from tests.engines.losses_of_contract import likelihood

SAMPLING = Sampling(6, 1.0, seed=3, top_p=0.9, top_k=40, record_kept=True)
ALL_TERMS = Auxiliary(entropy=0.01, balance=0.1, router_z=0.01)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: (9, 0))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (2**30, 2**33))
    # Adam asks the accelerator of torch's CUDA build for its stream, which a driver would answer.
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available=False: None
    )
    with second_device():
        yield


def requests() -> list[Request]:
    draws = np.random.default_rng(0)
    return [
        Request(f"p{place}", draws.integers(3, 250, length).astype(np.int32), num_samples=3)
        for place, length in enumerate((5, 9, 2))
    ]


def rolled_out(folder, sampling: Sampling) -> tuple[list[list[int]], list[np.ndarray]]:
    """Tokens and their sets, and log-probs of the rollout and of its scoring."""
    engine = HFRolloutEngine(folder, slots=4)
    rollouts = sorted(engine.generate(requests(), sampling), key=lambda r: (r.problem_id, r.sample))
    scores = engine.score_logprobs(
        [np.concatenate([one.prompt_tokens, one.response_tokens]) for one in rollouts]
    )
    return [[*one.response_tokens, *one.kept.ids] for one in rollouts], [
        *(one.logprobs for one in rollouts),
        *scores,
    ]


def assert_close(expected, actual) -> None:
    """Compare within float32's rounding.

    Equality of bytes is promised only where the same kernels run: a copy of a tensor has another
    alignment, by which some processors choose other vector instructions.
    """
    torch.testing.assert_close(actual, expected, rtol=2e-5, atol=2e-6)


def trained(folder, lora_rank: int, tmp_path) -> tuple[object, ...]:
    trainer = TorchTrainer(folder, lora_rank=lora_rank)
    drawn = [one.prompt_tokens for one in requests()]
    batch = TokenBatch.of_sequences(drawn)
    scores = trainer.score(batch, temperature=0.7, record_routes=True)
    pairs = [end_to_end([np.array([one, 252], np.int32) for one in tokens]) for tokens in drawn]
    sets = tuple(kept_behind(0, one) for one in pairs)
    replayed = replace(batch, experts_NTLK=scores.experts_NTLK, kept_N=sets)
    over = trainer.score(replayed, temperature=0.7, record_routes=False).logprobs_NT
    settings = {"temperature": 0.7, "learning_rate": 1e-3, "auxiliary": ALL_TERMS}
    first = trainer.update(replayed, likelihood, **settings)
    trainer.save(tmp_path)
    trainer.restore(tmp_path)
    second = trainer.update(batch, likelihood, **settings)
    if not lora_rank:
        outgoing = Outgoing(trainer.weights())
        installed = HFRolloutEngine(folder).load_weights(outgoing, 1)
        assert outgoing.digest() == installed
    weights = {name: tensor.detach().cpu().clone() for name, tensor in trainer.weights()}
    return scores.logprobs_NT.cpu(), over, first, second, weights


@pytest.mark.slow
def test_rollouts_on_a_second_device_are_those_of_the_cpu(tiny_moe, request):
    expected = rolled_out(tiny_moe, SAMPLING)
    request.getfixturevalue("gpu")

    tokens, logprobs = rolled_out(tiny_moe, SAMPLING)

    assert expected[0] == tokens
    assert_close(expected[1], logprobs)


@pytest.mark.slow
@pytest.mark.parametrize("lora_rank", [0, 4])
def test_so_are_updates_with_all_terms_and_a_weight_sync(tiny_moe, lora_rank, tmp_path, request):
    expected = trained(tiny_moe, lora_rank, tmp_path)
    request.getfixturevalue("gpu")

    assert_close(expected, trained(tiny_moe, lora_rank, tmp_path))


def test_all_weights_are_on_the_device_and_a_wide_router_too(tiny_moe, gpu):
    engine = HFRolloutEngine(tiny_moe, precision=Precision.BF16, fp32_router=True)

    assert {GPU} == {parameter.device for parameter in engine._model.parameters()}
    assert 3 == len(list(engine.generate(requests()[:1], SAMPLING)))


def test_the_second_device_refuses_what_cuda_refuses(gpu):
    here, there = torch.ones(3), torch.ones(3, device=GPU)
    refused = [
        lambda: here + there,
        lambda: torch.cat([there, here]),
        lambda: torch.nn.functional.linear(there, here[None]),
        lambda: here[there.long()],
        lambda: there.numpy(),
        lambda: there.index_put((torch.tensor([0, 1]),), torch.ones(2)),
    ]
    for operation in refused:
        with pytest.raises(SecondDeviceError):
            operation()
    assert [2.0, 2.0] == (there[torch.tensor([0, 1])] + torch.tensor(1.0)).cpu().tolist()
    assert [2.0] * 3 == (here + there.cpu()).numpy().tolist()
