"""Committed states of a training run, from which step n+1 is the same as without a crash.

A folder belongs to one piece of work, named by everything that determines its results:

    steps/                    records: files that are written once, such as the report of a step;
                              those called pause-* (notices) tell of a step that was stopped
    committed/000012/         the trainer's state after step 12, further files of the stage, the
                              digests of all records up to it, MANIFEST.json and its signature last
    rollouts/000013/          of RL: what step 13 trains on, until it is committed (rl/state.py)
    ended/000012-<sha256>/    of RL: responses of the policy after step 12 (rl/ended.py)

Recovery uses the newest committed step whose manifest and records match; a damaged one is skipped
with a warning. A whole one that was not signed for this work was put there, and is refused.
"""

import functools
import json
import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import TamperError
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.store.files import canonical_json, sha256_file, staged_folder
from tasks.store.manifest import MANIFEST, folder_manifest

if TYPE_CHECKING:  # it loads torch, and every stage loads this module
    from tasks.engines.protocols import Trainer

KEPT_STATES = 2
KIND = "state"
RECORDS_FILE = "records.json"
"""In a committed state: sha256 of every record up to it, by its name below `steps`."""
SIGNATURE = "SIGNATURE.json"
"""In a committed state: its manifest, signed for this step of this work."""
NOTICE = "pause-"
ROLLOUTS = "rollouts"
ENDED = "ended"
logger = logging.getLogger(__name__)


def commit(
    folder: Path, step: int, trainer: "Trainer", files: Mapping[str, bytes], records: Iterable[str]
) -> None:
    """Save a state atomically, and drop states that are no longer needed.

    Args:
        folder: of the work.
        step: that the state is after.
        trainer: saves weights and optimizer.
        files: further content of the state, by file name.
        records: names of all records up to this step.
    """
    digests = _record_digests(folder, records)
    with staged_folder(committed_folder(folder) / f"{step:06d}") as staged:  # renamed at its end
        (staged / RECORDS_FILE).write_bytes(canonical_json(digests))
        for name, payload in files.items():
            (staged / name).write_bytes(payload)
        trainer.save(staged)
        manifest = folder_manifest(staged, hashed=_hashed)
        # The manifest last: a state without one was not finished.
        (staged / SIGNATURE).write_bytes(seal(KIND, signed_name(folder.name, step), manifest))
        (staged / MANIFEST).write_bytes(manifest)
    _drop_old(folder)


def restore(folder: Path, trainer: "Trainer") -> Path | None:
    """Load the newest complete state into the trainer; return its folder, None if there is none.

    Damaged states and files left incomplete by a killed process are removed.

    Raises:
        TamperError: the newest whole state was not signed for this work.
    """
    _sweep(folder)
    path = newest_whole(folder)
    if path is not None:
        signature = path / SIGNATURE
        check_signature(
            signature.read_bytes() if signature.is_file() else b"",
            (path / MANIFEST).read_bytes(),
            signed_name(folder.name, int(path.name)),
            str(path),
        )
    for newer in reversed(_states(folder)):
        if newer == path:
            break
        logger.warning("state %s is damaged and skipped; an earlier step is used", newer)
        shutil.rmtree(newer)
    _drop_old(folder)
    if path is not None:
        trainer.restore(path)
    return path


def check_signature(signature: bytes, manifest: bytes, name: str, where: str) -> None:
    """Refuse a state whose manifest was not signed under this name.

    Args:
        signature: content of its file; b"" if there is none.
        manifest: content of its manifest.
        name: see `signed_name`.
        where: the state is.

    Raises:
        TamperError: it was not.
    """
    if unseal(KIND, name, signature, f"the state {where}") != manifest:
        raise TamperError(f"the state {where} has the signature of another one; delete it")


def signed_name(work: str, step: int) -> str:
    """Name a state in its signature: work and step, wherever they lie."""
    return f"{work}/{step:06d}"


def newest_whole(folder: Path) -> Path | None:
    """Find the newest state that matches its manifest, with all records up to it."""
    return next((path for path in reversed(_states(folder)) if _is_whole(folder, path)), None)


def newest(folder: Path) -> int:
    """Number of the newest committed step; 0 if there is none."""
    return max((int(path.name) for path in _states(folder)), default=0)


def read_records(path: Path) -> dict[str, str]:
    """Read the sha256 of every record that belongs to a committed state, by name."""
    return json.loads((path / RECORDS_FILE).read_bytes())


def read_file(folder: Path, step: int, name: str) -> bytes:
    """Read one of the files that were committed with a step."""
    return (committed_folder(folder) / f"{step:06d}" / name).read_bytes()


def step_of(path: Path) -> int:
    """Read the step that a folder is named by."""
    return int(path.name.partition("-")[0])


def committed_folder(folder: Path) -> Path:
    """Folder of the committed states, one subfolder each."""
    return folder / "committed"


def record_path(folder: Path, name: str) -> Path:
    return folder / "steps" / name


def notice_name(record: str) -> str:
    """Name the notice that a step was stopped, by the name of its record."""
    return f"{NOTICE}{record}"


def notices(folder: Path) -> list[str]:
    """Names of the notices of a folder, in order: records that no state needs to have yet."""
    names = (path.name for path in record_path(folder, "").glob(f"{NOTICE}*.json"))
    return sorted(names, key=lambda name: (len(name), name))


def _states(folder: Path) -> list[Path]:
    return sorted(committed_folder(folder).glob("[0-9]*"), key=step_of)  # 1000000 after 999999


def _drop_old(folder: Path) -> None:
    for old in _states(folder)[:-KEPT_STATES]:
        shutil.rmtree(old)


def _record_digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Hash records, reusing the digests of the previous state."""
    before = _states(folder)
    recorded = read_records(before[-1]) if before else {}
    return {name: recorded.get(name) or sha256_file(record_path(folder, name)) for name in names}


def _sweep(folder: Path) -> None:
    """Remove temporary files and folders of a process that was killed while it wrote them."""
    for path in folder.glob("*/.*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_whole(folder: Path, path: Path) -> bool:
    if not (path / MANIFEST).exists() or not _matches(path, _stamps(path)):
        return False
    records = {record_path(folder, name): digest for name, digest in read_records(path).items()}
    return all(path.exists() and sha256_file(path) == digest for path, digest in records.items())


def _stamps(path: Path) -> tuple[tuple[int, ...], ...]:
    """What changes if a file of a state is written, moved or replaced."""
    stats = [one.lstat() for one in sorted(path.rglob("*"))]
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in stats)


@functools.lru_cache(maxsize=2 * KEPT_STATES)
def _matches(path: Path, _: tuple[tuple[int, ...], ...]) -> bool:
    """Hash a state, once while its stamps stay: it may be terabytes, and a restart asks often."""
    return (path / MANIFEST).read_bytes() == folder_manifest(path, {SIGNATURE}, _hashed)


def _hashed(paths: Sequence[Path]) -> list[str]:
    # Imported here: stages that hold no model do not wait for torch.
    from tasks.engines.team.hashing import hash_in_team

    return hash_in_team(paths)
