"""What a YAML file of a user means, and which are refused."""

import json
import math

import pytest

from data_schemas.yaml_text import differs_in_1_1, load_yaml
from tests.tables import for_each


@for_each(
    ("text", "value"),
    [
        ("1:30", "1:30"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("on", "on"),
        ("No", "No"),
        ("True", True),
        ("1e-6", 1e-6),
        (".5", 0.5),
        ("-.INF", -math.inf),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("'010'", "010"),
        ("!!str 010", "010"),
        ("~", None),
        ("", None),
    ],
)
def test_a_plain_scalar_means_what_yaml_1_2_says(text, value):
    assert {"a": value} == load_yaml(f"a: {text}")


def test_json_means_what_json_says():
    text = '{"a": [1, -2.5e3, true, null, "1:30"], "b": {"c": {}}}'

    assert json.loads(text) == load_yaml(text)


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
)


@for_each(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "has the key a twice, in line 3 again"),
        ("a:\n  b: 1\n  'b': 2", "has the key b twice, in line 3 again"),
        ('{"a": 1, "a": 1}', "has the key a twice, in line 1 again"),
        ("1: a\n'1': b", "has the key 1 twice"),
        ("a: &a [*a]", "has an alias inside of itself, in line 1"),
        (BOMB, r"has aliases that make 4412961516 values of 30"),
        ("a: !!timestamp 2026-01-02", "timestamp"),
        ("a: !!bool word", "neither true nor false"),
        ("a: !!int word", "no whole number"),
        ("a: " + "1" * 5000, "no whole number that can be read"),
        ("[" * 5000, "nested too deeply"),
        (b"a: \xff", "is not YAML"),
        ("a: 1\n---\na: 2", "is not YAML: expected a single document"),
    ],
)
def test_what_has_no_one_meaning_is_refused(text, message):
    with pytest.raises(ValueError, match=message) as refused:
        load_yaml(text)
    assert "\n" not in str(refused.value)


def test_a_merged_key_is_given_over_once_however_often_its_anchor_is_used():
    text = "a: &a {c: 1, d: 2}\nb: &b\n  <<: *a\n  d: 3\n<<: *b\nd: 4"

    assert {"a": {"c": 1, "d": 2}, "b": {"c": 1, "d": 3}, "c": 1, "d": 4} == load_yaml(text)


def test_an_alias_stands_for_its_value():
    assert {"a": [1], "b": [1]} == load_yaml("a: &a [1]\nb: *a")


@for_each(
    ("text", "scalar"),
    [
        ("a: [1, {b: 1:30}]", "1:30"),
        ("010: a", "010"),
        ("a: 2026-01-02", "2026-01-02"),
        ("a: yes", "yes"),
        ("a: [1e-6, '010', true, 1.5, ~, .nan, 0x1F, word]", ""),
        ("", ""),
    ],
)
def test_what_yaml_1_1_takes_for_another_value_is_named(text, scalar):
    assert scalar == differs_in_1_1(text)
