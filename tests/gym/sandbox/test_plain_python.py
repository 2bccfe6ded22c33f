"""A program runs in the sandbox as an ordinary Python runs it, but for the guarantees named here.

Guarantees: site-packages are absent, integers have any number of digits, the names of `typing` need
no import in programs whose functions are called, a program that exits before its tests fails
them, and an assertion that hands a function over is refused by name (`unsupported_test`).
"""

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.gym import table

ORDINARY = [
    "print(input())\nexit(0)",
    "n = int(input())\nif n % 2:\n    print('odd')\n    exit()\nprint('even')",
    "import sys\nprint(input(), __name__, len(sys.argv), __file__[-10:])",
    "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nprint(f(990))",
    "def f(n):\n    return f(n + 1)\nf(0)",
    "raise SystemExit(3)",
    "from __future__ import annotations\nx: Unknown = int(input())\nprint(x)",
    "'''doc'''\nprint(__doc__, sorted(k for k in globals() if not k.startswith('__')))",
    "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)",
    "# -*- coding: latin-1 -*-\nprint(len('\u00e9'))",
    "print(List)",
]

# A module of the standard library, run as a program of its own: lines that follow its text, and
# what it reads. `heapq` runs its doctests, `shlex`, `tokenize` and `quopri` read their input.
INSTALLED = {
    "bisect": ("print(bisect([1, 2, 2, 3], 2), bisect_left([7**90, 7**99], 7**95))", ""),
    "colorsys": ("print(*map(rgb_to_hsv, (0.2, 0.1), (0.4, 1 / 3), (0.4, 1e-9)))\nexit()", ""),
    "copy": ("a = [1]; a.append(a); b = deepcopy(a)\nprint(b is b[1], copy({2: 3}))", ""),
    "fnmatch": ("print(translate('a*[!b]?'), filter(['ab', 'b'], 'a*'))\nquit(0)", ""),
    "fractions": ("print(Fraction(3, 7) ** 6000, hash(Fraction('1e-3')))", ""),
    "graphlib": ("print(*TopologicalSorter({1: {2}, 2: {1}}).static_order())", ""),
    "heapq": ("print(*nsmallest(3, merge([10**5000, 3], map(ord, input()))))", "feed\n"),
    "quopri": ("", "na\u00efve = 1\n"),
    "reprlib": ("a = []\nfor _ in range(900):\n    a = [a]\nprint(a, repr(a))", ""),
    "shlex": ("print(quote('a b'), split('a \\ b \tc #d', comments=True))", "ask 'a b'\n"),
    "statistics": ("print(mean([10**400, 2]), quantiles(range(99)))\nmedian([])", ""),
    "string": ("print(Template('$x $$').substitute(x=input()), capwords('a b'))", "7\n"),
    "textwrap": ("print(indent(fill(input() * 9, 30), '> '), dedent('  a'))", "who is it? "),
    "tokenize": ("raise SystemExit(__name__)", "def f(x):\n    return x ** 2  # \u00b2\n"),
}


@pytest.fixture(scope="module", autouse=True)
def _nothing_stays():
    yield
    table.close()


def plain(source: str, text: str, folder: Path) -> tuple[int, str]:
    """Run a program as anybody does; return its exit code and output."""
    file = folder / "program.py"
    file.write_text(source)
    command = [sys.executable, "-X", "int_max_str_digits=0", str(file)]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout


def test_a_program_prints_and_exits_as_with_ordinary_python(problem, tmp_path) -> None:
    golds, answers, expected = [], [], []
    for source in ORDINARY:
        code, output = plain(source, "3\n", tmp_path)
        case = {"stdin": "3\n", "expected": output}
        golds.append(problem("code_tests", {"mode": "stdio", "cases": [case]}))
        answers.append(f"```python\n{source}\n```")
        expected.append(code == 0)

    verdicts = table.score_batch(golds, answers)

    assert expected == [verdict.solved for verdict in verdicts], [v.detail for v in verdicts]


def test_a_module_of_the_standard_library_prints_as_with_ordinary_python(problem, tmp_path) -> None:
    golds, answers, expected = [], [], []
    for name, (lines, text) in INSTALLED.items():
        source = f"{inspect.getsource(importlib.import_module(name))}\n{lines}"
        code, output = plain(source, text, tmp_path)
        case = {"stdin": text, "expected": output}
        golds.append(problem("code_tests", {"mode": "stdio", "cases": [case]}))
        answers.append(f"```python\n{source}\n```")
        expected.append((name, code == 0))

    verdicts = table.score_batch(golds, answers)

    solved = [(name, v.solved) for name, v in zip(INSTALLED, verdicts, strict=True)]
    assert expected == solved, [v.detail for v in verdicts]


@pytest.mark.parametrize(
    ("source", "score"),
    [
        (
            "class Solution:\n    def f(self, a: List[int]) -> Optional[int]:\n        return a[0]",
            1,
        ),
        ("class Solution:\n    def f(self, a: Missing) -> int:\n        return a[0]", 0),
        ("class Solution:\n    f = 0", 0),
        ("class Solution:\n    def f(self, a):\n        return 10 ** 5000 % 7 * 0 + a[0]", 1),
    ],
)
def test_the_names_of_a_starter_need_no_import(problem, source: str, score: float) -> None:
    cases = [{"args": [[2, 7]], "expected": 2}]
    gold = problem("code_tests", {"mode": "function", "function": "Solution.f", "cases": cases})

    (verdict,) = table.score_batch([gold], [source])

    assert score == verdict.score, verdict.detail


def test_a_number_of_5001_digits_is_read_and_printed(problem) -> None:
    case = {"stdin": "9" * 5001, "expected": "1" + "0" * 5001}
    gold = problem("code_tests", {"mode": "stdio", "cases": [case]})

    (verdict,) = table.score_batch([gold], ["print(int(input()) + 1)"])

    assert verdict.solved, verdict.detail


def _accepted(name: str) -> list[tuple[dict, str]]:
    folder = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / name
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        pytest.skip(f"EACHPROMPT_DATA names no folder with {name}")
    rows = [json.loads(line) for line in files[0].read_text().splitlines()]
    if name == "mbpp":
        return [
            ({"tests": row["test_list"], "setup": row["test_setup_code"]}, row["code"])
            for row in rows
        ]
    if name == "cruxeval":
        return [
            ({"tests": [f"assert f({row['input']}) == {row['output']}"]}, row["code"])
            for row in rows
        ]
    return [
        (
            {"tests": [f"{row['test']}\ncheck({row['entry_point']})"]},
            row["prompt"] + row["canonical_solution"],
        )
        for row in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["humaneval", "mbpp", "cruxeval"])
def test_accepted_solutions_of_public_sets_pass_where_plain_python_passes_them(
    problem, tmp_path, name: str
) -> None:
    different = []
    for gold, source in _accepted(name):
        tests = "\n".join([gold.get("setup", ""), *gold["tests"]])
        code, _ = plain(f"{source}\n{tests}", "", tmp_path)
        asked = problem("code_tests", {"mode": "asserts", **gold})
        (verdict,) = table.score_batch([asked], [f"```python\n{source}\n```"])
        if verdict.solved != (code == 0) and verdict.reason != "unsupported_test":
            different.append((gold["tests"][0][:80], verdict.reason, verdict.detail, code))

    assert [] == different
