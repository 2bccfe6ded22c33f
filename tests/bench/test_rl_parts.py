"""What the CPU seconds of a step are counted for."""

import time
from collections import Counter
from pkgutil import resolve_name

import pytest

from tests.bench.rl_parts import PARTS, RECORDS, WORK, item_of, rows_of, sampling


@pytest.mark.parametrize(
    ("names", "item"),
    [
        (
            (
                "tasks.algorithms.expert_products.grouped",
                "tasks.engines.embedded.rollout_forward._Layer.feed",
                "tasks.engines.embedded.rollout_forward.DecoderForward.decode",
                "tasks.rl.collector.Collector.collect",
            ),
            "rollouts: experts",
        ),
        (
            (
                "tasks.algorithms.logprobs._HeadScores.backward",
                "torch.autograd.graph._engine_run_backward",
                "tasks.rl.step.update",
                "tasks.rl.step.one_step",
            ),
            "update: output layer and its gradient",
        ),
        # The trainer scores in a weight sync, too: the outermost part counts.
        (
            ("tasks.engines.embedded.trainer.TorchTrainer.score", "tasks.rl.step.sync_weights"),
            "weight sync: other",
        ),
        (("tasks.rl.ledger.ledger_rows", "tasks.rl.step.one_step"), RECORDS),
    ],
)
def test_a_stack_counts_for_its_innermost_work_and_its_outermost_part(names, item):
    assert item == item_of(names)


def test_all_cpu_seconds_of_a_block_are_counted():
    seconds = Counter[str]()
    started = time.process_time()
    with sampling(seconds):
        while time.process_time() - started < 0.1:
            pass

    assert 0.09 < seconds.total() < 0.12
    assert {RECORDS} == seconds.keys()


def test_every_name_that_is_looked_for_exists():
    assert all(callable(resolve_name(name)) for name in PARTS)
    assert all(map(resolve_name, WORK))


def test_the_table_has_the_dearest_and_the_sum_of_the_others():
    shares = {f"item {place}": place / 66 for place in range(12)}

    rows = rows_of(shares)

    assert ("item 11", "16.7%") == rows[0]
    assert ("the others", "1.5%") == rows[-1]
    assert 11 == len(rows)
