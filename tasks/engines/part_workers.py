"""Processes that compute parts of what an embedded engine does, a core each.

An engine divides its work by the size of the work alone, and every part is computed by itself. So
it does not matter who computes it: without workers this process does, part after part, to the same
bytes. Workers are fresh interpreters with an engine of their own on the weights of this process
(`Twin`). They start in the background once this process has computed as much as their start
takes, and serve all engines that it opens from then on; work that comes before they are ready, or
while another thread has them, is done here.

A worker ends with this process, in any case within POLL_S. One that dies is an EngineError with
its number; the next work starts another one.
"""

import contextlib
import io
import logging
import os
import pickle
import sys
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from copyreg import dispatch_table
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from subprocess import Popen, TimeoutExpired
from typing import Any, cast

import psutil
import torch

from tasks.cores import LIMIT, memory_left, num_cores
from tasks.engines.shared_tensors import SharedTensors
from tasks.errors import EngineError
from tasks.gym.workers import start_interpreter

START_S = 5.0
"""Seconds of divisible work after which workers start: importing torch and transformers takes a
worker as long, so that a process at most doubles what it would have taken without them."""
WORKER_BYTES = 2**29
"""Memory of a worker before it has a model."""
MEMORY_SHARE = 0.5
"""Share of the memory that is free, which workers may take."""
POLL_S = 1.0
IMPORTS = ("tasks.engines.embedded.rollout", "tasks.engines.embedded.trainer")
"""What parts are computed with: a worker has it before the first part comes."""
_BOOT = "import {}; from tasks.engines.part_workers import main; main()"
_READY, _END = "ready", object()
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Twin:
    """How a worker opens an engine of this process once more."""

    open: Callable[[Sequence[int]], Any]
    """Picklable; gets the descriptors of what is shared."""
    shared: tuple[SharedTensors, ...]
    key: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(eq=False)
class _Worker:
    """One process and the pipe to it."""

    process: Popen[bytes]
    pipe: Connection
    is_ready: bool = False
    opened: set[str] = field(default_factory=set[str])
    """Keys of the twins that it has."""

    def ready(self) -> bool:
        """Whether it has started; does not wait."""
        if self.process.poll() is not None:
            raise self.lost()
        if not self.is_ready and self.pipe.poll():
            self.is_ready = self.receive() == _READY
        return self.is_ready

    def send(self, message: object) -> None:
        try:
            self.pipe.send_bytes(_dumps(message))
        except OSError as error:
            raise self.lost() from error

    def receive(self) -> Any:
        try:
            return pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError) as error:
            raise self.lost() from error

    def forget(self, live: set[str]) -> None:
        """Let it close the engines that this process has closed."""
        for key in self.opened - live:
            self.send(("forget", key))
        self.opened &= live

    def start(self, twin: Twin, method: str, number: int, args: tuple[Any, ...]) -> None:
        """Send a part of the work."""
        if twin.key not in self.opened:
            self.send(("open", twin.key, twin.open, len(twin.shared)))
            for shared in twin.shared:
                send_handle(self.pipe, shared.file, self.process.pid)
            self.opened.add(twin.key)
        self.send(("work", twin.key, method, number, args))

    def lost(self) -> EngineError:
        """Say that it died."""
        with contextlib.suppress(TimeoutExpired):  # its pipe is closed before it is gone
            self.process.wait(POLL_S)
        self.end()
        status = self.process.returncode
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        return EngineError(
            f"worker process {self.process.pid} ended with {how}; nothing of what it computed was "
            "applied. Run again: work goes on from its last committed state. If it happens again, "
            f"the machine may lack memory: set {LIMIT} to fewer cores"
        )

    def end(self) -> None:
        """Kill and reap it, if it is there."""
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class PartWorkers:
    """The workers of this process; safe to use from several threads, of which one has them.

    Args:
        count: of the processes.
        imports: modules that they import before they are ready.
    """

    def __init__(self, count: int, *, imports: Sequence[str] = IMPORTS) -> None:
        self._count = count
        self._boot = _BOOT.format(", ".join(imports))
        self._spent_s = 0.0
        self._workers: list[_Worker] = []
        self._twins: weakref.WeakSet[Twin] = weakref.WeakSet()
        self._busy = threading.Lock()

    @property
    def count(self) -> int:
        """Processes that there are at most; with one, this one computes all."""
        return self._count

    def each(
        self,
        twin: Callable[[], Twin],
        method: str,
        here: Callable[..., Iterator[Any]],
        calls: Sequence[tuple[Any, ...]],
        nbytes: int,
    ) -> Iterator[tuple[int, Any]]:
        """Yield what a part of the work yields, for all parts, each with its number.

        Those of a part come in their order; parts may be mixed.

        Args:
            twin: makes the twin of the engine, once workers compute.
            method: generator method of the twin.
            here: computes a part in this process.
            calls: arguments of each part.
            nbytes: memory that a worker takes for the engine.

        Raises:
            EngineError: a worker died; the message names it. What a part raises is raised here.
        """
        with self._reserved(len(calls), nbytes) as workers:
            if workers:
                yield from self._there(workers, twin(), method, calls)
                return
        started = time.perf_counter()
        for number, args in enumerate(calls):
            with one_thread():
                items = here(*args)
            while True:
                with one_thread():
                    item = next(items, _END)
                if item is _END:
                    break
                yield number, item
        self._spent_s += time.perf_counter() - started

    @contextlib.contextmanager
    def _reserved(self, parts: int, nbytes: int) -> Iterator[Sequence[_Worker]]:
        """Reserve the workers that are ready for some parts; none: this process computes them."""
        if (
            min(parts, self._count) < 2
            or self._spent_s < START_S
            or not self._busy.acquire(blocking=False)
        ):
            yield ()
            return
        try:
            self._start()
            ready = [worker for worker in list(self._workers) if self._is_ready(worker)]
            fitting = int(MEMORY_SHARE * _free_bytes() / max(1, nbytes))
            opened = sum(bool(worker.opened) for worker in ready)  # they have their memory
            crew = ready[: min(parts, max(opened, fitting))]
            yield crew if len(crew) > 1 else ()
        finally:
            self._busy.release()

    def _is_ready(self, worker: _Worker) -> bool:
        try:
            return worker.ready()
        except EngineError as error:  # nothing is lost: it had no work
            _logger.warning("%s", error)
            self._drop(worker)
            # Where one cannot start, this process goes on with fewer.
            self._count -= not worker.is_ready
            return False

    def _there(
        self,
        workers: Sequence[_Worker],
        twin: Twin,
        method: str,
        calls: Sequence[tuple[Any, ...]],
    ) -> Iterator[tuple[int, Any]]:
        self._twins.add(twin)
        waiting, busy = deque(enumerate(calls)), dict[Connection, _Worker]()
        try:
            for worker in workers:
                busy[worker.pipe] = worker
                worker.forget({one.key for one in self._twins})
                worker.start(twin, method, *waiting.popleft())
            while busy:
                for pipe in wait(list(busy)):
                    assert isinstance(pipe, Connection)
                    worker = busy[pipe]
                    kind, number, item = worker.receive()
                    if kind == "item":
                        yield number, item
                    elif kind == "error":
                        del busy[pipe]
                        raise item
                    elif waiting:
                        worker.start(twin, method, *waiting.popleft())
                    else:
                        del busy[pipe]
        finally:
            # After an error, or where the caller stopped early: nobody reads what they compute.
            for worker in busy.values():
                self._drop(worker)

    def _start(self) -> None:
        fitting = int(MEMORY_SHARE * _free_bytes() / WORKER_BYTES)
        count = min(self._count, len(self._workers) + fitting)
        if not self._workers and count > 1:
            _logger.info(
                "%d worker processes compute parts of rollouts and updates, to the same bytes as "
                "one; each takes %.1f GiB and one part of the work, %.1f GiB are free (%s limits "
                "their number)",
                *(count, WORKER_BYTES / 2**30, _free_bytes() / 2**30, LIMIT),
            )
        while len(self._workers) < count and count > 1:
            pipe, theirs = Pipe()
            with theirs:
                variables = {"OMP_NUM_THREADS": "1", LIMIT: "1"}
                process = start_interpreter(self._boot, theirs.fileno(), variables)
            self._workers.append(_Worker(process, cast("Connection", pipe)))

    def _drop(self, worker: _Worker) -> None:
        """End a worker; the next work starts another one."""
        worker.end()
        if worker in self._workers:
            self._workers.remove(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in list(self._workers):
            self._drop(worker)


@cache
def workers_here() -> PartWorkers:
    """Return the workers of this process; there are none in a team, which has its processes."""
    in_team = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return PartWorkers(1 if in_team else num_cores())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread, as a worker does: sums of more round otherwise."""
    threads = torch.get_num_threads()
    if threads != 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)


def main() -> None:
    """Serve parts until the pipe closes."""
    pipe, parent = Connection(int(sys.argv[1])), os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(1)
    engines: dict[str, Any] = {}
    with contextlib.suppress(EOFError, OSError):
        pipe.send_bytes(_dumps(_READY))
        while True:
            kind, key, *rest = pickle.loads(pipe.recv_bytes())
            if kind == "open":
                opening, count = rest
                engines[key] = _opened(opening, [recv_handle(pipe) for _ in range(count)])
            elif kind == "forget":
                del engines[key]
            else:
                _serve(pipe, engines[key], *rest)


def _opened(opening: Callable[[Sequence[int]], Any], files: Sequence[int]) -> Any:
    try:
        return opening(files)
    except Exception as error:  # noqa: BLE001 - raised again by the first part
        return error


def _serve(pipe: Connection, engine: Any, method: str, number: int, args: tuple[Any, ...]) -> None:
    """Send what a part yields, and how it ended."""
    items, kind = _items(engine, method, args), "item"
    while kind == "item":
        try:
            item = next(items, _END)
            kind = "done" if item is _END else "item"
        except Exception as error:  # noqa: BLE001 - raised again in the process that sent the part
            kind, item = "error", _portable(error)
        pipe.send_bytes(_dumps((kind, number, None if kind == "done" else item)))


def _items(engine: Any, method: str, args: tuple[Any, ...]) -> Iterator[Any]:
    if isinstance(engine, Exception):
        raise engine
    yield from getattr(engine, method)(*args)


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(_dumps(error))
    except Exception:  # noqa: BLE001 - whatever its parts refuse
        return EngineError(f"{type(error).__name__}: {error}")
    return error


def _end_with(parent: int) -> None:
    """End this process when its parent has, even while it computes."""
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(1)


def _free_bytes() -> int:
    return min([psutil.virtual_memory().available, *memory_left()])


def _of_array(array: Any, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.from_numpy(array).view(shape)


def _reduced(tensor: torch.Tensor) -> Any:
    """By value: torch's own way between processes is a file in /dev/shm for every tensor."""
    if tensor.requires_grad or tensor.device.type != "cpu" or tensor.dtype is torch.bfloat16:
        return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    return _of_array, (tensor.numpy(), tuple(tensor.shape))


def _dumps(message: object) -> bytes:
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {**dispatch_table, torch.Tensor: _reduced}
    pickler.dump(message)
    return stream.getvalue()
