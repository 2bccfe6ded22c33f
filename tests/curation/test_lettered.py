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
    assert "1 of 40 rows have fewer options, and are asked with these." in remarks


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


def asked(rows: list[dict[str, object]], place: int) -> tuple[list[str], list[str], str]:
    """Read a row by the mapping that is guessed: its gold, its lines of options, its response."""
    mapping = guess_mapping("exam", rows).mapping
    item, shown = read_mapped(mapping, RawRow("exam-1", "0" * 64, rows[place]))
    assert isinstance(item.record, Problem)
    assert isinstance(shown.record, Demonstration)
    lines = [line for line in item.record.prompt_text.splitlines() if line[1:3] == ": "]
    response = shown.record.response.removeprefix("<think></think>")
    return json.loads(item.record.answer)["correct"], lines, response


def exam(n: int, **columns: object) -> dict[str, object]:
    return {"question": f"What colour has item {n} in this shop?", **columns}


PADS = {"shorter": [], "nulls": [None, None], "N/A": ["N/A", "N/A"]}


@for_each("pad", PADS)
def test_rows_with_fewer_options_are_asked_with_these(pad: str):
    rows = [
        exam(n, options=[*COLOURS] if n % 3 else [*COLOURS[:2], *PADS[pad]], answer="ABBA"[n % 4])
        for n in range(40)
    ]

    assert (["A"], ["A: red", "B: blue"], "A") == asked(rows, 0)
    assert (["B"], [f"{a}: {b}" for a, b in zip("ABCD", COLOURS, strict=True)], "B") == asked(
        rows, 1
    )
    assert "14 of 40 rows have fewer options, and are asked with these." in (
        guess_mapping("exam", rows).remarks
    )
    assert guess_mapping("exam", rows).mapping.prompt.endswith("\nAnswer with a letter.")


def objects(key: str, marks: str) -> list[dict[str, object]]:
    return [{"label": mark, key: one} for mark, one in zip(marks, COLOURS, strict=True)]


KEYS_ELSEWHERE = {
    "ARC": lambda n: {
        "question": {"stem": f"What is {n}?", "choices": objects("text", "ABCD")},
        "answerKey": "ABCD"[n % 4],
    },
    "ARC by numbers": lambda n: {
        "question": {"stem": f"What is {n}?", "choices": objects("text", "1234")},
        "answerKey": "1234"[n % 4],
    },
    "Prodigy": lambda n: {
        "text": f"It is thing {n} of the shop.",
        "options": [{"id": "ABCD"[k], "text": one} for k, one in enumerate(COLOURS)],
        "accept": ["ABCD"[n % 4]],
        "answer": "accept",
    },
    "LightEval": lambda n: {
        "doc": {"query": f"What is {n} here?", "choices": [*COLOURS], "gold_index": n % 4}
    },
    "LightEval, a list": lambda n: {
        "doc": {"query": f"What is {n} here?", "choices": [*COLOURS], "gold_index": [n % 4]}
    },
    "AGIEval": lambda n: {"query": f"What is {n}?", "choices": [*COLOURS], "gold": [n % 4]},
    "pandas": lambda n: {"question": f"What is {n}?", "choices": [*COLOURS], "answer": n % 4 / 1},
    "Inspect": lambda n: {
        "input": f"What is {n}?",
        "choices": [*COLOURS],
        "target": "ABCD"[n % 4],
        "scores": {"choice": {"value": "CI"[n % 2]}},
    },
    "Kahoot": lambda n: {
        "Question - max 120 characters": f"What is {n}?",
        **{f"Answer {k} - max 75 characters": one for k, one in enumerate(COLOURS, start=1)},
        "Correct answer(s)": 1 + n % 4,
    },
    "a text": lambda n: {
        "question": f"What is {n}?",
        "choices": [*COLOURS],
        "answer": COLOURS[n % 4],
    },
}


@for_each("layout", KEYS_ELSEWHERE)
def test_a_key_in_an_object_a_list_or_an_options_own_words_names_the_option(layout: str):
    rows = [KEYS_ELSEWHERE[layout](n) for n in range(40)]

    lines = [f"{letter}: {one}" for letter, one in zip("ABCD", COLOURS, strict=True)]
    for place, letter in enumerate("ABCD"):
        assert ([letter], lines, letter) == asked(rows, place)


def test_any_of_several_right_options_is_right():
    rows = [exam(n, choices=[*COLOURS], gold_index=[n % 4, 3][: 1 + n % 4 // 2]) for n in range(40)]

    assert ["B"] == asked(rows, 1)[0]
    assert ["C", "D"] == asked(rows, 2)[0]
    remarks = guess_mapping("exam", rows).remarks
    assert any(
        "gold_index has more than 1 parts in 20 of 40 rows, any of" in one for one in remarks
    )


@pytest.mark.parametrize("name", ["labels", "is_correct"])
def test_options_whose_right_one_a_list_marks_are_refused(name: str):
    marks = [1, 0, 0, 0]
    rows = [exam(n, targets={"choices": [*COLOURS], name: marks}) for n in range(40)]
    shown = [{"text": one, name: not k} for k, one in enumerate(COLOURS)]

    for table in (rows, [exam(n, choices=shown) for n in range(40)]):
        with pytest.raises(DataError, match=f"{name} marks the right ones of 4 options"):
            find_options(table)


def test_the_first_of_aliases_is_an_answer_and_no_option():
    rows = [exam(n, answer=f"Ann {n}", aliases=[f"Ann {n}", "Anna", "A."]) for n in range(40)]

    assert find_options(rows) is None
    assert "{aliases.1}" not in guess_mapping("qa", rows).mapping.prompt


def test_a_right_one_that_is_always_the_same_letter_is_said_to_give_itself_away():
    rows = [exam(n, choices=[*COLOURS], answer="A") for n in range(60)]

    assert any("is A in all rows, which gives" in one for one in guess_mapping("e", rows).remarks)


WRITTEN = {
    "Option 1": [f"Option {n}" for n in range(1, 5)],
    "option_a": ["option_a", "option_b", "option_c", "option_d"],
    "pilihan 0": [f"pilihan {n}" for n in range(4)],
    "The answer is A.": [f"The answer is {one}." for one in "ABCD"],
}


@for_each("form", WRITTEN)
def test_a_key_may_announce_its_letter_or_number(form: str):
    rows = [exam(n, options=[*COLOURS], answer=WRITTEN[form][n % 4]) for n in range(40)]

    for place, letter in enumerate("ABCD"):
        gold, lines, response = asked(rows, place)
        assert ([letter], letter, 4) == (gold, response, len(lines))


def test_options_of_an_object_may_be_numbered():
    for first in (0, 1):
        shown = {str(n): one for n, one in enumerate(COLOURS, start=first)}
        rows = [exam(n, options=shown, answer=str(first + n % 3)) for n in range(40)]

        assert ["B"] == asked(rows, 1)[0]
        assert "B: blue" in asked(rows, 1)[1]


def test_a_key_that_is_a_place_and_a_text_is_refused():
    rows = [exam(n, choices=["3", "4", "1", "2"], answer=str(1 + n % 4)) for n in range(40)]

    with pytest.raises(DataError, match="answer may be the place of the right option or its text"):
        find_options(rows)


@pytest.mark.parametrize("other", ["model_answer", "user_answer", "pred_label"])
def test_what_is_right_is_the_key_and_not_what_somebody_chose(other: str):
    rows = [
        {other: "ABCD"[n % 3]} | exam(n, choices=[*COLOURS], correct_answer="ABCD"[n % 4])
        for n in range(40)
    ]

    guess = guess_mapping("exam", rows)

    assert {"correct": ["{correct_answer}"]} == guess.mapping.answer
    assert any(f"{other} names another one in 28 of" in one for one in guess.remarks)


UNKNOWN_KEYS = {
    "several letters": {"options": [*COLOURS], "answer": "A,C"},
    "one text of options": {"options": "|".join(COLOURS), "answer": 2},
}


@for_each("kind", UNKNOWN_KEYS)
def test_a_key_that_nobody_reads_is_refused_and_not_asked_without_its_options(kind: str):
    rows = [
        exam(n) | UNKNOWN_KEYS[kind] | ({} if n % 3 else {"answer": {"A,C": "B", 2: 1}[key]})
        for n in range(40)
        for key in [UNKNOWN_KEYS[kind]["answer"]]
    ]

    with pytest.raises(DataError, match="answer is to name one of options, and does so by no"):
        guess_mapping("exam", rows)


@pytest.mark.parametrize("shown", [[*COLOURS], ";".join(COLOURS)])
def test_an_answer_that_is_no_key_is_imitated_beside_its_options(shown: object):
    rows = [exam(n, options=shown, answer=f"({n % 4}) {COLOURS[n % 4]} {n}") for n in range(40)]

    guess = guess_mapping("exam", rows)

    assert "{options" in guess.mapping.prompt
    assert "No key of options is known: the answer is imitated, and not verified." in guess.remarks
