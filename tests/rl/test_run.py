import itertools
import json
import os
import signal

import pytest

from data_schemas.arrow import read_table
from data_schemas.ledger import LedgerRow
from data_schemas.settings import LossSettings, PolicyLoss, RouterReplay
from data_schemas.verdicts import scored
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.errors import EngineError, Preempted
from tasks.rl import state
from tasks.rl.run import finish, train
from tasks.storage import folder_manifest


def even_score(problems, responses):
    """Full marks for an even number of bytes in the answer; about half of random text."""
    return [scored(float(len(response) % 2 == 0), "rule") for response in responses]


def results(phase, folder):
    """Run a phase to its end; return the bytes of everything it leaves behind."""
    list(train(phase, even_score))
    model, report = folder / "model", folder / "report"
    model.mkdir(parents=True)
    report.mkdir()
    finish(phase, model, report)
    return folder_manifest(model), folder_manifest(report)


def test_a_run_that_is_dropped_after_any_step_ends_in_the_same_bytes(phase_in, tmp_path):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    for stop in (1, 3):
        phase = phase_in(tmp_path / f"b{stop}")
        assert stop == len(list(itertools.islice(train(phase, even_score), stop)))

        assert whole == results(phase, tmp_path / f"resumed{stop}")


def test_steps_after_the_last_committed_state_are_done_again_alike(phase_in, tmp_path):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    sparse = phase_in(tmp_path / "b", commit_every=3)
    list(itertools.islice(train(sparse, even_score), 2))

    assert whole == results(sparse, tmp_path / "resumed")


def test_a_damaged_state_is_passed_over_for_the_one_before(phase_in, tmp_path, caplog):
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    phase = phase_in(tmp_path / "b")
    list(itertools.islice(train(phase, even_score), 2))
    damaged = tmp_path / "b/committed/000002/trainer.pt"
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert whole == results(phase, tmp_path / "resumed")
    assert "damaged and passed over" in caplog.text


def test_only_the_newest_states_are_kept(phase_in, tmp_path):
    list(train(phase_in(tmp_path), even_score))

    assert ["000003", "000004"] == sorted(path.name for path in (tmp_path / "committed").iterdir())


def test_sigterm_finishes_the_step_commits_it_and_asks_for_a_retry(phase_in, tmp_path):
    phase = phase_in(tmp_path / "b")
    steps = train(phase, even_score)
    next(steps)
    os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Preempted, match="after committed step"):
        list(steps)
    whole = results(phase_in(tmp_path / "a"), tmp_path / "whole")
    assert whole == results(phase, tmp_path / "resumed")


def test_the_ledger_adds_up_to_the_engines_own_count(phase_in, tmp_path, monkeypatch):
    counted = []
    generate = HFRolloutEngine.generate

    def counting(self, requests, sampling):
        for rollout in generate(self, requests, sampling):
            counted.append(len(rollout.response_tokens))
            yield rollout

    monkeypatch.setattr(HFRolloutEngine, "generate", counting)
    results(phase_in(tmp_path / "a"), tmp_path / "out")
    rows = read_table(tmp_path / "out/report/ledger.parquet", LedgerRow)

    assert sum(counted) == sum(row.generated_tokens for row in rows)
    assert len(counted) == sum(row.rollouts for row in rows)
    assert all(row.trained_tokens <= row.generated_tokens for row in rows)


@pytest.mark.parametrize("kind", list(PolicyLoss))
@pytest.mark.parametrize("replay", list(RouterReplay))
def test_every_loss_and_replay_mode_trains(phase_in, tmp_path, kind, replay):
    phase = phase_in(tmp_path, steps=1, loss=LossSettings(kind=kind), router_replay=replay)

    (record,) = train(phase, even_score)

    assert 1e-6 > record.report.metrics["mismatch/mean_abs_logprob"]
    assert 0.0 < record.report.metrics["policy/grad_norm"]


def test_reward_rises_when_it_can(phase_in, tmp_path):
    """A tiny policy learns to answer with an even number of bytes."""
    phase = phase_in(tmp_path, steps=25, prompts_per_step=8, group_size=8, learning_rate=1e-2)
    rewards = [record.report.metrics["reward/mean"] for record in train(phase, even_score)]

    assert sum(rewards[:3]) / 3 + 0.15 < sum(rewards[-3:]) / 3


def test_an_engine_with_other_weights_than_the_trainers_is_caught(phase_in, tmp_path, monkeypatch):
    load = HFRolloutEngine.load_weights

    def losing_one(self, weights, version):
        return load(self, ((n, t * 0 if "norm" in n else t) for n, t in weights), version)

    monkeypatch.setattr(HFRolloutEngine, "load_weights", losing_one)

    with pytest.raises(EngineError, match="no rollout was made with the wrong weights"):
        list(train(phase_in(tmp_path), even_score))


def test_steps_are_recorded_one_json_each(phase_in, tmp_path):
    results(phase_in(tmp_path / "a", steps=2), tmp_path / "out")
    lines = (tmp_path / "out/report/steps.jsonl").read_text().splitlines()

    assert [1, 2] == [json.loads(line)["step"] for line in lines]


def test_a_fresh_folder_starts_at_step_zero(phase_in, tmp_path):
    class Unused:
        def restore(self, folder):
            raise AssertionError(folder)

    assert state.RunState() == state.restore(tmp_path, Unused())
