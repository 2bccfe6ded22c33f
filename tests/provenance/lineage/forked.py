"""Run work in processes that are forked from one that has MLflow loaded, and may be killed.

python tests/provenance/lineage/forked.py killed FOLDER
    killed/mlflow.db by a first user who comes after two that were killed
python tests/provenance/lineage/forked.py once FOLDER
    once/mlflow.db by three first users at once
python tests/provenance/lineage/forked.py sync STORE
    four syncs of one store at once
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from data_schemas.artifacts import StoreRef
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.shipping import sync

ROOT = Path(__file__).parents[3]


def forked(what: str, where: str) -> None:
    """Run this file, and fail if one of its processes does."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, Path(__file__), what, where]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def fork(work: Callable[[], object]) -> int:
    """Start work in a process; its exit status is 0 if it ends well."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    finally:
        os._exit(status)


def use(path: Path) -> None:
    """Make a first request."""
    connect(f"sqlite:///{path}").search_experiments()


def kill_at(path: Path, size: int) -> None:
    """Kill a first user when the database that it creates has a size."""
    child = fork(lambda: use(path))
    while all(made.stat().st_size < size for made in path.parent.glob(f".{path.name}.*.new")):
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it was quicker"
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not path.exists()


def main(what: str, where: str) -> int:
    """Do what the command line says; the number of processes that failed."""
    # Before the fork, so that every child has it: MLflow, and what opens its databases.
    import mlflow.store.tracking.sqlalchemy_workspace_store  # noqa: F401

    database = Path(where) / what / "mlflow.db"
    if what == "killed":
        for size in (1, 400_000):  # at the beginning, and when most tables are there
            kill_at(database, size)
        children = [fork(lambda: use(database))]
    elif what == "once":
        children = [fork(lambda: use(database)) for _ in range(3)]
    else:
        store = StoreRef.model_validate_json(where)
        children = [fork(lambda: sync(store)) for _ in range(4)]
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
