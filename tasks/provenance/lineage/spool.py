"""Events for MLflow, written to disk before they are sent.

Every event is one JSON line, appended and fsynced before anything is sent, so neither an
outage of the tracking server nor the death of the process loses one. A file is shipped
from its `.offset` on; sending the same event twice changes nothing at the receiver, and
so a crash between sending and moving the offset does no harm. A shipped file goes to
`shipped/`, from where `repair` fills an empty tracking store. An event that MLflow refuses
stays in its spool with all events after it.

Limit: the spool of a running stage is lost together with its disk. For s3:// stores the spool
is on the local disk while the stage runs and goes to the store when the stage ends.
"""

import fcntl
import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from data_schemas.events import EVENT, Event, MetricsLogged, StageFinished
from tasks.errors import DataError, EngineError
from tasks.provenance.lineage.order import producers_first
from tasks.store.files import naming_a_full_disk, write_bytes

logger = logging.getLogger(__name__)

BATCH = 500
"""Metric values per request; MLflow allows 1000."""
SHIPPED = "shipped"
"""Folder of the spools that arrived."""


class NotKeptError(EngineError):
    """The receiver answered as if it had taken events, and does not have them."""


class Receiver(Protocol):
    """Where events go. Applying one twice must be the same as once."""

    def apply(self, run: str, events: Sequence[Event]) -> None:
        """Record events of the run with this key, in order.

        Raises:
            EngineError: unreachable; try again later.
            NotKeptError: earlier events of the run, which it took, are not there.
            DataError: refused.
        """
        ...


class Spool:
    """The events of one stage run. Only one process at a time holds it.

    Raises:
        BlockingIOError: another holder is alive.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("r+b")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._stream.close()
            raise
        # A line that a crash left incomplete must not be joined with the next one.
        if self._stream.seek(0, os.SEEK_END) and not path.read_bytes().endswith(b"\n"):
            self._stream.write(b"\n")

    @property
    def run(self) -> str:
        """The key all attempts of this stage in this execution share."""
        return run_of(self.path)

    def append(self, event: Event) -> None:
        """Make an event durable.

        Raises:
            EngineError: the file was deleted; the next attempt at the stage has one of its own. Or
                its disk is full.
        """
        if not self.path.exists():
            raise EngineError(
                f"{self.path} was deleted while its stage ran, and its events for MLflow are lost. "
                "Nothing may empty this folder during a run; try again."
            )
        with naming_a_full_disk(self.path.parent):
            self._stream.write(event.model_dump_json().encode() + b"\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())

    def ship(self, receiver: Receiver) -> None:
        """Send what was not sent yet, and stop at the first event that does not arrive.

        Raises:
            EngineError: the receiver cannot be reached.
            DataError: it refused an event.
        """
        mark = self.path.with_suffix(".offset")
        start = int(mark.read_text()) if mark.exists() else 0
        for end, events in _batches(self.path, start):
            try:
                receiver.apply(self.run, events)
            except EngineError as error:
                if isinstance(error, NotKeptError):
                    mark.unlink(missing_ok=True)  # all of it is sent again
                # sqlalchemy adds a line with an address of its documentation.
                reason = str(error).partition("\n(Background on")[0][:500]
                raise EngineError(
                    f"MLflow does not answer; {self.path} is kept for later: {reason}"
                ) from error
            except DataError as error:
                raise DataError(
                    f"MLflow refused {events[0].kind!r} of {self.run}; it and what follows stay "
                    f"in {self.path}: {str(error)[:500]}"
                ) from error
            write_bytes(mark, str(end).encode())

    @property
    def open(self) -> bool:
        """True until `close`."""
        return not self._stream.closed

    @property
    def finished(self) -> bool:
        """True if the stage ended, with or without an error, or if it holds none."""
        kinds = {event.kind for _, events in _batches(self.path) for event in events}
        return "finish" in kinds or kinds <= {"execution", "file", "ended"}

    def close(self, *, shipped: bool) -> None:
        """Close the file; a shipped one is moved to `shipped/`."""
        if shipped:
            folder = self.path.parent / SHIPPED
            folder.mkdir(exist_ok=True)
            self.path.rename(folder / self.path.name)
            self.path.with_suffix(".offset").unlink(missing_ok=True)
        self._stream.close()


def new_spool(folder: Path, run: str) -> Spool:
    """Open the spool of one attempt at a stage."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}.{uuid.uuid4().hex[:8]}.jsonl"
    path.touch(exist_ok=False)
    return Spool(path)


@dataclass(frozen=True, slots=True)
class SpoolRemainder:
    """What did not arrive."""

    spools: tuple[Path, ...]
    reachable: bool
    """The receiver answered."""


def ship_left_over(folder: Path, receiver: Receiver) -> SpoolRemainder:
    """Ship every unlocked spool; a refused event does not stop the other spools.

    A spool without end belongs to a process that was killed: its run is marked so.
    """
    remaining: list[Path] = []
    reachable = True
    for path in producers_first(read_spools(folder.glob("*.jsonl"))):
        with _lock(path) as spool:
            if spool is None:
                continue
            if not spool.finished:
                spool.append(StageFinished(status="KILLED"))
            shipped = False
            if reachable:
                try:
                    spool.ship(receiver)
                    shipped = True
                except (EngineError, DataError) as error:
                    logger.warning("%s", error)
                    reachable = not isinstance(error, EngineError)
            spool.close(shipped=shipped)
            if not shipped:
                remaining.append(path)
    return SpoolRemainder(tuple(remaining), reachable)


def read_spools(paths: Iterable[Path]) -> dict[Path, tuple[str, list[Event]]]:
    """Read spools, (run, events) by file; one that another process files away is left out."""
    results: dict[Path, tuple[str, list[Event]]] = {}
    for path in paths:
        with suppress(FileNotFoundError):
            results[path] = (
                run_of(path),
                [event for _, events in _batches(path) for event in events],
            )
    return results


def run_of(path: Path) -> str:
    """The key of the run whose events a spool holds."""
    return path.name.rsplit(".", 2)[0]


@contextmanager
def _lock(path: Path) -> Iterator[Spool | None]:
    """Yield the spool, or None if a running process holds it or has moved it."""
    try:
        spool = Spool(path)
    except (BlockingIOError, FileNotFoundError):
        yield None
        return
    if path.exists():
        yield spool
        return
    spool.close(shipped=False)  # filed away between opening and locking
    yield None


def _batches(path: Path, start: int = 0) -> Iterator[tuple[int, list[Event]]]:
    """Yield (offset after it, events): neighbouring metrics together, others alone."""
    batch: list[Event] = []
    size = 0
    with path.open("rb") as stream:
        stream.seek(start)
        end = start
        for line in stream:
            if not line.endswith(b"\n"):
                break  # torn: the process died while writing it
            event = _parse(line, path)
            values = len(event.values) if isinstance(event, MetricsLogged) else 0
            if batch and (not values or size + values > BATCH):
                yield end, batch
                batch, size = [], 0
            end += len(line)
            if isinstance(event, MetricsLogged):
                batch.append(event)
                size += values
            elif event is not None:
                yield end, [event]
    if batch:
        yield end, batch


def _parse(line: bytes, path: Path) -> Event | None:
    try:
        return EVENT.validate_json(line)
    except ValidationError as error:
        if error.errors()[0]["type"] != "json_invalid":
            logger.warning(
                "%s: %.80r is not an event of this version and is left out: %s. Move the file back "
                "from shipped/ and run a stage with the version that wrote it.",
                path,
                line.strip(),
                error.errors()[0]["msg"],
            )
        elif line.strip():
            logger.warning("%s: a torn line of %d bytes is left out", path, len(line))
        return None
