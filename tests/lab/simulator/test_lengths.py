"""Lengths of a step: assumed, or from a table."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import SettingsError
from tasks.lab.simulator.lengths import MEAN_SHARE, assumed, read_source, recorded


def test_assumed_lengths_have_their_mean_and_their_limit():
    groups = assumed(1000)(4000, 4, np.random.default_rng(0))
    lengths = np.concatenate([group.lengths for group in groups])

    assert pytest.approx(MEAN_SHARE * 1000, rel=0.03) == lengths.mean()
    assert 1000.0 == lengths.max()
    assert lengths.min() >= 1.0


def test_a_record_predicts_its_group():
    groups = assumed(1000)(2000, 4, np.random.default_rng(0))
    means = [group.lengths.mean() for group in groups]
    records = [group.record or 0.0 for group in groups]

    assert np.corrcoef(means, records)[0, 1] > 0.5


def test_a_table_is_scaled_to_the_limit(tmp_path):
    pd.DataFrame({"words": [1, 2, 4]}).to_csv(tmp_path / "t.csv", index=False)
    source = read_source(str(tmp_path / "t.csv"), "words", "", 100)
    groups = source.draw(50, 2, np.random.default_rng(0))

    assert {25.0, 50.0, 100.0} == {float(length) for group in groups for length in group.lengths}
    assert pytest.approx(175 / 3) == source.mean
    assert {None} == {group.record for group in groups}


def test_lengths_of_prompts_stay_with_their_prompt():
    draw = recorded([np.array([1.0, 1.0]), np.array([9.0, 9.0])], 9)
    groups = draw(20, 1, np.random.default_rng(0))

    assert all(group.lengths[0] == group.record for group in groups)


@pytest.mark.parametrize(
    ("path", "column", "prompt"), [("t.csv", "", ""), ("", "words", ""), ("", "", "id")]
)
def test_a_table_and_its_columns_belong_together(path, column, prompt):
    with pytest.raises(SettingsError, match="belong together"):
        read_source(path, column, prompt, 100)
