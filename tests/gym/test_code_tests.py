"""Programs scored by tests: score, reason, and abstentions."""

import shutil

import pytest

from data_schemas.rl_settings import CodeReward
from tasks.gym import code_tests
from tasks.gym.code_tests import CodeTests, score_program, verify
from tasks.gym.sandbox.limits import Limits
from tasks.gym.sandbox.runner import Sandbox
from tests.slices import sliced

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


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ({**GOLD, "tests": ["assert add(1, 2 == 3"]}, "bad_gold"),
        ({**GOLD, "setup": "x = ("}, "bad_gold"),
        ({**GOLD, "tests": []}, "bad_gold"),
        ({**GOLD, "mode": "stdin"}, "bad_gold"),
        ({**GOLD, "language": "cpp"}, "bad_gold"),
        ({**GOLD, "cases": [{"expected": 1}]}, "bad_gold"),
        ({"mode": "stdio", "cases": [{"stdin": "", "expected": 3}]}, "bad_gold"),
        ({"mode": "function", "cases": [{"args": [1], "expected": 3}]}, "bad_gold"),
        ({"mode": "function", "function": "f()", "cases": [{"expected": 3}]}, "bad_gold"),
        ({"mode": "harness", "cases": [{"stdin": "", "expected": ""}]}, "bad_gold"),
        ({**GOLD, "setup": "import no_such_library"}, "unsupported_test"),
        ({**GOLD, "tests": ["assert add(lambda: 1, 2)"]}, "unsupported_test"),
    ],
)
def test_a_test_that_cannot_be_run_is_an_abstention(problem, gold, reason: str) -> None:
    verdict = verify(problem("code_tests", gold), "def add(a, b): return a + b")

    assert (None, reason) == (verdict.score, verdict.reason)


@pytest.mark.parametrize(
    ("tests", "program", "score"),
    [
        (["assert sum(10, 15) == 6", "assert sum(100, 150) == 93"], "sum", None),
        (["assert max([1, 2]) == [2]"], "max", None),
        (["assert set(filter([1, 2])) == {1}", "assert len(filter([3])) == 1"], "filter", None),
    ],
)
def test_a_function_called_like_a_builtin_is_tested(problem, tests, program, score) -> None:
    bodies = {
        "sum": "def sum(a, b):\n    return 6 if a == 10 else 93",
        "max": "def max(items):\n    return items[1:]",
        "filter": "def filter(items):\n    return items[:1]",
    }
    right = verify(problem("code_tests", {"tests": tests}), bodies[program])
    wrong = verify(problem("code_tests", {"tests": tests}), "def other(): return 0")

    assert (1.0, "correct") == (right.score, right.reason), right.detail
    assert (0.0, "tests_failed") == (wrong.score, wrong.reason)


@pytest.mark.parametrize(
    "tests",
    [["assert 1 == 1"], ["assert set(sum(1)) == set(2)"], ["assert sum(1)", "assert max(2)"]],
)
def test_tests_that_do_not_say_what_they_test_are_a_bad_gold(problem, tests) -> None:
    verdict = verify(problem("code_tests", {"tests": tests}), "def sum(x): return 1")

    assert (None, "bad_gold") == (verdict.score, verdict.reason)


BUSY = """
import time
def f(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end: pass
    return 1
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "response", "reference", "outcome"),
    [
        ("asserts", BUSY, "", (0.0, "timeout")),
        ("stdio", BUSY, "", (0.0, "timeout")),
        ("asserts", BUSY, BUSY, (1.0, "correct")),
        ("function", BUSY, BUSY, (1.0, "correct")),
        ("stdio", BUSY, BUSY, (1.0, "correct")),
        ("function", BUSY.replace("return 1", "while True: pass"), BUSY, (0.0, "timeout")),
        ("stdio", BUSY, "def f(cpu_s): return 2", (None, "bad_gold")),
        ("asserts", "def f(cpu_s): return 1", "def f(cpu_s): return 2", (1.0, "correct")),
    ],
)
def test_the_time_limit_follows_the_reference(mode, response, reference, outcome) -> None:
    gold = {
        "asserts": {"tests": ("assert f(0.5) == 1",)},
        "function": {"function": "f", "cases": ({"args": [0.5], "expected": 1},)},
        "stdio": {"cases": ({"stdin": "0.5", "expected": "1"},)},
    }[mode]
    end = "\nprint(f(float(input())))" if mode == "stdio" else ""
    task = CodeTests.model_validate(
        {"mode": mode, "reference": reference and reference + end, **gold}
    )
    limits = Limits(cpu_s=1, run_cpu_s=1, total_s=0.3)
    sandbox = Sandbox(limits, size=1)
    verdict = score_program(task, response + end, sandbox)
    sandbox.close()

    assert outcome == (verdict.score, verdict.reason), verdict


def test_a_program_that_hangs_in_one_test_is_started_again_for_the_next(problem) -> None:
    source = "def add(a, b):\n    while a == b: pass\n    return a + b"
    verdict = verify(problem("code_tests", GOLD), source)

    assert (pytest.approx(2 / 3), "timeout") == (verdict.score, verdict.reason)


@pytest.mark.parametrize(
    ("response", "score"),
    [("def add(a, b): return a + b", 1.0), ("def add(a, b): return 0", 0.0)],
)
def test_all_or_nothing_by_setting(problem, response: str, score: float) -> None:
    verdict = verify(problem("code_tests", GOLD), response, reward=CodeReward.ALL_TESTS)

    assert score == verdict.score


CASES = [{"stdin": "1 2\n", "expected": "3"}, {"stdin": "5 6\n", "expected": "11\n"}]
CALLS = [
    {"args": [[1, 2, 3], 2.5], "expected": [2.5, 5.0, 7.5]},
    {"args": [[], 1.0], "expected": []},
    {"args": [[-4], 0.5], "expected": [-2.0]},
]
COMPILERS = {"python": "true", "cpp": "g++", "java": "javac"}
ADD = {
    "python": "print(sum(map(int, input().split())))",
    "cpp": "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b; }",
    "java": """package somewhere.else_;
import java.util.Scanner;
class Pair { int a, b; }
class Task {
    static class Inner {}
    public static void main(String[] names) {
        Scanner in = new Scanner(System.in);
        System.out.println(in.nextInt() + in.nextInt());
    }
}""",
}
SCALE = {
    "python": "def scale(items, by): return [x * by for x in items]",
    "cpp": """#include <vector>
std::vector<double> scale(const std::vector<int>& items, double by) {
    std::vector<double> out;
    for (int x : items) out.push_back(x * by);
    return out;
}
int main() { return 1; }""",
    "java": """import java.util.*;
public class Solution {
    public List<Double> scale(int[] items, double by) {
        System.out.println("so far so good");
        List<Double> out = new ArrayList<>();
        for (int x : items) out.add(x * by);
        return out;
    }
}""",
}
HARNESS = {
    "cpp": """#include <iostream>
int main() { int a, b; std::cin >> a >> b; std::cout << add(a, b); }""",
    "java": """import java.util.Scanner;
class Harness {
    public static void main(String[] names) {
        Scanner in = new Scanner(System.in);
        System.out.println(Adder.add(in.nextInt(), in.nextInt()));
    }
}""",
}
ADDER = {
    "cpp": "int add(int a, int b) { return a + b; }\nint main() { return add(1, 2); }",
    "java": "public class Adder { static int add(int a, int b) { return a + b; } }",
}


def needs(language: str) -> None:
    if not shutil.which(COMPILERS[language]):
        pytest.skip(f"{COMPILERS[language]} is not installed")


@pytest.mark.parametrize("language", sliced(COMPILERS, lambda one: one != "cpp"))
def test_a_program_that_reads_and_prints_is_scored_in_every_language(problem, language) -> None:
    needs(language)
    gold = {"mode": "stdio", "language": language, "cases": CASES}
    right = verify(problem("code_tests", gold), f"```{language}\n{ADD[language]}\n```")
    half = [CASES[0], {"stdin": "1 1\n", "expected": "3"}]
    wrong = verify(problem("code_tests", {**gold, "cases": half}), ADD[language])

    assert (1.0, "correct") == (right.score, right.reason), right.detail
    assert (0.5, "tests_failed") == (wrong.score, wrong.reason)
    assert "1 of 2 passed; test 1: '2" in wrong.detail


# C++ and Java daily: sandbox/test_call_drivers.py.
@pytest.mark.parametrize("language", sliced(COMPILERS, lambda one: one == "python"))
def test_a_function_is_called_in_every_language(problem, language: str) -> None:
    needs(language)
    gold = {"mode": "function", "language": language, "function": "scale", "cases": CALLS}
    right = verify(problem("code_tests", gold), SCALE[language])
    other = [*CALLS[:2], {"args": [[1], 1.0], "expected": [2.0]}]
    wrong = verify(problem("code_tests", {**gold, "cases": other}), SCALE[language])

    assert (1.0, "correct") == (right.score, right.reason), right.detail
    assert (pytest.approx(2 / 3), "tests_failed") == (wrong.score, wrong.reason)


@pytest.mark.slow
@pytest.mark.parametrize("language", HARNESS)
def test_a_harness_is_compiled_with_the_program_and_scored_by_its_output(
    problem, language: str
) -> None:
    needs(language)
    gold = {"mode": "harness", "language": language, "harness": HARNESS[language], "cases": CASES}
    right = verify(problem("code_tests", gold), ADDER[language])
    wrong = verify(problem("code_tests", gold), ADDER[language].replace("a + b", "a - b"))

    assert (1.0, "correct") == (right.score, right.reason), right.detail
    assert (0.0, "tests_failed") == (wrong.score, wrong.reason)


@pytest.mark.parametrize(
    ("language", "response", "reason"),
    sliced(
        [
            ("cpp", "int main() {", "not_compiled"),
            ("java", "class A {", "not_compiled"),
            ("java", "class A { }", "crashed"),
            ("cpp", "int main() { return 1; }", "crashed"),
            ("python", "print(3", "crashed"),
            ("python", "while True: print('x' * 4096)", "too_much_output"),
            ("python", "import time; time.sleep(99)", "timeout"),
        ],
        lambda language, _, reason: (
            language == "python" or (language, reason) == ("cpp", "not_compiled")
        ),
    ),
)
def test_a_program_that_does_not_run_says_why(problem, language, response, reason) -> None:
    needs(language)
    gold = {"mode": "stdio", "language": language, "cases": CASES[:1]}
    verdict = verify(problem("code_tests", gold), response)

    assert (0.0, reason) == (verdict.score, verdict.reason), verdict.detail


@pytest.mark.slow
def test_a_missing_compiler_is_an_abstention_that_says_what_to_install(
    problem, monkeypatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    gold = {"mode": "stdio", "language": "cpp", "cases": CASES}
    verdict = verify(problem("code_tests", gold), ADD["cpp"])

    assert (None, "no_compiler") == (verdict.score, verdict.reason)
    assert "apt-get install --yes g++" in verdict.detail
