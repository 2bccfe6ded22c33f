"""Numbers of a study: what is shown, and what is refused."""

import numpy as np
import pytest

from data_schemas.study import Measures
from tasks.errors import DataError
from tasks.lab.study.cells import arms_of, cells_of, over_seeds

PROBLEMS = [f"maths/{place}" for place in range(30)] + [f"code/{place}" for place in range(10)]
CHECKPOINTS = ("merged", "rl/one", "rl/two")


def cell(variant: str, seed: int, levels, tokens=(100, 200, 300), **changes) -> Measures:
    """Accuracies near these levels, with the same noise for every variant of a seed."""
    noise = np.random.default_rng(seed).normal(0.0, 0.05, (len(CHECKPOINTS), len(PROBLEMS)))
    accuracy = {
        name: dict(zip(PROBLEMS, (level + noise[place]).tolist(), strict=True))
        for place, (name, level) in enumerate(zip(CHECKPOINTS, levels, strict=True))
    }
    given = {
        "variant": variant,
        "seed": seed,
        "domains": {name: name.split("/")[0] for name in PROBLEMS},
        "accuracy": accuracy,
        "tokens": dict(zip(CHECKPOINTS, tokens, strict=True)),
        "metrics": {"reward": levels[-1] + 0.01 * seed},
    }
    return Measures.model_validate(given | changes)


def study(seeds, *arms, against="base"):
    measures = [cell(name, seed, *rest) for name, *rest in arms for seed in seeds]
    names = {name: against for name, *_ in arms}
    return cells_of(arms_of(measures, seeds), names, CHECKPOINTS, [("merged", "rl/two")])


def test_a_difference_that_every_seed_and_problem_has_is_shown():
    cells = study((0, 1, 2), ("base", (0.3, 0.4, 0.5)), ("better", (0.3, 0.5, 0.6)))

    found = cells["better minus base/equal steps/rl/two"]
    assert (0.1, 3, 40, True) == (
        pytest.approx(found.value),
        found.runs,
        found.problems,
        found.shown,
    )
    assert not cells["better minus base/equal steps/merged"].shown
    assert cells["base/gain/merged/rl/two"].shown
    assert 0.0 < cells["base/gain/merged/rl/two"].low < 0.2 < cells["base/gain/merged/rl/two"].high


def test_a_difference_in_one_family_alone_is_shown_there():
    better = dict.fromkeys(PROBLEMS, 0.5) | {name: 0.8 for name in PROBLEMS if "code" in name}
    arms = [("base", (0.5, 0.5, 0.5)), ("better", (0.5, 0.5, 0.5))]
    measures = [cell(name, seed, levels) for name, levels in arms for seed in (0, 1, 2)]
    for one in measures[3:]:
        one.accuracy["rl/two"].update(better)
    names = dict.fromkeys(("base", "better"), "base")
    cells = cells_of(arms_of(measures, (0, 1, 2)), names, CHECKPOINTS, [])

    found = cells["better minus base/equal steps in code/rl/two"]
    assert (10, True) == (found.problems, found.shown)
    assert not cells["better minus base/equal steps in maths/rl/two"].shown


def test_one_seed_shows_nothing_about_a_method():
    cells = study((0,), ("base", (0.3, 0.4, 0.5)), ("better", (0.3, 0.5, 0.7)))

    found = cells["better minus base/equal steps/rl/two"]
    assert found.low > 0.0
    assert (False, "interval of this run, not of the method") == (found.shown, found.note)


def test_more_tokens_for_a_higher_end_may_be_nothing_at_equal_tokens():
    arms = ("base", (0.3, 0.4, 0.5)), ("longer", (0.3, 0.5, 0.6), (100, 300, 400))

    cells = study((0, 1, 2), *arms)

    steps, tokens = (
        cells[f"longer minus base/{name}"] for name in ("equal steps/rl/two", "equal tokens")
    )
    assert 300.0 == cells["longer minus base/budget of equal tokens"].value
    assert (pytest.approx(0.1), True) == (steps.value, steps.shown)
    assert (pytest.approx(0.0, abs=0.05), False) == (tokens.value, tokens.shown)


def test_a_dearer_step_loses_its_lead_at_equal_seconds_of_the_processor():
    def spent(*seconds):
        return {"seconds": dict(zip(CHECKPOINTS, seconds, strict=True))}

    base = [cell("base", seed, (0.3, 0.4, 0.5), **spent(0, 10, 20)) for seed in (0, 1, 2)]
    dear = [cell("dear", seed, (0.3, 0.5, 0.6), **spent(0, 40, 80)) for seed in (0, 1, 2)]
    arms = arms_of([*base, *dear], (0, 1, 2))

    cells = cells_of(arms, {"base": "base", "dear": "base"}, CHECKPOINTS, [])

    assert pytest.approx(0.1) == cells["dear minus base/equal tokens"].value
    assert 20.0 == cells["dear minus base/budget of equal CPU seconds"].value
    assert pytest.approx(-0.1, abs=0.02) == cells["dear minus base/equal CPU seconds"].value
    assert "dear minus base/macro at equal CPU seconds" in cells


def test_an_arm_without_rl_is_compared_at_its_end_alone():
    tuned = ("tuned", (0.3, 0.5, 0.5), (100, 100, 100))

    cells = study((0, 1, 2), ("base", (0.3, 0.4, 0.5)), tuned)

    assert "tuned minus base/equal steps/rl/two" in cells
    assert "tuned minus base/equal tokens" not in cells


def test_costs_are_compared_where_both_arms_rise_and_refused_on_a_plateau():
    cheap = ("cheap", (0.3, 0.4, 0.5), (0, 100, 200))
    rising = study((0, 1, 2), ("base", (0.3, 0.4, 0.5), (0, 200, 400)), cheap)
    flat = study((0, 1, 2), ("base", (0.3, 0.301, 0.302), (0, 200, 400)), cheap)

    assert 0.5 == pytest.approx(rising["cheap minus base/cost ratio"].value, abs=0.05)
    assert rising["cheap minus base/cost ratio"].shown
    refused = flat["cheap minus base/cost ratio"]
    assert refused.value is None
    assert "plateau" in refused.note


@pytest.mark.slow
def test_of_many_comparisons_holms_correction_leaves_those_that_are_clear():
    nothing = [(f"same {place}", (0.3, 0.4, 0.5)) for place in range(5)]

    cells = study((0, 1, 2), ("base", (0.3, 0.4, 0.5)), *nothing, ("better", (0.3, 0.5, 0.6)))

    shown = {key for key, one in cells.items() if one.shown and "equal steps/rl/two" in key}
    assert {
        "better minus base/equal steps/rl/two",
        "better minus base/macro at equal steps/rl/two",
    } == shown


def test_one_of_four_measures_of_steadiness_is_not_shown_because_it_looks_clear_alone():
    clear_alone, unclear = (-0.0014, -0.0009, -0.0016), (-0.01, 0.02, -0.005)
    changes = {"mean reward": clear_alone, **dict.fromkeys(("gradient", "length", "load"), unclear)}
    measures = [
        cell(name, seed, (0.3, 0.4, 0.5), metrics=metrics)
        for name, sign in (("base", 0.0), ("steady", 1.0))
        for seed in (0, 1, 2)
        for metrics in [
            {f"{one}/relative variance": sign * by[seed] for one, by in changes.items()}
        ]
    ]

    cells = cells_of(
        arms_of(measures, (0, 1, 2)), {"base": "base", "steady": "base"}, CHECKPOINTS, ()
    )

    found = cells["steady minus base/mean reward/relative variance"]
    assert found.high < 0.0
    assert (False, "not after Holm's correction for 4 comparisons") == (found.shown, found.note)


def test_a_study_of_one_family_has_gains_and_none_without_it():
    one = cell("base", 0, (0.3, 0.4, 0.5), domains=dict.fromkeys(PROBLEMS, "tool_use"))

    found = cells_of(arms_of([one], (0,)), {"base": "base"}, CHECKPOINTS, [("merged", "rl/two")])

    assert found["base/gain/merged/rl/two"].value == pytest.approx(
        found["base/gain in tool_use/merged/rl/two"].value
    )
    assert not [name for name in found if "gain without" in name]


def test_the_macro_average_weighs_domains_not_problems():
    only_code = {name: float(name.startswith("code")) for name in PROBLEMS}
    measures = [
        cell("base", seed, (0, 0, 0), accuracy=dict.fromkeys(CHECKPOINTS, only_code))
        for seed in (0, 1)
    ]

    cells = cells_of(arms_of(measures, (0, 1)), {"base": "base"}, CHECKPOINTS, ())

    assert (0.25, 0.5) == tuple(
        cells[f"base/{kind}/rl/two"].value for kind in ("accuracy", "macro")
    )
    assert 1.0 == cells["base/accuracy in code/rl/two"].value


def test_a_problem_without_a_verdict_anywhere_is_left_out_everywhere():
    without = cell("base", 0, (0.3, 0.4, 0.5)).accuracy
    without["merged"][PROBLEMS[0]] = None
    measures = [cell("base", 0, (0, 0, 0), accuracy=without), cell("base", 1, (0.3, 0.4, 0.5))]

    cells = cells_of(arms_of(measures, (0, 1)), {"base": "base"}, CHECKPOINTS, ())

    assert 39 == cells["base/accuracy/rl/two"].problems


def test_cells_that_answered_other_problems_or_are_missing_are_refused():
    other = {"accuracy": {"merged": {"another": 1.0}}}

    with pytest.raises(DataError, match="leave curation out of `seeded`"):
        arms_of([cell("a", 0, (0, 0, 0)), cell("a", 1, (0, 0, 0), **other)], (0, 1))
    with pytest.raises(DataError, match=r"'a' does not have the seeds \[0, 1\]"):
        arms_of([cell("a", 0, (0, 0, 0))], (0, 1))


def test_a_metric_has_the_interval_of_its_seeds_or_with_one_seed_that_of_its_run():
    assert over_seeds([1.0, 3.0]).low == pytest.approx(2 - 12.7062, abs=1e-3)
    one = over_seeds([1.0], (0.5, 1.5))
    assert (0.5, 1.5, "interval of this run, not of the method") == (one.low, one.high, one.note)
    assert over_seeds([1.0]).low is None
