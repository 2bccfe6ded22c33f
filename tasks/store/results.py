"""The lease that makes one run at a time do a piece of work, and the work's name and state.

    <place>/state/<work>/          working state of fine-tuning and RL, removed when it is finished
    <place>/state/<work>.lease     who works on it

`tasks.provenance.lineage.finished` keeps what it committed.
"""

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pydantic import BaseModel

from tasks.errors import EngineError
from tasks.store.files import canonical_json, sha256_bytes
from tasks.store.interface import store_at
from tasks.store.lease import lease

logger = logging.getLogger(__name__)


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
        leases = [
            opened.enter_context(lease(f"{place}.lease", owner)) for place in dict.fromkeys(places)
        ]

        def check() -> None:
            for one in leases:
                one.check()

        yield check


def clear(folder: Path, uri: str) -> None:
    """Remove the working state of finished work, on the disk and in the store."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        store_at(uri).delete_folder()
    except EngineError as error:  # not a reason to repeat the work
        logger.warning("the uploaded states at %s are left behind: %s", uri, error)
