"""Upload of a run's committed states to durable storage, so that another machine can resume.

    <uri>/steps/000012-<sha256>.json     a record
    <uri>/states/000012-<sha256>/        the committed state of step 12, MANIFEST.json last
    <uri>/rollouts/000013-<sha256>/      what step 13 trains on, until its state is there
    <uri>/ended/000012-<sha256>/         responses of the policy after step 12, until the next state

Every name contains the digest of its content, so two attempts that run at the same time never
overwrite each other's files. A thread uploads the newest committed state while training continues;
states committed while it is busy are skipped and counted. Downloads are verified file by file;
rollouts and responses by who reads them.
"""

import logging
import re
import shutil
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from data_schemas.frozen_model import FrozenModel
from tasks.durability import states
from tasks.durability.upload_claims import remove_claims, upload_together
from tasks.errors import DataError, TamperError
from tasks.store.files import (
    copy_file,
    link_folder,
    scratch_folder,
    sha256_bytes,
    sha256_file,
    staged_folder,
    write_bytes,
)
from tasks.store.interface import Store, store_at
from tasks.store.manifest import MANIFEST, manifest_files

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0
"""Delay between two attempts at an upload; doubled after every failure."""
HELD = "uploading"
"""Folder of what is held for its upload by hard links."""
CLAIMS = "claims"
"""Folder of claims to the files of states; there if other nodes upload too (upload_nodes.py)."""
_LOOK_S = 1.0
"""Interval of looks for rollouts, while there is no state to upload."""
_BETWEEN = (states.ROLLOUTS, states.ENDED)
"""Folders of what there is between two states."""
logger = logging.getLogger(__name__)


class Pointer(FrozenModel):
    """Content of Flyte's checkpoint: which state was uploaded last, and where."""

    uri: str
    """Durable prefix of the work."""
    step: int
    digest: str
    """sha256 of the state's manifest."""


@dataclass(frozen=True, slots=True)
class Counts:
    uploaded: int = 0
    skipped: int = 0
    """States committed during an upload and superseded before their own upload began."""
    failed: int = 0


class Uploader:
    """Uploads the newest committed state in a separate thread.

    Args:
        folder: of the work.
        place: that outlives the machine; the folder itself if that does.
        first_pause_s: after the first failure.
    """

    def __init__(self, folder: Path, place: Store, *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self._folder, self._place, self._first_pause_s = folder, place, first_pause_s
        self._here = place.local_path == folder
        self._changed = threading.Condition()
        self._waiting: Path | None = None
        self._busy = self._flushing = self._closed = False
        self._notified = 0
        self._seen: set[str] = set()
        self._records: set[str] | None = None
        self._newest: Pointer | None = None
        self._counts = Counts()
        shutil.rmtree(folder / HELD, ignore_errors=True)
        remove_claims(folder / CLAIMS)
        # A daemon: an upload that hangs must not keep the process alive after its work.
        self._thread = threading.Thread(target=self._work, name="state-upload", daemon=True)
        self._thread.start()

    @property
    def newest(self) -> Pointer | None:
        """The newest state that this uploader has uploaded."""
        with self._changed:
            return self._newest

    @property
    def counts(self) -> Counts:
        with self._changed:
            return self._counts

    def notify(self) -> None:
        """Report that a state may have been committed; never waits.

        The state is held by hard links, so that it may be dropped during the upload.
        """
        step = states.newest(self._folder)
        if step <= self._notified:
            return
        self._notified = step
        path = states.committed_folder(self._folder) / f"{step:06d}"
        if self._here:
            self._record(pointer_to(path, self._place.uri))
            return
        link = self._folder / HELD / path.name
        link_folder(path, link)
        with self._changed:
            overtaken, self._waiting = self._waiting, link
            self._changed.notify_all()
        if overtaken is not None:
            self._skip(overtaken)

    def flush(self, timeout_s: float) -> bool:
        """Wait until every reported state is durable; False on timeout."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._flushing = True
            if not self._busy:  # otherwise a state may have to be put back
                self._waiting = self._waiting or self._hold_between()
            self._changed.notify_all()
            idle = self._changed.wait_for(
                lambda: self._waiting is None and not self._busy,
                max(0.0, deadline - time.monotonic()),
            )
            self._flushing = False
        return idle

    def send_notices(self) -> None:
        """Upload the notices of steps that were stopped; no state may follow on this machine."""
        if self._here:
            return
        for name in states.notices(self._folder):
            path = states.record_path(self._folder, name)
            self._place.upload_file(path, f"steps/{_record_name(name, sha256_file(path))}")

    def close(self) -> None:
        """Start no further upload. One in progress ends with the process at the latest."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=self._first_pause_s)
        remove_claims(self._folder / CLAIMS)  # so that other nodes end
        if not self._thread.is_alive():
            shutil.rmtree(self._folder / HELD, ignore_errors=True)

    def _work(self) -> None:
        pause_s = self._first_pause_s
        while (link := self._next()) is not None:
            try:
                if link.name.startswith(_BETWEEN):
                    self._send_between(link)
                else:
                    self._record(self._send(link))
            except Exception as error:  # noqa: BLE001 - boundary: failing storage must not stop training
                self._count(failed=1)
                logger.warning(
                    "state %s is not durable yet, retrying in %.0f s: %s: %s",
                    link.name,
                    pause_s,
                    type(error).__name__,
                    error,
                )
                self._put_back(link, pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2.0 * pause_s)
                continue
            pause_s = self._first_pause_s
            self._release(link)

    def _next(self) -> Path | None:
        """Wait for something to upload; None when the uploader is closed."""
        with self._changed:
            while self._waiting is None and not self._closed:
                if not self._changed.wait_for(
                    lambda: self._closed or self._waiting is not None, _LOOK_S
                ):
                    self._waiting = self._hold_between()
            if self._closed:
                return None
            link, self._waiting, self._busy = self._waiting, None, True
            return link

    def _hold_between(self) -> Path | None:
        """Hold what a step trains on, or responses that ended, if not seen before; None if none."""
        for kind in () if self._here else _BETWEEN:
            for path in sorted((self._folder / kind).glob("[0-9]*")):
                link = self._folder / HELD / f"{kind}-{path.name}"
                if link.name in self._seen:
                    continue
                self._seen.add(link.name)
                try:
                    link_folder(path, link)
                except FileNotFoundError:  # its step was committed meanwhile
                    shutil.rmtree(link, ignore_errors=True)
                    continue
                return link
        return None

    def _put_back(self, link: Path, pause_s: float) -> None:
        """Wait, then queue the state again, unless there is a newer one."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._flushing, pause_s)
            if self._flushing:  # a caller waits in `flush`; still limit the rate
                self._changed.wait_for(lambda: self._closed, min(pause_s, 1.0))
            overtaken = self._waiting is not None
            if not overtaken:
                self._waiting = link
            self._busy = False
        if overtaken:
            self._skip(link)

    def _release(self, link: Path) -> None:
        shutil.rmtree(link, ignore_errors=True)
        with self._changed:
            self._busy = False
            self._waiting = self._waiting or self._hold_between()
            self._changed.notify_all()

    def _skip(self, link: Path) -> None:
        shutil.rmtree(link, ignore_errors=True)
        self._count(skipped=int(not link.name.startswith(_BETWEEN)))

    def _send_between(self, link: Path) -> None:
        """Upload what a step trains on, or responses that ended, the signature last."""
        kind, step = link.name.split("-")[:2]
        target = f"{kind}/{step}-{sha256_file(link / states.SIGNATURE)[:16]}"
        for path in sorted(link.iterdir(), key=lambda path: path.name == states.SIGNATURE):
            self._place.upload_file(path, f"{target}/{path.name}")

    def _send(self, link: Path) -> Pointer:
        """Upload one state: the records it needs, its files, its manifest."""
        pointer = pointer_to(link, self._place.uri)
        # Asked for here, in the thread: storage that does not answer must not stop the start.
        if self._records is None:
            self._records = set(self._place.list_files("steps"))
        for name, digest in states.read_records(link).items():
            if (there := _record_name(name, digest)) not in self._records:
                self._place.upload_file(states.record_path(self._folder, name), f"steps/{there}")
                self._records.add(there)
        target = f"states/{state_name(pointer)}"
        manifest = (link / MANIFEST).read_bytes()
        self._send_files(link, list(manifest_files(manifest, str(link))), target)
        self._place.upload_file(link / states.SIGNATURE, f"{target}/{states.SIGNATURE}")
        self._place.write_bytes(manifest, f"{target}/{MANIFEST}")
        for old in _superseded(self._place):
            self._place.delete_folder(f"states/{old}")
        # Rollouts are of the step after a state, responses of its policy.
        for kind, last in zip(_BETWEEN, (pointer.step, pointer.step - 1), strict=True):
            for name, step in _uploaded_between(self._place, kind).items():
                if step <= last:
                    self._place.delete_folder(f"{kind}/{name}")
        return pointer

    def _send_files(self, link: Path, names: list[str], target: str) -> None:
        def upload(name: str) -> None:
            self._place.upload_file(link / name, f"{target}/{name}")

        claims = self._folder / CLAIMS
        if claims.is_dir():
            upload_together(claims / PurePosixPath(target).name, names, upload)
            return
        for name in names:
            upload(name)

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
    """Download the newest complete state and its records, unless the folder has it or a newer one.

    Returns:
        The newest step in the folder afterwards; 0 if there is no state anywhere.

    Raises:
        EngineError: the durable storage does not answer.
        TamperError: a complete state was not signed for this work.
    """
    place = store_at(uri)
    if place.local_path != folder:
        _fetch_notices(place, folder)
    step = _fetch_newest_state(place, folder)
    if place.local_path != folder:
        _fetch_between(place, folder, step)
    return step


def _fetch_newest_state(place: Store, folder: Path) -> int:
    here = newest_step(folder)
    for name in _uploaded(place):
        step = int(name.partition("-")[0])
        if step <= here:
            break
        try:
            _fetch(place, name, folder)
        except TamperError:
            raise
        except DataError as error:
            logger.warning("uploaded state %s is skipped: %s", name, error)
            continue
        logger.warning("state of step %d was downloaded from %s", step, place.uri)
        return step
    return here


def _fetch(store: Store, name: str, folder: Path) -> None:
    """Download one state, records first, so that an existing state is complete."""
    place = store_at(f"{store.uri}/states/{name}")
    manifest = place.read_bytes(MANIFEST)
    digest = sha256_bytes(manifest)
    if not name.endswith(f"-{digest[:16]}"):
        raise DataError(f"{place.uri}/{MANIFEST} is not what was uploaded")
    signature = (
        place.read_bytes(states.SIGNATURE) if states.SIGNATURE in place.list_files() else b""
    )
    step = int(name.partition("-")[0])
    states.check_signature(signature, manifest, states.signed_name(folder.name, step), place.uri)
    target = states.committed_folder(folder) / name.partition("-")[0]
    if target.exists():  # incomplete
        shutil.rmtree(target)
    with staged_folder(target) as staged:
        for file, recorded in manifest_files(manifest, place.uri).items():
            place.download_file(staged / file, file)
            _check(staged / file, recorded, f"{place.uri}/{file}")
        write_bytes(staged / MANIFEST, manifest)
        write_bytes(staged / states.SIGNATURE, signature)
        for file, recorded in states.read_records(staged).items():
            _fetch_record(store, file, recorded, folder)


def _fetch_notices(store: Store, folder: Path) -> None:
    """Download what attempts elsewhere tell of steps that were stopped; readers check it."""
    for there in store.list_files("steps"):
        match = re.fullmatch(rf"({states.NOTICE}\d+)-[0-9a-f]{{16}}(\.json)", there)
        if match and not (target := states.record_path(folder, match[1] + match[2])).exists():
            store.download_file(target, f"steps/{there}")


def _fetch_between(store: Store, folder: Path, step: int) -> None:
    """Download what the next step trains on and which responses ended; who reads it checks it."""
    following = f"{step + 1:06d}"
    rollouts = _uploaded_between(store, states.ROLLOUTS).items()
    for name in [name for name, number in rollouts if number == step + 1][-1:]:
        _fetch_folder(store, f"{states.ROLLOUTS}/{name}", folder / states.ROLLOUTS / following)
    for name, number in _uploaded_between(store, states.ENDED).items():
        if number == step:
            _fetch_folder(store, f"{states.ENDED}/{name}", folder / states.ENDED / name)


def _fetch_folder(store: Store, name: str, target: Path) -> None:
    if target.exists():
        return
    place = store_at(f"{store.uri}/{name}")
    try:
        with staged_folder(target) as staged:
            # No manifest says what belongs to it, and S3 has names such as `../file`.
            for file in filter(re.compile(r"\w[\w.]*").fullmatch, place.list_files()):
                place.download_file(staged / file, file)
    except DataError as error:  # an attempt elsewhere has committed the step meanwhile
        logger.warning("%s is drawn again: %s", name, error)


def _uploaded_between(place: Store, kind: str) -> dict[str, int]:
    """Name -> step of what lies there."""
    return {one: int(one.partition("-")[0]) for one in _named(place, kind)}


def _fetch_record(store: Store, file: str, recorded: str, folder: Path) -> None:
    target = states.record_path(folder, file)
    if target.exists() and sha256_file(target) == recorded:
        return
    there = f"steps/{_record_name(file, recorded)}"
    with scratch_folder(folder / "steps", ".fetched.") as fetched:
        store.download_file(fetched / target.name, there)
        _check(fetched / target.name, recorded, f"{store.uri}/{there}")
        copy_file(fetched / target.name, target)


def _check(path: Path, recorded: str, where: str) -> None:
    if (digest := sha256_file(path)) != recorded:
        raise DataError(
            f"{where} is not what was uploaded: sha256 is {digest}, recorded {recorded}"
        )


def newest_step(folder: Path) -> int:
    """Step of the newest complete state in a local folder; 0 if there is none."""
    path = states.newest_whole(folder)
    return int(path.name) if path else 0


def _uploaded(place: Store) -> list[str]:
    """Names of the states whose upload was completed, newest first."""
    files = set(place.list_files("states"))
    whole = [name for name in _named(place, "states") if f"{name}/{MANIFEST}" in files]
    return sorted(whole, key=_by_step, reverse=True)


def _superseded(place: Store) -> list[str]:
    """Names of states older than those that are kept, including incomplete ones."""
    kept_names = _uploaded(place)[: states.KEPT_STATES]
    # By step, so that what another attempt is uploading now is left alone.
    oldest = _by_step(kept_names[-1])
    return [name for name in _named(place, "states") if _by_step(name) < oldest]


def _by_step(name: str) -> tuple[int, str]:
    return int(name.partition("-")[0]), name


def _named(place: Store, kind: str) -> list[str]:
    """Folders of a prefix, in order, that are named by step and digest; others are left alone."""
    folders = {file.partition("/")[0] for file in place.list_files(kind)}
    return sorted(filter(re.compile(r"[0-9]{6,}-[0-9a-f]{16}").fullmatch, folders))


def pointer_to(path: Path, uri: str) -> Pointer:
    """Point to a committed state, held or not, under a durable prefix."""
    digest = sha256_file(path / MANIFEST)
    return Pointer(uri=uri, step=int(path.name), digest=digest)


def state_name(pointer: Pointer) -> str:
    """Name of a state below `states`: its step and what it contains."""
    return f"{pointer.step:06d}-{pointer.digest[:16]}"


def _record_name(name: str, digest: str) -> str:
    path = PurePosixPath(name)
    return str(path.with_name(f"{path.stem}-{digest[:16]}{path.suffix}"))
