"""Calls of C++ and Java functions: JSON values arrive as the function's types and come back."""

import shutil

import pytest

from tasks.gym.code_tests import Case, CodeTests, score_program
from tasks.gym.sandbox.call_drivers import call_harness, check_printed
from tasks.gym.sandbox.runner import Sandbox
from tasks.gym.sandbox.toolchains import Language, classes


@pytest.fixture(scope="module")
def sandbox():
    one = Sandbox(size=1)
    yield one
    one.close()


CPP = r"""
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
using namespace std;
struct Solution {
    map<string, vector<long long>> f(
        vector<vector<int>>& grid, const string& text, bool flag, long long big,
        map<string, double> prices, vector<string> names, optional<int> none) {
        map<string, vector<long long>> out;
        for (auto& row : grid) for (int x : row) out["grid"].push_back(x);
        long long many = names.size();
        out[text] = {flag, big, many, none.has_value(), prices.at("a\"b") == 2.5};
        return out;
    }
};
"""
JAVA = r"""
import java.util.*;
class Solution {
    Map<String, List<Long>> f(List<List<Integer>> grid, String text, boolean flag, long big,
            Map<String, Double> prices, String[] names, Integer none) {
        Map<String, List<Long>> out = new TreeMap<>();
        out.put("grid", new ArrayList<>());
        for (var row : grid) for (int x : row) out.get("grid").add((long) x);
        out.put(text, List.of(flag ? 1L : 0L, big, (long) names.length, none == null ? 0L : 1L,
            prices.get("a\"b") == 2.5 ? 1L : 0L));
        return out;
    }
}
"""
ARGS = ([[1, -2], [], [3]], "kö\n", True, 2**40, {'a"b': 2.5}, ["x", "y"], None)
EXPECTED = {"grid": [1, -2, 3], "kö\n": [1, 2**40, 2, 0, 1]}


@pytest.mark.parametrize(
    ("language", "compiler", "source"), [("cpp", "g++", CPP), ("java", "javac", JAVA)]
)
def test_values_of_every_kind_cross(sandbox: Sandbox, language, compiler, source) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    gold = CodeTests(
        mode="function",
        language=language,
        function="Solution.f",
        cases=(Case(args=ARGS, expected=EXPECTED), Case(args=ARGS, expected=[])),
    )
    verdict = score_program(gold, source, sandbox)

    assert (0.5, "tests_failed") == (verdict.score, verdict.reason), verdict.detail
    assert "instead of []" in verdict.detail


def test_expected_values_are_in_no_harness_and_no_input() -> None:
    for language in (Language.CPP, Language.JAVA):
        harness, inputs = call_harness(language, "class A {}", "f", [[1], [2]])

        assert 2 == len(inputs)
        assert "expected" not in harness + "".join(inputs)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("7\n", ""),
        ("debug\n8\n7\n", ""),
        ("7\n8\n", "8 instead of 7"),
        ("", "no value printed: ''"),
        ("true\n", "true instead of 7"),
        ("7.0\n", "7.0 instead of 7"),
        ("[" * 100_000, "no value printed: '" + "[" * 60 + "'"),
        ("9" * 5_000, "no value printed: '" + "9" * 60 + "'"),
    ],
)
def test_the_last_printed_line_is_the_value(output: str, why: str) -> None:
    assert why == check_printed(7, output)


@pytest.mark.slow
def test_classes_are_found_in_order() -> None:
    assert ["Main", "Node", "Kind"] == classes(
        "public class Main { static class Node {} enum Kind {A} } // class Main"
    )
