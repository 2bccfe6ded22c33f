"""Which rank failed and why, in the store that torchrun's agent serves to all ranks.

A broken connection shows that a rank is gone, not why, so a failing rank first writes its error
here. A rank that hangs in a collective cannot receive anything, so a thread ends its process if
it does not exit after the end of the team.

The same thread counts up a number every second. A rank whose number stands still is stopped, or
its machine is gone; its connections may stay open for hours. Rank 0 watches all others, and they
watch rank 0, whose machine also has the store: `limit_silence` breaks its connections. A second
number counts the looks at which a rank had worked: if no rank works while a command runs, one of
them hangs (standstill.py); and so if none takes a step for much longer.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from torch import distributed as dist
from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from tasks.engines.activity import Activity
from tasks.engines.team import standstill
from tasks.engines.team.silence import SILENT_S, limit_silence
from tasks.engines.team.standstill import Standstill, calls, place
from tasks.errors import DataError, EngineError, PipelineError, SettingsError, TamperError

_OVER = "team/over"
_SIGTERM = "team/told"
_FAILURE = "team/failure"
_PROCESS = "team/process"
_PULSE = "team/pulse"
_WORK = "team/work"
_STEP = "team/step"
_PLACE = "team/place"
_STILL = "team/still"
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
"""Where torchrun expects the error of a process."""
_LOOK_EVERY_S = 1.0
SILENT_LOOKS = SILENT_S
"""A rank without a pulse for so many looks has failed. Looks are not seconds of the clock: a
process that was stopped together with the others has not looked meanwhile."""
_FAILURE_WITHIN_S = 2.0
"""The error is written before the connection breaks, but may arrive later."""
GRACE_S = 30.0
"""Grace period for a process to exit after the end of its team."""
_STILL_GRACE_S = 5.0
"""For the main thread to raise the error of a team that stood still, or lost a machine, before its
process ends: no connection has to break, and collectives have no shorter timeout."""
_GONE = (
    "the team's store has not answered, and nobody had ended the team: the machine of rank 0 is "
    "gone, or its agent"
)
_HEAD_START_S = 3
"""torchrun looks every second which process has ended. It sends SIGTERM to the others, which a
stopped process does not take, and SIGKILL only after the grace period of the stage."""
_KINDS = {kind.__name__: kind for kind in (SettingsError, DataError, TamperError)}
"""Errors that keep their class at the controller; all others become EngineError, retried."""
logger = logging.getLogger(__name__)


class FailureStore:
    """This rank's client of the store, with its own connection."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        self._expected = False
        self._watched = range(1, size) if rank == 0 else range(1)
        self._store = dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            is_master=False,
            timeout=timedelta(seconds=60),
        )
        limit_silence(int(os.environ["MASTER_PORT"]))

    def report(self, error: PipelineError) -> None:
        """Write why this rank failed and end the team."""
        self._report(type(error).__name__, f"rank {self._rank}: {error}")

    def end(self) -> None:
        """Mark the team as ended, after success or failure."""
        self._mark(_OVER)

    def is_over(self) -> bool:
        """True if the team was marked as ended, or the store is gone."""
        return self._is_marked(_OVER, if_gone=True)

    def pass_on_sigterm(self) -> None:
        """Forward SIGTERM to the controller, which can still commit."""
        self._mark(_SIGTERM)

    def failure(self, within_s: float = _FAILURE_WITHIN_S) -> PipelineError | None:
        """The error of the rank that failed first; None if none is reported in time."""
        until = time.monotonic() + within_s
        while not self._is_marked(_FAILURE, if_gone=False):
            if time.monotonic() > until:
                return None
            time.sleep(0.1)
        first = json.loads(self._store.get(_FAILURE))
        return _KINDS.get(first["kind"], EngineError)(first["text"])

    @contextmanager
    def expect_work(self, *, expected: bool = True) -> Iterator[None]:
        """Have the team fail if no rank works while the block runs; only rank 0's word counts."""
        before, self._expected = self._expected, expected
        try:
            yield
        finally:
            self._expected = before

    @contextmanager
    def name_failed_rank(self) -> Iterator[None]:
        """Turn a broken collective into the error of the rank that broke it.

        Raises:
            PipelineError: another rank failed, or exited without reporting an error.
        """
        try:
            yield
        except PipelineError:
            raise
        except RuntimeError as error:
            failure = self.failure()
            if failure is not None:
                raise failure from error
            if not is_broken_connection(error):
                raise
            raise EngineError(f"a process exited without reporting an error: {error}") from error

    @contextmanager
    def end_process_when_over(self, code: int) -> Iterator[None]:
        """Kill this process if the block is still running after the end of the team."""
        farewell = threading.Event()
        process = [os.getpid(), socket.gethostname(), os.environ.get(_ERROR_FILE, "")]
        self._set(f"{_PROCESS}/{self._rank}", json.dumps(process))

        def watch() -> None:
            passed_on = self._rank > 0
            pulses, team = _Pulses(), _Team(self._store, self._rank, self._size)
            while not farewell.wait(_LOOK_EVERY_S):
                silent = self._first_silent(pulses)
                if silent is not None and not self.is_over():
                    self._end_silent(silent, farewell)
                if (still := team.look(expected=self._expected)) and not self.is_over():
                    self._end_still(still, farewell)
                if not passed_on and self._is_marked(_SIGTERM, if_gone=False):
                    passed_on = True
                    os.kill(os.getpid(), signal.SIGTERM)
                if self.is_over():
                    self._end_late(farewell, code)
                    return

        watcher = threading.Thread(target=watch, name="team-over", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            farewell.set()
            watcher.join()  # a thread in a call of the store would abort the interpreter's exit

    def _end_late(self, farewell: threading.Event, code: int) -> None:
        """End this process if it is late after the end of its team."""
        if not self._is_there():
            if not farewell.wait(_STILL_GRACE_S):
                self._end_with(EngineError(_GONE))
            return
        if self._rank > 0 and self._is_marked(_STILL, if_gone=False):
            self._end_with(self.failure() or EngineError("the team stood still"))
        if not farewell.wait(GRACE_S):
            os._exit(code)

    def _first_silent(self, pulses: "_Pulses") -> int | None:
        """Give a pulse; return a watched rank that has given none for too long."""
        try:
            self._store.add(f"{_PULSE}/{self._rank}", 1)
            # Adding 0 reads, also before the first pulse.
            counts = {rank: self._store.add(f"{_PULSE}/{rank}", 0) for rank in self._watched}
        except RuntimeError:  # the store is gone: the team is over
            return None
        return pulses.first_silent(counts)

    def _end_still(self, why: str, farewell: threading.Event) -> None:
        """End a team in which no rank works, or takes a step.

        The workers' processes end with the error; this breaks the connections of the controller,
        whose main thread raises it, unless that is the one that hangs.
        """
        error = EngineError(why)
        self._mark(_STILL)
        self._report(EngineError.__name__, why)
        if not farewell.wait(_STILL_GRACE_S):
            self._end_with(error)

    def _end_silent(self, rank: int, farewell: threading.Event) -> None:
        """End a team of which a rank is silent.

        The controller kills the silent process, if it is on this machine: its connections break,
        and the main thread gets the error. torchrun reports the process that ends first, so the
        error is written for it as well. A worker has nothing to finish, and a main thread that
        waits for NCCL notices nothing: their processes end with the error, and the silent
        controller is killed later, so that it does not end first.
        """
        error = EngineError(
            f"rank {rank} has given no sign of life for {SILENT_LOOKS * _LOOK_EVERY_S:.0f} s: "
            "its process is stopped, or its machine is gone"
        )
        self._report(EngineError.__name__, str(error))
        number, error_file = self._process_here(rank)
        if self._rank == 0:
            if number is not None:
                if error_file:
                    _record_for_another(error, Path(error_file))
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            if farewell.wait(GRACE_S if number is not None else _STILL_GRACE_S):
                return
        elif number is not None:
            late = f"sleep {_HEAD_START_S}; kill -KILL {number}"
            subprocess.Popen(["sh", "-c", late], start_new_session=True)
        self._end_with(error)

    @staticmethod
    def _end_with(error: PipelineError) -> NoReturn:
        get_error_handler().record_exception(error)
        os._exit(1)

    def _process_here(self, rank: int) -> tuple[int | None, str]:
        """The process of a rank and its error file; None if it is on another machine."""
        with suppress(RuntimeError):
            number, host, error_file = json.loads(self._store.get(f"{_PROCESS}/{rank}"))
            return (number, error_file) if host == socket.gethostname() else (None, "")
        return None, ""

    def _report(self, kind: str, text: str) -> None:
        line = json.dumps({"kind": kind, "text": text})
        try:
            self._store.compare_set(_FAILURE, "", line)  # the first one stays
        except RuntimeError:  # no reader is left
            logger.warning("the team's store is gone; could not report: %s", text)
        self.end()

    def _mark(self, key: str) -> None:
        self._set(key, "1")

    def _set(self, key: str, value: str) -> None:
        try:
            self._store.set(key, value)
        except RuntimeError:
            logger.warning("the team's store is gone already")

    def _is_there(self) -> bool:
        try:
            self._store.check([_OVER])
        except RuntimeError:
            return False
        return True

    def _is_marked(self, key: str, *, if_gone: bool) -> bool:
        try:
            return self._store.check([key])
        except RuntimeError:
            return if_gone


def _record_for_another(error: PipelineError, file: Path) -> None:
    """Write the error of a process that cannot write it, as torch's error handler would."""
    extra = {"py_callstack": "", "timestamp": str(int(time.time()))}
    failure = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
    with suppress(OSError):
        file.write_text(json.dumps({"message": failure}))


class _Pulses:
    """For each rank, the last pulse and how often it was seen unchanged."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}

    def first_silent(self, counts: Mapping[int, int]) -> int | None:
        """Compare with the last look; None if every rank gave a pulse in time."""
        for rank, count in counts.items():
            before, looks = self._seen.get(rank, (0, 0))
            looks = looks + 1 if count == before else 0
            self._seen[rank] = (count, looks)
            if looks >= SILENT_LOOKS:
                return rank
        return None


class _Team:
    """Says where this rank is and what it does; at rank 0, whether no rank does anything."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self._rank, self._size = store, rank, size
        self._activity, self._calls = Activity(), calls()
        self._work, self._steps = Standstill(), Standstill()

    def look(self, *, expected: bool) -> str:
        """Look once; return the error of a team that stands still, at rank 0, else ''."""
        before, self._calls = self._calls, calls()
        worked = self._activity.moved()
        stepped = self._calls != before or self._activity.children_moved
        try:
            self._store.set(f"{_PLACE}/{self._rank}", place())
            works = self._count(_WORK, has_moved=worked)
            steps = self._count(_STEP, has_moved=stepped)
            if self._rank > 0:
                return ""
            looks = standstill.STILL_LOOKS, standstill.STEP_LOOKS
            if self._work.reached(works, expected=expected, looks=looks[0]):
                return f"no rank has computed anything for {self._since(looks[0])}"
            if self._steps.reached(steps, expected=expected, looks=looks[1]):
                return f"ranks compute, but none has taken a step for {self._since(looks[1])}"
        except RuntimeError:  # the store is gone: the team is over
            pass
        return ""

    def _count(self, key: str, *, has_moved: bool) -> tuple[int, ...]:
        """Count for this rank; return the counts of all ranks, at rank 0."""
        if has_moved:
            self._store.add(f"{key}/{self._rank}", 1)
        ranks = range(0 if self._rank else self._size)
        return tuple(self._store.add(f"{key}/{rank}", 0) for rank in ranks)

    def _since(self, looks: int) -> str:
        places = [
            f"rank {rank} is in {self._store.get(f'{_PLACE}/{rank}').decode()}"
            for rank in range(self._size)
        ]
        return f"{looks * _LOOK_EVERY_S:.0f} s: {'; '.join(places)}"


def is_broken_connection(error: RuntimeError) -> bool:
    """True for transport errors; gloo raises plain RuntimeErrors for them."""
    words = ("gloo", "Connection", "connection", "Broken pipe", "Socket", "NCCL")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)
