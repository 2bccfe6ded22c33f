"""The results of a finished stage, and the lease that makes one run at a time work on it.

    <place>/state/<work>/          working state of fine-tuning and RL, removed when it is finished
    <place>/state/<work>.lease     who works on it
    <store>/state/<work>.json      the committed results

Used where a stage trains for hours: fine-tuning, merge, and every phase of RL. Its work is named by
everything that determines the results. They are recorded before the working state is removed. If an
attempt is cut before Flyte has its outputs, the next one returns them without a step; so does a run
that waited for another, also where Flyte's cache does not know of either.
"""

import logging
import os
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
    """What a finished stage committed, and what it followed from besides its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    code: str
    execution: str
    model: CheckpointRef
    report: ReportRef | None = None


def work_uri(store: str, stage: str, settings: BaseModel, *inputs: str) -> str:
    """Name a stage's work by everything that determines its results but the code.

    Args:
        store: folder or s3:// prefix.
        stage: 'merge', 'sft/reasoning'.
        settings: of the stage.
        inputs: digests of the artifacts it reads, in order.
    """
    work = {"stage": stage, "settings": settings.model_dump(mode="json"), "inputs": inputs}
    return f"{store}/state/{sha256_bytes(canonical_json(work))[:16]}"


def work_folder(workplace: Path, uri: str) -> Path:
    """Folder of a work's state on a disk that outlives the process: EACHPROMPT_STATE, if it is set.

    Args:
        workplace: otherwise; shared by all nodes on a cluster.
        uri: of the work in the store.
    """
    root = Path(os.environ.get("EACHPROMPT_STATE") or workplace)
    return root / "state" / uri.rpartition("/")[2]


@contextmanager
def exclusive(owner: str, *places: str) -> Iterator[Callable[[], None]]:
    """Let no other run do a piece of work while the block runs; wait for one that does.

    Args:
        owner: the execution and the stage, for whoever has to wait.
        places: of the work; its uri in the store, and a folder on a disk that runs share.

    Yields:
        A check that raises EngineError once another run has taken over.
    """
    with ExitStack() as opened:
        held = [
            opened.enter_context(lease(f"{place}.lease", owner)) for place in dict.fromkeys(places)
        ]

        def check() -> None:
            for one in held:
                one.check()

        yield check


def find(uri: str, stage: str, code: str) -> Results | None:
    """Read the results of this work if it was finished under the same name and code.

    Args:
        uri: of the work in the store.
        stage: 'rl/one', 'merge'.
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
    if not all(_is_there(ref, store) for ref in (results.model, results.report) if ref):
        return None
    logger.warning("%s was finished by %s; its results are used", stage, results.execution)
    return results


def record(
    uri: str,
    stage: str,
    code: str,
    execution: str,
    model: CheckpointRef,
    report: ReportRef | None = None,
) -> None:
    """Record what a stage committed. Call it before its working state is removed."""
    done = Results(stage=stage, code=code, execution=execution, model=model, report=report)
    store_at(f"{uri}.json").write_bytes(canonical_json(done))


def clear(folder: Path, uri: str) -> None:
    """Remove the working state of finished work, on the disk and in the store."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        store_at(uri).delete_folder()
    except EngineError as error:  # not a reason to repeat the work
        logger.warning("the uploaded states at %s are left behind: %s", uri, error)


def _is_there(ref: CheckpointRef | ReportRef, store: str) -> bool:
    """True for an object of this store; whoever reads it verifies its files."""
    if not ref.uri.startswith(f"{store}/"):
        return False
    try:
        return sha256_bytes(store_at(ref.uri).read_bytes(MANIFEST)) == ref.digest
    except DataError:
        return False
