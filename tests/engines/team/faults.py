"""Faults of a rank in any part of a step, for scenarios.py."""

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import distributed as dist

from data_schemas.machine_settings import Precision
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.engines.team import failure_store, standstill
from tasks.engines.team.controller import current
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.rollout import TeamRollout
from tasks.engines.team.trainer import TeamTrainer
from tests.engines.team.half_trainer import ALONE, SAMPLING, HalfTrainer, requests, token_sum


class Faulty(HalfTrainer):
    """A trainer of which a rank fails in one call; the other rank waits for it."""

    def __init__(self, folder: Path, fault: str, phase: str, rank: int) -> None:
        super().__init__(folder)
        self.fault, self.phase = fault, phase if read_rank_info().rank == rank else ""
        failure_store.SILENT_LOOKS, standstill.STILL_LOOKS = 8, 10
        standstill.STEP_LOOKS = 15
        self.strike("opening")

    def strike(self, phase: str) -> None:
        if phase != self.phase:
            return
        if self.fault == "hangs":
            threading.Event().wait()
        if self.fault == "computes":  # a kernel that never ends, without the interpreter's lock
            hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
        os.kill(os.getpid(), signal.SIGSTOP if self.fault == "stopped" else signal.SIGKILL)

    def score(self, batch: TokenBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        self.strike("old_logprobs")
        return super().score(batch, temperature=temperature, record_routes=record_routes)

    def update(self, batch, loss, **others) -> dict[str, float]:
        self.strike("update")
        return super().update(batch, loss, **others)

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        for number, item in enumerate(super().weights()):
            if number == 1:
                self.strike("weight_sync")
            yield item

    def save(self, folder: Path) -> None:
        self.strike("commit")
        dist.barrier()


class FaultyEngine(HFRolloutEngine):
    """A rollout engine that strikes like a faulty trainer after its first rollout."""

    def __init__(self, folder: Path, fault: str, phase: str, rank: int) -> None:
        super().__init__(folder)
        self.faulty = Faulty(folder, fault, phase, rank)

    def generate(self, requests, sampling):
        for number, rollout in enumerate(super().generate(requests, sampling)):
            if number == 1:
                self.faulty.strike("collect")
            yield rollout


def faulty(fault: str, phase: str, rank: int, model: Path, out: Path) -> None:
    """The parts of one step of RL, in one of which a rank fails."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    alone = {"replicas": ALONE, "dedicated": False, "precision": Precision.FP32}
    batch = TokenBatch(
        torch.arange(6).reshape(2, 3),
        torch.full((2,), 3),
        torch.ones(2, 3, dtype=torch.bool),
        None,
        {},
    )
    try:
        make = partial(FaultyEngine, model, fault, phase, rank)
        engine = TeamRollout(current(), make, **alone)
        trainer = TeamTrainer(current(), partial(Faulty, model, fault, phase, rank))
        list(engine.generate(requests(), SAMPLING))
        trainer.score(batch, temperature=0.5, record_routes=True)
        trainer.update(batch, token_sum, temperature=1.0, learning_rate=1e-4)
        engine.load_weights(trainer.weights(), 1)
        trainer.save(out)
    except BaseException as error:
        (out / "controller").write_text(f"{type(error).__name__}: {error}")
        raise
