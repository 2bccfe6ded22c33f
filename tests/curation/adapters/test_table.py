"""Adapters: one row worked by hand each, and rows that are not what they should be."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from data_schemas.rows import Demonstration, Parent, Problem, QuarantinedItem
from tasks.curation import sample_hybrid
from tasks.curation.adapters.table import ADAPTERS, read_file
from tasks.curation.generated import chains, ecommerce, safety
from tasks.curation.items import Item
from tasks.gym.table import VERIFIERS
from tests import records
from tests.curation.adapters.test_contests import APPS, CONTEST, HUMANEVAL, LIVE
from tests.curation.adapters.test_logic import GPQA, GRID, KNIGHTS
from tests.curation.adapters.test_media import ROW as SPEAKERS
from tests.tables import for_each


def read(tmp_path: Path, adapter: str, *rows: object) -> list[list[Item] | QuarantinedItem]:
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_file(adapter, 3, path))


def items(tmp_path: Path, adapter: str, row: object) -> list[Item]:
    (found,) = read(tmp_path, adapter, row)
    assert isinstance(found, list), found
    return found


def reason(tmp_path: Path, adapter: str, row: object) -> str:
    (found,) = read(tmp_path, adapter, row)
    assert isinstance(found, QuarantinedItem)
    assert f"{adapter}/raw-1" == found.key
    return found.reason


def problem_of(found: list[Item]) -> Problem:
    (problem,) = [item.record for item in found if isinstance(item.record, Problem)]
    return problem


def demonstration_of(found: list[Item]) -> Demonstration:
    (shown,) = [item.record for item in found if isinstance(item.record, Demonstration)]
    return shown


GSM8K = {
    "question": "Natalia sold 48 clips, then half as many. How many?",
    "answer": "Then 48/2 = <<48/2=24>>24.\nIn all 48+24 = <<48+24=72>>1,072.\n#### 1,072",
}
AE110K = {
    "input": "SEAPESCA Men&#39;s VIB 55mm",
    "category": "Lure",
    "target_scores": {"Brand Name": {"SEAPESCA": 1}, "Material": {"n/a": 1}},
}
PRDECT = {"id": "prdect-1", "Category": "Sport", "Product Name": "Raket badminton"}
MBPP = {
    "text": "Write a function to add.\r\n",
    "task_id": 7,
    "test_setup_code": "",
    "code": "def add(a, b):\r\n    return a + b\r\n",
    "test_list": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
}
BFCL = {
    "id": "simple_python_0",
    "question": [[{"role": "user", "content": "Area of a triangle, base 10, height 5?"}]],
    "function": [{"name": "area", "description": "", "parameters": {"type": "dict"}}],
    "ground_truth": [{"area": {"base": [10], "height": [5], "unit": ["m", ""]}}],
}
IFEVAL = {
    "key": 1001,
    "prompt": "Write without commas.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{}, {"num_words": 3, "relation": "at least", "num_sentences": None}],
}
M_IFEVAL = {
    "key": 7,
    "prompt": "靴について書いてください。",
    "instruction_id_list": ["ja:punctuation:no_comma", "ja:letters:kanji"],
    "kwargs": [{}, {"relation": "以上", "kanji_limit": 3}],
}


def test_gsm8k_gives_a_problem_and_its_worked_solution_without_annotations(tmp_path: Path):
    found = items(tmp_path, "gsm8k", GSM8K)

    problem, shown = problem_of(found), demonstration_of(found)
    assert '{"value":"1072"}' == problem.answer
    assert Parent.REASONING is shown.parent
    assert "<think>Then 48/2 = 24.\nIn all 48+24 = 1,072.</think>1072" == shown.response
    assert problem.messages == shown.messages
    assert ["gsm8k/raw-1"] * 2 == [item.record.id for item in found]
    assert [3, 3] == [item.source for item in found]


def test_ae110k_unescapes_html_and_asks_for_the_fields_it_knows(tmp_path: Path):
    found = items(tmp_path, "ae110k", AE110K)

    problem = problem_of(found)
    assert '{"fields":{"Brand Name":"SEAPESCA","Material":"n/a"}}' == problem.answer
    assert "SEAPESCA Men's VIB 55mm" == found[0].content
    assert "Brand Name, Material" in problem.prompt_text
    expected = '<think></think>{"Brand Name": "SEAPESCA", "Material": "n/a"}'
    assert expected == demonstration_of(found).response


def test_an_attribute_with_several_values_has_no_unique_answer(tmp_path: Path):
    row = AE110K | {"target_scores": {"Style": {"n/a": 1, "Snapback": 1}}}

    assert "several_values" == reason(tmp_path, "ae110k", row)


def test_prdect_offers_all_29_categories(tmp_path: Path):
    found = items(tmp_path, "prdect_id", PRDECT)

    answer = json.loads(problem_of(found).answer)
    assert ["Sport"] == answer["correct"]
    assert 28 == len(answer["others"])
    assert "id" == problem_of(found).language
    assert Parent.COMMERCE is demonstration_of(found).parent


def test_mbpp_shows_its_tests_and_checks_them(tmp_path: Path):
    found = items(tmp_path, "mbpp", MBPP)

    problem = problem_of(found)
    assert "mbpp/7" == problem.id
    answer = json.loads(problem.answer)
    assert MBPP["test_list"] == answer["tests"]
    assert "def add(a, b):\n    return a + b" == answer["reference"]
    assert "assert add(1, 2) == 3" in problem.prompt_text
    assert "Write a function to add." == found[0].content


@pytest.mark.parametrize(
    ("key", "matters"),
    [("simple_java_0", True), ("java_7", True), ("simple_javascript_3", True), ("simple_1", False)],
)
def test_case_matters_in_calls_of_java_and_javascript(tmp_path: Path, key: str, matters: bool):
    gold = json.loads(problem_of(items(tmp_path, "bfcl", BFCL | {"id": key})).answer)

    assert matters == gold.get("case_matters", False)


def test_bfcl_lists_the_functions_before_the_users_words(tmp_path: Path):
    found = items(tmp_path, "bfcl", BFCL)

    problem = problem_of(found)
    assert ["system", "user"] == [message.role for message in problem.messages]
    assert [
        {"name": "area", "parameters": {"base": [10], "height": [5], "unit": ["m", ""]}}
    ] == json.loads(problem.answer)["calls"]
    assert "Area of a triangle, base 10, height 5?" == found[0].content


def test_in_an_irrelevance_set_the_right_answer_is_no_call(tmp_path: Path):
    row = {**BFCL, "id": "irrelevance_3", "function": []}
    del row["ground_truth"]

    assert [] == json.loads(problem_of(items(tmp_path, "bfcl", row)).answer)["calls"]


def test_ifeval_drops_the_nulls_of_parquet_copies(tmp_path: Path):
    found = items(tmp_path, "ifeval", IFEVAL)

    expected = [{}, {"num_words": 3, "relation": "at least"}]
    assert expected == json.loads(problem_of(found).answer)["kwargs"]


def test_m_ifeval_takes_the_language_from_its_instructions(tmp_path: Path):
    problem = problem_of(items(tmp_path, "m_ifeval", M_IFEVAL))

    assert ("m_ifeval/ja-7", "ja", "m_ifeval") == (problem.id, problem.language, problem.source)
    assert [{}, {"relation": "以上", "kanji_limit": 3}] == json.loads(problem.answer)["kwargs"]


def test_prompt_jsonl_takes_our_own_fields_and_stamps_the_source(tmp_path: Path):
    row = {
        "id": "today-1",
        "domain": "maths",
        "language": "en",
        "messages": [{"role": "user", "content": "1 + 1"}],
        "verifier": "final_answer",
        "answer": {"value": "2"},
        "source": "gsm8k",
    }

    problem = problem_of(items(tmp_path, "prompt_jsonl", row))

    assert ("prompt_jsonl/today-1", "prompt_jsonl") == (problem.id, problem.source)
    assert '{"value":"2"}' == problem.answer
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"surprise": 1})
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"messages": []})


def test_prompt_jsonl_takes_one_prompt_and_the_text_cells_of_a_csv_file(tmp_path: Path):
    row = {
        "id": "",
        "domain": "maths",
        "language": "en",
        "prompt": "1 + 1",
        "verifier": "final_answer",
        "answer": '{"value":"2"}',
        "level": "3",
    }

    problem = problem_of(items(tmp_path, "prompt_jsonl", row))

    assert "1 + 1" == problem.prompt_text
    assert ("prompt_jsonl/raw-1", '{"value":"2"}', 3) == (problem.id, problem.answer, problem.level)
    turns = json.dumps([{"role": "user", "content": "2 + 2"}])
    asked = problem_of(items(tmp_path, "prompt_jsonl", row | {"prompt": "", "messages": turns}))
    assert "2 + 2" == asked.prompt_text
    assert "malformed" == reason(tmp_path, "prompt_jsonl", row | {"prompt": "", "messages": "["})


def test_prompt_jsonl_with_a_response_is_a_demonstration(tmp_path: Path):
    row = {
        "parent": "commerce",
        "domain": "choice",
        "language": "en",
        "prompt": "Which?",
        "response": "<think></think>A",
    }

    shown = demonstration_of(items(tmp_path, "prompt_jsonl", row))

    assert ("<think></think>A", Parent.COMMERCE) == (shown.response, shown.parent)
    assert 1 == len(items(tmp_path, "prompt_jsonl", row))
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"surprise": 1})


def test_prompt_jsonl_with_a_response_and_an_answer_is_a_problem_as_well(tmp_path: Path):
    row = {
        "domain": "maths",
        "language": "en",
        "prompt": "1 + 1",
        "verifier": "final_answer",
        "answer": {"value": "2"},
        "reasoning": "One and one.",
        "response": "2",
    }

    found = items(tmp_path, "prompt_jsonl", row)

    problem, shown = problem_of(found), demonstration_of(found)
    assert ("final_answer", problem.id) == (problem.verifier, shown.id)
    assert "<think>One and one.</think>2" == shown.response
    assert Parent.REASONING is shown.parent
    assert (
        Parent.COMMERCE
        is demonstration_of(items(tmp_path, "prompt_jsonl", row | {"parent": "commerce"})).parent
    )
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"verifier": ""})
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"response": ""})
    assert "schema" == reason(tmp_path, "prompt_jsonl", row | {"response": 2})


EPISODE = {
    "domain": "tool_use",
    "language": "en",
    "messages": [{"role": "user", "content": "No mug."}],
    "verifier": "shop",
    "answer": {"orders": [], "goal": {}, "say": "wait"},
}
EXAMPLES = {
    "apps": APPS,
    "code_contests": CONTEST,
    "humaneval": HUMANEVAL,
    "livecodebench": LIVE,
    "bbh": {"input": "How many?", "target": "8"},
    "knights_knaves": KNIGHTS,
    "zebra_logic": GRID,
    "av_speakerbench_blind": SPEAKERS,
    "gpqa": GPQA,
    "olympiadbench": {"question": "1 + 1", "final_answer": ["2"]},
    "xlam": {
        "query": "Find 1.",
        "tools": '[{"name": "find", "parameters": {"x": {"type": "int"}}}]',
        "answers": '[{"name": "find", "arguments": {"x": 1}}]',
    },
    "api_bank": {
        "system": "find(x)",
        "user": "Find 1.",
        "answer": "[{'name': 'find', 'parameters': {'x': 1}}]",
    },
    "tau_bench_retail": {
        "instruction": "Cancel it.",
        "actions": [{"name": "cancel_pending_order", "arguments": {}}],
    },
    **dict.fromkeys(("episodes", "sample_shop", "sample_wishes"), EPISODE),
    "sample_purchases": {
        "domain": "tool_use",
        "language": "en",
        "messages": [{"role": "user", "content": "A mug."}],
        "answer": {"library": "shopping", "environment": "generated", "version": "1", "task": {}},
    },
    **{key: {"id": "en-1", "language": "en", "prompt": "How?"} for key in safety.REQUESTS},
    "gsm8k": GSM8K,
    "ae110k": AE110K,
    "oa_mine": AE110K,
    "prdect_id": PRDECT,
    "mbpp": MBPP,
    "bfcl": BFCL,
    "ifeval": IFEVAL,
    "m_ifeval": M_IFEVAL,
    "math_train": {"problem": "1+1", "answer": "2"},
    "mgsm": {"question": "1+1", "gold": "2", "lang": "th"},
    "toolrl_rlla": {"instruction": "Use tools.", "input": "Hello", "output": "<think></think>"},
    "prompt_jsonl": {
        "domain": "maths",
        "language": "en",
        "prompt": "1 + 1",
        "verifier": "final_answer",
        "answer": {"value": "2"},
    },
    "sample_world": {
        "id": "p1",
        "task": "maths",
        "language": "en",
        "question": "1+1",
        "answer": {"value": "2"},
        "check": "final_answer",
        "level": 1,
    },
}
EXAMPLES |= dict.fromkeys(
    ("sample_science", "sample_general", *chains.CELLS, *ecommerce.NAMES), EXAMPLES["prompt_jsonl"]
)
EXAMPLES |= dict.fromkeys(sample_hybrid.SWITCHES, EXAMPLES["sample_world"])
EXAMPLES["environments"] = {"library": "example", "environment": "guess"}
EXAMPLES["environments"] |= {"domain": "tool_use", "language": "en"}
NEEDS_ITS_LIBRARY = "bfcl_multi_turn"
"""Read in environments/outside/test_real_libraries.py."""


@for_each(
    ("adapter", "column"),
    [
        (name, column)
        for name, adapter in ADAPTERS.items()
        for column in adapter.columns
        if name != NEEDS_ITS_LIBRARY
    ],
)
def test_a_row_without_a_column_that_the_adapter_needs_is_refused(tmp_path, adapter, column):
    row = EXAMPLES[adapter]

    assert items(tmp_path, adapter, row)
    assert reason(tmp_path, adapter, {name: value for name, value in row.items() if name != column})


def test_an_adapter_that_is_not_there_refuses_its_file_once(tmp_path: Path):
    (found,) = read(tmp_path, "our_shop", {}, {})

    assert "unknown_adapter" == found.reason
    assert "'our_shop' is not one of ae110k, " in found.detail


def test_math_rows_ask_for_a_box_and_are_judged_by_it(tmp_path: Path):
    problem = problem_of(
        items(tmp_path, "math_train", {"problem": "1+1", "answer": "2", "difficulty": 3.0})
    )

    assert ("rule_answer", 3) == (problem.verifier, problem.level)
    assert problem.messages[0].content.endswith("\\boxed{}.")


@for_each(
    ("adapter", "row", "expected"),
    [
        ("gsm8k", GSM8K | {"answer": "It is 72."}, "no_gold"),
        ("gsm8k", GSM8K | {"question": None}, "missing_field"),
        ("gsm8k", GSM8K | {"question": "  "}, "empty_field"),
        ("ae110k", {"input": "x"}, "missing_field"),
        ("prdect_id", PRDECT | {"Category": "Spaceships"}, "unknown_category"),
        ("mbpp", MBPP | {"test_list": []}, "empty_field"),
        ("mbpp", MBPP | {"test_list": ["print(1)"]}, "bad_tests"),
        ("bfcl", BFCL | {"ground_truth": None}, "no_gold"),
        ("bfcl", BFCL | {"ground_truth": [{"a": {}, "b": {}}]}, "bad_gold"),
        ("bfcl", BFCL | {"id": "multi_turn_base_1"}, "multi_turn"),
        ("bfcl", BFCL | {"question": [[{"role": "robot", "content": "x"}]]}, "schema"),
        ("bfcl", BFCL | {"question": ["x"]}, "bad_messages"),
        ("ifeval", IFEVAL | {"kwargs": [{}]}, "bad_gold"),
        ("m_ifeval", M_IFEVAL | {"kwargs": [{}]}, "bad_gold"),
        ("m_ifeval", IFEVAL, "bad_language"),
        (
            "m_ifeval",
            M_IFEVAL | {"instruction_id_list": ["ja:letters:kanji", "fr:letters:kanji"]},
            "bad_language",
        ),
        ("math_train", {"problem": "1+1", "answer": "2", "difficulty": "hard"}, "bad_level"),
        ("sample_world", {"id": "p1", "question": "1+1"}, "bad_field"),
    ],
)
def test_a_broken_row_is_quarantined_under_its_reason(
    tmp_path: Path, adapter: str, row: object, expected: str
):
    assert expected == reason(tmp_path, adapter, row)


@for_each("adapter", sorted(ADAPTERS))
@for_each("row", [{}, {"id": {}, "question": 3, "answer": [], "function": 1, "problem": []}])
def test_no_adapter_falls_over_a_foreign_row(tmp_path: Path, adapter: str, row: object):
    assert reason(tmp_path, adapter, row)


def test_every_adapters_gold_answer_is_one_its_verifier_can_read(tmp_path: Path):
    for adapter in ("gsm8k", "ae110k", "prdect_id", "mbpp", "bfcl", "ifeval", "m_ifeval"):
        problem = problem_of(items(tmp_path, adapter, EXAMPLES[adapter]))
        assert "no_answer" == VERIFIERS[problem.verifier](problem, "<think>").reason


@pytest.mark.attack
@pytest.mark.parametrize(
    "language", ["en,fr", "bahasa (ID)", "th\n", "e<b>", "id;", "\u202een", "x", "e" * 40, "zh TW"]
)
def test_a_language_that_could_not_be_a_name_is_quarantined(language):
    """It names suites, metrics and a list in the model card."""
    with pytest.raises(ValidationError, match="language"):
        records.problem_of("x", "{}", id="x", language=language, source="x")
