"""Stages of several processes under Flyte: real ones, started by `pyflyte run` and its plugin."""

import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest
from flyteidl.admin.task_pb2 import TaskSpec
from google.protobuf.json_format import MessageToDict

from tests.processes import run_process

pytest.importorskip("flytekitplugins.kfpytorch")
pytestmark = pytest.mark.engines

ROOT = Path(__file__).parents[2]
TASKS = """
    from flytekit import task, workflow

    from tasks.engines.team.controller import current
    from tasks.engines.team.member import read_rank_info
    from tasks.errors import DataError, EngineError
    from tasks.platform.deck import deck_of_facts
    from tasks.platform.elastic import Team, in_team

    def shell(function):
        return task(in_team(function), task_config=Team(nproc_per_node=2, monitor_interval=1,
            increase_shared_mem=False), enable_deck=True, deck_fields=())

    @shell
    def add(one: int, two: int) -> str:
        deck_of_facts("sum", {"sum": one + two})
        here = read_rank_info()
        return f"rank {here.rank} of {here.size}: {one + two}, {current() is not None}"

    @shell
    def fail(kind: str) -> str:
        if kind == "bug":
            raise TypeError("no such thing")
        if kind:
            raise {"data": DataError, "engine": EngineError}[kind]("row 7 is not a number")
        return kind

    @workflow
    def added(one: int = 1, two: int = 2) -> str:
        return add(one=one, two=two)

    @workflow
    def failed(kind: str) -> str:
        return fail(kind=kind)
"""


def pyflyte(
    folder: Path, *arguments: str, verbose: bool = False, **environment: str
) -> subprocess.CompletedProcess:
    return run_process(
        [Path(sys.executable).with_name("pyflyte"), *["-v"] * verbose, "run", *arguments],
        cwd=folder,
        variables={"HOME": str(folder), "PYTHONPATH": str(ROOT)} | environment,
        check=False,
    )


def said(done: subprocess.CompletedProcess) -> str:
    """All that was printed, without the line breaks and frames of a terminal."""
    return " ".join((done.stdout + done.stderr).replace("│", " ").split())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "stages.py").write_text(textwrap.dedent(TASKS))
    return tmp_path


def test_the_value_of_a_stage_is_what_rank_0_returns(folder):
    done = pyflyte(folder, "stages.py", "added")

    assert done.returncode == 0, done.stderr[-3000:]
    assert "rank 0 of 2: 3, True" in done.stdout


def test_who_typed_the_command_reads_one_line_about_what_is_to_be_mended(folder):
    done = pyflyte(folder, "stages.py", "failed", "--kind", "data")

    assert done.returncode != 0
    assert "DataError: row 7 is not a number" in said(done)
    assert "Traceback" not in said(done)


def test_a_machines_failure_is_worth_another_try(folder):
    done = pyflyte(folder, "stages.py", "failed", "--kind", "engine", verbose=True)

    assert "USER:Recoverable" in said(done)
    assert "EngineError: row 7 is not a number" in said(done)


def test_a_mistake_in_the_code_shows_where_it_is(folder):
    done = pyflyte(folder, "stages.py", "failed", "--kind", "bug")

    assert "TypeError: no such thing" in said(done)
    assert "USER:Recoverable" not in said(done)


def test_a_layout_that_the_processes_cannot_form_is_refused_before_anything_else(folder):
    engines = '{"trainer": "megatron", "layout": {"expert": 4}}'
    settings = f'{{"sft": {{"engines": {engines}}}}}'
    done = pyflyte(
        folder,
        str(ROOT / "workflows/post_training.py"),
        "post_training",
        "--settings",
        settings,
        EACHPROMPT_PROCESSES="2",
    )

    assert "SettingsError: sft.engines.layout: expert * pipeline is 4" in said(done)
    assert not (folder / "runs").exists()


def test_on_a_cluster_the_stages_with_engines_are_jobs_over_all_nodes(tmp_path):
    command = [Path(sys.executable).with_name("pyflyte"), "--pkgs", "workflows", "package"]
    command += ["--image", "registry.example/cpu:1", "--output", tmp_path / "package.tgz"]
    command += ["--source", ROOT, "--copy", "all", "--in-container-source-path", "/root"]
    sizes = {"EACHPROMPT_NODES": "32", "EACHPROMPT_PROCESSES": "8"}
    run_process(command, cwd=tmp_path, variables={"HOME": str(tmp_path)} | sizes)
    templates = {}
    with tarfile.open(tmp_path / "package.tgz") as archive:
        archive.extractall(tmp_path / "package", filter="data")
    for path in (tmp_path / "package").glob("*_1.pb"):
        spec = TaskSpec.FromString(path.read_bytes())
        templates[spec.template.id.name.rpartition(".")[2]] = spec.template

    jobs = {name for name, template in templates.items() if template.type == "pytorch"}
    assert {"sft", "grade", "rl", "evaluate", "measure_precisions"} == jobs
    job = MessageToDict(templates["rl"].custom)
    assert (32, 32) == (job["elasticConfig"]["minReplicas"], job["elasticConfig"]["maxReplicas"])
    assert 8 == job["elasticConfig"]["nprocPerNode"]
    # A pod makes the same tasks as registration did, whichever stage it is.
    for name in ("rl", "check_settings"):
        assert sizes.items() <= environment_of(templates[name]).items()


def environment_of(template) -> dict[str, str]:
    if template.HasField("k8s_pod"):
        container = MessageToDict(template.k8s_pod.pod_spec)["containers"][0]
        pairs = {item["name"]: item["value"] for item in container["env"]}
    else:
        pairs = {item.key: item.value for item in template.container.env}
    return {name: value for name, value in pairs.items() if name.startswith("EACHPROMPT_")}
