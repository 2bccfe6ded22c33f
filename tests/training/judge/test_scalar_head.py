import itertools

import numpy as np
import pytest

from data_schemas.settings import SFTSettings
from tasks.errors import DataError
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.pairs import ComparisonPair
from tasks.training.judge.scalar_head import ScalarReward

SETTINGS = SFTSettings(epochs=4, learning_rate=3e-3, batch_tokens=512)


def pairs_of(label):
    """The answer 'yes' against 'no', for one task per word."""
    return [
        ComparisonPair(
            id=word, task=word, answer_a="yes", answer_b="no", label=label, annotators=()
        )
        for word in map("".join, itertools.product("abcde", repeat=2))
    ]


def test_an_untrained_head_knows_no_difference(tiny_moe):
    assert [0.0] * 25 == ScalarReward(tiny_moe).differences(pairs_of(Label.A), 512).tolist()


@pytest.mark.parametrize(("label", "sign"), [(Label.A, 1), (Label.B, -1)])
def test_the_preferred_answer_gets_the_higher_score(tiny_moe, label, sign):
    reward = ScalarReward(tiny_moe)

    losses = reward.train(SETTINGS, pairs_of(label))

    assert min(losses) < 0.3
    assert {sign} == set(np.sign(reward.differences(pairs_of(label), 512)))


def test_the_same_seed_gives_the_same_scores_whatever_the_batch(tiny_moe):
    first, second = ScalarReward(tiny_moe), ScalarReward(tiny_moe)
    pairs = pairs_of(Label.A)

    assert first.train(SETTINGS, pairs) == second.train(SETTINGS, pairs)
    np.testing.assert_allclose(
        first.differences(pairs, 512), second.differences(pairs, 64), atol=1e-4
    )


def test_ties_alone_teach_nothing(tiny_moe):
    with pytest.raises(DataError, match="0 comparisons without ties, of 0 tasks, cannot"):
        ScalarReward(tiny_moe).train(SETTINGS, pairs_of(Label.TIE))
