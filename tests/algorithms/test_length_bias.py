import json
from pathlib import Path

import numpy as np
import pytest

from tasks.algorithms.length_bias import DRAWS, complaint, length_bias

VECTOR = json.loads((Path(__file__).parent / "off_policy_vectors.json").read_text())["length_bias"]


def test_the_difference_and_its_chance_are_those_counted_by_hand():
    groups, trained = VECTOR["groups"], VECTOR["trained"]

    found = length_bias(list(groups.values()), [name in trained for name in groups], [0] * 5)

    assert VECTOR["statistic_mean_log1p"] == pytest.approx(found.difference, abs=2e-6)
    assert VECTOR["p_two_sided"] == pytest.approx(found.chance)


def test_who_ends_first_is_shorter_than_what_was_generated_until_the_rest_is_let_in():
    first = VECTOR["first_to_finish"]
    lengths = [[one] for one in first["lengths"]]
    ended = [index in (1, 2, 3, 5) for index in range(8)]

    assert length_bias(lengths, ended, [0] * 8).difference < -0.3
    assert (0.0, 1.0) == length_bias(lengths, [True] * 8, [0] * 8)[:2]


def test_a_rule_that_only_chooses_the_domain_has_no_bias_of_its_own():
    """Code is longer than choice and is let in more often; inside of each the rule is blind."""
    generator = np.random.default_rng(0)
    lengths = [generator.integers(10, 20, 4).tolist() for _ in range(40)]
    lengths += [generator.integers(200, 400, 4).tolist() for _ in range(40)]
    admitted = [index % 4 == 0 for index in range(40)] + [index % 4 != 0 for index in range(40)]

    apart = length_bias(lengths, admitted, ["choice"] * 40 + ["code"] * 40)
    together = length_bias(lengths, admitted, [0] * 80)

    assert apart.difference == together.difference > 0.5
    assert apart.chance > 0.1
    assert 0.01 > together.chance >= 1 / (1 + DRAWS)


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_blind_to_length_is_called_biased_as_rarely_as_the_chance_says(seed):
    generator = np.random.default_rng(seed)

    def chance():
        lengths = [[int(one)] for one in generator.pareto(1.5, 12) * 20]
        return length_bias(lengths, generator.permutation(12) < 6, [0] * 12).chance

    chances = [chance() for _ in range(60)]

    assert np.mean(np.array(chances) <= 0.1) < 0.25


def test_without_candidates_there_is_no_bias():
    assert (0.0, 1.0, 0) == length_bias([], [], [])


def test_a_phase_is_warned_of_when_more_steps_select_by_length_than_a_blind_rule_would():
    """A blind rule has two of eight steps below 1 % in 0.27 % of phases, three in 0.005 %."""

    def said(found, steps=8, gap=-0.2):
        return complaint([gap] * steps, [0.005] * found + [0.5] * (steps - found))

    assert "" == said(2)
    assert said(3).startswith("what was trained is shorter than what was generated, by a factor of")
    assert "0.82: 3 of 8 steps" in said(3)
    assert "" == said(5, steps=100)
    assert said(6, steps=100)
    assert "" == said(8, gap=0.04)
    assert "" == complaint([], [])
    # Steps that let in all of their responses are no tests.
    assert "3 of 8 steps" in complaint([-0.2] * 20, [0.005] * 3 + [0.5] * 5 + [1.0] * 12)
