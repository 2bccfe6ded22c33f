"""The table of all settings: none is missing, and each says what it is."""

import json
import re

import pytest

from data_schemas import presets
from tasks.algorithms.choices import complete
from tasks.errors import SettingsError
from tasks.settings import commands
from tasks.settings.listing import ListingRow, rows_of
from tests.tables import for_each

DICTS = (
    "domains",
    "weights",
    "parents",
    "copied",
    "may_lose",
    "arguments",
    "monitors_may_fall",
)

LISTS = ("terms",)


def leaves(value: dict, prefix: str = "") -> list[str]:
    """Dotted names of what JSON holds; values that are dicts by type are one setting.

    A list of choices is a setting, and so is what each of them has.
    """
    names = []
    for name, inner in value.items():
        path = f"{prefix}{name}"
        is_setting = name in DICTS
        is_group = isinstance(inner, dict) and not is_setting
        names += leaves(inner, f"{path}.") if is_group else [path]
        for place, one in enumerate(inner if name in LISTS else []):
            names += leaves(one, f"{path}[{place}].")
    return names


@for_each("name", presets.names())
def test_every_setting_of_a_preset_has_one_row_that_says_what_it_is(name):
    preset = presets.load(name)
    rows = list(rows_of(preset))

    named = [row.name for row in rows]
    written = leaves(json.loads(complete(preset).model_dump_json()))
    assert sorted(written) == sorted(named)
    assert not [row.name for row in rows if not row.meaning]


def test_a_row_has_the_presets_value_and_its_limits():
    rows = {row.name: row for row in rows_of(presets.FULL_SCALE)}

    share = "share of a GPU for a rollout engine's weights and KV cache"
    memory = "rl_one.engines.layout.rollout_memory"
    assert ListingRow(memory, "0.55", "> 0.0, < 1.0", share) == rows[memory]
    losses = " | ".join(("espo", "gspo", "grpo", "dr_grpo", "dapo", "cispo"))
    others = " | ".join(("sapo", "gmpo", "luspo", "dppo", "dppo_kl"))
    assert f"{losses} | {others} | FILE.py:NAME" == rows["rl_one.loss.kind"].allowed


def test_the_table_shows_values_in_brackets(capsys):
    commands.settings(["full_scale"])

    printed = capsys.readouterr().out
    assert "[0.3, 0.5]" in printed
    assert "rl_two.zero_variance.skip.above" in printed


def test_a_group_and_a_word_choose_the_rows(capsys):
    commands.settings(["ring_lite", "--group", "rl_one", "--find", "rate"])

    printed = capsys.readouterr().out
    assert "rl_one.learning_rate" in printed
    assert "3e-06" in printed
    assert "rl_two" not in printed
    assert "rl_one.steps" not in printed


def test_a_file_of_a_users_own_is_listed_as_a_preset(tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text("parent: ring_lite\nrl_one: {steps: 7}\n")

    commands.settings([str(own), "--find", "rl_one.steps"])

    assert "7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ringlite"], "there is no preset 'ringlite'; did you mean `ring_lite`?"),
        (["--group", "rl_on"], "there is no group 'rl_on'; did you mean `rl_one`?"),
        (["--find", "learning_rte"], "no setting contains 'learning_rte'; did you mean `learning"),
    ],
)
def test_what_is_not_there_is_refused_with_what_was_meant(arguments, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        commands.settings(arguments)
