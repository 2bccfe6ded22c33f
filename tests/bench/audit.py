"""Speed at which the audit re-hashes an object, as ratio to plain reading of the same bytes.

Part of `python -m tests.bench.lineage`. The object is read from the disk: what the operating
system keeps of it in memory is dropped before each pass. A pass from memory shows the ratio where
the disk is no limit.
"""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tasks.provenance.audit.evidence import MODEL, Evidence
from tasks.store.files import sha256_bytes
from tasks.store.manifest import MANIFEST, folder_manifest

SHARDS = 8
_READERS = (1, 4)
_PASSES = 3
_CHUNK = 2**20
Pass = tuple[str, float, float]
"""(what, seconds, seconds of the fastest plain read of the same bytes)"""


def build_object(store: Path, mib: int) -> str:
    """Write an object of SHARDS files with together at least `mib` MiB; return its digest."""
    made = store / "objects" / "made"
    made.mkdir(parents=True)
    for shard in range(SHARDS):
        with (made / f"model-{shard}.safetensors").open("wb") as stream:
            block = os.urandom(_CHUNK)
            for _ in range(-(-mib // SHARDS)):
                stream.write(block)
            os.fsync(stream.fileno())
    manifest = folder_manifest(made)
    (made / MANIFEST).write_bytes(manifest)
    digest = sha256_bytes(manifest)
    made.rename(store / "objects" / digest[:16])
    return digest


def measure_audit(store: Path, digest: str) -> list[Pass]:
    """Time plain reads and the audit of an object, from disk and from memory."""
    folder = store / "objects" / digest[:16]
    paths = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    return [
        *_compare("disk", partial(_drop, paths), paths, partial(_audit, store, folder, digest)),
        *_compare(
            "memory", partial(_read, paths, 1), paths, partial(_audit, store, folder, digest)
        ),
    ]


def _compare(
    place: str, prepare: Callable[[], None], paths: Sequence[Path], audit: Callable[[], None]
) -> list[Pass]:
    """Time each way to read the same bytes, with what `prepare` does before every pass."""
    work = {
        f"plain read from {place}, {readers} at a time": partial(_read, paths, readers)
        for readers in _READERS
    }
    reads = {what: _fastest(prepare, read) for what, read in work.items()}
    plain = min(reads.values())
    audited = {f"audit from {place}": _fastest(prepare, audit)}
    return [(what, seconds, plain) for what, seconds in (reads | audited).items()]


def _audit(store: Path, folder: Path, digest: str) -> None:
    assert Evidence(str(store)).check_object(MODEL, str(folder), digest)


def _read(paths: Sequence[Path], readers: int) -> None:
    with ThreadPoolExecutor(readers) as pool:
        list(pool.map(_read_one, paths))


def _read_one(path: Path) -> None:
    buffer = bytearray(_CHUNK)
    with path.open("rb", buffering=0) as stream:
        while stream.readinto(buffer):
            pass


def _drop(paths: Sequence[Path]) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def _fastest(prepare: Callable[[], None], work: Callable[[], None]) -> float:
    taken: list[float] = []
    for _ in range(_PASSES):
        prepare()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)
