"""Who failed and why, on the store that torchrun's agent keeps for all ranks.

A broken connection says that a rank is gone, not why: whoever fails writes it here first. A rank
that hangs in a collective cannot be told anything, so a thread ends its process when the team is
over and it does not end by itself.
"""

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from torch import distributed as dist

from tasks.errors import DataError, EngineError, PipelineError, SettingsError, TamperError

_OVER = "team/over"
_TOLD = "team/told"
_FAILURE = "team/failure"
_LOOK_EVERY_S = 1.0
_FAILURE_WITHIN_S = 2.0
"""It is written before the connection breaks; a slow machine may deliver it later."""
GRACE_S = 30.0
"""For a process to end by itself once its team is over."""
_KINDS = {kind.__name__: kind for kind in (SettingsError, DataError, TamperError)}
"""What is final stays so on its way to the controller; all else is a machine's failure."""
logger = logging.getLogger(__name__)


class FailureStore:
    """The store as this rank sees it, over a connection of its own."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._store = dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            is_master=False,
            timeout=timedelta(seconds=60),
        )

    def report(self, error: PipelineError) -> None:
        """Say why this rank fails; the team is over."""
        line = json.dumps({"kind": type(error).__name__, "text": f"rank {self._rank}: {error}"})
        try:
            self._store.compare_set(_FAILURE, "", line)  # the first one stays
        except RuntimeError:  # nobody is left to read it
            logger.warning("the team's store is gone; nobody is told of: %s", error)
        self.end()

    def end(self) -> None:
        """Tell every rank that the team is over, for better or worse."""
        self._mark(_OVER)

    def is_over(self) -> bool:
        """True if someone said so, or the store itself is gone."""
        return self._is_marked(_OVER, if_gone=True)

    def pass_on_sigterm(self) -> None:
        """Tell the controller that this rank's machine is to go: it can still commit."""
        self._mark(_TOLD)

    def failure(self, within_s: float = _FAILURE_WITHIN_S) -> PipelineError | None:
        """The error of the rank that failed first; None if none says anything in time."""
        until = time.monotonic() + within_s
        while not self._is_marked(_FAILURE, if_gone=False):
            if time.monotonic() > until:
                return None
            time.sleep(0.1)
        first = json.loads(self._store.get(_FAILURE))
        return _KINDS.get(first["kind"], EngineError)(first["text"])

    @contextmanager
    def naming_who_failed(self) -> Iterator[None]:
        """Turn a broken collective into the error of the rank that broke it.

        Raises:
            PipelineError: another rank failed; or it went away and nobody knows why.
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
            raise EngineError(f"a process went away without a word: {error}") from error

    @contextmanager
    def watching(self, code: int, grace_s: float = GRACE_S) -> Iterator[None]:
        """End this process by force if the team is over and the block goes on."""
        left = threading.Event()

        def watch() -> None:
            passed_on = self._rank > 0
            while not left.wait(_LOOK_EVERY_S):
                if not passed_on and self._is_marked(_TOLD, if_gone=False):
                    passed_on = True
                    os.kill(os.getpid(), signal.SIGTERM)
                if self.is_over():
                    if not left.wait(grace_s):
                        os._exit(code)
                    return

        threading.Thread(target=watch, name="team-over", daemon=True).start()
        try:
            yield
        finally:
            left.set()

    def _mark(self, key: str) -> None:
        try:
            self._store.set(key, "1")
        except RuntimeError:
            logger.warning("the team's store is gone already")

    def _is_marked(self, key: str, *, if_gone: bool) -> bool:
        try:
            return self._store.check([key])
        except RuntimeError:
            return if_gone


def is_broken_connection(error: RuntimeError) -> bool:
    """Tell errors of the transport from those of a computation: gloo raises plain RuntimeErrors."""
    words = ("gloo", "Connection", "connection", "Broken pipe", "Socket", "NCCL")
    return isinstance(error, dist.DistError) or any(word in str(error) for word in words)
