"""What the page says of published steps is what the simulator predicts."""

import numpy as np
import pytest

from tests.bench.published_steps import RUNS, lengths, predict
from tests.test_layout import ROOT

PAGE = ROOT / "tasks" / "engines" / "SPEED.md"


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_page_says_by_how_much_a_published_step_is_missed(run):
    found = predict(run)

    parts = [found.parts[name] for name in ("rollout", "old_logprobs", "update", "weight_sync")]
    numbers = [run.seconds, found.seconds, *parts]
    ratio = f"{found.seconds / run.seconds:.2f}"
    published, predicted, *others = (f"{number:.0f}" for number in numbers)
    row = [f"{run.name}, {run.gpus} GPUs", published, predicted, ratio, *others]
    assert f"| {' | '.join(row)} |" in PAGE.read_text()


def test_drawn_lengths_have_the_published_mean_after_their_cut():
    groups = lengths(3968, 3026.0)(512, 32, np.random.default_rng(1))

    drawn = np.array([group.lengths for group in groups])
    assert pytest.approx(drawn.mean(), rel=0.02) == 3026.0
    assert drawn.max() == 3968
