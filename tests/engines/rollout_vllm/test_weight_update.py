"""New weights in a running vLLM: what its update path gets right, and what only we make right."""

# ruff: noqa: E402, the skip stands before what needs vLLM
import importlib.util
import warnings
import weakref
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

pytestmark = pytest.mark.engines
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts

    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.options import SLOTS
from tasks.engines.rollout_vllm.receive import pack_experts
from tasks.errors import EngineError, SettingsError

BASE_MODEL = Path("tasks/training/foundation/base_model")
TOKENS = [np.arange(first, first + 70, dtype=np.int32) for first in (20, 150)]
GREEDY = Sampling(1, 0.0, seed=0)
LAYOUT = LayoutSettings(rollout_memory=0.4)
"""Two engines are open at once; on a GPU one of them can have sleep mode."""
SECOND = {"layout": LAYOUT, "sleeps": False}


@pytest.fixture(scope="module")
def engine():
    engine = VllmRolloutEngine(BASE_MODEL, layout=LAYOUT)
    yield engine
    engine.close()


def trained(seed, by=0.03):
    """A trainer whose policy has moved away from the base model."""
    trainer = TorchTrainer(BASE_MODEL)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, tensor in trainer.weights():
            tensor.add_(torch.randn(tensor.shape, generator=generator) * by)
    return trainer


def gap(engine, expected):
    return max(
        np.abs(one - two).max()
        for one, two in zip(engine.score_logprobs(TOKENS), expected, strict=True)
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A model directory of a trained policy, and what a new engine computes with it."""
    folder = tmp_path_factory.mktemp("exported")
    trained(2).export(folder)
    fresh = VllmRolloutEngine(folder, **SECOND)
    expected = fresh.score_logprobs(TOKENS)
    fresh.close()
    return folder, expected


def test_as_many_sequences_are_decoded_as_the_cache_holds(engine):
    tokens = engine._backend.cache_tokens
    assert tokens > 0

    assert [1, 3, SLOTS] == [engine.slots(size) for size in (tokens, tokens / 3, 1)]


def test_an_updated_engine_computes_as_a_new_one_on_the_new_weights(engine, exported):
    _, expected = exported
    before = gap(engine, expected)
    first = engine.load_weights(trained(1).weights(), version=1)
    between = gap(engine, expected)
    second = engine.load_weights(trained(2).weights(), version=2)

    assert weight_digest(trained(1).weights()) == first
    assert weight_digest(trained(2).weights()) == second
    assert before > 0.1 < between
    assert gap(engine, expected) <= 1e-5
    assert 0 == engine.restarts


def test_a_checkpoint_with_its_own_names_and_dtype_can_be_synced(engine):
    weights = load_file(BASE_MODEL / "model.safetensors")
    digest = engine.load_weights(iter(weights.items()), version=3)
    fresh = VllmRolloutEngine(BASE_MODEL, **SECOND)

    assert weight_digest(weights.items()) == digest
    assert gap(engine, fresh.score_logprobs(TOKENS)) <= 1e-5
    fresh.close()


def test_two_engines_live_side_by_side_with_their_own_weights(engine, exported):
    folder, expected = exported
    engine.load_weights(TorchTrainer(BASE_MODEL).weights(), version=0)
    own = engine.score_logprobs(TOKENS)
    other = VllmRolloutEngine(folder, **SECOND)
    requests = [Request("p", TOKENS[0][:9], 2)]
    sampling = Sampling(6, 1.0, seed=3)
    alone = [r.response_tokens.tolist() for r in engine.generate(requests, sampling)]
    together = zip(
        engine.generate(requests, sampling), other.generate(requests, sampling), strict=True
    )
    pairs = [(mine.response_tokens.tolist(), theirs) for mine, theirs in together]
    other.close()

    assert alone == [mine for mine, _ in pairs]
    assert gap(engine, own) == 0.0
    assert gap(engine, expected) > 0.1
    for _, rollout in pairs:
        assert 9 + len(rollout.response_tokens) - 1 == len(rollout.trace.experts_TLK)


def test_engines_can_be_opened_one_after_another_and_leave_no_model_behind(exported):
    for _ in range(2):
        engine = VllmRolloutEngine(exported[0], **SECOND)
        (model,) = engine._backend._engine.apply_model(weakref.ref)
        assert gap(engine, exported[1]) <= 1e-5
        engine.close()
        assert model() is None


def test_closing_an_engine_leaves_the_process_group_alone(exported):
    VllmRolloutEngine(exported[0], **SECOND).close()

    assert torch.distributed.is_initialized()
    total = torch.ones(2)
    torch.distributed.all_reduce(total)
    assert [1.0, 1.0] == total.tolist()


def test_another_tensor_parallel_size_needs_another_process(engine):
    with pytest.raises(SettingsError, match="2, but 1 processes do not divide by it"):
        VllmRolloutEngine(BASE_MODEL, layout=LayoutSettings(rollout_tensor=2))


def install_without_repair(engine, folder):
    """The path vLLM offers first; nothing is packed for the CPU's kernels afterwards."""
    engine._backend._engine.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})


def test_a_reload_without_repair_computes_nonsense_and_an_update_mends_it(engine, exported):
    folder, expected = exported
    engine.load_weights(TorchTrainer(folder).weights(), version=4)
    assert gap(engine, expected) <= 1e-5

    install_without_repair(engine, folder)
    assert gap(engine, expected) > 0.1

    engine.load_weights(TorchTrainer(folder).weights(), version=5)
    assert gap(engine, expected) <= 1e-5


def test_prefixes_of_the_old_weights_would_be_wrong_and_are_forgotten(engine, exported):
    folder, _ = exported
    (request,) = [Request("p", TOKENS[0], 1)]

    def greedy():
        (rollout,) = engine.generate([request], GREEDY)
        return rollout.logprobs[0], rollout.trace.experts_TLK

    engine.load_weights(trained(5).weights(), version=5)
    greedy()
    vllm = engine._backend._engine
    update = {"update_info": {"tensors": TorchTrainer(folder).weights()}}
    vllm.collective_rpc("start_weight_update")
    vllm.collective_rpc("update_weights", kwargs=update)
    vllm.collective_rpc("finish_weight_update")
    stale, stale_routes = greedy()
    engine.load_weights(TorchTrainer(folder).weights(), version=6)
    fresh, routes = greedy()
    vllm.reset_prefix_cache()
    again, _ = greedy()

    assert abs(stale - fresh) > 1e-3
    assert not np.array_equal(stale_routes, routes)
    assert fresh == again


def test_weights_are_refused_while_rollouts_are_generated(engine):
    before = engine.score_logprobs(TOKENS)
    almost = Request("q", TOKENS[1], 1, response_tokens=TOKENS[0][:19])
    stream = engine.generate([Request("p", TOKENS[0], 4), almost], Sampling(20, 1.0, seed=1))

    assert "q" == next(stream).problem_id
    with pytest.raises(EngineError, match="while rollouts were being generated"):
        engine.load_weights(trained(1).weights(), version=9)
    stream.close()
    assert 0.0 == gap(engine, before)


def test_no_request_is_computed_during_a_partial_weight_sync(engine, exported):
    folder, expected = exported

    def broken_off():
        for number, named in enumerate(TorchTrainer(folder).weights()):
            if number == 12:
                raise EngineError("the trainer is gone")
            yield named

    with pytest.raises(EngineError, match="interrupted: the trainer is gone"):
        engine.load_weights(broken_off(), version=8)
    with pytest.raises(EngineError, match="send complete weights"):
        engine.score_logprobs(TOKENS)
    engine.load_weights(TorchTrainer(folder).weights(), version=9)
    assert gap(engine, expected) <= 1e-5


def test_a_weight_sync_holds_only_its_incomplete_layers(engine):
    alive, most = [], []
    trainer = TorchTrainer(BASE_MODEL)

    def watched():
        for name, tensor in trainer.weights():
            copy = tensor.clone()
            alive.append((copy.nbytes, weakref.ref(copy)))
            most.append(sum(size for size, one in alive if one() is not None))
            yield name, copy
            del copy

    engine.load_weights(watched(), version=9)
    assert max(most) <= 2 * max(size for size, _ in alive)


class StrangeExperts(RoutedExperts):
    """Experts under a kernel that nobody here has seen."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        self.__dict__["quant_method"] = SimpleNamespace(
            moe_kernel=SimpleNamespace(fused_experts=object())
        )


def test_experts_of_an_unknown_kernel_are_not_packed_by_guess():
    with pytest.raises(EngineError, match="an update of object may leave its weights unpacked"):
        pack_experts(torch.nn.Sequential(StrangeExperts()))


def test_bf16_differs_from_fp32_by_rounding_only(engine):
    engine.load_weights(TorchTrainer(BASE_MODEL).weights(), version=0)
    half = VllmRolloutEngine(BASE_MODEL, precision=Precision.BF16, **SECOND)
    found = half.score_logprobs(TOKENS)
    (rollout,) = half.generate([Request("p", TOKENS[0], 1)], Sampling(12, 1.0, seed=3))
    half.close()

    assert 0.0 < np.mean(np.abs(found[0] - engine.score_logprobs(TOKENS)[0])) < 0.1
    assert 12 == len(rollout.response_tokens)


def as_a_bf16_trainer_sends(weights):
    """All tensors in bf16 but the routers."""
    for name, tensor in weights:
        yield name, tensor if name.endswith("mlp.gate.weight") else tensor.bfloat16()


def test_routers_in_fp32_are_updated_and_computed_in_fp32():
    trainer = trained(5)
    engine = VllmRolloutEngine(BASE_MODEL, precision=Precision.BF16, fp32_router=True, **SECOND)
    seen = {}

    def watch(model):
        for name, router in model.named_modules():
            if name.endswith("mlp.gate"):
                keep = partial(seen.__setitem__, f"{name}.weight")
                router.register_forward_hook(lambda _, given, got, keep=keep: keep((given, got)))

    engine._backend._engine.apply_model(watch)
    engine.load_weights(as_a_bf16_trainer_sends(trainer.weights()), version=1)
    engine.score_logprobs(TOKENS)
    engine.close()

    sent = {name: tensor.detach() for name, tensor in trainer.weights() if name in seen}
    assert 3 == len(sent)
    for name, weight in sent.items():
        (hidden,), (logits, _) = seen[name]
        assert (torch.bfloat16, torch.float32) == (hidden.dtype, logits.dtype)
        # A CPU packs the weights, so that what was computed with them says what they are.
        cast = hidden.float() @ weight.bfloat16().float().T
        assert torch.allclose(hidden.float() @ weight.T, logits, atol=1e-5)
        assert (cast - logits).abs().max() > 1e-3
