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
from tasks.store import local, remote

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
        uri: durable prefix, a path or s3://; the folder itself if that is durable already.
        first_pause_s: after the first failure.
    """

    def __init__(self, folder: Path, uri: str, *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self._folder, self._uri, self._first_pause_s = folder, uri, first_pause_s
        self._here = not remote.is_remote(uri) and Path(uri) == folder
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
            self._record(_pointer(path, self._uri))
            return
        held = self._folder / _HELD / path.name
        local.link_folder(path, held)
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
        pointer = _pointer(held, self._uri)
        if self._records is None:
            self._records = set(remote.list_files(f"{self._uri}/steps"))
        for name, digest in state.read_records(held).items():
            if (there := _record_name(name, digest)) not in self._records:
                remote.upload_file(self._folder / "steps" / name, f"{self._uri}/steps/{there}")
                self._records.add(there)
        place = f"{self._uri}/states/{_state_name(pointer)}"
        manifest = (held / local.MANIFEST).read_bytes()
        for name in local.manifest_files(manifest, str(held)):
            remote.upload_file(held / name, f"{place}/{name}")
        remote.write_bytes(f"{place}/{local.MANIFEST}", manifest)
        for old in _superseded(self._uri):
            remote.delete_folder(f"{self._uri}/states/{old}")
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
    for name in _uploaded(uri):
        step = int(name.partition("-")[0])
        if step <= here:
            break
        try:
            _fetch(uri, name, folder)
        except DataError as error:
            logger.warning("uploaded state %s is passed over: %s", name, error)
            continue
        logger.warning("state of step %d was downloaded from %s", step, uri)
        return step
    return here


def _fetch(uri: str, name: str, folder: Path) -> None:
    """Download one state; its records first, so that a state that is there is whole."""
    place = f"{uri}/states/{name}"
    manifest = remote.read_bytes(f"{place}/{local.MANIFEST}")
    digest = local.sha256_bytes(manifest)
    if not name.endswith(f"-{digest[:16]}"):
        raise DataError(f"{place}/{local.MANIFEST} is not what was uploaded")
    target = state.committed(folder) / name.partition("-")[0]
    if target.exists():  # it is there and not whole
        shutil.rmtree(target)
    with local.staged_folder(target) as staged:
        for file, recorded in local.manifest_files(manifest, place).items():
            remote.download_file(f"{place}/{file}", staged / file)
            _check(staged / file, recorded, f"{place}/{file}")
        local.write_bytes(staged / local.MANIFEST, manifest)
        for file, recorded in state.read_records(staged).items():
            _fetch_record(uri, file, recorded, folder)


def _fetch_record(uri: str, file: str, recorded: str, folder: Path) -> None:
    target = folder / "steps" / file
    if target.exists() and local.sha256_file(target) == recorded:
        return
    there = f"{uri}/steps/{_record_name(file, recorded)}"
    payload = remote.read_bytes(there)
    if local.sha256_bytes(payload) != recorded:
        raise DataError(f"{there} is not what was uploaded")
    local.write_bytes(target, payload)


def _check(path: Path, recorded: str, where: str) -> None:
    if (found := local.sha256_file(path)) != recorded:
        raise DataError(f"{where}: sha256 is {found}, recorded {recorded}")


def newest_step(folder: Path) -> int:
    """Number of the newest whole state of a local folder; 0 if there is none."""
    path = state.newest_whole(folder)
    return int(path.name) if path else 0


def _uploaded(uri: str) -> list[str]:
    """Names of the states whose upload was completed, newest first."""
    files = remote.list_files(f"{uri}/states")
    ends = f"/{local.MANIFEST}"
    return sorted((name.removesuffix(ends) for name in files if name.endswith(ends)), reverse=True)


def _superseded(uri: str) -> list[str]:
    """Names of states older than those that are kept, incomplete ones too."""
    kept_names = _uploaded(uri)[: state.KEPT_STATES]
    names = {name.partition("/")[0] for name in remote.list_files(f"{uri}/states")}
    return sorted(name for name in names if name < kept_names[-1])


def _pointer(path: Path, uri: str) -> Pointer:
    digest = local.sha256_file(path / local.MANIFEST)
    return Pointer(uri=uri, step=int(path.name), digest=digest)


def _state_name(pointer: Pointer) -> str:
    return f"{pointer.step:06d}-{pointer.digest[:16]}"


def _record_name(name: str, digest: str) -> str:
    return f"{Path(name).stem}-{digest[:16]}.json"
