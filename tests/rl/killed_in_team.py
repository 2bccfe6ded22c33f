"""A phase of RL whose replicas share a queue, killed: python killed_in_team.py MODEL FOLDER.

See test_killed_in_team.py. One process imports everything once and forks the agents; an agent and
its ranks are one process group, as the processes of a pod are.
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import EngineSettings, ZeroVarianceSettings
from tasks.durability import states
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.team.controller import current
from tasks.engines.team.rank_info import read_rank_info
from tasks.engines.team.rollout import TeamRollout
from tasks.rl.durability import state
from tasks.rl.run import Phase, train
from tasks.store.files import sha256_file
from tests.engines.team.half_trainer import ALONE
from tests.killing import names
from tests.rl.phase_in_team import conftest, launched, phase_in

STEPS = 4
SLOTS = 3
"""For 12 responses on two replicas: most of them wait in the queue."""
MODES: dict[str, dict[str, object]] = {
    "whole responses": {},
    "segments": {"engines": EngineSettings(segment_tokens=3)},
    "one step off, groups in two parts": {
        "engines": EngineSettings(staleness=1),
        "zero_variance": ZeroVarianceSettings(first_responses=2),
    },
}


@dataclass(frozen=True)
class Fault:
    """SIGKILL after the second event of a kind, a point that the phase's tokens determine."""

    event: str = ""
    """'rollout' or 'weights'."""
    version: int = 0
    """Of the engine's weights, or of those that it receives."""
    rank: int = 0
    pod: bool = False
    """Kill the agent and all ranks, not this rank alone."""

    def strike(self, event: str, version: int, number: int) -> None:
        here = event, version, read_rank_info().rank, number
        if (self.event, self.version, self.rank, 1) == here:
            os.kill(0 if self.pod else os.getpid(), signal.SIGKILL)


NO_FAULT = Fault()


FAULTS = {
    "all in the first rollouts": Fault("rollout", 0, 1, pod=True),
    "a worker in rollouts": Fault("rollout", 1, 1),
    "the controller in rollouts": Fault("rollout", 1, 0),
    "all in a weight sync": Fault("weights", 2, 1, pod=True),
    "all in later rollouts": Fault("rollout", 2, 0, pod=True),
}


class Engine(HFRolloutEngine):
    """An engine with few slots, slow on one rank; notes how many responses it made in a call."""

    def __init__(self, model: Path, notes: Path, slow: int, fault: Fault) -> None:
        super().__init__(model, slots=SLOTS)
        self._slow, self._fault = slow, fault
        self._notes = notes / f"{os.getpid()}-{read_rank_info().rank}"

    def _decode(self, slots):
        time.sleep(0.01 * (read_rank_info().rank == self._slow))
        return super()._decode(slots)

    def generate(self, requests, sampling):
        number = 0
        for number, rollout in enumerate(super().generate(requests, sampling), start=1):
            self._fault.strike("rollout", self.policy_version, number - 1)
            yield rollout
        with self._notes.open("a") as file:
            file.write(f"{number}\n")

    def load_weights(self, weights, version):
        def struck():
            for number, item in enumerate(weights):
                self._fault.strike("weights", version, number)
                yield item

        return super().load_weights(struck(), version)


def trained(phase: Phase, slow: int, fault: Fault = NO_FAULT) -> None:
    """Train to the last step, or to the fault."""
    notes = phase.state.with_name("notes")
    notes.mkdir(parents=True, exist_ok=True)

    def opened(_: EngineSettings, model: Path) -> TeamRollout:
        make = partial(Engine, model, notes, slow, fault)
        alone = {"replicas": ALONE, "dedicated": False, "precision": Precision.FP32}
        return TeamRollout(current(), make, **alone)

    scorer = conftest().RuleScorer(load_tokenizer(phase.start))
    list(train(phase, scorer, open_engine=opened))


def pod(phase: Phase, slow: int, fault: Fault = NO_FAULT, seconds: float | None = None) -> int:
    """Run a phase as a pod does, for some time; say which step it has committed."""

    def agent() -> None:
        os.setpgid(0, 0)
        with suppress(ChildFailedError):
            launched(trained, phase, slow, fault)

    process = multiprocessing.get_context("fork").Process(target=agent)
    process.start()
    process.join(seconds)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return states.newest(phase.state)


def outcome(phase: Phase) -> list[object]:
    """All that a phase has learned and written down, but for seconds; weights and optimizer."""
    records = state.read_steps(phase.state, STEPS)
    kept = [record.model_dump(mode="json", exclude={"timing", "costs"}) for record in records]
    weights = sha256_file(phase.state / f"committed/{STEPS:06d}/trainer.pt")
    return [kept, weights, names(phase.state)]


def taken(phase: Phase) -> list[list[int]]:
    """Numbers of responses by rank and call, of a phase that ran in one piece."""
    notes = sorted(phase.state.with_name("notes").iterdir(), key=lambda path: path.name[-1])
    return [[int(line) for line in path.read_text().split()] for path in notes]


def killed_by_faults(phase: Phase) -> dict[str, int]:
    """Every process group but the last is killed; return which step it had committed."""
    newest = {name: pod(phase, place % 2, FAULTS[name]) for place, name in enumerate(FAULTS)}
    pod(phase, 1)
    return newest


def killed_at_random(phase: Phase, took_s: float) -> list[float]:
    """Kill all processes twice, wherever they are; return after how many seconds."""
    dice = random.Random(0)
    waits_s = [dice.uniform(0.0, took_s) for _ in range(2)]
    for place, wait_s in enumerate(waits_s):
        pod(phase, place % 2, seconds=wait_s)
    pod(phase, 0)
    return waits_s


def main(model: Path, folder: Path) -> None:
    found: dict[str, dict[str, object]] = {}
    for name, changes in MODES.items():

        def phase(place: str, name: str = name, changes: dict = changes) -> Phase:
            one = phase_in(model, folder / name / place, STEPS)
            settings = one.settings.model_copy(update={"max_new_tokens": 12} | changes)
            return replace(one, settings=settings)

        started = time.monotonic()
        pod(phase("whole"), 0)
        took_s = time.monotonic() - started
        pod(phase("slow in turn"), 1)
        found[name] = {
            "newest": killed_by_faults(phase("faults")),
            "taken": [taken(phase("whole")), taken(phase("slow in turn"))],
        }
        if name == "segments":
            found[name]["waits_s"] = killed_at_random(phase("at random"), took_s)
        outcomes = {path.name: outcome(phase(path.name)) for path in (folder / name).iterdir()}
        found[name]["outcomes"] = outcomes
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
