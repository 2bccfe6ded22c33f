"""Run a function on several processes that form a gloo world, as torchrun would start them."""

import multiprocessing
import os
import pickle
import socket
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any

import torch
from torch import distributed

PRELOADED = ["tasks.engines.trainer_megatron.trainer", "tasks.engines.embedded.trainer"]
"""Imported once, before the first world forks: seconds per rank otherwise."""


def run_world(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    timeout_s=120,
    preloaded: Sequence[str] = (),
) -> list[Any]:
    """Call a function of a module's top level on every rank; return their results in order.

    Args:
        preloaded: further modules that the ranks of a process's first world share: in a large
            world, modules that every rank imports by itself are most of its memory.

    Raises:
        AssertionError: a rank failed (with its traceback), died or took too long; the others
            are stopped.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, *preloaded])
    # The first process waits until all is imported: not on the time of the ranks.
    first = context.Process(target=int)
    first.start()
    first.join()
    port = _free_port()
    ranks: dict[Connection, ForkServerProcess] = {}
    for rank in range(size):
        ours, theirs = context.Pipe(duplex=False)
        environment = _environment(rank, size, port)
        process = context.Process(target=_rank, args=(theirs, environment, function, arguments))
        process.start()
        theirs.close()
        ranks[ours] = process
    try:
        return _collect(ranks, time.monotonic() + timeout_s)
    finally:
        for process in ranks.values():
            process.kill()
            process.join()


def _collect(ranks: dict[Connection, ForkServerProcess], deadline: float) -> list[Any]:
    results: dict[Connection, Any] = {}
    while len(results) < len(ranks):
        waiting = [connection for connection in ranks if connection not in results]
        ready = wait(waiting, timeout=max(0.0, deadline - time.monotonic()))
        assert ready, f"{len(waiting)} of {len(ranks)} ranks did not answer in time"
        for connection in ready:
            try:
                failed, result = pickle.loads(connection.recv_bytes())
            except EOFError:
                failed, result = True, "the process died without a word"
            assert not failed, f"rank {list(ranks).index(connection)}: {result}"
            results[connection] = result
    return [results[connection] for connection in ranks]


def _rank(
    answer: Connection,
    environment: dict[str, str],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    """Run one process; its failure is sent to the parent."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    try:
        told = (False, function(*arguments))
    except BaseException:  # noqa: BLE001 - the parent raises it
        told = (True, traceback.format_exc())
    # Plain bytes: tensors would otherwise travel as files of a process that is gone.
    answer.send_bytes(pickle.dumps(told))
    if distributed.is_initialized():
        distributed.destroy_process_group()


def _environment(rank: int, size: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
