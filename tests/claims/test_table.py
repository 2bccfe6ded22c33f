"""Verdicts on claims from a study and a judge's report that were written down by hand."""

from dataclasses import replace

import pytest

from data_schemas.settings import EvaluationSettings
from tasks.ablation.report import report_of
from tasks.ablation.variants import select_variants
from tasks.algorithms.estimators import Interval
from tasks.claims.table import CANNOT, CLAIMS, NOT_MEASURED, NOT_SHOWN, SHOWN, Evidence, rows
from tasks.claims.text import HEADER, sheet
from tasks.training.judge.report import JudgeReport, Measure
from tests.ablation.conftest import accuracy_of
from tests.ablation.conftest import make_cell as make_cell

ALL, HALF, NONE = (1, 1), (1, 0), (0, 0)


def measure(name: str, judge: float, scalar: float, half_width: float = 0.05) -> Measure:
    difference = judge - scalar
    return Measure(
        name=name,
        tasks=9,
        judge=Interval(judge, judge, judge),
        scalar=Interval(scalar, scalar, scalar),
        difference=Interval(difference, difference - half_width, difference + half_width),
    )


JUDGE = JudgeReport(
    training_pairs=30,
    held_out_pairs=10,
    left_out={},
    majority_accuracy=Interval(0.4, 0.4, 0.4),
    above_majority=Interval(0.5, 0.5, 0.5),
    measures=(measure("tie recall", 0.9, 0.5), measure("advantage inversion", 0.1, 0.1)),
    agreements=(),
    judge_confusion={label: {"A": 4, "B": 4, "TIE": 2} for label in ("A", "B", "TIE")},
    scalar_confusion={},
    tie_margin=0.1,
    scalar_validation_losses=(),
    groups=3,
    groups_without_verdict=0,
)


@pytest.fixture
def found(make_cell):
    """Without the stages learning is slower; GRPO learns as much as the full recipe, GSPO less."""
    cells = []
    for seed in (0, 1):
        full = [{"zero_variance/share": 0.2, "zero_variance/trained_share": 0.1}] * 3
        off = [{"zero_variance/share": 0.4, "zero_variance/trained_share": 0.4}] * 3
        cells += [
            make_cell("full", seed, steps=full, solved=[ALL] * 8 + [HALF] * 2),
            make_cell("zv_off", seed, steps=off, solved=[HALF] * 8 + [NONE] * 2),
            make_cell("gspo", seed, steps=full, solved=[HALF] * 8 + [NONE] * 2),
            make_cell(
                "grpo",
                seed,
                steps=[{"policy/trained_tokens": float(n)} for n in (10, 30)],
                solved=[ALL] * 8 + [HALF] * 2,
            ),
            make_cell("grpo_c3po", seed, steps=full, solved=[ALL] * 8 + [HALF] * 2),
        ]
    start = accuracy_of([NONE] * 8 + [HALF] * 2)
    chosen = select_variants("zv_off,gspo,grpo_c3po")
    study = report_of(EvaluationSettings(samples=2), chosen, cells, start, max_tokens=1000)
    return Evidence(study, JUDGE)


def row_of(found, claim):
    (row,) = [row for row in rows(found) if row[0] == claim]
    return row[1:]


def test_an_effect_of_the_claimed_sign_is_shown_with_its_interval(found):
    assert ("-17 %", "-50 %", "[-50.0, -50.0]", SHOWN) == row_of(
        found, "Zero-variance elimination, first draws"
    )
    assert ("up to +12.1 points", "+50.0 points", "[+50.0, +50.0]", SHOWN) == row_of(
        found, "ESPO above GSPO"
    )


def test_no_difference_is_not_shown(found):
    assert ("", "+0.0 points", "[+0.0, +0.0]", NOT_SHOWN) == row_of(found, "ESPO above GRPO")
    assert NOT_SHOWN == row_of(found, "A ternary judge flips fewer advantages")[-1]


def test_the_judges_numbers_are_those_of_its_report(found):
    assert (
        "98.8 % against 51.2 %",
        "90.0 % against 50.0 %",
        "[+35.0, +45.0]",
        SHOWN,
    ) == row_of(found, "A ternary judge recognises ties")


def test_a_judge_that_calls_everything_a_tie_does_not_recognise_ties(found):
    always = {label: {"A": 0, "B": 1, "TIE": 9} for label in ("A", "B", "TIE")}
    judge = JUDGE.model_copy(update={"judge_confusion": always})

    verdict = row_of(replace(found, judge=judge), "A ternary judge recognises ties")[-1]

    assert f"{NOT_SHOWN}: it calls 90.0 % of the other pairs ties" == verdict


def test_a_budget_that_steadies_the_tokens_of_a_step_is_shown(found):
    assert ("constant", "spread 50 % to 0 %", "", SHOWN) == row_of(
        found, "C3PO steadies the tokens of a step"
    )


def test_a_claim_that_the_study_did_not_run_has_no_number(found):
    assert ("", "", f"{NOT_MEASURED}: the study is without cispo") == row_of(
        found, "ESPO above CISPO"
    )[1:]


@pytest.mark.parametrize("claim", ["FP8 rollouts", "Maths alone helps outside of it"])
def test_a_claim_that_the_study_has_no_data_of_says_why_it_cannot_be_shown(found, claim):
    *numbers, verdict = row_of(found, claim)[1:]

    assert ["", ""] == numbers
    assert verdict.startswith(f"{CANNOT}, because ")


def test_the_variants_claims_are_all_that_the_page_needs():
    chosen = {variant.name for variant in select_variants("claims")}

    assert {name for claim in CLAIMS for name in claim.variants} <= chosen


def test_the_page_has_every_claim_once_and_its_conditions(found):
    shown = sheet(found)
    written = shown.markdown

    for claim in CLAIMS:
        assert 1 == written.count(f"| {claim.text} |")
    assert f"| {' | '.join(HEADER)} |" in written
    assert "1,000 generated tokens per phase, 2 seeds, 10 held-out problems" in written
    assert "<td>ESPO above GSPO</td>" in shown.page
