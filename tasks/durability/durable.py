"""Durability of a training run: uploads, the pointer in Flyte's checkpoint, and recovery.

Flyte's checkpoint of an attempt is written as a whole and read by the next attempt only, so it
holds a few bytes: the location of the newest uploaded state.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from tasks.durability.upload import Counts, Pointer, Uploader, fetch_newest, newest_step
from tasks.store.files import canonical_json
from tasks.store.interface import store_at

logger = logging.getLogger(__name__)


class StateSlot(Protocol):
    """A few bytes that the next attempt of a task can read, such as Flyte's checkpoint."""

    def read(self) -> bytes | None:
        """What the previous attempt wrote, if anything."""
        ...

    def write(self, b: bytes) -> None:
        """Replace what the next attempt will read."""
        ...


class StateUploads:
    """Uploads a training run's states and keeps the pointer of its attempt up to date.

    Flyte's checkpoint may be used by one thread only: all methods are called by the main thread.
    """

    def __init__(self, uploader: Uploader, uri: str, slot: StateSlot | None) -> None:
        self._uploader, self._uri, self._slot = uploader, uri, slot
        self._pointed: Pointer | None = None

    @property
    def counts(self) -> Counts:
        return self._uploader.counts

    def upload_newest(self) -> None:
        """Upload the newest state in the background, if it is new, without waiting."""
        self._uploader.notify()
        self._point()

    def flush(self, timeout_s: float) -> None:
        """Wait for the newest state to be durable: the process is about to end."""
        self._uploader.notify()
        if not self._uploader.flush(timeout_s):
            logger.warning("the newest state was not uploaded within %.0f s", timeout_s)
        self._point()

    def send_notices(self) -> None:
        """Upload what tells of stopped steps, which no state has yet; a failure is logged."""
        try:
            self._uploader.send_notices()
        except Exception as error:  # noqa: BLE001 - boundary: the error that ended the work is raised
            logger.warning("a stopped step is recorded on this machine only: %s", error)

    def _point(self) -> None:
        newest = self._uploader.newest
        if newest is not None and newest != self._pointed:
            write_pointer(self._slot, newest)
            self._pointed = newest


@contextmanager
def keep_durable(
    folder: Path, uri: str, slot: StateSlot | None, seconds_left: Callable[[], float]
) -> Iterator[StateUploads]:
    """Restore what an earlier attempt uploaded, then upload new states while the block runs.

    Args:
        folder: of the work, on a local disk.
        uri: its durable prefix; the folder itself if that disk outlives the machine.
        slot: Flyte's checkpoint; None where the platform has none.
        seconds_left: how long the last upload may take if the block ends with an error.

    Raises:
        EngineError: the durable storage does not answer; it must not start from zero.
    """
    # Imported here: stages that hold no model do not wait for torch.
    from tasks.durability.upload_nodes import ask_nodes

    restore_uploaded(folder, uri, slot)
    uploader = Uploader(folder, store_at(uri))
    uploads = StateUploads(uploader, uri, slot)
    try:
        ask_nodes(folder, uri)
        yield uploads
    # Of every kind: Ctrl-C and SystemExit end the work as well.
    except BaseException:
        # First: the last state may take all the time that is left.
        uploads.send_notices()
        uploads.flush(seconds_left())
        raise
    finally:
        uploader.close()


def restore_uploaded(folder: Path, uri: str, slot: StateSlot | None) -> None:
    """Fetch the newest complete state unless the local disk already has it."""
    pointer = read_pointer(slot)
    places = [uri] if pointer is None else [uri, pointer.uri]
    for place in dict.fromkeys(places):
        fetch_newest(place, folder)
    if pointer is None:
        return
    newest = newest_step(folder)
    if newest < pointer.step:
        logger.warning(
            "step %d was uploaded to %s, but the newest complete state is of step %d; resuming it",
            pointer.step,
            pointer.uri,
            newest,
        )
    # An attempt can read only what the previous attempt wrote.
    write_pointer(slot, pointer)


def read_pointer(slot: StateSlot | None) -> Pointer | None:
    """Read the pointer of the previous attempt; None, with a warning, if it cannot be read."""
    if slot is None:
        return None
    try:
        payload = slot.read()
        return None if payload is None else Pointer.model_validate_json(payload)
    except ValidationError as error:
        logger.warning("the checkpoint of the previous attempt holds no pointer: %s", error)
    except Exception as error:  # noqa: BLE001 - boundary: flytekit raises if that attempt wrote nothing
        logger.warning("the checkpoint of the previous attempt cannot be read: %s", error)
    return None


def write_pointer(slot: StateSlot | None, pointer: Pointer) -> None:
    """Write a pointer for the next attempt; without one it finds the newest upload by name."""
    if slot is None:
        return
    try:
        slot.write(canonical_json(pointer))
    except Exception as error:  # noqa: BLE001 - boundary: each of Flyte's file systems raises its own errors
        logger.warning("the pointer to step %d was not written: %s", pointer.step, error)
