"""A phase's committed states at a durable place, so that another machine can go on.

    <uri>/steps/000012-<sha256>.json     record of step 12
    <uri>/states/000012-<sha256>/        the committed state of step 12, MANIFEST.json last

Every name carries the digest of its content: two attempts that are alive at the same time never
write over each other. A thread uploads the newest committed state while training goes on; states
that came while it was busy are skipped and counted. What comes back is checked file by file.
"""

import logging
import shutil
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tasks.errors import DataError
from tasks.rl.durability import state
from tasks.store.files import link_folder, sha256_bytes, sha256_file, staged_folder, write_bytes
from tasks.store.interface import Store, store_at
from tasks.store.manifest import MANIFEST, manifest_files

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0
"""Between two attempts at an upload; doubled after every failure."""
_HELD = "uploading"
logger = logging.getLogger(__name__)


class Pointer(BaseModel):
    """What Flyte's checkpoint holds: which state was uploaded last, and where."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    uri: str
    """Durable prefix of the phase."""
    step: int
    digest: str
    """sha256 of the state's manifest."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What an uploader did."""

    uploaded: int = 0
    skipped: int = 0
    """Committed while an earlier state was still on its way, and overtaken by a later one."""
    failed: int = 0
    """Attempts that did not reach the durable place."""


class Uploader:
    """Uploads the newest committed state of a phase in a thread of its own.

    Args:
        folder: of the phase.
        place: that outlives the machine; the folder itself if that does.
        first_pause_s: after the first failure.
    """

    def __init__(self, folder: Path, place: Store, *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self._folder, self._place, self._first_pause_s = folder, place, first_pause_s
        self._here = place.local_path == folder
        self._changed = threading.Condition()
        self._waiting: Path | None = None
        self._busy = self._hurry = self._closed = False
        self._told = 0
        self._records: set[str] | None = None
        self._newest: Pointer | None = None
        self._counts = Counts()
        shutil.rmtree(folder / _HELD, ignore_errors=True)
        self._thread = threading.Thread(target=self._work, name="state-upload", daemon=True)
        self._thread.start()

    @property
    def newest(self) -> Pointer | None:
        """The newest state that this uploader has brought to the durable place."""
        with self._changed:
            return self._newest

    @property
    def counts(self) -> Counts:
        """What it did so far."""
        with self._changed:
            return self._counts

    def tell(self) -> None:
        """Say that a state may have been committed. Called by whoever commits; never waits.

        The state is held by hard links, so that it may be dropped while it is on its way.
        """
        step = state.newest(self._folder)
        if step <= self._told:
            return
        self._told = step
        path = state.committed(self._folder) / f"{step:06d}"
        if self._here:
            self._record(_pointer(path, self._place.uri))
            return
        held = self._folder / _HELD / path.name
        link_folder(path, held)
        with self._changed:
            overtaken, self._waiting = self._waiting, held
            self._changed.notify_all()
        if overtaken is not None:
            self._skip(overtaken)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything told is durable; False if the time was too short."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            done = self._changed.wait_for(
                lambda: self._waiting is None and not self._busy,
                max(0.0, deadline - time.monotonic()),
            )
            self._hurry = False
        return done

    def close(self) -> None:
        """Start no further upload. One that is under way ends with the process at the latest."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=self._first_pause_s)
        if not self._thread.is_alive():
            shutil.rmtree(self._folder / _HELD, ignore_errors=True)

    def _work(self) -> None:
        pause_s = self._first_pause_s
        while (held := self._next()) is not None:
            try:
                self._record(self._send(held))
            except Exception as error:  # noqa: BLE001 - the boundary: storage that fails must not stop training
                self._count(failed=1)
                logger.warning(
                    "state %s is not durable yet, trying again in %.0f s: %s: %s",
                    held.name,
                    pause_s,
                    type(error).__name__,
                    error,
                )
                self._put_back(held, pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2.0 * pause_s)
                continue
            pause_s = self._first_pause_s
            self._let_go(held)

    def _next(self) -> Path | None:
        """Wait for a state to upload; None when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting is not None)
            if self._closed:
                return None
            held, self._waiting, self._busy = self._waiting, None, True
            return held

    def _put_back(self, held: Path, pause_s: float) -> None:
        """Wait, then let the state be tried again, unless a newer one has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._hurry, pause_s)
            if self._hurry:  # somebody waits; do not spin either
                self._changed.wait_for(lambda: self._closed, min(pause_s, 1.0))
            overtaken = self._waiting is not None
            if not overtaken:
                self._waiting = held
            self._busy = False
        if overtaken:
            self._skip(held)

    def _let_go(self, held: Path) -> None:
        shutil.rmtree(held, ignore_errors=True)
        with self._changed:
            self._busy = False
            self._changed.notify_all()

    def _skip(self, held: Path) -> None:
        shutil.rmtree(held, ignore_errors=True)
        self._count(skipped=1)

    def _send(self, held: Path) -> Pointer:
        """Upload one state: the records it needs, its files, its manifest."""
        pointer = _pointer(held, self._place.uri)
        if self._records is None:
            self._records = set(self._place.list_files("steps"))
        for name, digest in state.read_records(held).items():
            if (there := _record_name(name, digest)) not in self._records:
                self._place.upload_file(self._folder / "steps" / name, f"steps/{there}")
                self._records.add(there)
        target = f"states/{_state_name(pointer)}"
        manifest = (held / MANIFEST).read_bytes()
        for name in manifest_files(manifest, str(held)):
            self._place.upload_file(held / name, f"{target}/{name}")
        self._place.write_bytes(manifest, f"{target}/{MANIFEST}")
        for old in _superseded(self._place):
            self._place.delete_folder(f"states/{old}")
        return pointer

    def _record(self, pointer: Pointer) -> None:
        with self._changed:
            self._newest = pointer
            self._counts = replace(self._counts, uploaded=self._counts.uploaded + 1)

    def _count(self, *, skipped: int = 0, failed: int = 0) -> None:
        with self._changed:
            self._counts = replace(
                self._counts,
                skipped=self._counts.skipped + skipped,
                failed=self._counts.failed + failed,
            )


def fetch_newest(uri: str, folder: Path) -> int:
    """Download the newest whole state and its records, unless the folder has it or a newer one.

    Returns:
        The step the folder stands at then; 0 if there is no state anywhere.

    Raises:
        EngineError: the durable place does not answer.
    """
    here = newest_step(folder)
    place = store_at(uri)
    for name in _uploaded(place):
        step = int(name.partition("-")[0])
        if step <= here:
            break
        try:
            _fetch(place, name, folder)
        except DataError as error:
            logger.warning("uploaded state %s is passed over: %s", name, error)
            continue
        logger.warning("state of step %d was downloaded from %s", step, uri)
        return step
    return here


def _fetch(store: Store, name: str, folder: Path) -> None:
    """Download one state; its records first, so that a state that is there is whole."""
    place = store_at(f"{store.uri}/states/{name}")
    manifest = place.read_bytes(MANIFEST)
    digest = sha256_bytes(manifest)
    if not name.endswith(f"-{digest[:16]}"):
        raise DataError(f"{place.uri}/{MANIFEST} is not what was uploaded")
    target = state.committed(folder) / name.partition("-")[0]
    if target.exists():  # it is there and not whole
        shutil.rmtree(target)
    with staged_folder(target) as staged:
        for file, recorded in manifest_files(manifest, place.uri).items():
            place.download_file(staged / file, file)
            _check(staged / file, recorded, f"{place.uri}/{file}")
        write_bytes(staged / MANIFEST, manifest)
        for file, recorded in state.read_records(staged).items():
            _fetch_record(store, file, recorded, folder)


def _fetch_record(store: Store, file: str, recorded: str, folder: Path) -> None:
    target = folder / "steps" / file
    if target.exists() and sha256_file(target) == recorded:
        return
    there = f"steps/{_record_name(file, recorded)}"
    payload = store.read_bytes(there)
    if sha256_bytes(payload) != recorded:
        raise DataError(f"{store.uri}/{there} is not what was uploaded")
    write_bytes(target, payload)


def _check(path: Path, recorded: str, where: str) -> None:
    if (found := sha256_file(path)) != recorded:
        raise DataError(f"{where}: sha256 is {found}, recorded {recorded}")


def newest_step(folder: Path) -> int:
    """Number of the newest whole state of a local folder; 0 if there is none."""
    path = state.newest_whole(folder)
    return int(path.name) if path else 0


def _uploaded(place: Store) -> list[str]:
    """Names of the states whose upload was completed, newest first."""
    files = place.list_files("states")
    ends = f"/{MANIFEST}"
    return sorted((name.removesuffix(ends) for name in files if name.endswith(ends)), reverse=True)


def _superseded(place: Store) -> list[str]:
    """Names of states older than those that are kept, incomplete ones too."""
    kept_names = _uploaded(place)[: state.KEPT_STATES]
    names = {name.partition("/")[0] for name in place.list_files("states")}
    return sorted(name for name in names if name < kept_names[-1])


def _pointer(path: Path, uri: str) -> Pointer:
    digest = sha256_file(path / MANIFEST)
    return Pointer(uri=uri, step=int(path.name), digest=digest)


def _state_name(pointer: Pointer) -> str:
    return f"{pointer.step:06d}-{pointer.digest[:16]}"


def _record_name(name: str, digest: str) -> str:
    return f"{Path(name).stem}-{digest[:16]}.json"
