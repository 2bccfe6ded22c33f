"""What the plots draw."""

import re

import numpy as np
import pytest

from tasks.pages.figures import (
    gains_figure,
    lengths_figure,
    losses_figure,
    model_colour,
    moved_apart,
    phases_figure,
    trailing_mean,
    uses_figure,
)
from tasks.pages.inputs import Epoch, Tuning


def test_the_trailing_mean_by_hand():
    # 16 points: width 2. The first has only itself.
    values = np.array([0.0, 4.0, 8.0, 4.0] * 4)

    assert [0.0, 2.0, 6.0, 6.0, 2.0] == trailing_mean(values)[:5].tolist()


def test_a_short_curve_is_its_own_mean():
    assert [3.0, 1.0] == trailing_mean(np.array([3.0, 1.0])).tolist()


def test_the_same_numbers_give_the_same_bytes():
    series = {"rl/one": [(1, 0.5), (2, 0.25)]}

    assert phases_figure(series, "a", "Reward") == phases_figure(series, "a", "Reward")


def test_ids_of_two_figures_never_meet():
    series = {"rl/one": [(1, 0.5), (2, 0.25)]}
    first, second = (
        set(re.findall(r'\bid="([^"]+)"', phases_figure(series, name, "Reward")))
        for name in ("a", "b")
    )

    assert first
    assert not first & second


def test_the_second_phase_goes_on_where_the_first_ended():
    one = {"rl/one": [(step, 1.0) for step in range(1, 41)]}
    both = {**one, "rl/two": [(step, 1.0) for step in range(1, 41)]}

    assert ">80<" not in phases_figure(one, "a", "Reward")
    assert ">75<" in phases_figure(both, "a", "Reward")


def test_a_phase_of_one_step_is_seen_and_its_axis_has_whole_steps():
    one = {"rl/one": [(1, 30.0)]}

    for svg in (phases_figure(one, "a", "Reward"), uses_figure([("#1a7f5a", one)], "uses")):
        assert ">1<" in svg
        assert ">0.9" not in svg
    assert "#1a7f5a" in uses_figure([("#1a7f5a", one)], "uses")
    assert phases_figure(one, "a", "Reward").count("<use ") > phases_figure(
        {"rl/one": [(1, 30.0), (2, 30.0)]}, "a", "Reward"
    ).count("<use ")


def test_the_uses_of_tokens_are_stacked_over_both_phases():
    series = {"rl/one": [(1, 60.0), (2, 40.0)], "rl/two": [(1, 50.0), (2, 50.0)]}
    rest = {"rl/one": [(1, 40.0), (2, 60.0)], "rl/two": [(1, 50.0), (2, 50.0)]}
    svg = uses_figure([("#1a7f5a", series), ("#b3372f", rest)], "uses")

    assert 2 == svg.count("#1a7f5a")
    assert 2 == svg.count("#b3372f")
    assert svg == uses_figure([("#1a7f5a", series), ("#b3372f", rest)], "uses")


def test_a_gain_is_green_only_if_its_interval_leaves_out_zero(run):
    clear, unclear = run.gains[1], run.gains[2]

    assert "#1a7f5a" in gains_figure([clear], "a", 1)
    assert "#1a7f5a" not in gains_figure([unclear], "a", 1)


@pytest.mark.parametrize("model", ["base", "sft/reasoning", "merged", "rl/two", "retrained"])
def test_every_model_has_a_colour(model):
    assert re.fullmatch("#[0-9a-f]{6}", model_colour(model))


def test_labels_are_moved_apart_upwards_and_keep_their_order():
    assert [0.0, 3.0, 1.0, 2.0] == moved_apart([0.0, 2.5, 0.1, 0.1], 1.0)
    assert [5.0, 1.0] == moved_apart([5.0, 1.0], 1.0)
    assert [] == moved_apart([], 1.0)


def test_the_losses_of_each_domain_are_lines_if_there_are_several():
    def drawn(*domains: str, trained: bool = False) -> str:
        epochs = tuple(
            Epoch(
                epoch=epoch,
                train_loss=1.0 / epoch,
                val_loss=1.1 / epoch,
                entropy=0.3,
                val_losses=dict.fromkeys(domains, 1.1 / epoch),
                train_losses=dict.fromkeys(domains if trained else (), 0.9 / epoch),
            )
            for epoch in (1, 2)
        )
        tuning = Tuning(demonstrations=9, entropy_window_nats=(0.2, 0.5), epochs=epochs)
        return losses_figure(tuning, "loss")

    assert {"maths", "code"} == set(re.findall(r">(maths|code)<", drawn("maths", "code")))
    assert drawn() == drawn("maths")
    dashed = "stroke-dasharray"
    lines = [drawn("maths", "code", trained=trained).count(dashed) for trained in (False, True)]
    assert 2 == lines[1] - lines[0]


def test_lengths_within_a_decade_or_two_have_more_than_one_label():
    def labels(lengths: dict[int, int]) -> list[int]:
        svg = lengths_figure(lengths, "lengths")
        axis = svg[svg.index("xtick_1") : svg.index("ytick_1")]
        return [int(found.replace(",", "")) for found in re.findall(r">([\d,]+)</text>", axis)]

    assert {20, 50, 100, 200} <= set(labels({15: 3, 90: 2, 300: 1}))
    assert [100, 1000, 10_000] == labels({40: 3, 90: 2, 60_000: 1})
