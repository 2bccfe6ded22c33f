"""The page of a study: intervals stay in their range, and what is shown stands first."""

import re
from pathlib import Path

import pytest

from data_schemas.study import EvidenceCell, Measures, StudyEvidence
from tasks.lab.study.cells import arms_of, cells_of
from tasks.lab.study.page import page

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"


def measures(seed: int, share: float, seconds: float, reward: float) -> Measures:
    metrics = {"clipped": share, "wall seconds": seconds, "reward": reward}
    return Measures(variant="a", seed=seed, metrics=metrics)


def test_an_interval_over_seeds_ends_where_its_quantity_does() -> None:
    # Student's t of 0.90 and 0.98: 0.94 +- 12.7 * 0.04; of 1 s and 9 s: 5 +- 12.7 * 4.
    arms = arms_of([measures(0, 0.90, 1.0, 0.1), measures(1, 0.98, 9.0, 0.3)], [0, 1])

    cells = cells_of(arms, {"a": "a"}, (), ())

    assert (0.4317, 1.0) == pytest.approx(
        (cells["a/clipped"].low, cells["a/clipped"].high), abs=1e-3
    )
    assert (0.0, 55.82) == pytest.approx(
        (cells["a/wall seconds"].low, cells["a/wall seconds"].high), abs=1e-2
    )
    low = cells["a/reward"].low
    assert low is not None
    assert low < 0.0  # penalties make a reward negative


def test_a_difference_that_is_shown_stands_first_and_has_a_colour() -> None:
    evidence = StudyEvidence.model_validate_json((EVIDENCE / "losses.json").read_bytes())
    key = next(key for key in evidence.cells if key.endswith("minus espo/equal tokens"))
    ahead = EvidenceCell(value=0.031, low=0.012, high=0.05, runs=3, problems=420, shown=True)
    html = page(evidence.model_copy(update={"cells": evidence.cells | {key: ahead}}))

    shown, rest = re.split("<h2>The arms", html)
    assert f"<li>{key.replace('/', ' at ')}: +3.1 [+1.2, +5.0] points</li>" in shown
    assert "#1a7f5a" in shown
    assert "No difference" not in shown
    assert rest.count("<tr>") > len(evidence.cells)


def test_without_a_shown_difference_the_page_says_so() -> None:
    evidence = StudyEvidence.model_validate_json((EVIDENCE / "losses.json").read_bytes())
    cells = {
        key: cell.model_copy(update={"shown": cell.shown and None})
        for key, cell in evidence.cells.items()
    }

    assert "No difference is shown." in page(evidence.model_copy(update={"cells": cells}))


def test_a_gain_that_is_shown_names_its_two_checkpoints_in_words() -> None:
    evidence = StudyEvidence.model_validate_json((EVIDENCE / "losses.json").read_bytes())
    gain = EvidenceCell(value=0.048, low=0.025, high=0.07, runs=3, problems=420, shown=True)
    html = page(evidence.model_copy(update={"cells": {"espo/gain/merged/rl/two": gain}}))

    assert "<li>espo, gain from merged to rl/two: +4.8 [+2.5, +7.0] points</li>" in html
    assert "<td>gain from merged to rl/two</td>" in " ".join(html.split())
