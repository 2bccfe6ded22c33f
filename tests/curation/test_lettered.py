"""Options and keys of examinations, found in their tables."""

import json

import pytest

from data_schemas.rows import Demonstration, Problem
from tasks.curation.adapters.mapped import read_mapped
from tasks.curation.guessing.mapping import guess_mapping
from tasks.curation.lettered import find_options
from tasks.curation.rows import RawRow
from tasks.errors import DataError
from tests.tables import for_each

COLOURS = ("red", "blue", "green", "grey")
LAYOUTS = {
    "columns": dict(zip("ABCD", COLOURS, strict=True)),
    "named columns": {f"option_{mark}": one for mark, one in zip("abcd", COLOURS, strict=True)},
    "numbered columns": {f"pilihan{n}": one for n, one in enumerate(COLOURS, start=1)},
    "a list": {"choices": [*COLOURS]},
    "an object": {"options": dict(zip("ABCD", COLOURS, strict=True))},
    "MedMCQA": dict(zip(("opa", "opb", "opc", "opd"), COLOURS, strict=True)),
    "a list in an object": {"choices": {"label": [*"ABCD"], "text": [*COLOURS]}},
}
KEYS = {
    "letters": [*"ABCD"],
    "small letters": [*"abcd"],
    "in brackets": ["(A)", "(B)", "(C)", "(D)"],
    "numbers from 0": [0, 1, 2, 3],
    "numbers from 1": ["1", "2", "3", "4"],
}


@for_each("layout", LAYOUTS)
@for_each("keys", KEYS)
def test_the_option_that_the_key_names_is_the_right_one(layout: str, keys: str):
    rows = [
        {"question": f"What colour has item {n} in this shop?"}
        | LAYOUTS[layout]
        | {"answerKey": KEYS[keys][n % 4]}
        for n in range(40)
    ]

    mapping = guess_mapping("exam", rows).mapping

    for place in range(4):
        (item, shown) = read_mapped(mapping, RawRow("exam-1", "0" * 64, rows[place]))
        assert isinstance(item.record, Problem)
        assert [["ABCD"[place]]] == [json.loads(item.record.answer)["correct"]]
        assert f"{'ABCD'[place]}: {COLOURS[place]}" in item.record.prompt_text
        assert isinstance(shown.record, Demonstration)
        assert shown.record.response.endswith("ABCD"[place])


def test_a_cell_that_is_a_dictionary_with_numbers_as_keys_has_no_options():
    rows = [{"question": "?", "input": "{1: 2, 3: 4}", "answer": "{1: [1, 2, 3]}"}] * 9

    assert find_options(rows) is None


def test_a_key_of_numbers_that_may_count_from_0_or_1_is_asked_about():
    rows = [{"question": "?", "choices": [*COLOURS], "answer": 1 + n % 3} for n in range(9)]

    with pytest.raises(DataError, match="count from 0 or from 1"):
        find_options(rows)


@pytest.mark.parametrize(
    "row",
    [
        {"attr_a": "x", "attr_b": "y", "label": "shoes"},
        {"tags": ["red", "new"], "label": "shoes"},
        {"price1": "5", "price2": "6", "answer": "It comes on Monday."},
        {"A": "1", "C": "2", "answer": "A"},
    ],
)
def test_other_columns_are_no_options(row: dict[str, object]):
    assert find_options([row] * 9) is None


def test_the_commonest_number_of_options_is_that_of_the_table():
    letters = ["A", "B", "C", "D", "1", "2", "3", "4"]
    rows = [
        {
            "question": f"What is in box {n}?",
            "choices": {"text": ["pen", "cup", "bag", "hat"][: 4 if n else 3]},
            "answerKey": letters[n % 8] if n else "A",
        }
        for n in range(40)
    ]

    options = find_options([*rows, rows[1] | {"answerKey": "E"}])

    assert options is not None
    assert "choices.text.3" == options.options[-1]
    assert {"1": "A", "4": "D", "B": "B"}.items() <= options.values.items()
    remarks = guess_mapping("arc", rows).remarks
    assert "choices.text has less than 4 parts in 1 of 40 rows; they are left out." in remarks


def test_a_key_of_any_name_is_known_by_its_letters_if_no_other_column_has_them():
    rows = [
        {"Q": f"What is in box {n}?", "A": f"{n}", "B": f"{n + 1}", "x": "AB"[n % 2]}
        for n in range(9)
    ]

    options = find_options(rows)

    assert options is not None
    assert ("x", ("A", "B")) == (options.key, options.options)
    assert find_options([row | {"level": row["x"]} for row in rows]) is None
    for name in ("정답", "Lösung", "clave", "jawapan"):
        named = find_options([row | {"level": "A", name: row["x"]} for row in rows])
        assert named is not None
        assert name == named.key


def test_a_list_of_the_numbers_of_options_says_from_where_a_key_counts():
    rows = [
        {"question": "?", "choices": {"text": [*COLOURS], "label": [*marks]}, "answerKey": marks[1]}
        for marks in ("ABCD", "1234", "ABCD")
    ]

    options = find_options(rows)

    assert options is not None
    assert {"2": "B", "B": "B"}.items() <= options.values.items()


def test_options_that_numpy_printed_are_refused_beside_their_key():
    rows = [
        {"question": "?", "choices": "['red' 'blue'\n 'green' 'grey']", "answer": str(n % 4)}
        for n in range(9)
    ]

    with pytest.raises(DataError, match="lists without commas, as numpy prints them"):
        find_options(rows)
    assert find_options([row | {"answer": "It is red."} for row in rows]) is None
