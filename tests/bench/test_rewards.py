"""What the benchmark measures with: a replayed trace, and answers that are half right."""

import pytest

from tasks.gym import table
from tests.bench.reward_cases import DATA, cases
from tests.bench.rewards import finish_times


def test_a_free_slot_takes_the_next_response_at_once():
    # Two slots, 10 tokens per second: 4 s and 1 s; the second slot goes on with 2 s, then 3 s.
    assert [4.0, 1.0, 3.0, 6.0] == finish_times([40, 10, 20, 30], slots=2, tokens_per_s=10)


def test_every_other_answer_of_the_sample_is_right(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(DATA, raising=False)
    for case in cases(8):
        verdicts = table.score_batch(case.problems, case.responses)
        expected = [place % 2 == 0 for place in range(len(case.problems))]

        assert expected == [verdict.solved for verdict in verdicts], case.name
    table.close()
    assert cases(8) == cases(8) != cases(8, seed=1)
