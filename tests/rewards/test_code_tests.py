"""Programs judged by unit tests: the score, its reason, and whose fault a failure is."""

import pytest

from tasks.rewards import code_tests
from tasks.rewards.code_tests import program, verify

GOLD = {
    "mode": "asserts",
    "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0", "assert add(-1, 1) == 0"],
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_stays():
    yield
    code_tests.close()


@pytest.mark.parametrize(
    ("response", "score", "reason"),
    [
        ("def add(a, b): return a + b", 1.0, "correct"),
        (
            "<think>Hm.</think>\n```python\ndef add(a, b):\n    return a + b\n```\nDone.",
            1.0,
            "correct",
        ),
        ("```py\ndef add(a, b): return 0\n```", 2 / 3, "tests_failed"),
        ("def add(a, b): return 7", 0.0, "tests_failed"),
        ("def sub(a, b): return a + b", 0.0, "tests_failed"),
        ("def add(a, b) return", 0.0, "not_loaded"),
        ("import no_such_library", 0.0, "not_loaded"),
        ("I cannot write that.", 0.0, "not_loaded"),
        ("import os; os._exit(0)", 0.0, "crashed"),
        ("import os\ndef add(a, b): return 3 if a > 0 else os._exit(0)", 1 / 3, "crashed"),
        ("<think>def add(a, b): return a + b", 0.0, "no_answer"),
        ("#" * 60_000, 0.0, "too_long"),
    ],
)
def test_the_score_is_the_share_of_tests_passed(problem, response, score, reason) -> None:
    verdict = verify(problem("code_tests", GOLD), response)

    assert (pytest.approx(score), reason) == (verdict.score, verdict.reason)


def test_a_program_that_hangs_keeps_what_it_passed_before(problem) -> None:
    source = "def add(a, b):\n    while a < 1: pass\n    return a + b"
    verdict = verify(problem("code_tests", GOLD), source)

    assert (pytest.approx(1 / 3), "timeout") == (verdict.score, verdict.reason)


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ({**GOLD, "tests": ["assert add(1, 2 == 3"]}, "bad_gold"),
        ({**GOLD, "setup": "x = ("}, "bad_gold"),
        ({**GOLD, "tests": []}, "bad_gold"),
        ({**GOLD, "mode": "stdin"}, "bad_gold"),
        ({**GOLD, "setup": "import no_such_library"}, "unsupported_test"),
        ({**GOLD, "tests": ["assert add(lambda: 1, 2)"]}, "unsupported_test"),
    ],
)
def test_a_test_that_cannot_be_run_is_an_abstention(problem, gold, reason: str) -> None:
    verdict = verify(problem("code_tests", gold), "def add(a, b): return a + b")

    assert (None, reason) == (verdict.score, verdict.reason)


def test_the_program_is_the_last_fenced_block_or_everything() -> None:
    assert "b\n" == program("```python\na\n```\nbetter:\n```\nb\n```")
    assert "a = 1" == program("a = 1")
    assert "cut off" == program("```python\ncut off")
    assert "x = 'c++'\n" == program("```\nx = 'c++'\n```")
