"""The results of a finished phase, and the lease that makes one run at a time work on it.

    <place>/state/<phase>/          working state, removed when the phase is finished
    <place>/state/<phase>.lease     who works on it
    <store>/state/<phase>.json      the committed results

The results are recorded before the working state is removed. If an attempt is cut before Flyte has
its outputs, the next one returns them without a step; so does a run that waited for another.
"""

import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from data_schemas.artifacts import CheckpointRef, ReportRef
from tasks.errors import DataError, EngineError
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.lease import lease
from tasks.store.manifest import MANIFEST

logger = logging.getLogger(__name__)


class Results(BaseModel):
    """What a finished phase committed, and what it followed from besides the phase's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    code: str
    execution: str
    model: CheckpointRef
    report: ReportRef


@contextmanager
def exclusive(folder: Path, uri: str, owner: str) -> Iterator[Callable[[], None]]:
    """Let no other run work on a phase while the block runs; wait for one that does.

    Args:
        folder: of the phase's state, on a disk that several runs may share.
        uri: its durable prefix.
        owner: the execution and the stage, for whoever has to wait.

    Yields:
        A check that raises EngineError once another run has taken over.
    """
    with ExitStack() as opened:
        held = [
            opened.enter_context(lease(f"{place}.lease", owner))
            for place in dict.fromkeys((str(folder), uri))
        ]

        def check() -> None:
            for one in held:
                one.check()

        yield check


def find(uri: str, stage: str, code: str) -> Results | None:
    """Read the results of this phase if it was finished under the same name and code.

    Args:
        uri: durable prefix of the phase.
        stage: 'rl/one'.
        code: source digest of this program.
    """
    place = store_at(f"{uri}.json")
    try:
        results = Results.model_validate_json(place.read_bytes())
    except DataError:
        return None
    except ValidationError as error:
        logger.warning("%s holds no results and is ignored: %s", place.uri, error)
        return None
    store = uri.rpartition("/state/")[0]
    if (results.stage, results.code) != (stage, code):
        return None
    if not all(_is_there(ref, store) for ref in (results.model, results.report)):
        return None
    logger.warning("%s was finished by %s; its results are used", stage, results.execution)
    return results


def record(uri: str, results: Results) -> None:
    """Record what a phase committed. Call it before its working state is removed."""
    store_at(f"{uri}.json").write_bytes(canonical_json(results))


def clear(folder: Path, uri: str) -> None:
    """Remove the working state of a finished phase, on the disk and in the store."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        store_at(uri).delete_folder()
    except EngineError as error:  # not a reason to repeat the phase
        logger.warning("the uploaded states at %s are left behind: %s", uri, error)


def _is_there(ref: CheckpointRef | ReportRef, store: str) -> bool:
    """True for an object of this store; whoever reads it verifies its files."""
    if not ref.uri.startswith(f"{store}/"):
        return False
    try:
        return sha256_bytes(store_at(ref.uri).read_bytes(MANIFEST)) == ref.digest
    except DataError:
        return False
