from tasks.algorithms.skips.protocol import Prospect
from tasks.lab.skips.greso import Greso
from tasks.rl.prompts import PromptHistory


def test_a_prompt_is_kept_the_more_rarely_the_more_groups_in_a_row_were_flat():
    history = PromptHistory({})
    chances = []
    for solved in (8, 0, 3, 8):
        history.remember("p", solved, 8, [4] * 8)
        flat = history.of("p").flat_groups
        chances.append(Greso().keep_probability(Prospect(0.0, flat)))

    assert [0.5, 0.25, 1.0, 0.5] == chances


def test_a_group_without_verdicts_is_no_flat_one():
    history = PromptHistory({})
    history.remember("p", 0, 8, [4])
    history.remember("p", 0, 0, [4])

    assert 1 == history.of("p").flat_groups
