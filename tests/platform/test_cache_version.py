"""Which files a result follows from."""

import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tasks.errors import SettingsError
from tasks.lab.study.evidence_file import ENGINES
from tasks.platform.cache_version import (
    LOCKS,
    NOT_COVERED,
    REGISTERED,
    code_digest,
    data_digest,
    imports_of,
    reachable,
    read_shell,
    require_registered_code,
    shell_digest,
)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("tasks", "data_schemas", cache_dir=None)


@pytest.mark.parametrize(
    "module",
    [
        "tasks.rl.phase",
        "tasks.training.merge",
        "tasks.stages.curation",
        "tasks.stages.rl",
    ],
)
def test_what_a_module_reaches_agrees_with_an_independent_import_graph(graph, module):
    expected = {module}
    waiting = [module]
    while waiting:
        for name in graph.find_modules_directly_imported_by(waiting.pop()):
            if name not in expected and not name.startswith(NOT_COVERED):
                expected.add(name)
                waiting.append(name)

    assert expected == reachable({module})


@pytest.mark.parametrize(
    "text",
    [
        "from tasks.rl import (\n    gate,  # :) and why\n    ledger,\n)\n",
        "from tasks.rl import gate, \\\n    ledger\n",
        "def late():\n    import tasks.rl.gate\n    from tasks.rl import ledger as kept\n",
        '"""Taken\nfrom tasks of others.\n"""\nfrom tasks.rl import gate, ledger\n',
    ],
)
def test_no_form_of_an_import_hides_what_a_result_rests_on(text):
    assert {"tasks.rl.gate", "tasks.rl.ledger"} == imports_of(text)


def test_the_table_of_verifiers_is_part_of_what_rl_rests_on():
    assert "tasks.gym.table" in reachable(read_shell("tasks.stages.rl", "rl").imports)


def test_curation_does_not_rest_on_grading():
    curation = reachable(read_shell("tasks.stages.curation", "curate").imports)
    grading = reachable(read_shell("tasks.stages.curation", "grade").imports)

    assert "tasks.curation.grading" in grading
    assert "tasks.curation.grading" not in curation


def test_digests_differ_between_stages_and_are_the_same_every_time():
    merge = shell_digest("tasks.stages.merge", "merge")

    shell_digest.cache_clear()
    assert merge == shell_digest("tasks.stages.merge", "merge")
    assert merge != shell_digest("tasks.stages.sft", "sft")


@pytest.mark.slow
def test_engines_are_imported_where_settings_choose_them_and_nowhere_else(graph):
    inside = tuple(ENGINES.values())
    importers = {
        importer
        for package in inside
        for engine in graph.find_descendants(package)
        for importer in graph.find_modules_that_directly_import(engine)
        if not importer.startswith(inside)
    }
    loaded = (
        "import sys, tasks.engines.select; "
        f"print([name for name in sys.modules if name.startswith({inside})])"
    )

    assert {"tasks.engines.select"} == importers
    assert "[]\n" == subprocess.check_output([sys.executable, "-c", loaded], text=True)


def test_a_digest_without_a_package_rests_on_all_the_rest():
    imports = read_shell("tasks.stages.rl", "rl").imports
    megatron = "tasks.engines.trainer_megatron"

    without = reachable(imports, (megatron,))

    left_out = reachable(imports) - without
    assert "tasks.engines.trainer_megatron.trainer" in left_out
    assert all(name.startswith(megatron) for name in left_out)
    assert code_digest("rl") != code_digest("rl", (megatron,))


def test_a_stage_without_its_function_is_refused_by_name():
    with pytest.raises(SettingsError, match=r"tasks\.errors has no function sft"):
        shell_digest("tasks.errors", "sft")


ON = {"cpu": "merge", "rollout": "grade", "trainer": "rl"}
"""Image -> a stage that runs in it."""


@pytest.mark.parametrize("file", sorted({file for files in LOCKS.values() for file in files}))
def test_another_pin_changes_the_stages_of_its_machines_and_no_others(file, monkeypatch, tmp_path):
    before = {image: code_digest(stage) for image, stage in ON.items()}
    lock = tmp_path / "lock.txt"
    lock.write_text((Path(__file__).parents[2] / file).read_text() + "vllm==99.0\n")
    for image, files in LOCKS.items():
        places = tuple(str(lock) if one == file else one for one in files)
        monkeypatch.setitem(LOCKS, image, places)
    shell_digest.cache_clear()

    changed = {image for image, stage in ON.items() if code_digest(stage) != before[image]}
    shell_digest.cache_clear()

    assert {image for image, files in LOCKS.items() if str(lock) in files} == changed


def test_a_data_file_counts_to_the_package_that_reads_it(tmp_path):
    for name in ("module.py", "README.md", "tables/one.yaml", "inner/module.py", "inner/own.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)

    def after(name, text):
        (tmp_path / name).write_text(text)
        data_digest.cache_clear()
        return data_digest(tmp_path)

    before = data_digest(tmp_path)
    assert before == after("README.md", "other words")
    assert before == after("inner/own.yaml", "of another package")
    table = after("tables/one.yaml", "another table")
    assert before != table
    assert table != after("tables/two.yaml", "a new table")


def test_a_pod_with_other_files_than_those_registered_refuses_to_run(monkeypatch):
    monkeypatch.setenv("FLYTE_INTERNAL_TASK_NAME", "tasks.stages.curation.grade")
    monkeypatch.setenv(REGISTERED, code_digest("grade"))
    require_registered_code()

    monkeypatch.setenv(REGISTERED, "0" * 64)
    with pytest.raises(SettingsError, match=r"of grade in this pod .* with --copy all"):
        require_registered_code()
