"""What the page says of published steps is what the simulator predicts."""

import numpy as np
import pytest

from tasks.lab.simulator.rates import Efficiency
from tests.bench.published_steps import (
    RUNS,
    SYNC_COST,
    SYNCS,
    VERL,
    VERL_PARTS,
    lengths,
    predict,
    predict_sync,
    predict_verl,
)
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


def test_the_page_says_by_how_much_the_parts_of_a_step_of_verl_are_missed():
    mean, found = predict_verl()

    page = PAGE.read_text()
    assert f"{mean:,} tokens" in page
    for name, published in (VERL_PARTS | {"step": VERL.seconds}).items():
        seconds = found[name]
        assert f"| {published:.0f} | {seconds:.0f} | {seconds / published:.2f} |" in page


@pytest.mark.parametrize("sync", SYNCS, ids=lambda sync: sync.name)
def test_the_page_says_by_how_much_a_published_weight_sync_is_missed(sync):
    seconds, ours = predict_sync(sync, sync.efficiency), predict_sync(sync, Efficiency())

    numbers = f"{sync.seconds:.1f} | {seconds:.1f} | {seconds / sync.seconds:.2f} | {ours:.1f}"
    assert f"| {sync.name} | {numbers} |" in PAGE.read_text()


def test_the_simulator_counts_what_was_measured_of_a_tensor():
    measured = SYNC_COST["sync"]["thread"]

    assert float(f"{measured:.2g}") == Efficiency().tensor_s
    assert SYNC_COST["direct"]["thread"] < SYNC_COST["update"]["thread"] < measured


def test_drawn_lengths_have_the_published_mean_after_their_cut():
    groups = lengths(3968, 3026.0)(512, 32, np.random.default_rng(1))

    drawn = np.array([group.lengths for group in groups])
    assert pytest.approx(drawn.mean(), rel=0.02) == 3026.0
    assert drawn.max() == 3968
