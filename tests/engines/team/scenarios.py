"""Stages that two real processes run, started as torchrun starts them; what they found, as JSON.

    python scenarios.py MODEL OUT

One process imports everything once and forks the ranks of every scenario.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from transformers import Qwen3MoeForCausalLM  # noqa: F401 - once, and not in every rank

from data_schemas.machine_settings import MachineSettings, Precision
from tasks.algorithms.digests import weight_digest
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import EngineCounters, TokenBatch
from tasks.engines.recording_loss import ROW, RecordingLoss
from tasks.engines.select import open_rollout, open_trainer
from tasks.engines.team import failure_store
from tasks.engines.team.controller import current
from tasks.engines.team.in_team import in_team
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.rollout import TeamRollout
from tasks.engines.team.trainer import TeamTrainer
from tasks.engines.weight_sync import Outgoing
from tasks.errors import DataError, EngineError, SettingsError
from tests.engines.team.faults import faulty
from tests.engines.team.half_trainer import ALONE, PAIR, SAMPLING, HalfTrainer, requests, token_sum


def ordered(rollouts) -> list:
    return sorted(rollouts, key=lambda rollout: (rollout.problem_id, rollout.sample))


def answers(rollouts) -> list[list]:
    return [
        [
            rollout.problem_id,
            rollout.sample,
            rollout.response_tokens.tolist(),
            rollout.trace.experts_TLK.tolist(),
        ]
        for rollout in ordered(rollouts)
    ]


def rolled_out(model: Path, out: Path) -> dict:
    """Prompts over two embedded engines, with weights of a trainer that only the controller has."""
    engine = open_rollout(MachineSettings(), model)
    trainer = open_trainer(MachineSettings(), model)
    outgoing = Outgoing(trainer.weights())
    installed = engine.load_weights(outgoing, 7)
    rollouts = list(engine.generate(requests(), SAMPLING))
    cut = engine.generate(requests(), SAMPLING)
    next(cut)
    cut.close()
    again = list(engine.generate(requests(1), SAMPLING))
    engine.sleep()
    alone = HFRolloutEngine(model)
    expected = list(alone.generate(requests(), SAMPLING))
    canaries = [np.arange(1, 9, dtype=np.int32)]
    found = {
        "same": answers(rollouts) == answers(expected),
        "logprobs": max(
            float(np.abs(one.logprobs - other.logprobs).max())
            for one, other in zip(ordered(rollouts), ordered(expected), strict=True)
        ),
        "again": len(again),
        "versions": sorted({rollout.policy_version for rollout in rollouts}),
        "digests": [installed, outgoing.digest(), weight_digest(trainer.weights())],
        "sequences": engine.counters.sequences,
        "tokens": [
            engine.counters.generated_tokens,
            sum(len(rollout.response_tokens) for rollout in [*rollouts, *rollouts, *again]),
        ],
        "slots": [engine.slots(64), alone.slots(64)],
        "probe": float(
            np.abs(engine.score_logprobs(canaries)[0] - alone.score_logprobs(canaries)[0]).max()
        ),
    }
    engine.close()
    return found


def trained(model: Path, out: Path) -> dict:
    """A trainer on both ranks feeds both engines; the loss's calls of both are put together."""
    trainer = TeamTrainer(current(), partial(HalfTrainer, model))
    engine = team_rollout(model)
    batch = TokenBatch(
        tokens_NT=torch.arange(15).reshape(5, 3),
        lengths_N=torch.full((5,), 3),
        response_NT=torch.ones(5, 3, dtype=torch.bool),
        experts_NTLK=None,
        columns={ROW: torch.arange(5)},
    )
    loss = RecordingLoss(token_sum)
    metrics = trainer.update(batch, loss, temperature=1.0, learning_rate=1e-4)
    outgoing = Outgoing(trainer.weights())
    installed = engine.load_weights(outgoing, 1)
    partly = trainer.weights()
    first = next(partly)[0]
    partly._stream.close()
    scores = trainer.score(batch, temperature=0.5, record_routes=True)
    trainer.save(out)
    trainer.restore(out)
    trainer.export(out)
    found = {
        "rows": sorted(row for call in loss.calls for row in call.rows_M.tolist()),
        "logprobs": {int(c.rows_M[0]): c.logprobs_MT[0].tolist() for c in loss.calls},
        "loss": metrics["loss"],
        "digests": [installed, outgoing.digest(), weight_digest(trainer.weights())],
        "first": first,
        "doubled": bool(torch.equal(scores.logprobs_NT, 2 * batch.tokens_NT)),
        "files": sorted(path.name for path in out.iterdir()),
        "version": engine.policy_version,
    }
    trainer.close()
    engine.close()
    return found


def async_group(model: Path, out: Path) -> dict:
    """Engines in processes of their own roll out while the trainer works."""
    trainer = TeamTrainer(current(), partial(HalfTrainer, model))
    engine = team_rollout(model, dedicated=True)
    rollouts = engine.generate(requests(), SAMPLING)
    first = next(rollouts)
    trainer.save(out)
    try:
        next(engine.generate(requests(), SAMPLING))
    except EngineError as error:
        refused = str(error)
    return {"answers": len([first, *rollouts]), "refused": refused}


def team_rollout(model: Path, *, dedicated: bool = False, replicas=ALONE) -> TeamRollout:
    make = partial(HFRolloutEngine, model)
    precision = Precision.FP32
    return TeamRollout(current(), make, replicas=replicas, dedicated=dedicated, precision=precision)


def grouped(model: Path, out: Path) -> dict:
    """Both ranks make one replica: the first alone speaks."""
    engine = team_rollout(model, replicas=PAIR)
    rollouts = list(engine.generate(requests(), SAMPLING))
    return {"answers": len(rollouts), "sequences": engine.counters.sequences}


class Delayed(HFRolloutEngine):
    """Two slots; the ranks in DELAYED are slow."""

    def _decode(self, slots):
        time.sleep(0.02 * (read_rank_info().rank in DELAYED))
        return super()._decode(slots)


DELAYED: set[int] = set()


def shared_queue(model: Path, out: Path) -> dict:
    """Requests that do not fit into the slots, on replicas that are slow in turn."""
    make = partial(Delayed, model, slots=2)
    engine = TeamRollout(current(), make, replicas=ALONE, dedicated=False, precision=Precision.FP32)
    sampling = replace(SAMPLING, max_new_tokens=40)
    found, counts, expected = [], [], []
    for slow in (0, 1):
        DELAYED.clear()
        DELAYED.add(slow)
        before = engine._others.get(1, EngineCounters()).sequences
        rollouts = list(engine.generate(requests(), sampling))
        found.append(
            [
                [*one, rollout.logprobs.tobytes().hex()]
                for one, rollout in zip(answers(rollouts), ordered(rollouts), strict=True)
            ]
        )
        counts.append(engine._others[1].sequences - before)
    alone = HFRolloutEngine(model)
    expected = answers(alone.generate(requests(), sampling))
    abandoned = engine.generate(requests(), sampling)
    next(abandoned)
    abandoned.close()
    empty = list(engine.generate([], sampling))
    return {
        "same_bytes": found[0] == found[1],
        "counts": counts,
        "same_tokens": [one[:4] for one in found[0]] == expected,
        "after_abandoned": len(list(engine.generate(requests(1), sampling))),
        "empty": len(empty),
        "lengths": [len(one[2]) for one in expected],
    }


def other_weights(model: Path, out: Path) -> None:
    trainer = TeamTrainer(current(), partial(HalfTrainer, model, wrong_rank=1))
    team_rollout(model).load_weights(trainer.weights(), 1)


def other_kernels(model: Path, out: Path) -> None:
    engine = TeamRollout(
        current(),
        partial(Crooked, model),
        replicas=ALONE,
        dedicated=False,
        precision=Precision.FP32,
    )
    engine.score_logprobs([np.arange(1, 9, dtype=np.int32)])


class Crooked(HFRolloutEngine):
    """On rank 1 it computes with other weights than it says."""

    def score_logprobs(self, tokens):
        return [one + 0.1 * read_rank_info().rank for one in super().score_logprobs(tokens)]


class Failing(HFRolloutEngine):
    """A rank fails in one way or another after the first rollout; the other would wait for it."""

    def __init__(self, folder: Path, how: str) -> None:
        super().__init__(folder)
        self.how = how
        if how.startswith("stopped"):
            failure_store.SILENT_LOOKS = 8

    def generate(self, requests, sampling):
        for number, rollout in enumerate(super().generate(requests, sampling)):
            if number == 1 and read_rank_info().rank == (self.how != "stopped controller"):
                if self.how.startswith("stopped"):
                    os.kill(os.getpid(), signal.SIGSTOP)
                if self.how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                if self.how == "data":
                    raise DataError("row 7 is not a number")
                raise RuntimeError("no such kernel")
            yield rollout


def failing(how: str, model: Path, out: Path) -> None:
    make = partial(Failing, model, how)
    engine = TeamRollout(
        current(), make, replicas=ALONE, dedicated=how == "dedicated", precision=Precision.FP32
    )
    # As a phase of RL does: the agent, which sees a rank end, may be faster than its reason.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        list(engine.generate(requests(), SAMPLING))
    except BaseException as error:
        (out / "controller").write_text(f"{type(error).__name__}: {error}")
        raise


def controller_fails(model: Path, out: Path) -> None:
    team_rollout(model)
    raise SettingsError("steps is -1")


def controller_fails_during_rollout(model: Path, out: Path) -> None:
    rollouts = team_rollout(model).generate(requests(), replace(SAMPLING, max_new_tokens=200))
    next(rollouts)
    raise SettingsError("steps is -1")


def sigterm_to_worker(model: Path, out: Path) -> dict:
    """Send SIGTERM to the worker alone; the controller receives it too and both end normally."""
    engine = team_rollout(model)
    came = []
    previous = signal.signal(signal.SIGTERM, lambda *_: came.append("controller"))
    make = partial(TeamTrainer, current(), partial(Terminated, model))
    trainer = make()
    until = time.monotonic() + 120.0
    while not came and time.monotonic() < until:
        time.sleep(0.05)
    trainer.save(out)
    rollouts = list(engine.generate(requests(), SAMPLING))
    signal.signal(signal.SIGTERM, previous)
    return {"came": came, "answers": len(rollouts)}


class Terminated(HalfTrainer):
    """A trainer whose process receives SIGTERM while it is opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if read_rank_info().rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)


SCENARIOS: dict[str, Callable] = {
    "sigterm_to_worker": sigterm_to_worker,
    "rolled_out": rolled_out,
    "trained": trained,
    "async_group": async_group,
    "grouped": grouped,
    "shared_queue": shared_queue,
    "other_weights": other_weights,
    "other_kernels": other_kernels,
    "worker_raises": partial(failing, "raises"),
    "worker_is_killed": partial(failing, "killed"),
    "worker_is_stopped": partial(failing, "stopped"),
    "worker_has_bad_data": partial(failing, "data"),
    "worker_fails_on_dedicated_gpus": partial(failing, "dedicated"),
    "controller_fails": controller_fails,
    "controller_fails_during_rollout": controller_fails_during_rollout,
}

SLOW: dict[str, Callable] = {
    "controller_is_stopped": partial(failing, "stopped controller"),
    "controller_hangs_in_update": partial(faulty, "hangs", "update", 0),
} | {
    f"worker_{fault}_in_{phase}": partial(faulty, fault, phase, 1)
    for fault in ("killed", "stopped", "hangs", "computes")
    for phase in ("opening", "collect", "old_logprobs", "update", "weight_sync", "commit")
}


NOT_BY_THE_AGENT = ("controller_is_stopped",)
"""Scenarios whose processes all end without the agent's SIGKILL."""


def run(name: str, model: Path, out: Path, processes: int = 2) -> dict:
    """Run a scenario in several processes; say what it returned or how it failed, and how long."""
    out.mkdir()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.2,
        start_method="fork",
    )
    started, found = time.monotonic(), {}
    stage = (SCENARIOS | SLOW)[name]

    def body() -> dict | None:
        try:
            result = in_team(partial(stage, model, out))()
        except SettingsError:
            # The launcher ends the worker as soon as this process has failed.
            until = time.monotonic() + 60.0
            worker = out / "daemons-1"
            while name == "controller_fails" and not worker.exists() and time.monotonic() < until:
                time.sleep(0.05)
            raise
        daemons = sorted(thread.name for thread in threading.enumerate() if thread.daemon)
        (out / f"daemons-{read_rank_info().rank}").write_text(json.dumps(daemons))
        return result

    # The agent would wait this long for a stopped process, which does not take its SIGTERM.
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "86400" if name in NOT_BY_THE_AGENT else "30"
    try:
        found = {"returned": elastic_launch(config, body)()}
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        found = {"rank": rank, "message": failure.message, "code": failure.exitcode}
    controller = out / "controller"
    return found | {
        "seconds": time.monotonic() - started,
        "controller": controller.read_text() if controller.exists() else "",
        "daemons": {path.name[-1]: json.loads(path.read_text()) for path in out.glob("daemons-*")},
    }


def main(model: Path, out: Path, names: list[str]) -> None:
    found = {}
    for name in names or SCENARIOS:
        try:
            found[name] = run(name, model, out / name)
        except Exception:  # noqa: BLE001 - told to the test
            found[name] = {"crashed": traceback.format_exc()}
    (out / "found.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
