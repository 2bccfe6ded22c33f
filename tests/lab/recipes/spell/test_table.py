import pytest

from data_schemas.arrow import write_table
from data_schemas.reports import LEDGER_FILE, STEPS_FILE, StepReport
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.errors import DataError
from tasks.formats.ledgers import write_ledger
from tasks.lab.recipes.spell import table
from tasks.lab.recipes.spell.presets import SPELL_VARIANTS, select_variants
from tasks.lab.recipes.spell.table import SpellCell

EARLY = {"bad_format_share": (0.2, 0.2), "operations_mean": (1.5, 1.5)}
LATE = {"bad_format_share": (0.04, 0.02), "operations_mean": (2.0, 3.0)}
START = {"q1": 0.0, "q2": 0.5, "q3": 1.0}
FORM, OPERATIONS = table.MEASURES["bad_format_share"], "operations per question"


def cell(variant, seed, scores, early=EARLY, late=LATE):
    return SpellCell(variant=variant, seed=seed, tokens=100, early=early, late=late, scores=scores)


def told(cells, starts=(0, 1)):
    lines = table.lines_of(cells, dict.fromkeys(starts, START), seed=0)
    return lines, {(line.variant, line.measure): line for line in lines}


def test_measures_are_means_over_seeds_and_held_out_answers_are_paired():
    better = {name: score + 0.25 for name, score in START.items()}
    cells = [
        cell("spell", 0, better),
        cell("spell", 1, better, late=LATE | {"bad_format_share": (0.12, 0.10)}),
        cell("plain", 0, START, {}, {}),
        cell("plain", 1, START, {}, {}),
    ]

    lines, found = told(cells)

    form, asked = found["spell", FORM], found["spell", OPERATIONS]
    assert pytest.approx((20.0, 7.0)) == (form.early, form.late.mean)
    assert pytest.approx((-17.0, -9.0)) == form.by_seed
    assert (1.5, 2.5, True) == (asked.early, asked.late.mean, asked.shown)
    # Of one seed alone it would be shown: the other one ends above 5 %.
    assert form.shown is False
    assert told(cells[:1], [0])[1]["spell", FORM].shown is True
    against = found["spell against plain", "held-out questions, %"]
    assert (50.0, 75.0, True) == (against.early, against.late.mean, against.shown)
    assert [("plain", "held-out questions, %")] == [key for key in found if key[0] == "plain"]
    rows = table.markdown(lines).splitlines()
    plain = "50.0 | 50.0 [16.7, 83.3] | +0.0 [0.0, 0.0] | +0.0, +0.0 | not shown |"
    assert f"| plain | held-out questions, % | {plain}" in rows


def test_what_the_memory_and_the_questioner_bring_is_compared_at_the_end():
    less = LATE | {"operations_mean": (1.0, 1.5)}
    cells = [cell("spell", 0, START), cell("no_memory", 0, START, late=less)]

    found = told(cells, [0])[1]

    against = found["spell against no_memory", OPERATIONS]
    assert (1.25, 2.5, (1.25,), True) == (
        against.early,
        against.late.mean,
        against.by_seed,
        against.shown,
    )
    assert found["no_memory", OPERATIONS].shown is None


def test_early_and_late_steps_are_different_steps(tmp_path):
    reports = [
        StepReport(
            step=n + 1, policy_version=n, metrics={"spell/operations_mean": float(n)}
        ).model_dump_json()
        for n in range(7)
    ]
    (tmp_path / STEPS_FILE).write_text("\n".join(reports))
    write_ledger(tmp_path / LEDGER_FILE, [])
    write_table(tmp_path / SAMPLES_FILE, SampleResult, [])

    found = table.read_cell("spell", 0, tmp_path, tmp_path)

    assert {"operations_mean": (0.0, 1.0, 2.0)} == found.early
    assert {"operations_mean": (4.0, 5.0, 6.0)} == found.late


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
