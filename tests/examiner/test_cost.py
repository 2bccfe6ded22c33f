"""No mathematical text takes a verdict a CPU second."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.gym.workers import WorkerPool
from tests.examiner.cost import LIMIT_S, VERIFIERS, build_problem, draw
from tests.examiner.timing import warm_verdict


@pytest.mark.slow
def test_no_drawn_text_takes_a_cpu_second(tmp_path: Path) -> None:
    """As a program, because a worker does not find what that defines."""
    out = tmp_path / "cost.json"
    command = ["-m", "tests.examiner.cost", "--texts", "180", "--seed", "1", "--out", str(out)]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    found = json.loads(out.read_bytes())

    assert {"final_answer": 0, "rule_answer": 0} == {
        name: found[name]["over_a_second"] for name in VERIFIERS
    }


def test_the_same_seed_draws_the_same_texts() -> None:
    assert list(draw(20, 5)) == list(draw(20, 5)) != list(draw(20, 6))


@pytest.mark.slow
def test_eight_boxes_share_one_second() -> None:
    integral = r"\boxed{\int_0^{\infty} \frac{\sin(x^7) + x^9}{1 + e^{x^3}} \, dx}"
    gold = r"\int_0^1 \sin(x^5) \, dx"
    pool = WorkerPool(1)
    factorials = "\n".join(rf"\boxed{{x!^{power}}}" for power in range(8))
    texts = ["\n".join([integral] * 8), factorials]
    for verify in VERIFIERS.values():
        calls = [(verify, build_problem(gold), text) for text in texts]
        replies = list(pool.each(warm_verdict, calls, [10.0] * len(calls)))

        assert [""] * 2 == [reply.failure for reply in replies]
        assert LIMIT_S > max(seconds for _, seconds in (reply.value for reply in replies))
    pool.close()


def test_no_text_of_the_kept_measurement_took_a_cpu_second() -> None:
    kept = json.loads(Path(__file__).with_name("cost.json").read_bytes())

    assert 20_000 == sum(kept[name]["texts"] for name in VERIFIERS)
    assert LIMIT_S > max(kept[name]["most_cpu_s"] for name in VERIFIERS)
