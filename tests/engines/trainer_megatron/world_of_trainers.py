"""Trainers on several ranks that a test drives like one: every call goes to all of them.

What a call gives back, or raises, must be the same on every rank.
"""

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import LossFn, TokenBatch, TokenScores
from tests.engines.trainer_megatron.gloo_world import PRELOADED, _environment, _free_port

PATIENCE_S = 120


class RemoteTrainer:
    """One trainer, spread over the ranks."""

    def __init__(
        self,
        ranks: list[Connection],
        folder: Path,
        layout: LayoutSettings,
        **options: Any,
    ) -> None:
        self._ranks = ranks
        self._number = self._call("open", folder, layout=layout, **options)

    def score(
        self, batch: TokenBatch, *, temperature: float, record_routes: bool = False
    ) -> TokenScores:
        return self._call("score", batch, temperature=temperature, record_routes=record_routes)

    def update(self, batch: TokenBatch, loss: LossFn, **settings: Any) -> dict[str, float]:
        return self._call("update", batch, loss, **settings)

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._call("weights")

    def save(self, folder: Path) -> None:
        self._call("save", folder)

    def restore(self, folder: Path) -> None:
        self._call("restore", folder)

    def export(self, folder: Path) -> None:
        self._call("export", folder)

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str, *arguments: Any, **settings: Any) -> Any:
        number = 0 if name == "open" else self._number
        for rank in self._ranks:
            rank.send_bytes(pickle.dumps((number, name, arguments, settings)))
        answers = []
        for rank in self._ranks:
            assert rank.poll(PATIENCE_S), f"a rank did not answer to {name}"
            answers.append(pickle.loads(rank.recv_bytes()))
        failed, result = answers[0]
        for other in answers[1:]:
            assert other[0] == failed, answers
            assert _same(other[1], result), f"ranks do not agree on {name}"
        if failed:
            raise result
        return result


@contextmanager
def trainer_world(size: int) -> Iterator[list[Connection]]:
    """Start ranks that serve trainers until the block ends."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    port, ranks, processes = _free_port(), [], []
    for rank in range(size):
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, _environment(rank, size, port)))
        process.start()
        ranks.append(ours)
        processes.append(process)
    try:
        yield ranks
    finally:
        for process in processes:
            process.kill()
            process.join()


def _serve(parent: Connection, environment: dict[str, str]) -> None:
    from tasks.engines.trainer_megatron.trainer import MegatronTrainer  # not in the parent

    os.environ.update(environment)
    torch.set_num_threads(1)
    trainers: list[Any] = []
    while True:
        number, name, arguments, settings = pickle.loads(parent.recv_bytes())
        try:
            if name == "open":
                trainers.append(MegatronTrainer(*arguments, **settings))
                answer = (False, len(trainers) - 1)
            else:
                result = getattr(trainers[number], name)(*arguments, **settings)
                if name == "weights":
                    result = [(key, tensor.clone()) for key, tensor in result]
                answer = (False, result)
        except Exception as error:  # noqa: BLE001 - told to the test, which raises it
            answer = (True, error)
        parent.send_bytes(pickle.dumps(answer))


def _same(one: Any, other: Any) -> bool:
    """Whether two results are equal, tensors bit for bit."""
    if isinstance(one, BaseException):
        return (type(one), str(one)) == (type(other), str(other))
    if isinstance(one, TokenScores):
        parts = ("logprobs_NT", "entropy_NT", "experts_NTLK")
        return all(_same(getattr(one, part), getattr(other, part)) for part in parts)
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, list | tuple):
        return all(_same(*pair) for pair in zip(one, other, strict=True))
    return one == other
