"""Which files a result follows from."""

import subprocess
import sys

import grimp
import pytest

from tasks.errors import SettingsError
from tasks.lab.study.evidence_file import ENGINES
from tasks.platform.cache_version import (
    NOT_COVERED,
    code_digest,
    imports_of,
    reachable,
    read_shell,
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
