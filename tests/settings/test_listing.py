"""The table of all settings: none is missing, and each says what it is."""

import json

import pytest

from data_schemas import presets
from tasks.settings import listing
from tasks.settings.listing import Row, rows_of


def leaves(value: dict, prefix: str = "") -> list[str]:
    """Dotted names of what JSON holds; values that are dicts by type are one setting."""
    names = []
    for name, inner in value.items():
        path = f"{prefix}{name}"
        is_setting = name in ("domains", "weights", "parents", "copied")
        is_group = isinstance(inner, dict) and not is_setting
        names += leaves(inner, f"{path}.") if is_group else [path]
    return names


@pytest.mark.parametrize("name", listing.PRESETS)
def test_every_setting_of_a_preset_has_one_row_that_says_what_it_is(name):
    preset = listing.PRESETS[name]
    rows = list(rows_of(preset))

    assert leaves(json.loads(preset.model_dump_json())) == [row.name for row in rows]
    assert not [row.name for row in rows if not row.meaning]


def test_a_row_has_the_presets_value_and_its_limits():
    rows = {row.name: row for row in rows_of(presets.FULL_SCALE)}

    share = "share of a GPU for a rollout engine's weights and KV cache"
    memory = "rl_one.engines.layout.rollout_memory"
    assert Row(memory, "0.55", "> 0.0, < 1.0", share) == rows[memory]
    assert "espo | gspo | grpo | dr_grpo | dapo | cispo" == rows["rl_one.loss.kind"].allowed


def test_the_table_shows_values_in_brackets(capsys):
    listing.main(["full_scale"])

    printed = capsys.readouterr().out
    assert "[0.3, 0.5]" in printed
    assert "rl_two.zero_variance.skip_above" in printed
