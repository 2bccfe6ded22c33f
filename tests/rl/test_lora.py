"""A phase of RL with adapters: what it learns, sends, keeps and leaves behind."""

import json

import pytest
import torch
from safetensors.torch import load_file

from data_schemas.machine_settings import LoRASettings
from data_schemas.rl_settings import EngineSettings
from tasks.algorithms.digests import weight_digest
from tasks.durability import states
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora.factors import is_adapted
from tasks.engines.lora.merged_rollout import AdapterRollout
from tasks.errors import EngineError
from tasks.rl import state
from tasks.rl.phase import ADAPTER_FOLDER, finish, train

SMALL = {"steps": 3, "prompts_per_step": 2, "group_size": 4, "max_new_tokens": 4}
SMALL |= {"learning_rate": 1e-2}
LORA = {"engines": EngineSettings(lora=LoRASettings(rank=8))}


@pytest.fixture(scope="module")
def sent(tiny_moe):
    return sum(factor.nbytes for _, factor in TorchTrainer(tiny_moe, lora_rank=8).weights())


@pytest.fixture
def results(phase_in, scorer, tmp_path):
    """A whole phase: its records, its model and its report."""
    phase = phase_in(tmp_path / "state", **SMALL, **LORA)
    records = list(train(phase, scorer()))
    model, report = tmp_path / "model", tmp_path / "report"
    model.mkdir()
    report.mkdir()
    return records, model, report, finish(phase, model, report)


def test_a_phase_trains_adapters_and_releases_a_merged_model(results, tiny_moe, sent):
    records, model, report, facts = results
    before, after = (load_file(one / "model.safetensors") for one in (tiny_moe, model))
    adapter = load_file(report / ADAPTER_FOLDER / "adapter_model.safetensors")

    assert [float(sent)] * 3 == [r.report.metrics["weight_sync/sent_bytes"] for r in records]
    assert max(r.report.metrics["mismatch/k3"] for r in records) < 1e-9
    assert facts["lora"].startswith("rank 8, alpha 32, of q_proj")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(map(is_adapted, changed))
    assert sent == sum(factor.nbytes for factor in adapter.values())
    assert 8 == json.loads((report / ADAPTER_FOLDER / "adapter_config.json").read_text())["r"]


def test_a_phase_that_trains_all_weights_sends_them_all_and_leaves_no_adapter(
    phase_in, scorer, tmp_path
):
    phase = phase_in(tmp_path / "state", **(SMALL | {"steps": 1}))
    records = list(train(phase, scorer()))
    model, report = tmp_path / "model", tmp_path / "report"
    model.mkdir()
    report.mkdir()
    facts = finish(phase, model, report)

    weights = sum(tensor.nbytes for _, tensor in TorchTrainer(phase.start).weights())
    assert float(weights) == records[0].report.metrics["weight_sync/sent_bytes"]
    assert "lora" not in facts
    assert not (report / ADAPTER_FOLDER).exists()


@pytest.mark.slow
def test_a_phase_that_stopped_goes_on_to_the_same_bytes(phase_in, scorer, tmp_path):
    whole, stopped = (phase_in(tmp_path / name, **SMALL, **LORA) for name in ("whole", "stopped"))
    expected = [record.report for record in train(whole, scorer())]
    first = train(stopped, scorer())
    next(first)
    first.close()
    rest = [record.report for record in train(stopped, scorer())]
    digests = []
    for phase in (whole, stopped):
        trainer = TorchTrainer(phase.start, lora_rank=8)
        state.restore(phase.state, trainer)
        digests.append(weight_digest(trainer.weights()))

    assert expected[1:] == rest
    assert digests[0] == digests[1]


def test_an_engine_that_ignores_the_experts_factors_stops_the_phase_before_its_first_step(
    phase_in, scorer, tmp_path
):
    class AttentionOnly(AdapterRollout):
        def load_weights(self, weights, version):
            factors = {
                name: torch.zeros_like(factor) if ".experts." in name else factor
                for name, factor in weights
            }
            return super().load_weights(iter(factors.items()), version)

    def open_engine(engines, folder):
        return AttentionOnly(HFRolloutEngine(folder), folder, engines.lora.rank)

    phase = phase_in(tmp_path, **SMALL, **LORA)
    with pytest.raises(EngineError, match="accepts the adapter and ignores a part of it"):
        next(train(phase, scorer(), open_engine=open_engine))

    assert 0 == states.newest(tmp_path)
