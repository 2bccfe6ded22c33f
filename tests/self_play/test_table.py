import pytest

from data_schemas.spell_presets import SPELL_VARIANTS, select_variants
from tasks.errors import DataError
from tasks.self_play import table
from tasks.self_play.table import Cell

EARLY = {"bad_format_share": 0.2, "operations_mean": 1.5}
LATE = {"bad_format_share": 0.05, "operations_mean": 2.5}
START = {"q1": 0.0, "q2": 0.5, "q3": 1.0}


def cell(variant, seed, scores, early=EARLY, late=LATE):
    return Cell(variant=variant, seed=seed, tokens=100, early=early, late=late, scores=scores)


def test_measures_are_means_over_seeds_and_held_out_answers_are_paired():
    better = {name: score + 0.25 for name, score in START.items()}
    cells = [
        cell("spell", 0, better),
        cell("spell", 1, better, late=LATE | {"bad_format_share": 0.15}),
        cell("plain", 0, START, {}, {}),
        cell("plain", 1, START, {}, {}),
    ]

    lines = table.lines_of(cells, {0: START, 1: START}, seed=0)

    told = {(line.variant, line.measure): (line.early, line.late) for line in lines}
    assert pytest.approx((20.0, 10.0)) == told["spell", table.MEASURES["bad_format_share"]]
    assert (1.5, 2.5) == told["spell", "operations per question"]
    assert (50.0, 75.0) == told["spell", "held-out questions, %"]
    assert (50.0, 75.0) == told["spell against plain", "held-out questions, %"]
    assert [("plain", "held-out questions, %")] == [key for key in told if key[0] == "plain"]
    rows = table.markdown(lines).splitlines()
    assert "| plain | held-out questions, % | 50.0 | 50.0 | +0.0 [0.0, 0.0] | not shown |" in rows
    (against,) = [row for row in rows if "against" in row]
    assert "+25.0 [25.0, 25.0] | shown |" in against


def test_other_held_out_questions_than_those_of_the_start_are_refused():
    with pytest.raises(DataError, match="spell: the two evaluations have other held-out questions"):
        table.lines_of([cell("spell", 0, {"q1": 1.0})], {0: START}, seed=0)


def test_variants_are_selected_by_name_beside_the_published_one():
    assert ("spell", "plain", "no_memory", "frozen") == select_variants("")
    assert ("spell", "frozen") == select_variants("frozen")
    with pytest.raises(ValueError, match="there is no variant 'cold'; use spell, plain"):
        select_variants("cold")
    assert [True, False] == [SPELL_VARIANTS[name].memory for name in ("spell", "no_memory")]
    assert not SPELL_VARIANTS["frozen"].train_questioner
