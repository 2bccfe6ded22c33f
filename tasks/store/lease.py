"""Leases: one holder at a time for a piece of work on a store.

On disk a lease is a file lock, which the kernel releases when its process ends, SIGKILL included.
In S3 it is an object that the holder rewrites every RENEW_S; every write is conditional (If-Match,
If-None-Match), so of two writers one is refused. Whoever finds the object unchanged for TERM_S
by its own clock takes the lease over: the clocks of two machines are never compared.

Limit: a holder that cannot reach S3 for TERM_S may go on while another one starts. It learns of
this when S3 answers again (`check`), or asks before a step that must not happen twice (`confirm`).
The S3 service has to honour conditional writes (docs/s3_services.md).
"""

import fcntl
import logging
import math
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from data_schemas.frozen_model import FrozenModel
from tasks.errors import DataError, EngineError, PreemptionError
from tasks.store.files import FILE_MODE, canonical_json
from tasks.store.interface import store_at
from tasks.store.s3 import S3Store

TERM_S = 60.0
"""A lease in S3 that was not renewed for this long may be taken over."""
RENEW_S = 15.0
POLL_S = 1.0
"""Pause between two attempts at a lease that is held."""
logger = logging.getLogger(__name__)


class Holder(FrozenModel):
    """Content of a lease."""

    owner: str
    """Whoever waits is told this: the execution and the stage."""
    host: str
    process: int
    since: float
    """Unix time, for people."""
    token: str
    """Distinguishes two leases of one process."""
    renewed: int = 0
    released: bool = False

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        return f"{self.owner} (process {self.process} on {self.host}) since {since}"


class Lease(Protocol):
    """A lease that is held."""

    def check(self) -> None:
        """Refuse to go on if another holder is known to have taken over.

        Raises:
            EngineError: names the other holder.
        """
        ...

    def confirm(self) -> None:
        """Prove that the lease is still held, before something that must happen only once.

        Raises:
            EngineError: it is not, or the store does not answer.
        """
        ...


@contextmanager
def lease(uri: str, owner: str, *, patience_s: float = math.inf) -> Iterator[Lease]:
    """Hold the lease at a uri while the block runs; wait for a holder that is alive.

    Args:
        uri: of the lease, a file name in a store.
        owner: the execution and the stage, for whoever has to wait.
        patience_s: how long to wait for another holder.

    Raises:
        EngineError: another holder is still alive after `patience_s`, or S3 does not answer.
    """
    mine = Holder(
        owner=owner,
        host=socket.gethostname(),
        process=os.getpid(),
        since=time.time(),
        token=uuid.uuid4().hex,
    )
    place = store_at(uri)
    queue = _Queue(uri, time.monotonic() + patience_s)
    if isinstance(place, S3Store):
        with _in_s3(place, mine, queue) as own_lease:
            yield own_lease
    else:
        with _on_disk(Path(uri), mine, queue) as own_lease:
            yield own_lease


class _Queue:
    """Patience of one who waits, and what the log says of it."""

    def __init__(self, uri: str, deadline: float) -> None:
        self._uri, self._deadline = uri, deadline
        self._last_token = ""

    def wait(self, holder: Holder | None) -> None:
        """Pause before the next attempt.

        Raises:
            EngineError: patience is exhausted.
        """
        conflict = f"{self._uri} is held by {holder or 'a process that has just started'}"
        seconds_left = self._deadline - time.monotonic()
        if seconds_left <= 0.0:
            raise EngineError(f"{conflict}. Wait until that run ends, or stop it, then run again.")
        if holder is not None and holder.token != self._last_token:
            self._last_token = holder.token
            logger.warning("%s; waiting for that run to end. To continue now, stop it.", conflict)
        time.sleep(min(POLL_S, seconds_left))


class _FileLease:
    """The kernel takes it from nobody who is alive."""

    def check(self) -> None:
        pass

    def confirm(self) -> None:
        pass


@contextmanager
def _on_disk(path: Path, mine: Holder, queue: _Queue) -> Iterator[Lease]:
    path.parent.mkdir(parents=True, exist_ok=True)
    while (handle := _lock(path)) is None:
        queue.wait(_parse(_read_if_there(path)))
    try:
        os.truncate(handle, 0)
        os.pwrite(handle, canonical_json(mine), 0)
        yield _FileLease()
    finally:
        path.unlink(missing_ok=True)  # still locked: nobody else can have made a new one
        os.close(handle)


def _lock(path: Path) -> int | None:
    """Lock the file, which may be removed by its holder meanwhile; None if it is held."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        try:
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)


def is_held(path: Path) -> bool:
    """Return whether a process of this machine holds a lease on disk, or may: it just started.

    Args:
        path: of a lease that was there.
    """
    if (handle := _lock(path)) is None:
        return True
    path.unlink(missing_ok=True)  # still locked, as whoever releases it does
    os.close(handle)
    return False


def last_renewal(payload: bytes) -> tuple[str, float]:
    """Return who holds a lease in S3, and when that was last renewed, Unix time by its clock.

    Args:
        payload: of the lease; one that is released or not readable belongs to nobody, ('', 0.0).
    """
    holder = _parse(payload)
    if holder is None or holder.released:
        return "", 0.0
    return holder.owner, holder.since + holder.renewed * RENEW_S


def _read_if_there(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _parse(payload: bytes) -> Holder | None:
    """Read a lease; None if its holder has not written it yet."""
    try:
        return Holder.model_validate_json(payload)
    except ValidationError:
        return None


class _S3Lease:
    """An object that is rewritten while the lease is held."""

    def __init__(self, place: S3Store, mine: Holder, tag: str) -> None:
        self._place, self._mine, self._tag = place, mine, tag
        self._takeover = ""
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        if self._takeover:
            raise EngineError(f"{self._place.uri} was taken over {self._takeover}; this run stops")

    def confirm(self) -> None:
        self._write(self._mine.model_copy(update={"renewed": self._mine.renewed + 1}))
        self.check()

    def release(self) -> None:
        self._ended.set()
        self._thread.join()
        try:
            self._write(self._mine.model_copy(update={"released": True}))
        except EngineError as error:
            logger.warning("%s expires in %.0f s: %s", self._place.uri, TERM_S, error)

    def _renew(self) -> None:
        while not self._takeover and not self._ended.wait(RENEW_S):
            try:
                self.confirm()
            except EngineError as error:
                logger.warning("the lease was not renewed: %s", error)

    def _write(self, mine: Holder) -> None:
        with self._writing:
            if self._takeover:
                return
            tag = _put(self._place, mine, self._tag)
            if tag:
                self._mine, self._tag = mine, tag
                return
            current = _get(self._place)
            self._takeover = f"by {current[0]}" if current else "by somebody who removed it"


@contextmanager
def _in_s3(place: S3Store, mine: Holder, queue: _Queue) -> Iterator[Lease]:
    with _unwinding():
        try:
            own_lease = _S3Lease(place, mine, _acquire(place, mine, queue))
        except PreemptionError:
            with _deferred():
                _give_up(place, mine)
            raise
        try:
            yield own_lease
        finally:
            with _deferred():
                own_lease.release()


@contextmanager
def _unwinding() -> Iterator[None]:
    """Raise PreemptionError at SIGTERM, so that leases are released; a handler of others stays.

    By default a process ends where it stands, and whoever comes next waits for TERM_S.
    """
    if not _is_main() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> None:
        raise PreemptionError("stopped by SIGTERM; what was committed is safe")

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _deferred() -> Iterator[None]:
    """Put a SIGTERM off until the block has ended."""
    if not _is_main():
        yield
        return
    signals: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        if signals:
            os.kill(os.getpid(), signal.SIGTERM)


def _is_main() -> bool:
    """Only this thread may have handlers of signals."""
    return threading.current_thread() is threading.main_thread()


def _give_up(place: S3Store, mine: Holder) -> None:
    """Release a lease whose acquisition was cut off after the object was written."""
    with suppress(EngineError):
        current = _get(place)
        if current and current[0] and current[0].token == mine.token:
            _put(place, mine.model_copy(update={"released": True}), current[1])


def _acquire(place: S3Store, mine: Holder, queue: _Queue) -> str:
    """Write the object as its holder and return its tag."""
    last_tag, unchanged_since = "", 0.0
    while True:
        current = _get(place)
        if current is None:
            tag = _put(place, mine, None)
        else:
            holder, old = current
            if old != last_tag:
                last_tag, unchanged_since = old, time.monotonic()
            expired = time.monotonic() - unchanged_since > TERM_S
            if not expired and not (holder and holder.released):
                queue.wait(holder)
                continue
            if expired:
                logger.warning("%s: no sign of life for %.0f s from %s", place.uri, TERM_S, holder)
            tag = _put(place, mine, old)
        if tag:
            return tag


def _get(place: S3Store) -> tuple[Holder | None, str] | None:
    try:
        payload, tag = place.read_tagged()
    except DataError:
        return None
    return _parse(payload), tag


def _put(place: S3Store, mine: Holder, tag: str | None) -> str:
    """Write if the object is as it was read; '' if it is not."""
    payload = canonical_json(mine)
    new_tag = place.write_tagged(payload, tag)
    if new_tag:
        return new_tag
    # The client repeats a write whose answer was lost, and the repetition is refused.
    try:
        content, latest_tag = place.read_tagged()
    except DataError:
        return ""
    return latest_tag if content == payload else ""
