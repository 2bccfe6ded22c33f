"""Suites as data."""

import json

import pytest

from data_schemas.rows import Domain, Message, Role
from data_schemas.suites import Metric, Selection
from tasks.errors import DataError, SettingsError
from tasks.formats.benchmark_file import (
    SHIPPED,
    as_asked,
    group_of,
    parse_suite,
    read_suites,
    shipped_groups,
    shipped_suites,
    suite_of,
    write_suites,
)
from tasks.gym.table import score_batch
from tests.records import problem_of

INLINE = """
name: mine
k: 3
prompt: "{prompt} Think first."
system: Be brief.
mapping:
  name: mine
  domain: maths
  language: en
  prompt: "{question}"
  verifier: final_answer
  answer: {value: "{answer}"}
"""


def test_a_question_is_asked_in_the_form_of_the_suite():
    asked = (Message(role=Role.USER, content="1 + {1}?"),)
    problem = problem_of(asked, "{}", id="p")

    suite = parse_suite(INLINE, "here")

    assert [(Role.SYSTEM, "Be brief."), (Role.USER, "1 + {1}? Think first.")] == [
        (message.role, message.content) for message in as_asked(problem, suite).messages
    ]


def test_every_shipped_suite_is_named_like_its_file_and_says_what_it_is():
    shipped = shipped_suites() | shipped_groups()
    assert {path.stem for path in SHIPPED.glob("*.yaml")} == shipped.keys()
    assert not shipped_suites().keys() & shipped_groups().keys()
    for name, suite in shipped.items():
        assert name == suite.name
        about = (SHIPPED / f"{name}.yaml").read_text()
        assert about.startswith("# Group: " if name in shipped_groups() else "# ")


def test_a_group_is_no_suite_and_its_keys_are_checked(tmp_path):
    assert suite_of("ecommerce") is None
    assert group_of("gsm8k") is None
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nmembers: []")
    with pytest.raises(SettingsError, match=r"group of suites .*members"):
        group_of(str(path))


@pytest.mark.parametrize(
    ("selection", "value", "is_read"),
    [
        ({"equals": ("hard",)}, "hard", True),
        ({"equals": ("7",)}, 7, True),
        ({"equals": ("hard",)}, "easy", False),
        ({"first": "2024-08-01"}, "2024-08-01T00:00:00", True),
        ({"first": "2024-08-01"}, "2024-07-31T23:59:59", False),
        ({"last": "2024-08"}, "2024-08-31", True),
        ({"last": "2024-08"}, "2024-09-01", False),
        ({"first": "2024-08-01"}, None, False),
        ({"last": "2024-08"}, "", False),
    ],
)
def test_rows_are_selected_by_values_or_a_window_of_dates(selection, value, is_read):
    assert is_read == (value in Selection(**selection))


def test_a_mapping_of_columns_is_no_suite(tmp_path):
    assert parse_suite("name: x\nprompt: '{a}'", "here") is None
    assert suite_of("no_such_suite") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nrows: b", "its rows are called 'b'"),
        ("name: a\nrows: a\nprompt: ask", "prompt needs {prompt}, once"),
        ("name: a\nrows: a\nmetrics: avg", "did you mean `metric`"),
        ("name: a\nrows: a\nmetric: best", "metric"),
        ("name: a\nrows: a\nk: -1", "k is -1"),
        ("rows: [", "is not YAML"),
    ],
)
def test_a_malformed_suite_is_refused_by_its_key(text, message):
    with pytest.raises(SettingsError, match=message):
        parse_suite(text, "here")


def test_suites_of_a_curated_set_come_back(tmp_path):
    suite = parse_suite(INLINE, "here")
    write_suites(tmp_path, [None, suite, suite])

    assert {"mine": suite} == read_suites(tmp_path)
    assert {} == read_suites(tmp_path / "none")
    (tmp_path / "suites.json").write_text("[]")
    with pytest.raises(DataError, match="no list of suites"):
        read_suites(tmp_path)


def test_a_published_score_of_ifeval_is_read_as_the_harness_does_and_a_reward_is_not():
    gold = {"instruction_id_list": ["detectable_format:number_bullet_lists"]}
    problem = problem_of(
        "List one thing.",
        json.dumps(gold | {"kwargs": [{"num_bullets": 1}]}),
        id="ifeval/1",
        domain=Domain.INSTRUCTION,
        verifier="instruction_rules",
        source="ifeval",
    )
    suite = suite_of("ifeval")
    assert suite is not None

    # lm-evaluation-harness takes a rule of Markdown for a bullet.
    verdicts = score_batch([problem, as_asked(problem, suite)], ["---\n- salt"] * 2)

    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]
    assert suite.metric is Metric.AVG  # prompt_level_strict_acc
