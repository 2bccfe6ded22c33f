"""Presets: small files with a parent, a source beside each value, and the values that they mean."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main

from data_schemas import presets
from data_schemas.rows import Domain
from data_schemas.settings import PipelineSettings, RetrainSettings
from tests.processes import run_process
from tests.tables import for_each

ROOT = Path(__file__).parents[1]


@for_each("name", presets.names())
def test_a_preset_is_valid_and_says_what_it_is(name):
    text = (presets.FOLDER / f"{name}.yaml").read_text()
    preset = presets.load(name)

    assert text.startswith("# ")
    assert ("parent:" in text) != ("workflow:" in text)
    assert preset == type(preset).model_validate(preset.model_dump())  # rules between fields


def test_the_laptops_preset_is_what_the_settings_have_by_default():
    assert PipelineSettings() == presets.preset("laptop", PipelineSettings)
    assert RetrainSettings() == presets.preset("nightly", RetrainSettings)


@for_each("name", presets.names())
def test_a_preset_names_no_value_that_its_parent_has(name):
    given = yaml.safe_load((presets.FOLDER / f"{name}.yaml").read_text())
    if presets.PARENT not in given:
        return
    parent, preset = presets.load(given[presets.PARENT]), presets.load(name)
    changed = {line.partition(":")[0] for line in presets.differences(parent, preset)}

    for group in given.keys() - {presets.PARENT}:
        assert any(line == group or line.startswith(f"{group}.") for line in changed), group


def test_values_of_a_chain_of_parents_arrive():
    ring = presets.preset("ring_lite", PipelineSettings)

    assert ("grpo", 16, 3e-6) == (ring.rl_one.loss.kind, ring.rl_one.group_size, 3e-6)
    assert 1024 == ring.curation.max_prompt_tokens  # of single_node, its grandparent
    assert {Domain.CODE: 1.0, Domain.SCIENCE: 1.0} == ring.rl_two.domains  # replaced as a whole


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parent: ringlite", "there is no preset 'ringlite'; did you mean `ring_lite`?"),
        (
            "parent: laptop\nrl_one: {step: 3}",
            "rl_one.step is not a setting; did you mean `steps`?",
        ),
        ("workflow: retain", "workflow is 'retain'; did you mean `retrain`?"),
        (
            "parent: nightly\nworkflow: post_training",
            "these are settings of post_training, not",
        ),
        ("[1, 2", "is not YAML"),
        ("3", "has no settings; write `parent: laptop` and what differs"),
        ("steps: 3", "steps is not a setting; it is one of rl_one, rl_two"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_what_was_meant(tmp_path, text, message):
    own = tmp_path / "own.yaml"
    own.write_text(text)

    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        presets.load(str(own))
    assert str(refused.value).startswith(str(own))


def test_what_differs_is_a_line_for_each_value():
    one = presets.preset("laptop", PipelineSettings)
    loss = one.rl_one.loss.model_copy(update={"kind": "grpo"})
    rl = one.rl_one.model_copy(update={"steps": 3, "loss": loss})
    other = one.model_copy(update={"rl_one": rl})

    expected = ["rl_one.steps: 40 -> 3", "rl_one.loss.kind: espo -> grpo"]
    assert expected == list(presets.differences(one, other))
    assert [] == list(presets.differences(one, one))


SHOW = """
import sys
from tasks.platform.entry_point import entry_point
from data_schemas import presets
from data_schemas.settings import PipelineSettings
from flytekit import task


@task
def show(settings: PipelineSettings) -> str:
    print(settings.rl_one.loss.kind, settings.rl_one.steps, settings.curation.max_prompt_tokens)
    return ""


@entry_point
def shown(settings: PipelineSettings = presets.CPU_SMOKE) -> str:
    \"\"\"Show settings.

    Args:
        settings: to show.
    \"\"\"
    return show(settings=settings)
"""


def run(folder: Path, given: str) -> subprocess.CompletedProcess[str]:
    (folder / "shown.py").write_text(SHOW)
    command = [Path(sys.executable).with_name("pyflyte"), "run", "shown.py", "shown"]
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
    return run_process([*command, "--settings", given], cwd=folder, env=environment, check=False)


@pytest.mark.slow
def test_a_run_takes_a_file_with_a_parent_and_says_what_differs_from_it(tmp_path):
    (tmp_path / "my_loss.py").write_text(
        "from tasks.algorithms.losses.sapo import SAPO\nclass Mine(SAPO): ...\n"
    )
    (tmp_path / "own.yaml").write_text(
        "parent: ring_lite\nrl_one: {steps: 3, loss: {kind: 'my_loss.py:Mine'}}\n"
    )

    done = run(tmp_path, "own.yaml")

    assert 0 == done.returncode, done.stderr
    assert re.search(r"my_loss\.py:Mine@[0-9a-f]{64} 3 1024", done.stdout)
    changes = [line for line in done.stderr.splitlines() if " -> " in line]
    assert [
        "settings.rl_one.steps: 1000 -> 3",
        "settings.rl_one.loss.kind: grpo -> my_loss.py:Mine",
        "settings.rl_one.loss.clip_low: 0.2 -> its default",
        "settings.rl_one.loss.clip_high: 0.2 -> its default",
    ] == changes


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (json.dumps({"parent": "nightly"}), "--settings: parent nightly has RetrainSettings, but"),
        (json.dumps({"parent": "lptop"}), "--settings: there is no preset 'lptop'; did you mean"),
        (
            json.dumps({"rl_one": {"loss": {"kind": "absent.py:x"}}}),
            "--settings: rl_one.loss.kind: absent.py is in neither",
        ),
    ],
)
def test_settings_that_cannot_be_read_are_refused_in_one_line(
    tmp_path, monkeypatch, given, message
):
    (tmp_path / "shown.py").write_text(SHOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    done = CliRunner().invoke(main, ["run", "shown.py", "shown", "--settings", given])

    assert 2 == done.exit_code
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"SettingsError: {message}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("absent.yaml", "--settings: there is no file absent.yaml"),
        ("broken.yaml", "--settings: broken.yaml is not YAML"),
        ("nested.yaml", "--settings: nested.yaml is nested too deeply to be read"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_refused_in_one_line(
    tmp_path, monkeypatch, given, message
):
    (tmp_path / "broken.yaml").write_text("[1, 2")
    (tmp_path / "nested.yaml").write_text("[" * 20_000)
    # Of a name of its own: what is imported already is not read again.
    file = f"shown_{given.partition('.')[0]}.py"
    (tmp_path / file).write_text(SHOW)
    typed = ["run", file, "shown", "--settings", given]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["pyflyte", *typed])

    done = CliRunner().invoke(main, typed)

    assert 2 == done.exit_code
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith(f"SettingsError: {message}")
