"""A phase of RL on any number of cores."""

import os
import signal

import pytest

from data_schemas.rl_settings import SkipSettings, ZeroVarianceSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.part_workers import workers_here
from tasks.errors import EngineError
from tasks.rl.phase import finish, train
from tasks.store.manifest import folder_manifest
from tests.part_cores import cores, pids, start
from tests.rl.conftest import RuleScorer

SIZES = {
    "steps": 2,
    "prompts_per_step": 12,
    "group_size": 16,
    "zero_variance": ZeroVarianceSettings(skip=SkipSettings.model_validate({"above": 1.0})),
}
"""Rollouts of two parts; scores and updates of several."""


def what_is_left(phase, scorer, folder):
    list(train(phase, scorer))
    model, report = folder / "model", folder / "report"
    model.mkdir(parents=True)
    report.mkdir()
    finish(phase, model, report)
    return folder_manifest(model), folder_manifest(report)


class KillingScorer(RuleScorer):
    """Kills a worker in the middle of the second step's rollouts."""

    def submit(self, item):
        super().submit(item)
        if item.group.startswith("2.") and len(self.waiting) == 1:
            for pid in pids(workers_here()):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_phase_leaves_the_same_bytes_on_any_number_of_cores(phase_in, scorer, tmp_path, count):
    with cores(1):
        alone = what_is_left(phase_in(tmp_path / "1", **SIZES), scorer(), tmp_path / "one")
    with cores(count):
        shared = what_is_left(phase_in(tmp_path / "2", **SIZES), scorer(), tmp_path / "more")

        assert [] != pids(workers_here())
    assert alone == shared


@pytest.mark.slow
def test_a_phase_whose_worker_is_killed_goes_on_to_the_same_bytes(
    phase_in, scorer, tmp_path, tiny_moe
):
    with cores(1):
        alone = what_is_left(phase_in(tmp_path / "1", **SIZES), scorer(), tmp_path / "one")
    phase = phase_in(tmp_path / "2", **SIZES)
    with cores(2) as workers:
        with pytest.raises(EngineError, match=r"worker process \d+ ended with signal 9"):
            list(train(phase, KillingScorer(load_tokenizer(tiny_moe))))
        start(workers)
        resumed = what_is_left(phase, scorer(), tmp_path / "more")

    assert alone == resumed
