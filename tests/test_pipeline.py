"""The whole pipeline from the command line: killed, continued, cached, audited, tampered with."""

import json
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from flytekit.clis.sdk_in_container.pyflyte import main as pyflyte
from flytekit.core.local_cache import LocalTaskCache

from data_schemas.reports import SLICE_KINDS
from tasks.provenance.audit.walk import audit
from tasks.store.location import tracking_uri
from tests import tiny_chain

ROOT = Path(__file__).parents[1]
FORK = multiprocessing.get_context("fork")
RL = {
    "steps": 3,
    "prompts_per_step": 6,
    "group_size": 4,
    "max_new_tokens": 48,
    # The released model is the merged one: no family has a gain, which luck alone would decide.
    "learning_rate": 1e-9,
    # Of 24 rollouts, three texts too short to tell their language are more than a tenth.
    "rewards": {"max_abstained_share": 0.4},
}
SAMPLE_WORLD = {
    "curation": {
        "held_out_per_suite": 8,
        "sources": [{"adapter": "sample_world", "limit": 600}],
    },
    # A family that gained must exceed what a text without the task earns, which no setting opens.
    "sft": {"epochs": 1, "entropy_prompts": 8},
    "grading": {"samples": 2, "max_problems": 100},
    "rl_one": RL | {"domains": {"maths": 1, "code": 1, "instruction": 1}},
    "rl_two": RL | {"domains": {"choice": 1, "extraction": 1, "tool_use": 1, "open_text": 1}},
    "evaluation": {"samples": 2},
    # Three steps teach nothing worth releasing: the gate is opened to reach what lies behind it.
    "release": {
        "min_gain": -1.0,
        "may_lose": dict.fromkeys(SLICE_KINDS, 1.0),
        "max_truncated_share": 1.0,
    },
}
LONGER = {"rl_one": {"steps": 12}}
"""Long enough to be killed in the middle of it."""
PATIENCE_S = 600
SECRETS = {
    name: f"planted-{place}-c0ffee"
    for place, name in enumerate(
        (
            "MLFLOW_TRACKING_USERNAME",
            "MLFLOW_TRACKING_PASSWORD",
            "MLFLOW_TRACKING_TOKEN",
            "EACHPROMPT_JUDGE_API_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "HF_TOKEN",
        )
    )
}
"""Set for every run: nothing that a run writes or prints may hold one."""


@pytest.fixture(
    scope="module",
    params=["sums", pytest.param("every domain of the sample world", marks=pytest.mark.slow)],
)
def home(request, tmp_path_factory):
    """A home of its own, so that Flyte's cache starts empty, with the settings of its runs."""
    home = tmp_path_factory.mktemp("home")
    chosen = SAMPLE_WORLD
    if request.param == "sums":
        tiny_chain.prepare(home)
        chosen = tiny_chain.settings(home, LONGER).model_dump(mode="json")
    (home / "settings.json").write_text(json.dumps(chosen))
    return home


def start(home: Path) -> multiprocessing.process.BaseProcess:
    """Start the command in a process of its own, forked: this one has imported the packages."""
    process = FORK.Process(target=_run, args=(home,))
    process.start()
    return process


def _run(home: Path) -> None:
    os.setsid()
    (home / "tmp").mkdir(exist_ok=True)
    variables = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "COLUMNS": "120"}
    os.environ.update(SECRETS | variables)
    os.chdir(ROOT)
    tempfile.tempdir = None
    LocalTaskCache._initialized = False  # a test before this one may have opened that of its home
    sys.stdout = sys.stderr = (home / "output").open("w", buffering=1)
    for descriptor in (1, 2):
        os.dup2(sys.stdout.fileno(), descriptor)
    logging.basicConfig(force=True)  # the handlers are pytest's
    settings = (home / "settings.json").read_text()
    pyflyte(
        [
            *("run", "workflows/post_training.py", "post_training"),
            *("--store", str(home / "runs"), "--settings", settings),
        ]
    )


def finish(process: multiprocessing.process.BaseProcess, home: Path) -> str:
    process.join(PATIENCE_S)
    output = (home / "output").read_text()

    assert process.exitcode == 0, output
    assert not [name for name, secret in SECRETS.items() if secret in output]
    return output


def committed_steps(home: Path) -> list[str]:
    # Nowhere else: folders that come and go beside the states would trip up a wider search.
    states = home / "runs" / "state"
    return [path.parent.name for path in states.glob("*/committed/*/MANIFEST.json")]


def kill_after_step(process: multiprocessing.process.BaseProcess, home: Path, step: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while step not in committed_steps(home):
        assert process.is_alive(), (home / "output").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.pid
    os.killpg(process.pid, signal.SIGKILL)
    process.join()


@pytest.mark.timeout(2 * PATIENCE_S)
def test_a_killed_run_goes_on_and_what_it_releases_can_be_proved(home):
    kill_after_step(start(home), home, "000002")

    second = finish(start(home), home)

    assert "continuing after committed step" in second
    assert "same code, settings and" in " ".join(second.split())  # the stages before the kill
    assert "Released." in second
    store = str(home / "runs")
    assert audit(tiny_chain.MODEL, tracking_uri(store, ""), store).proved


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE_S)
def test_a_second_run_is_served_from_the_cache(home):
    if not (home / "runs/index.html").exists():  # chosen without the run that is killed
        finish(start(home), home)

    output = finish(start(home), home)

    ran = [line.split()[0] for line in output.splitlines() if " ran " in line]
    assert ["ingest/base", "ingest", "release"] == ran[-3:]


def test_no_secret_of_the_environment_is_in_anything_that_was_written(home):
    """Statements, parameters and tags of MLflow, reports, logs, Flyte's inputs and its cache."""
    written = [path for path in home.rglob("*") if path.is_file()]
    assert {"mlflow.db", "cache.db", "steps.jsonl"} <= {path.name for path in written}
    payloads = {path: path.read_bytes() for path in written}

    assert {} == {
        str(path): name
        for path, payload in payloads.items()
        for name, secret in SECRETS.items()
        if secret.encode() in payload
    }


def test_one_flipped_byte_breaks_the_proof_and_is_named(home):
    store = str(home / "runs")
    report = audit(tiny_chain.MODEL, tracking_uri(store, ""), store)
    victim, _ = (home / "runs/objects").glob("*/steps.jsonl")  # of a phase
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.chmod(0o644)
    victim.write_bytes(content)

    broken = audit(tiny_chain.MODEL, tracking_uri(store, ""), store)

    assert report.proved
    assert [str(victim)] == [finding.object for finding in broken.findings]
