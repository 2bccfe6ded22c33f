"""Claims of the scaffold study from cells whose numbers are known."""

import pytest

from data_schemas.settings import EvaluationSettings
from tasks.errors import DataError
from tasks.lab.recipes.rusca.lift import Lift
from tasks.lab.recipes.rusca.report import ScaffoldCell, conditions, report_of, sheet_of

LIFT = Lift(bare=0.1, shown=0.6, lift={"mean": 0.5, "low": 0.4, "high": 0.6}, scores={"a": 0.1})


def cell(variant, seed, score, **changes):
    values = {
        "variant": variant,
        "seed": seed,
        "tokens": 1000,
        "contrast": (0.9, 0.8, 0.5),
        "shares": (1.0, 0.9, 0.0),
        "mentions_before": 3,
        "mentions_after": 0,
        "responses_after": 40,
        "pauses": 0,
        "max_k3": 1e-12,
        "scores": {f"p{number}": score for number in range(4)},
    }
    return ScaffoldCell(**(values | changes))


def claims(*cells):
    report = report_of(EvaluationSettings(), cells, {"p0": 0.1}, LIFT, 1000)
    return {one.claim: one for one in report.claims}


def study(ours=(0.8, 0.7), none=(0.4, 0.5), **changes):
    flat = {"contrast": (0.2, 0.3, 0.5), "shares": (0.0, 0.0, 0.0)}
    return claims(
        *(cell("ruscarl", seed, score, **changes) for seed, score in enumerate(ours)),
        *(cell("none", seed, score, **flat) for seed, score in enumerate(none)),
    )


def test_a_difference_of_one_sign_in_every_seed_is_shown():
    found = study()["held-out score under bare prompts, minus that of 'none'"]

    assert ("+30.0 points", "[+30.0, +30.0]", "+40.0, +20.0", True) == (
        found.number,
        found.interval,
        found.seeds,
        found.shown,
    )


def test_a_difference_with_another_sign_in_one_seed_is_not_shown():
    found = study(ours=(0.9, 0.4))["held-out score under bare prompts, minus that of 'none'"]

    assert (False, "+50.0, -10.0") == (found.shown, found.seeds)


def test_contrast_counts_the_steps_in_which_criteria_are_shown():
    (found,) = (one for name, one in study().items() if name.startswith("share of first draws"))

    # 0.9 - 0.2 and 0.8 - 0.3; the third step has no scaffold.
    assert ("+60.0 points", True) == (found.number, found.shown)


def test_contrast_of_a_phase_that_ended_before_any_step_with_criteria_is_no_number():
    steps = study(shares=(0.0, 0.0, 0.0))
    (found,) = (one for name, one in steps.items() if name.startswith("share of first draws"))

    assert ("no such step", "", False) == (found.number, found.interval, found.shown)


def test_one_repeated_criterion_or_pause_is_enough():
    for changes, start in (({"mentions_after": 1}, "responses"), ({"pauses": 1}, "steps")):
        (found,) = (one for name, one in study(**changes).items() if name.startswith(start))
        assert not found.shown
    assert all(one.shown for one in study().values())


def test_a_missing_cell_is_refused():
    with pytest.raises(DataError, match="'none' does not have the seeds of 'ruscarl'"):
        study(none=(0.1,))


def test_the_page_has_a_line_per_claim_and_says_what_the_gate_measured():
    cells = [cell("ruscarl", 0, 0.8), cell("none", 0, 0.4, contrast=(0.1, 0.1, 0.1))]
    report = report_of(EvaluationSettings(), cells, {"p0": 0.1}, LIFT, 1000)

    sheet = sheet_of(report)
    assert len(report.claims) == sheet.markdown.count("| shown |")
    assert "50.0% [40.0%, 60.0%]" in sheet.markdown
    assert conditions(report) in sheet.page
