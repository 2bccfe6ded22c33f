"""Which files a result follows from."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grimp
import pytest
from flytekit import FlyteContextManager
from flytekit.core.type_engine import TypeEngine

from data_schemas import presets
from data_schemas.artifacts import CheckpointRef
from data_schemas.settings import MergeSettings
from tasks.errors import SettingsError
from tasks.lab.study.evidence_file import ENGINES
from tasks.platform import cache_version
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
from tasks.platform.resources import STAGES
from tests.packages import ROOT


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


def forget() -> None:
    """Read all files anew."""
    for one in vars(cache_version).values():
        if hasattr(one, "cache_clear"):
            one.cache_clear()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of what cache versions are made of, which a test may change."""
    for part in ("tasks", "data_schemas", "workflows/presets"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "containers").mkdir()
    for lock in {file for files in LOCKS.values() for file in files}:
        shutil.copy(ROOT / lock, tmp_path / lock)
    monkeypatch.setattr(cache_version, "ROOT", tmp_path)
    monkeypatch.setattr(presets, "FOLDER", tmp_path / "workflows" / "presets")
    forget()
    yield tmp_path
    forget()


def of_images(*images: str) -> set[str]:
    return {name for name, stage in STAGES.items() if stage.image in images}


def reaching(pattern: str) -> set[str]:
    """Stages that import a module of such a name, directly or not."""
    return {
        name
        for name, stage in STAGES.items()
        if any(
            re.fullmatch(pattern, module)
            for module in reachable(read_shell(f"tasks.{stage.module}", name).imports)
        )
    }


def longer(place: str, more: str = "# more\n") -> Callable[[Path], object]:
    return lambda root: (root / place).write_text((root / place).read_text() + more)


def other_function(root: Path) -> None:
    place = root / "tasks" / "stages" / "merge.py"
    text = place.read_text()
    assert 1 == text.count("def merge(")
    body = text.index(":\n", text.index(") ->", text.index("def merge("))) + 2
    place.write_text(f"{text[:body]}    {'more'!r}\n{text[body:]}")


CHANGES: dict[str, list[tuple[Callable[[Path], object], Callable[[], set[str]]]]] = {
    "the function of a stage, or what it uses of its file": [(other_function, lambda: {"merge"})],
    "a module that a stage imports, directly or not": [
        (longer("tasks/rl/gate.py"), lambda: reaching(r"tasks\.rl\.gate"))
    ],
    "a data file beside such a module (mappings, benchmarks, error rates)": [
        (
            lambda root: (root / "tasks/rl/rates.json").write_text("{}"),
            lambda: reaching(r"tasks\.rl\.\w+"),
        )
    ],
    "`workflows/presets/*.yaml`": [
        (longer("workflows/presets/laptop.yaml"), lambda: reaching(r"data_schemas\.presets"))
    ],
    "`lock_cpu.txt`": [(longer("lock_cpu.txt"), lambda: {*STAGES})],
    "`lock_rollout.txt`": [
        (longer("containers/lock_rollout.txt"), lambda: of_images("rollout")),
    ],
    "`lock_trainer.txt`, `lock_transformer_engine.txt`": [
        (longer("containers/lock_trainer.txt"), lambda: of_images("trainer")),
        (longer("containers/lock_transformer_engine.txt"), lambda: of_images("trainer")),
    ],
    "`lock_engines.txt`": [
        (longer("containers/lock_engines.txt"), lambda: of_images("rollout", "trainer"))
    ],
    "`tasks.platform`, `tasks.pages`, `tasks.provenance.lineage`, which record or show": [
        (longer("tasks/platform/tables.py"), set[str]),
        (longer("tasks/pages/style.py"), set[str]),
        (longer("tasks/provenance/lineage/spool.py"), set[str]),
    ],
}
"""What changes, as the table for operators has it -> changes, and the stages that run again."""
INPUTS = {
    "an input: settings, data, a model, the base, each by digest",
    "code of one's own, by its digest in the settings",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", CHANGES)
def test_each_row_of_the_table_changes_the_versions_that_it_says_and_no_others(what, checkout):
    for change, expected in CHANGES[what]:
        before = {name: code_digest(name) for name in STAGES}
        wanted = expected()
        change(checkout)
        forget()

        assert wanted == {name for name in STAGES if code_digest(name) != before[name]}
        assert wanted or "record or show" in what


def literal(value: object) -> bytes:
    """What Flyte's key of an execution's input is made of."""
    context, kind = FlyteContextManager.current_context(), type(value)
    wanted = TypeEngine.to_literal_type(kind)
    return TypeEngine.to_literal(context, value, kind, wanted).to_flyte_idl().SerializeToString()


def test_an_input_of_other_content_is_another_key():
    settings = MergeSettings()
    model = CheckpointRef(uri="s3://b/objects/1", digest="1", statement="s")
    assert literal(settings) == literal(MergeSettings())
    assert literal(settings) != literal(settings.model_copy(update={"density": 0.123}))
    assert literal(model) != literal(model.model_copy(update={"digest": "2"}))


def test_the_table_for_operators_has_the_rows_that_are_tested():
    page = (ROOT / "containers" / "OPERATIONS.md").read_text()
    table = page.partition("## What is in a cache version")[2].partition("\n## ")[0]

    rows = re.findall(r"^\| (.+?) \| [^|]+ \|$", table, re.MULTILINE)
    assert {"what changes", *CHANGES, *INPUTS} == {*rows}
