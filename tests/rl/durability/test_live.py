"""How soon a person sees the first step of a phase: page in the store, deck of the task."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from flytekit import FlyteContextManager
from flytekit.core.context_manager import ExecutionState

from data_schemas.arrow import write_table
from data_schemas.artifacts import CheckpointRef, Execution, GradedRef, StoreRef
from data_schemas.pass_rates import Band, GradedProblem
from tasks.errors import DataError
from tasks.platform.deck import LIVE
from tasks.platform.resources import PROCESSES
from tasks.rl.phase import PROBLEMS_FILE
from tasks.stages.rl import rl
from tasks.store.interface import store_at
from tasks.store.local import new_object
from tests.processes import run_process

WITHIN_S = 10.0
PAGE = "live/exec-1/rl-one.html"


class Watch(threading.Thread):
    """Notes when each of some things is first there."""

    def __init__(self, things: dict[str, Callable[[], bool]]) -> None:
        super().__init__(daemon=True)
        self.things, self.seen, self.over = things, dict[str, float](), threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            for name, there in self.things.items():
                # Files come and go while folders are listed.
                with suppress(DataError, OSError):
                    if name not in self.seen and there():
                        self.seen[name] = time.monotonic()


@pytest.fixture(params=["disk", "S3"])
def uri(request, tmp_path) -> str:
    if request.param == "S3":
        request.getfixturevalue("bucket")
        return "s3://bucket/runs"
    return str(tmp_path / "store")


@pytest.fixture
def in_pod(tmp_path) -> Iterator[Path]:
    """Be a task with a deck, as a pod's entry point makes it; the folder of its outputs."""
    context = FlyteContextManager.current_context()
    params = context.user_space_params
    assert params is not None
    params = params.with_enable_deck(True).build()
    params.decks.clear()
    params._output_metadata_prefix = str(tmp_path / "outputs")
    mode = ExecutionState.Mode.TASK_EXECUTION
    state = context.new_execution_state().with_params(mode=mode, user_space_params=params)
    with FlyteContextManager.with_context(context.with_execution_state(state)):
        yield tmp_path / "outputs"


@pytest.mark.slow
def test_the_first_step_is_on_the_page_and_the_deck_within_ten_seconds_of_its_commit(
    uri, in_pod, tiny_moe, problems, settings, tmp_path, monkeypatch
):
    monkeypatch.setenv("EACHPROMPT_STATE", str(tmp_path / "state"))
    assert (PROCESSES > 1) == (type(rl).__name__ == "TeamTask")
    store = store_at(uri)
    ref = StoreRef(uri=uri, id=store.open(), tracking_uri="http://127.0.0.1:9")
    local = tmp_path / "inputs"
    store_at(str(local)).open()
    with new_object(local) as (folder, model):
        shutil.copytree(tiny_moe, folder, dirs_exist_ok=True)
    graded = [
        GradedProblem(**p.model_dump(), pass_rate=0.5, mean_tokens=5.0, band=Band.MEDIUM)
        for p in problems
    ]
    with new_object(local) as (folder, rows):
        write_table(folder / PROBLEMS_FILE, GradedProblem, graded)

    def page() -> bool:
        return b"</html>" in store.read_bytes(PAGE)

    watch = Watch(
        {
            "commit": lambda: bool(list(tmp_path.rglob("committed/000001"))),
            "page": page,
            "deck": lambda: any(
                f">{LIVE}<" in path.read_text() for path in in_pod.rglob("*.html") if path.is_file()
            ),
        }
    )
    watch.start()
    # In a pod with several processes, as the test below has it, this starts them.
    rl.execute(
        settings=settings.model_copy(update={"steps": 2}),
        name="rl/one",
        start=CheckpointRef(uri=model.uri, digest=model.digest),
        graded=GradedRef(uri=rows.uri, digest=rows.digest),
        store=ref,
        execution=Execution(id="exec-1", started=0.0),
    )
    watch.over.set()
    watch.join()

    assert {"commit", "page", "deck"} == watch.seen.keys()
    assert max(watch.seen.values()) - watch.seen["commit"] < WITHIN_S


@pytest.mark.engines  # which have the plugin that starts several processes
def test_a_team_shows_its_first_step_as_soon():
    pytest.importorskip("flytekitplugins.kfpytorch")
    disk = ("-m", "", "-k", "disk")
    done = run_process(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__, *disk],
        variables={"EACHPROMPT_PROCESSES": "2", "OMP_NUM_THREADS": "1"},
    )

    assert "1 passed" in done.stdout
