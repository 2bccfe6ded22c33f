import threading
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import EngineError
from tasks.rl.collector import StepRollouts
from tasks.rl.producer import Producer


class Rollouts:
    """Makes empty steps with whatever version is installed."""

    def __init__(self):
        self.version = 0
        self.made = []

    def collect(self, step):
        self.made.append((step, self.version))
        return StepRollouts(step, self.version, [])


def run(source, staleness, steps, start=0, waiting=()):
    """Train `steps` steps; training a step makes the version of its number."""
    taken = []
    producer = Producer(source, staleness=staleness, last_step=steps, waiting=waiting)
    with closing(producer):
        for step in range(start + 1, steps + 1):
            taken.append(producer.take(step))
            producer.settle()
            source.version = step
            left = producer.waiting
    return taken, left


@given(staleness=st.integers(0, 3), steps=st.integers(1, 9))
def test_every_step_gets_its_own_rollouts_within_the_bound(staleness, steps):
    taken, left = run(Rollouts(), staleness, steps)

    assert list(range(1, steps + 1)) == [item.step for item in taken]
    assert [max(0, n - 1 - staleness) for n in range(1, steps + 1)] == [
        item.policy_version for item in taken
    ]
    assert () == left


@given(staleness=st.integers(0, 3), stop=st.integers(1, 5))
def test_what_was_waiting_is_not_made_again(staleness, stop):
    whole = Rollouts()
    run(whole, staleness, 8)
    first = Rollouts()
    producer = Producer(first, staleness=staleness, last_step=8)
    with closing(producer):
        for step in range(1, stop + 1):
            producer.take(step)
            producer.settle()
            first.version = step
        left = producer.waiting
    second = Rollouts()
    second.version = stop
    run(second, staleness, 8, start=stop, waiting=left)

    assert whole.made == first.made + second.made


def test_training_does_not_wait_for_the_rollouts_of_a_later_step():
    may_go_on = threading.Event()

    class Slow(Rollouts):
        def collect(self, step):
            if step == 2:
                may_go_on.wait(30)
            return super().collect(step)

    source = Slow()
    with closing(Producer(source, staleness=1, last_step=3)) as producer:
        producer.take(1)
        assert [(1, 0)] == source.made

        may_go_on.set()
        producer.settle()
        assert [(1, 0), (2, 0)] == source.made


def test_rollouts_beyond_the_bound_are_refused():
    old = StepRollouts(5, 1, [])
    with (
        closing(Producer(Rollouts(), staleness=1, last_step=9, waiting=[old])) as producer,
        pytest.raises(EngineError, match="step 5 received rollouts of policy 1; at most 1"),
    ):
        producer.take(5)


def test_a_failed_rollout_stops_the_step_that_waits_for_it():
    class Broken(Rollouts):
        def collect(self, step):
            if step == 2:
                raise EngineError("engine died")
            return super().collect(step)

    with closing(Producer(Broken(), staleness=1, last_step=3)) as producer:
        producer.take(1)
        with pytest.raises(EngineError, match="engine died"):
            producer.settle()
