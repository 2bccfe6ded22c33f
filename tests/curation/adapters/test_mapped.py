"""Rows read by a mapping file, worked by hand; and rows that do not fit theirs."""

import csv
import gzip
import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_schemas.mappings import ColumnMapping
from data_schemas.rows import Demonstration, Domain, Parent, Problem
from data_schemas.settings import Source
from tasks.curation.adapters.mapped import language_in, read_mapped
from tasks.curation.adapters.table import read_file
from tasks.curation.cleaning.verification import verify
from tasks.curation.ingest import ingest, raw_files
from tasks.curation.items import Item
from tasks.curation.readers.cells import canonical_cell
from tasks.curation.rows import BadRow, RawRow
from tasks.errors import SettingsError
from tasks.formats.mapping_files import parse_mapping, shipped_mappings
from tasks.gym import table
from tasks.store.files import canonical_json

TEN_LINES = """
name: shop_category
domain: choice
language: "{lang}"
prompt: "Category of: {Product Name}?"
verifier: choice
answer: {correct: ["{cat}"]}
options: [shoes, toys, books]
values: {cat: {"1": shoes, "2": toys, "3": books}}
facets: {brand: "{brand}"}
"""
ROW: dict[str, object] = {
    "lang": "id",
    "Product Name": "Sepatu lari",
    "cat": 1,
    "brand": "Ardiles",
    "seen": 7,
}


def row(fields: dict[str, object]) -> RawRow:
    return RawRow("rows-1", "0" * 64, fields)


def mapped(text: str, fields: dict[str, object]):
    return read_mapped(parse_mapping(text, "m.yaml"), row(fields))


def test_ten_lines_make_a_choice_of_a_table():
    (item,) = mapped(TEN_LINES, ROW)

    problem = item.record
    assert isinstance(problem, Problem)
    assert ("shop_category/rows-1", Domain.CHOICE, "id") == (
        problem.id,
        problem.domain,
        problem.language,
    )
    assert "Category of: Sepatu lari?" == problem.prompt_text
    assert '{"correct":["shoes"],"others":[["toys"],["books"]]}' == problem.answer
    assert ("Sepatu lari", {"brand": "Ardiles"}) == (item.content, item.facets)
    assert 1.0 == table.score_batch([problem], ["shoes"])[0].score


def test_a_template_of_one_column_keeps_a_list_and_a_system_message_comes_first():
    text = """
    {"name": "tools", "domain": "tool_use", "language": "en", "system": "Tools: {tools}",
     "prompt": "{ask}", "verifier": "tool_calls", "answer": {"calls": "{gold}"}, "id": "t{no}"}
    """
    calls = [{"name": "refund", "parameters": {"order": "W1"}}]
    (item,) = mapped(text, {"ask": "Refund W1", "tools": ["refund"], "gold": calls, "no": 3})

    assert isinstance(item.record, Problem)
    assert canonical_json({"calls": calls}).decode() == item.record.answer
    assert ['Tools: ["refund"]', "Refund W1"] == [m.content for m in item.record.messages]
    assert "tools/t3" == item.record.id


def test_a_small_number_in_a_column_is_a_gold_in_digits():
    mapping = """
name: physics
domain: maths
language: en
prompt: "{question}"
verifier: final_answer
answer: {value: "{gold}"}
"""
    (item,) = mapped(mapping, {"question": "How long?", "gold": 1e-05})

    assert isinstance(item.record, Problem)
    assert {"value": "0.00001"} == json.loads(item.record.answer)


@pytest.mark.parametrize(
    ("language", "cell", "gold"),
    [
        ("pt", 1.125, "1,125"),
        ("pt-BR", canonical_cell(Decimal("1.500")), "1,500"),
        ("id", 1e-05, "0,00001"),
        ("en", 1.125, "1.125"),
        ("pt", "1.125", "1.125"),  # a text is written by somebody: 1125
        ("pt", 12000, "12000"),
    ],
)
def test_a_number_by_its_type_is_written_as_its_language_reads_it(language, cell, gold):
    text = """
name: weights
domain: maths
language: "{lang}"
prompt: "{q}"
verifier: final_answer
answer: {value: "{kg}"}
response: "{kg} kg"
facets: {"pass_rate:m": "{rate}"}
"""
    fields = {"lang": language, "q": "Quanto?", "kg": cell, "rate": 0.5}

    problem, shown = mapped(text, fields)

    assert {"value": gold} == json.loads(problem.record.answer)
    assert f"<think></think>{gold} kg" == shown.response
    assert {"pass_rate:m": "0.5"} == problem.facets
    (verdict,) = table.score_batch([problem.record], [shown.response])
    assert 1.0 == verdict.score


@pytest.mark.parametrize(("value_gold", "gold"), [(True, "1,125"), (False, 1.125)])
def test_a_verifier_of_ones_own_has_such_golds_if_it_declares_them(
    value_gold, gold, tmp_path, monkeypatch
):
    (tmp_path / "written.py").write_text(
        f"class Exact:\n    value_gold = {value_gold}\n"
        "    def __call__(self, problem, response): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    text = """
    {name: weights, domain: maths, language: pt, prompt: "{q}", verifier: "written.py:Exact",
     answer: {value: "{kg}"}}
    """

    (problem,) = mapped(text, {"q": "Quanto?", "kg": 1.125})

    assert {"value": gold} == json.loads(problem.record.answer)


def test_a_response_makes_a_demonstration_beside_its_problem():
    text = """
    {name: traces, domain: maths, language: en, prompt: "{q}", verifier: final_answer,
     answer: {value: "{a}"}, response: "<think>{why}</think>{a}", parent: reasoning}
    """
    problem, shown = mapped(text, {"q": "3 + 4?", "a": 7, "why": "3 and 4 make 7."})

    assert isinstance(problem.record, Problem)
    assert '{"value":"7"}' == problem.record.answer
    assert isinstance(shown.record, Demonstration)
    assert Parent.REASONING is shown.record.parent
    assert "<think>3 and 4 make 7.</think>7" == shown.record.response
    assert problem.record.id == shown.record.id


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"cat": None}, "empty_field", "column 'cat' is blank"),
        ({"cat": 4}, "unknown_value", "'4' in column 'cat' is not of 1, 2, 3"),
        ({"lang": " "}, "empty_field", "column 'lang' is blank"),
        ({"Product Name": ""}, "empty_field", "all columns of the prompt are blank: Product Name"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_the_column(changes, reason, detail):
    with pytest.raises(BadRow) as refused:
        mapped(TEN_LINES, ROW | changes)

    assert (reason, detail) == (refused.value.reason, refused.value.detail)


@pytest.mark.parametrize("column", ["lang", "Product Name", "cat", "brand"])
def test_a_missing_column_is_named_beside_those_that_are_there(column):
    fields = {name: value for name, value in ROW.items() if name != column}
    with pytest.raises(BadRow) as refused:
        mapped(TEN_LINES, fields)

    assert "missing_column" == refused.value.reason
    assert f"{column!r} is not among {', '.join(sorted(fields))}" == refused.value.detail


@pytest.mark.parametrize(
    ("cell", "reason", "detail"),
    [
        ("NULL", "empty_field", "the language is 'NULL'"),
        ("nan", "empty_field", "stands for none"),
        ("N/A", "empty_field", "stands for none"),
        ("English", "bad_language", "'English' is no tag"),
        ("vn", "bad_language", "'vn' is no tag"),
        ("en,id", "bad_language", "`values` of the mapping"),
    ],
)
def test_a_cell_that_names_no_language_is_refused(cell, reason, detail):
    with pytest.raises(BadRow, match=detail) as refusal:
        mapped(TEN_LINES, ROW | {"lang": cell})

    assert reason == refusal.value.reason


WHOLE = """
name: chats
domain: general
language: en
prompt: "{turns}"
response: "{turns}"
"""
TURNS = [{"role": "user", "content": "Ann's 3+4?"}, {"role": "assistant", "content": "7"}]


@pytest.mark.parametrize("cell", [str(TURNS), json.dumps(TURNS, indent=1)])
def test_turns_that_a_cell_writes_as_pandas_or_indented_are_turns(cell: str):
    (item,) = mapped(WHOLE, {"turns": cell})

    assert ["Ann's 3+4?"] == [one.content for one in item.record.messages]
    assert isinstance(item.record, Demonstration)
    assert "<think></think>7" == item.record.response


@pytest.mark.parametrize(
    ("cell", "detail"),
    [
        (str(TURNS).replace("}, {", "}\n {"), "turns begins as a list of turns, and is no JSON"),
        ('[{"role": "user", "role": "x", "content": "3"}]', "begins as a list of turns"),
        ({"id": 1, "messages": TURNS}, "turns is no list of turns; {turns.messages} is one"),
    ],
)
def test_turns_that_are_not_read_are_no_text_to_ask(cell: object, detail: str):
    with pytest.raises(BadRow, match=detail):
        mapped(WHOLE, {"turns": cell})


def test_a_system_message_that_an_export_left_out_is_none():
    (item,) = mapped(TEN_LINES + 'system: "{system}"', ROW | {"system": "NULL"})

    assert ["user"] == [one.role for one in item.record.messages]


def test_a_label_that_is_no_option_is_refused():
    text = TEN_LINES.replace('3": books', '3": book')
    with pytest.raises(BadRow, match="unknown_option"):
        mapped(text, ROW | {"cat": "3"})


def test_a_blank_facet_and_a_blank_part_of_the_prompt_are_no_faults():
    text = TEN_LINES.replace("{Product Name}?", "{Product Name} of {brand}?")
    (item,) = mapped(text, ROW | {"brand": None})

    assert {"brand": ""} == item.facets
    assert "Category of: Sepatu lari of ?" == item.record.prompt_text


def test_a_published_pass_rate_is_a_facet_and_one_that_is_none_is_quarantined():
    mapping = shipped_mappings()["big_math"]

    (item,) = read_mapped(mapping, row(BIG_MATH))
    (unrated,) = read_mapped(mapping, row(BIG_MATH | {"llama8b_solve_rate": None}))

    assert {"source": "gsm8k", "pass_rate:llama8b": "0.5"} == item.facets
    assert "" == unrated.facets["pass_rate:llama8b"]
    for rate in (1.5, -0.1, "half"):
        with pytest.raises(BadRow, match=f"bad_pass_rate.*llama8b is '{rate}'"):
            read_mapped(mapping, row(BIG_MATH | {"llama8b_solve_rate": rate}))


def test_a_subject_of_maths_has_its_class_and_one_of_another_domain_has_none():
    text = TEN_LINES.replace("facets: {brand:", "facets: {subject:")
    (trade,) = mapped(text, ROW | {"brand": "Geometry"})
    nested = DEEPMATH | {"topic": "Mathematics -> Discrete Mathematics -> Graph Theory"}
    first, *_ = read_mapped(shipped_mappings()["deepmath"], row(nested))

    assert {"subject": "Geometry"} == trade.facets
    assert "05" == first.facets["msc"]


def written(folder: Path) -> dict[str, Path]:
    """The same two rows as JSON lines, packed CSV and parquet."""
    rows = [ROW, ROW | {"Product Name": "Boneka", "cat": 2}]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    with gzip.open(folder / "rows.csv.gz", "wt", newline="") as out:
        table_ = csv.DictWriter(out, ROW)
        table_.writeheader()
        table_.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return {path.suffix: path for path in sorted(folder.iterdir())}


def test_the_format_of_a_table_makes_no_difference(tmp_path):
    mapping = parse_mapping(TEN_LINES, "m.yaml")
    asked = [
        [
            (item.record.prompt_text, item.record.answer)
            for items in read
            for item in items
            if isinstance(item, Item) and isinstance(item.record, Problem)
        ]
        for read in (list(read_file("m", 0, path, mapping)) for path in written(tmp_path).values())
    ]

    assert 2 == len(asked[0])
    assert asked[0] == asked[1] == asked[2]


def test_a_source_may_name_a_mapping_file_and_the_list_of_raw_files_contains_it(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "out").mkdir()
    written(tmp_path / "rows")
    (tmp_path / "m.yaml").write_text(TEN_LINES)
    source = Source(adapter=str(tmp_path / "m.yaml"), path=str(tmp_path / "rows"))

    ingest([source], 0, tmp_path / "out")

    files = raw_files(tmp_path / "out")
    assert ["shop_category"] * 3 == [file.adapter for file in files]
    assert [parse_mapping(TEN_LINES, "m.yaml")] * 3 == [file.mapping for file in files]
    assert b'"mapping"' in (tmp_path / "out" / "raw_files.json").read_bytes()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("name: shop_category", "name: gsm8k"), "mapping name 'gsm8k' is that of an adapter"),
        (
            ("verifier: choice", "verifier: chance"),
            "mapping shop_category has verifier 'chance'. Use one of",
        ),
    ],
)
def test_a_mapping_that_cannot_be_verified_is_refused_before_a_row_is_read(tmp_path, changed, told):
    text = TEN_LINES.replace(*changed).replace("options: [shoes, toys, books]", "")
    (tmp_path / "m.yaml").write_text(text)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    source = Source(adapter=str(tmp_path / "m.yaml"), path=str(tmp_path / "rows.jsonl"))

    with pytest.raises(SettingsError, match=told):
        ingest([source], 0, tmp_path)


@pytest.mark.parametrize("name", shipped_mappings())
def test_a_mapping_of_the_project_names_a_verifier_of_the_project(name):
    mapping: ColumnMapping = shipped_mappings()[name]

    assert mapping.verifier in {"", *table.VERIFIERS}


OPEN_THOUGHTS = {
    "system": "Think first.",
    "conversations": [
        {"from": "user", "value": "3+4?"},
        {
            "from": "assistant",
            "value": "<|begin_of_thought|>\n\n3+4=7\n\n<|end_of_thought|>\n\n"
            "<|begin_of_solution|>\n\n7\n\n<|end_of_solution|>",
        },
    ],
}
OPENR1: dict[str, object] = {
    "uuid": "a",
    "problem": "3+4?",
    "answer": "7",
    "generations": ["<think>3+4</think>7"],
}


VERL = {
    "data_source": "math_dapo",
    "prompt": [{"role": "user", "content": "Solve: 3 + 4?"}],
    "ability": "MATH",
    "reward_model": {"ground_truth": "7", "style": "rule-lighteval/MATH_v2"},
    "extra_info": {"index": "9a9b6eb4"},
}
BIG_MATH: dict[str, object] = {
    "problem": "3+4?",
    "answer": "7",
    "source": "gsm8k",
    "llama8b_solve_rate": 0.5,
}
DEEPMATH: dict[str, object] = {
    "question": "3+4?",
    "final_answer": "7",
    "difficulty": 4.5,
    "topic": "Algebra",
    "r1_solution_1": "<think>3+4</think>It is \\boxed{7}.",
}
S1K = {"question": "3+4?", "deepseek_thinking_trajectory": "3+4", "deepseek_attempt": "7"}
OPEN_THOUGHTS3 = {
    "difficulty": 8,
    "source": "math",
    "domain": "math",
    "conversations": [
        {"from": "human", "value": "3+4?"},
        {"from": "gpt", "value": "<think>3+4</think>7"},
    ],
}
ESCI = {
    "example_id": 3,
    "query": "towel",
    "product_title": "A towel",
    "product_locale": "us",
    "esci_label": "S",
}


@pytest.mark.parametrize(
    ("name", "fields", "id_", "prompt", "right"),
    [
        ("dapo", VERL, "dapo/9a9b6eb4", "Solve: 3 + 4?", "7"),
        ("deepscaler", BIG_MATH, "deepscaler/rows-1", "3+4?\nPut the final", "\\boxed{7}"),
        ("big_math", BIG_MATH, "big_math/rows-1", "3+4?\nPut the final", "\\boxed{7}"),
        ("deepmath", DEEPMATH, "deepmath/rows-1", "3+4?\nPut the final", "\\boxed{7}"),
        ("s1k_1_1", S1K, "s1k_1_1/rows-1", "3+4?", ""),
        ("open_thoughts3", OPEN_THOUGHTS3, "open_thoughts3/rows-1", "3+4?", ""),
        ("esci", ESCI, "esci/3", "Query: towel\nProduct: A towel", "substitute"),
    ],
)
def test_a_published_layout_is_read_and_its_gold_is_right(name, fields, id_, prompt, right):
    first, *others = read_mapped(shipped_mappings()[name], row(fields))

    assert id_ == first.record.id
    assert first.record.prompt_text.startswith(prompt)
    if right:
        assert isinstance(first.record, Problem)
        (verdict, other) = table.score_batch([first.record] * 2, [right, "\\boxed{8} exact"])
        assert (1.0, 0.0) == (verdict.score, other.score)
    shown = [one.record for one in (first, *others) if isinstance(one.record, Demonstration)]
    assert all(one.response.startswith("<think>3+4</think>") for one in shown)
    assert [] == verify(others, table.score_batch)[1]


def test_a_language_may_be_that_of_the_text():
    mapping = ColumnMapping.model_validate(
        {"name": "t", "domain": "maths", "language": "text", "prompt": "Ask: {q}"}
        | {"response": "{a}", "parent": "reasoning"}
    )
    asked = {
        "en": "What is the sum of 3 and 4?",
        "zh": "三加四等于几?",
        "th": "สามบวกสี่ได้เท่าไร",
        "pt": "Quanto é três mais quatro?",
        "vi": "Ba cộng bốn bằng bao nhiêu?",
        "und": "3+4?",
    }

    for language, question in asked.items():
        row = RawRow("rows-1", "0" * 64, {"q": question, "a": "<think>3+4</think>7"})
        assert language == read_mapped(mapping, row)[0].record.language


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("xcopa/id_test.jsonl", "id"),
        ("xcopa/test.vi.jsonl", "vi"),
        ("xcopa/th/test-00000.parquet", "th"),
        ("xcopa/rows.jsonl", "und"),
        ("xcopa/en-id.jsonl", "und"),
    ],
)
def test_a_language_may_stand_in_the_name_of_the_file_or_its_folder(path, language):
    assert language == language_in(Path(path))


def test_a_value_in_a_list_is_found_by_its_place():
    (shown,) = read_mapped(shipped_mappings()["open_thoughts"], row(OPEN_THOUGHTS))

    assert isinstance(shown.record, Demonstration)
    assert "<think>3+4=7</think>7" == shown.record.response
    assert "Think first.\n3+4?" == shown.record.prompt_text
    short = OPEN_THOUGHTS | {"conversations": OPEN_THOUGHTS["conversations"][:1]}
    with pytest.raises(BadRow, match=r"'conversations.1.value' is not among"):
        read_mapped(shipped_mappings()["open_thoughts"], row(short))


def test_a_response_beside_its_answer_is_verified():
    mapping = shipped_mappings()["openr1_math"]

    for answer, wrong in (("7", []), ("8", ["wrong_demonstration"])):
        items = read_mapped(mapping, row(OPENR1 | {"answer": answer}))
        kept, refused = verify(items, table.score_batch)

        assert [False, True] == [isinstance(item.record, Demonstration) for item in items]
        assert wrong == [one.reason for one in refused]
        assert 2 - len(wrong) == len(kept)


@pytest.mark.parametrize("column", ["g:title", "a.b[0]", "Really?!", "price (Rp)", "x!r"])
def test_a_column_of_any_name_without_braces_is_filled_in(column: str):
    mapping = {
        "name": "shop",
        "domain": "general",
        "language": "id",
        "prompt": f"{{{{A}}}} {{{column}}}",
        "response": "ok",
    }

    (item,) = read_mapped(ColumnMapping.model_validate(mapping), row({column: "tas", "a": 1}))

    assert "{A} tas" == item.record.prompt_text


def test_words_of_a_column_become_true_and_false():
    text = """
name: pairs
domain: tool_use
language: en
prompt: "Do they match? {left}"
verifier: extraction
answer: {fields: {match: "{label}"}}
values: {label: {"1": true, "0": false}}
"""
    (item,) = mapped(text, {"left": "a", "label": 0})

    assert isinstance(item.record, Problem)
    assert {"fields": {"match": False}} == json.loads(item.record.answer)


LETTERED = """
name: exam
domain: choice
language: en
prompt: |-
  {q}
  A: {o.0}
  B: {o.1}
  C: {o.2}
verifier: choice
answer: {correct: ["{k}"]}
options: [A, B, C]
response: "{k}"
"""
BY_TEXT = LETTERED + 'values: {k: {"{o.0}": A, "{o.1}": B, "{o.2}": C}}'


@pytest.mark.parametrize(
    ("options", "key", "right", "others"),
    [
        (["red", "blue", "white"], "C", "C", "AB"),
        (["red", "blue"], "B", "B", "A"),
        (["red", "blue", None], "A", "A", "B"),
        (["red", "blue", "N/A"], "A", "A", "B"),
        ('["red", "blue"]', "A", "A", "B"),
    ],
)
def test_options_that_a_row_has_not_are_not_asked(
    options: object, key: str, right: str, others: str
):
    problem, shown = mapped(LETTERED, {"q": "Which?", "o": options, "k": key})

    assert isinstance(problem.record, Problem)
    gold = {"correct": [right], "others": [[one] for one in others]}
    assert gold == json.loads(problem.record.answer)
    assert len(others) + 2 == len(problem.record.prompt_text.splitlines())
    assert f"<think></think>{right}" == shown.response


@pytest.mark.parametrize(
    ("text", "options", "key", "reason"),
    [
        (LETTERED, ["red", "blue"], "C", "'C' is not one of A, B"),
        (LETTERED, ["red", None, "white"], "A", "option 'o.1' is blank, and one behind it is not"),
        (LETTERED, ["red"], "A", "option 'o.1' is blank, which leaves 1"),
        (LETTERED, None, "A", "option 'o.0' is blank, which leaves 0"),
        (BY_TEXT, ["red", "red", "blue"], "red", "is each of {o.0}, {o.1}"),
        (BY_TEXT, ["red", "white", "blue"], "B", "'B' in column 'k' is not of {o.0}"),
    ],
)
def test_a_choice_between_other_options_than_its_key_has_is_refused(
    text: str, options: object, key: str, reason: str
):
    with pytest.raises(BadRow, match=re.escape(reason)):
        mapped(text, {"q": "Which?", "o": options, "k": key})


def test_a_key_may_be_the_text_of_an_option_which_may_look_like_another_letter():
    problem, shown = mapped(BY_TEXT, {"q": "Which vitamin?", "o": ["B", "A", "K"], "k": "B"})

    assert isinstance(problem.record, Problem)
    assert {"correct": ["A"], "others": [["B"], ["C"]]} == json.loads(problem.record.answer)
    assert "<think></think>A" == shown.response


def test_each_part_of_a_list_is_translated():
    text = TEN_LINES.replace('["{cat}"]', '"{cat}"')

    (item,) = mapped(text, ROW | {"cat": [1, 3]})

    assert isinstance(item.record, Problem)
    assert ["shoes", "books"] == json.loads(item.record.answer)["correct"]


def test_a_language_may_be_one_of_a_list_by_the_text_of_the_row():
    fields = {"name": "t", "domain": "general", "prompt": "Ask: {q}", "response": "ok"}
    mapping = ColumnMapping.model_validate(fields | {"language": ["en", "pt-BR"]})

    languages = [
        read_mapped(mapping, row({"q": question}))[0].record.language
        for question in ("Onde está o meu pedido?", "Where is my order?", "3310")
    ]

    assert ["pt-BR", "en", "und"] == languages


@pytest.mark.parametrize("gold", ["1.299", "0,5", "12000", "1,299"])
def test_a_number_that_languages_read_differently_needs_a_language(gold: str):
    fields = {"name": "t", "domain": "maths", "language": "text", "prompt": "{q}"}
    mapping = ColumnMapping.model_validate(
        fields | {"verifier": "final_answer", "answer": {"value": "{a}"}}
    )

    with pytest.raises(BadRow) as refused:
        read_mapped(mapping, row({"q": "3310?", "a": gold}))

    assert "unknown_language" == refused.value.reason
    assert "und" == read_mapped(mapping, row({"q": "3310?", "a": "12"}))[0].record.language


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("pt_BR", "pt-BR"),
        ("EN", "en"),
        ("zh_hant_tw", "zh-Hant-TW"),
        ("in_ID", "id-ID"),
        ("pt_BR.UTF-8", "pt-BR"),
        ("es-419", "es-419"),
        ("FIL", "fil"),
    ],
)
def test_a_tag_of_any_spelling_is_the_tag(written: str, tag: str):
    (item,) = mapped(TEN_LINES, ROW | {"lang": written})

    assert tag == item.record.language


CHAT = """
name: chats
domain: general
language: en
prompt: "{messages}"
response: "{messages}"
"""
TURN = CHAT.replace('prompt: "{messages}"', 'prompt: "{messages.0.content}"').replace(
    'response: "{messages}"', 'response: "{messages.1.content}"'
)


def turns(*texts: str, **keys: object) -> list[dict[str, object]]:
    roles = ("user", "assistant")
    chat: list[dict[str, object]] = [
        {"role": roles[place % 2], "content": text} for place, text in enumerate(texts)
    ]
    return [*chat[:-1], chat[-1] | keys]


@pytest.mark.parametrize("cell", [list, json.dumps], ids=["a list", "a text"])
def test_a_chat_is_read_whole_with_the_thought_of_its_last_turn(cell):
    chat = turns("Size?", "Which shoe?", "The red one.", "41", reasoning="It is 41.")

    (item,) = mapped(CHAT, {"messages": cell(chat)})

    assert isinstance(item.record, Demonstration)
    assert ["Size?", "Which shoe?", "The red one."] == [m.content for m in item.record.messages]
    assert "<think>It is 41.</think>41" == item.record.response


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        (turns("Size?", "I look.", tool_calls=[{"type": "function"}]), "unread_key"),
        (turns("Size?", "41", weight=0), "not_trained"),
        (turns("Size?"), "no_response"),
    ],
)
def test_a_chat_that_says_more_than_its_text_is_refused(chat, reason):
    with pytest.raises(BadRow, match=reason):
        mapped(CHAT, {"messages": chat})


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        (turns("Size?", "I look.", tool_calls=[{"type": "function"}]), "unread_key"),
        (turns("Size?", "41", weight=0), "not_trained"),
        (turns("Size?", "41", reasoning="It is 41."), "unread_key"),
        (turns("Size?", "41", "And the blue one?", "42"), "unread_turn"),
    ],
)
def test_a_template_of_one_turn_loses_nothing_that_the_chat_says_besides(chat, reason):
    with pytest.raises(BadRow, match=reason):
        mapped(TURN, {"messages": chat})


def test_a_chat_whose_response_no_template_uses_is_refused():
    text = CHAT.replace('response: "{messages}"', 'verifier: final_answer\nanswer: {value: "{a}"}')

    with pytest.raises(BadRow, match="unread_turn"):
        mapped(text, {"messages": turns("Size?", "41"), "a": "41"})
