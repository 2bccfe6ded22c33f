"""The table of what is read says what the code does."""

import datetime
import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from data_schemas.rows import language_tag
from tasks.curation.cleaning import languages
from tasks.curation.readers.cells import column_cells
from tasks.curation.rows import SUFFIXES, has_suffix
from tasks.gym.maths.parse import parse
from tasks.models import chat_trial
from tasks.models.architectures import FAMILIES
from tasks.models.weights import DTYPES
from tests.tables import for_each

PAGE = Path(__file__).parents[1] / "docs" / "what_is_read.md"
LINES = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES[1:]]


def rows(kind: str) -> dict[str, str]:
    return {written: meaning for name, written, meaning in ROWS if name == kind}


def codes(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_suffix_that_is_read_is_named_and_no_other():
    plain, packed = [], [""]
    for written, meaning in rows("format").items():
        names = codes(written)
        if meaning.startswith("not read"):
            assert not any(has_suffix(f"table{name}") for name in names)
            continue
        ends = [name for name in names if name in (".gz", ".zst", ".bz2", ".lz4")]
        packed += ends
        plain += [f"{name}{end}" for name in names if name not in ends for end in ["", *ends]]

    assert {*SUFFIXES} == {*plain}


CELLS = {
    "timestamp": pa.array([datetime.datetime(2026, 3, 1, 9, 30)]),
    "date": pa.array([datetime.date(2026, 3, 1)]),
    "time": pa.array([datetime.time(9, 30)]),
    "duration": pa.array([datetime.timedelta(days=2)]),
    "decimal": pa.array([Decimal("9.90")]),
    "bytes of a text": pa.array([b"red"]),
    "other bytes": pa.array([b"\xff\xd8"]),
    "NaN": pa.array([float("nan")]),
    "float of single precision": pa.array([0.1], pa.float32()),
    "word of a dictionary": pa.array(["red"]).dictionary_encode(),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
}


@for_each("name", CELLS)
def test_a_cell_is_read_as_the_table_says(name: str):
    (cell,) = column_cells(CELLS[name])

    assert codes(rows("cell")[name]) == [cell if isinstance(cell, str) else json.dumps(cell)]


def test_the_languages_are_those_that_are_told_apart():
    (by_script,) = (one for one in rows("language") if one.startswith("prompts in th"))
    (by_model,) = (one for one in rows("language") if one.startswith("prompts in ar"))
    scripts = by_script.removeprefix("prompts in ").split(", ")
    others = by_model.removeprefix("prompts in ").split()

    assert {*languages.LANGUAGES} == {*scripts, *others}


def test_a_tag_is_read_in_any_spelling():
    written, meaning = next(one for one in rows("language").items() if "BCP 47" in one[0])

    assert codes(meaning) == [language_tag(tag) for tag in codes(written)]


@for_each(("written", "meaning"), rows("number").items())
def test_a_number_is_read_as_the_table_says(written: str, meaning: str):
    language = written.split()[0]
    (text,) = codes(written)
    answer = parse(text, language)

    assert answer.text == meaning if "value" == answer.kind else "list" in meaning


def test_the_forms_of_calls_and_the_families_are_those_of_the_code():
    (forms,) = (one for one in rows("template") if one.startswith("calls as"))
    assert {*chat_trial.FORMS} == {*forms.removeprefix("calls as ").split(", ")}

    families, weights = next(iter(rows("model").items()))
    assert {*FAMILIES} == {*families.split(", ")}
    assert [*DTYPES] == weights.removeprefix("weights in safetensors, ").split(", ")


TEMPLATE = """{% generation %}
{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}
{{ m.content }}{{ {'b': '<', 'a': 'ü'} | tojson }}{{ strftime_now('%Y')[:2] }}{% endfor %}
{% endgeneration %}"""


def test_what_templates_are_said_to_use_renders():
    named = next(one for one in rows("template") if "generation" in one)
    assert {"{% generation %}", "tojson", "strftime_now"} < {*codes(named)}

    text = chat_trial.render(TEMPLATE, {}, [{"role": "user", "content": "Hi"}] * 2)

    assert 'Hi{"b": "<", "a": "ü"}20' in text
