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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from data_schemas.machine_settings import Precision
from data_schemas.rl_settings import EngineSettings
from data_schemas.rollouts import Rollout
from tasks.durability import states
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.slots import Slots
from tasks.engines.protocols import Sampling
from tasks.engines.request_queue import Requests
from tasks.engines.team import failure_store
from tasks.engines.team.controller import current
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.rollout import TeamRollout
from tasks.rl import state
from tasks.rl.phase import Phase, train
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
    "free-running": {"engines": EngineSettings(staleness=2, segment_tokens="free")},
    "one step off": {"engines": EngineSettings(staleness=1)},
}


@dataclass(frozen=True)
class Fault:
    """A signal after the second event of a kind, a point that the phase's tokens determine."""

    event: str = ""
    """'rollout' or 'weights'."""
    version: int = 0
    """Version of the engine's weights, or of those that it receives."""
    rank: int = 0
    pod: bool = False
    """For the agent and all ranks, not this rank alone."""
    signal: int = signal.SIGKILL

    def strike(self, event: str, version: int, number: int) -> None:
        here = event, version, read_rank_info().rank, number
        if (self.event, self.version, self.rank, 1) == here:
            os.kill(0 if self.pod else os.getpid(), self.signal)


NO_FAULT = Fault()
failure_store.SILENT_LOOKS = 8
FAULTS = {
    "all in the first rollouts": Fault("rollout", 0, 1, pod=True),
    "a worker in rollouts": Fault("rollout", 1, 1),
    "the controller in rollouts": Fault("rollout", 1, 0),
    "all in a weight sync": Fault("weights", 2, 1, pod=True),
    "all in later rollouts": Fault("rollout", 2, 0, pod=True),
}
STOPPED = Fault("weights", 2, 1, signal=signal.SIGSTOP)


class Struck:
    """Strikes between the rollouts and the tensors of the engine that is the other base."""

    fault = NO_FAULT

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        for number, rollout in enumerate(super().generate(requests, sampling)):  # pyright: ignore[reportAttributeAccessIssue]
            self.fault.strike("rollout", self.policy_version, number)  # pyright: ignore[reportAttributeAccessIssue]
            yield rollout

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        def struck() -> Iterator[tuple[str, torch.Tensor]]:
            for number, item in enumerate(weights):
                self.fault.strike("weights", version, number)
                yield item

        return super().load_weights(struck(), version)  # pyright: ignore[reportAttributeAccessIssue]


class Engine(Struck, HFRolloutEngine):
    """An engine with few slots, slow on one rank; notes how many responses it made in a call."""

    def __init__(self, model: Path, notes: Path, slow: int, fault: Fault) -> None:
        HFRolloutEngine.__init__(self, model, slots=SLOTS)
        self.fault, self._slow = fault, slow
        self._notes = notes / f"{os.getpid()}-{read_rank_info().rank}"

    def _decode(self, slots: Slots) -> torch.Tensor:
        time.sleep(0.01 * (read_rank_info().rank == self._slow))
        return super()._decode(slots)

    def generate(self, requests: Requests, sampling: Sampling) -> Iterator[Rollout]:
        number = 0
        for rollout in super().generate(requests, sampling):
            number += 1
            yield rollout
        with self._notes.open("a") as file:
            file.write(f"{number}\n")


def phase_of(model: Path, folder: Path, changes: Mapping[str, object]) -> Phase:
    """The same work whoever runs it; responses are long enough to be shared out."""
    one = phase_in(model, folder, STEPS)
    settings = one.settings.model_copy(update={"max_new_tokens": 12} | dict(changes))
    return replace(one, settings=settings)


def trained(slow: int, fault: Fault, phase: Phase) -> None:
    """Train to the last step, or to the fault."""
    notes = phase.state.with_name("notes")
    notes.mkdir(parents=True, exist_ok=True)

    def opened(_: EngineSettings, model: Path) -> TeamRollout:
        make = partial(Engine, model, notes, slow, fault)
        alone = {"replicas": ALONE, "dedicated": False, "precision": Precision.FP32}
        return TeamRollout(current(), make, **alone)  # pyright: ignore[reportArgumentType]

    scorer = conftest().RuleScorer(load_tokenizer(phase.start))
    list(train(phase, scorer, open_engine=opened))


def pod(stage: Callable[[Phase], None], phase: Phase, seconds: float | None = None) -> int:
    """Run a stage as a pod does, for some time; say which step it has committed."""

    def agent() -> None:
        os.setpgid(0, 0)
        with suppress(ChildFailedError):
            launched(stage, phase)

    process = multiprocessing.get_context("fork").Process(target=agent)
    process.start()
    process.join(seconds)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # pyright: ignore[reportArgumentType]
    process.join()
    return states.newest(phase.state)


def outcome(phase: Phase) -> list[object]:
    """All that a phase has learned and written down, but for seconds; weights and optimizer."""
    records = state.read_steps(phase.state, STEPS)
    kept = [record.model_dump(mode="json", exclude={"timing", "costs"}) for record in records]
    committed = phase.state / f"committed/{STEPS:06d}"
    weights = [
        sha256_file(path)
        for path in sorted(committed.rglob("*"))
        if path.suffix in {".pt", ".distcp"}
    ]
    return [kept, weights, names(phase.state)]


def taken(phase: Phase) -> list[list[int]]:
    """Numbers of responses by rank and call, of a phase that ran in one piece."""
    notes = sorted(phase.state.with_name("notes").iterdir(), key=lambda path: path.name[-1])
    return [[int(line) for line in path.read_text().split()] for path in notes]


def killed_by_faults(phase: Phase) -> dict[str, int]:
    """Every process group but the last is killed; return which step it had committed."""
    newest = {
        name: pod(partial(trained, place % 2, FAULTS[name]), phase)
        for place, name in enumerate(FAULTS)
    }
    pod(partial(trained, 1, NO_FAULT), phase)
    return newest


def killed_at_random(phase: Phase, took_s: float) -> list[float]:
    """Kill all processes twice, wherever they are; return after how many seconds."""
    dice = random.Random(0)
    waits_s = [dice.uniform(0.0, took_s) for _ in range(2)]
    for place, wait_s in enumerate(waits_s):
        pod(partial(trained, place, NO_FAULT), phase, wait_s)
    pod(partial(trained, 0, NO_FAULT), phase)
    return waits_s


def main(model: Path, folder: Path) -> None:
    found: dict[str, dict[str, object]] = {}
    for name, changes in MODES.items():
        places = ("whole", "slow in turn", "faults", "at random", "stopped")
        phases = {place: phase_of(model, folder / name / place, changes) for place in places}
        started = time.monotonic()
        pod(partial(trained, 0, NO_FAULT), phases["whole"])
        took_s = time.monotonic() - started
        pod(partial(trained, 1, NO_FAULT), phases["slow in turn"])
        found[name] = {
            "newest": killed_by_faults(phases["faults"]),
            "taken": [taken(phases["whole"]), taken(phases["slow in turn"])],
        }
        if name == "segments":
            found[name]["stopped"] = pod(partial(trained, 0, STOPPED), phases["stopped"])
            pod(partial(trained, 0, NO_FAULT), phases["stopped"])
            found[name]["waits_s"] = killed_at_random(phases["at random"], took_s)
        ran = [place for place, phase in phases.items() if phase.state.exists()]
        found[name]["outcomes"] = {place: outcome(phases[place]) for place in ran}
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
