"""The budgets of attempts that the cluster of the tests has are those of propeller."""

import pytest

from tests.cluster import End, is_interruptible, tries_again

LOST, OWN = End.LOST, End.RECOVERABLE


@pytest.mark.parametrize(
    ("ends", "retries", "kind", "again"),
    [
        ([LOST] * 3, 0, "python-task", True),
        ([LOST] * 4, 5, "python-task", False),  # seen: RetriesExhausted [3/3], with retries=5
        ([OWN] * 5, 5, "python-task", True),
        ([OWN] * 6, 5, "python-task", False),
        ([LOST, OWN, LOST, OWN, LOST], 2, "python-task", True),
        ([LOST] * 5, 5, "pytorch", True),
        ([LOST] * 6, 5, "pytorch", False),  # the sixth lost worker ends the job
    ],
)
def test_a_lost_pod_has_a_budget_of_its_own_and_a_lost_worker_has_not(ends, retries, kind, again):
    assert again is tries_again(ends, retries, kind)


def test_the_last_attempt_is_not_on_a_node_that_can_be_taken_away():
    assert [True, True, True, False] == [is_interruptible([LOST] * count) for count in range(4)]
