"""Flyte 2 runs these workflows by pyflyte-migrate: `make test-flyte2`.

On this machine, without a backend of Flyte 2. Both generations have a home and a store each.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from tasks.platform.resources import STAGES
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.statements import chain
from tests import tiny_chain
from tests.processes import run_process
from tests.test_layout import ROOT

pytestmark = [pytest.mark.flyte2, pytest.mark.timeout(1200)]
FLYTE_1 = Path(sys.executable).with_name("pyflyte")
FLYTE_2 = ROOT / ".venv-flyte2" / "bin" / "pyflyte-migrate"
NEVER = {"DO_NOT_TRACK": "1", "FLYTE_DISABLE_SENTRY": "true", "HF_HUB_OFFLINE": "1"}


def run(command: Path, home: Path, *arguments: object, **variables: str) -> str:
    """Run one command in a home of its own, and return what it printed."""
    home.mkdir(exist_ok=True)
    own = {"HOME": str(home), "PYTHONPATH": str(ROOT), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    done = run_process(
        [command, *map(str, arguments)], cwd=ROOT, variables=NEVER | own | variables, check=False
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generations")
    tiny_chain.prepare(folder)
    given = folder / "settings.json"
    given.write_text(tiny_chain.settings(folder).model_dump_json(exclude_unset=True))
    return folder, given


def post_training(command: Path, folder: Path, given: Path) -> tuple[str, str]:
    """Return the store of a chain on one generation, and what it printed."""
    home = folder / command.name
    workflow = ("run", "workflows/post_training.py", "post_training")
    said = run(command, home, *workflow, "--settings", given, "--store", home / "runs")
    return str(home / "runs"), said


@pytest.fixture(scope="module")
def on_flyte_2(prepared):
    return post_training(FLYTE_2, *prepared)


def outputs(store: str) -> dict[str, list[tuple[str, str]]]:
    """Name what every stage of the released chain made, by role and digest."""
    version = Lookup(f"sqlite:///{store}/mlflow.db").version(tiny_chain.MODEL)
    return {
        one.stage: [(output.role, output.digest) for output in one.outputs]
        for one in chain(store, [version.tags["statement"]]).values()
        if one.stage != "release"  # its card names the statements, and they the code of Flyte
    }


def test_the_pipeline_ends_in_the_same_digests_on_both_generations(prepared, on_flyte_2):
    store, said = on_flyte_2

    assert "Stages: 17 ran" in said
    assert outputs(post_training(FLYTE_1, *prepared)[0]) == outputs(store)
    assert audit(tiny_chain.MODEL, f"sqlite:///{store}/mlflow.db", store).proved


def test_finished_stages_are_not_done_again_on_flyte_2(prepared, on_flyte_2):
    _, said = post_training(FLYTE_2, *prepared)

    stages = dict(re.findall(r"^ *([\w/]+) +(ran|cached)\b", said, re.MULTILINE))
    assert "cached" == stages["rl/two"]
    again = {name.partition("/")[0] for name, what in stages.items() if what == "ran"}
    assert not [name for name in again if STAGES[name].cached], said


def test_mapped_tasks_run_on_flyte_2(prepared):
    folder, given = prepared
    store = ("--settings", given, "--store", folder / "curated")
    curate = ("run", "workflows/curate.py", "curate", *store)
    curated = run(FLYTE_2, folder / "mapped", *curate, EACHPROMPT_CURATION_TASKS="2")

    assert "curate_part/2_of_2" in curated


def test_tasks_of_a_task_run_on_flyte_2(prepared, on_flyte_2):
    folder, given = prepared
    store, _ = on_flyte_2
    model = ("--model", folder / "model", "--settings", given, "--store", store)
    said = run(FLYTE_2, folder / "fanned", "run", "workflows/evaluate.py", "evaluate", *model)

    assert "Local Success" in said


def test_a_night_runs_on_flyte_2(prepared, on_flyte_2):
    folder, _ = prepared
    store, _ = on_flyte_2
    (folder / "inbox").mkdir()
    (folder / "inbox" / "one.jsonl").write_text((folder / "rows.jsonl").read_text())
    night = ("--store", store, "--inbox", folder / "inbox", "--model", "eachprompt-tiny")
    said = run(FLYTE_2, folder / "night", "run", "workflows/retrain.py", "retrain", *night)

    assert "Not retrained: " in said
    assert "1 file" in said


def test_an_input_that_is_wrong_is_one_line_on_flyte_2(prepared):
    folder, _ = prepared
    wrong = ("--store", folder / "wrong", "--settings", '{"rl_one": {"stepz": 1}}')

    line = r"^SettingsError: --settings: rl_one\.stepz is not a setting; did you mean `steps`\?\n"
    with pytest.raises(AssertionError, match=line):
        run(FLYTE_2, folder / "wrong", "run", "workflows/post_training.py", "post_training", *wrong)


def test_machines_retries_and_the_schedule_arrive_on_flyte_2(tmp_path):
    program = """
import flyte_migrate, json
import workflows.launch_plans
from tasks.stages.rl import rl
from workflows.retrain import retrain
env = rl.parent_env()
(night,) = retrain.triggers
print(json.dumps([env.resources.gpu, env.resources.disk, rl.retries.count, rl.interruptible,
    night.name, night.automation.expression, sorted(night.inputs)]))
"""
    said = run(FLYTE_2.with_name("python"), tmp_path, "-c", program)
    (line,) = [line for line in said.splitlines() if line.startswith('["H100')]

    inputs = ["demonstrations", "inbox", "model", "settings", "store"]
    assert ["H100:8", "4Ti", 5, True, "nightly_retrain", "0 3 * * *", inputs] == json.loads(line)
