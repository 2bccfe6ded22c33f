import pytest

from tasks.lab.recipes.promptcot.likelihood import Likelihood
from tasks.lab.recipes.promptcot.report import SynthesisCell, report_of, sheet_of


def likelihood(*nats, valid=0.75):
    named = {f"p{place}": value for place, value in enumerate(nats)}
    return Likelihood(valid_share=valid, nll=named, looser_nll=named, unended=0)


def cell(**changes):
    same = {f"h{place}": 0.5 for place in range(4)}
    values = {
        "before": likelihood(9.0, 8.0, 10.0, 9.0),
        "expected": likelihood(8.0, 7.0, 9.0, 8.0),
        "after": likelihood(6.0, 5.0, 7.0, 6.0),
        "written": 10,
        "left_out": {"": 8, "form": 2},
        "labels": 8,
        "label_errors": 2,
        "trained": 3,
        "trained_label_errors": 1,
        "hard": (1.0,) * 7 + (0.0,),
        "drawn_hard": (0.0,) * 7 + (1.0,),
        "reproduced": 0,
        "pairs": 5,
        "scores_before": same,
        "scores_after": {name: value + 0.25 for name, value in same.items()},
        "scores_rl": {name: value + 0.25 for name, value in same.items()},
        "scores_rl_drawn": {name: value + 0.5 for name, value in same.items()},
    }
    return SynthesisCell.model_validate(values | changes)


def lines(*cells):
    return [(one.number, one.shown) for one in report_of(cells, seed=0).claims]


def test_every_claim_has_its_number_and_whether_it_is_shown():
    assert [
        ("-1.00 nats (of 9.00)", True),
        ("-3.00 nats (of 9.00)", True),
        ("75.0%", True),
        ("75.0%", True),
        ("4 of 16 (25.0%); 2 of 6", False),
        ("87.5% against 12.5%", True),
        ("0", True),
        ("+25.0 points", True),
        ("+50.0 points", True),
        ("+25.0 points", True),
        ("-25.0 points", False),
    ] == lines(cell(), cell())


def test_a_seed_of_the_other_sign_leaves_a_claim_unshown():
    worse = cell(
        expected=likelihood(9.1, 8.1, 10.1, 9.1),
        before=likelihood(9.0, 8.0, 10.0, 9.0, valid=0.4),
        reproduced=1,
        scores_after={f"h{place}": 0.4 for place in range(4)},
    )

    shown = [flag for _, flag in lines(cell(), worse)]

    assert [False, True, False, True, False, True, False, False, True, True, False] == shown


def test_problems_without_a_bound_on_both_sides_are_not_compared():
    later = likelihood(8.0)

    assert ("-1.00 nats (of 9.00)", True) == lines(cell(expected=later))[0]


def test_the_page_says_what_was_left_out():
    conditions = sheet_of(report_of([cell()], 0)).conditions

    assert "8 of 10 written problems kept, left out: 2 form" in conditions


@pytest.mark.parametrize("field", ["written", "pairs"])
def test_a_cell_without_a_number_is_refused(field):
    values = cell().model_dump()
    values.pop(field)

    with pytest.raises(ValueError, match=field):
        SynthesisCell.model_validate(values)
