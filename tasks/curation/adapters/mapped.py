"""Fill a mapping file's templates with one raw row."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from data_schemas.mappings import (
    FILE,
    TEXT,
    UNDETERMINED,
    ColumnMapping,
    placeholders,
    template_parts,
)
from data_schemas.pass_rates import PASS_RATE
from data_schemas.rows import Demonstration, Domain, Message, Problem, Role, is_language_tag
from tasks.curation.adapters.chats import Chat, check_not_turns, read_chat, turns_of
from tasks.curation.cleaning.classes import with_class
from tasks.curation.cleaning.languages import language_among
from tasks.curation.cleaning.pass_rates import is_rate
from tasks.curation.cleaning.thoughts import as_response, thought_of
from tasks.curation.items import Item
from tasks.curation.readers.cells import Digits, UnreadCell, unread_in
from tasks.curation.readers.missing import is_missing, is_null
from tasks.curation.readers.paths import parts_of
from tasks.curation.readers.written_values import written_value
from tasks.curation.rows import BadRow, RawRow, tidy
from tasks.gym.maths.amounts import number_text, written_out
from tasks.gym.table import has_value_gold
from tasks.store.files import canonical_json

_FEWEST = 2
"""Options of a choice."""
_OF_TEXTS = ("choice", "reference_text")
"""Verifiers whose references are texts, beside values: the number in a column is written as one."""
# "7", "-250": no separator, and too small for one.
_SHORT = re.compile(r"[-+]?\d{1,3}")
# "{choices.0}", where a translation has a value
_COLUMN = re.compile(r"\{[^{}]+\}")
# "E: {options.4}": a line of a prompt that is an option and the column of its text.
_OPTION_LINE = re.compile(r"(?P<option>[^:{}]+):\s*\{(?P<column>[^{}]+)\}")
_LANGUAGE = re.compile(
    r"(?<![A-Za-z])(?:bn|de|en|es|et|fr|ht|id|it|ja|ko|ms|pt|qu|ru|sw|ta|te|th|tr|vi|zh)(?![A-Za-z])"
)


def language_in(path: Path) -> str:
    """Return the language that the name of a file or its folder states: `id_test`, `th/train`.

    'und' if there is none.
    """
    for name in (path.name, path.parent.name):
        if len(tags := _LANGUAGE.findall(name)) == 1:
            return tags[0]
    return UNDETERMINED


def read_mapped(mapping: ColumnMapping, row: RawRow, language: str = UNDETERMINED) -> list[Item]:
    """Make the problem and the demonstration that the mapping describes.

    Args:
        mapping: says which columns become which fields.
        row: one raw row.
        language: of the file, for a mapping whose language is `file`.

    Raises:
        BadRow: a column is missing or blank, a value is not one of `values` or `options`, or there
            are fewer than two options, or one behind a blank one.
    """
    mapping, cells = _of_row(mapping, row)
    _check_not_blank(mapping, cells)
    _check_whole_turns(mapping, row)
    chat = _chat(mapping, cells)
    framing = _fill(mapping.system, cells)
    system = [] if is_null(framing) else [Message(role=Role.SYSTEM, content=framing)]
    if chat is None:
        content = "\n".join(_text(cells[column]) for column in placeholders(mapping.prompt))
        messages = [Message(role=Role.USER, content=_fill(mapping.prompt, cells))]
    else:
        messages = [Message.model_validate(turn) for turn in chat.messages]
        content = "\n".join(one.content for one in messages if one.role is not Role.SYSTEM)
        if system and messages[0].role is Role.SYSTEM:
            raise BadRow(
                "two_system_messages", "`system` and the first turn are one each; keep one"
            )
    shared = {
        "id": f"{mapping.name}/{_fill(mapping.id, cells) or row.key}",
        "domain": mapping.domain,
        "language": _language(mapping, cells, content, language),
        "messages": (*system, *messages),
        "source": mapping.name,
        "source_row": row.source_row,
    }
    facets = _facets(mapping, cells)
    if has_value_gold(mapping.verifier):
        language = str(shared["language"])
        cells = {column: as_written(cell, language) for column, cell in cells.items()}
    items: list[Item] = []
    problem: Problem | None = None
    if mapping.verifier:
        answer = canonical_json(row.gold(_answer(mapping, cells))).decode()
        problem = Problem.model_validate(shared | {"verifier": mapping.verifier, "answer": answer})
        items.append(Item(problem, content, facets=facets))
    if mapping.response:
        response = _response(mapping, cells, chat)
        fields = {"parent": mapping.parent, "response": response}
        demonstration = Demonstration.model_validate(shared | fields)
        items.append(Item(demonstration, content, facets=facets, answers=problem))
    return items


def _of_row(mapping: ColumnMapping, row: RawRow) -> tuple[ColumnMapping, dict[str, JsonValue]]:
    """Return the mapping without the options that a row has not, and the cells of the others.

    An option that a line of the prompt shows, `E: {options.4}`, is no option of a row in which its
    column is blank, or whose list or object ends before it; nor is that line asked.

    Raises:
        BadRow: as `read_mapped`.
    """
    shown = _shown_options(mapping.prompt, mapping.options)
    if not shown:
        return mapping, {column: _cell(mapping, row, column) for column in mapping.columns}
    cells = {
        column: ""
        if column in shown and _part(row, column) is None
        else _cell(mapping, row, column)
        for column in mapping.columns
    }
    present = [column for column in shown if not is_null(_text(cells[column]))]
    if len(present) == len(shown):
        return mapping, cells
    blank = next(column for column in shown if column not in present)
    if present != list(shown)[: len(present)]:
        raise BadRow("empty_field", f"option {blank!r} is blank, and one behind it is not")
    if len(present) < _FEWEST:
        raise BadRow("empty_field", f"option {blank!r} is blank, which leaves {len(present)}")
    absent = {option: column for column, option in shown.items() if column not in present}
    lines = [
        line
        for line in mapping.prompt.split("\n")
        if not ((match := _OPTION_LINE.fullmatch(line)) and match["option"] in absent)
    ]
    options = tuple(option for option in mapping.options if option not in absent)
    return mapping.model_copy(update={"prompt": "\n".join(lines), "options": options}), cells


@lru_cache(maxsize=64)
def _shown_options(prompt: str, options: Sequence[str]) -> Mapping[str, str]:
    """Return the columns whose lines in a prompt are options, each with its option."""
    matches = filter(None, map(_OPTION_LINE.fullmatch, prompt.split("\n")))
    return {match["column"]: match["option"] for match in matches if match["option"] in options}


def _chat(mapping: ColumnMapping, cells: Mapping[str, JsonValue]) -> Chat | None:
    """Read the turns of a prompt that is one column of turns; None if it is a text.

    Raises:
        BadRow: as `read_chat` and `check_not_turns`; or its last turn is a response that the
            mapping does not use.
    """
    column = _alone(mapping.prompt)
    turns = turns_of(cells[column]) if column else None
    if not isinstance(turns, list) or not any(isinstance(turn, dict) for turn in turns):
        check_not_turns(turns, column)
        return None
    chat = read_chat(cast("object", turns), column)
    if chat is not None and chat.response is not None and not mapping.response:
        raise BadRow("unread_turn", f"{column} ends with a response, and `response` is not given")
    return chat


def _response(mapping: ColumnMapping, cells: Mapping[str, JsonValue], chat: Chat | None) -> str:
    """Return the last turn of a chat, or what the template says.

    Raises:
        BadRow: the chat has no last turn of the assistant with a text.
    """
    if chat is None or mapping.response != mapping.prompt:
        return as_response(_fill(mapping.response, cells))
    if not isinstance(chat.response, str):
        column = _alone(mapping.prompt)
        raise BadRow("no_response", f"{column} does not end with a text of the assistant")
    if chat.thought is None:
        return as_response(chat.response)
    return as_response(thought_of(chat.thought, chat.response))


def _check_whole_turns(mapping: ColumnMapping, row: RawRow) -> None:
    """Refuse a response that is one turn of a chat with more to it than its text.

    Raises:
        BadRow: names the key, or the turn behind it.
    """
    for column in placeholders(mapping.response):
        name, *rest = parts_of(column, row.cells)
        place = next(iter(rest), "")
        turns = row.cells.get(name)
        if column in row.cells or not isinstance(turns, list) or not place.isdecimal():
            continue
        used = cast("list[object]", turns)[: int(place) + 1]
        if not all(isinstance(turn, Mapping) and {"role", "from"} & turn.keys() for turn in used):
            continue
        chat = read_chat(used, name)
        whole = f"`prompt` and `response` '{{{name}}}' read the chat as a whole"
        if chat is not None and chat.thought:
            raise BadRow("unread_key", f"{name}.{place} has a thought, which is not read: {whole}")
        if len(turns) > len(used):
            raise BadRow("unread_turn", f"{name}.{len(used)} is not read: {whole}")


def _alone(template: str) -> str:
    """Return the column that a template consists of; '' if it has more, or none."""
    columns = list(placeholders(template))
    return columns[0] if columns and template == f"{{{columns[0]}}}" else ""


def _language(
    mapping: ColumnMapping, cells: Mapping[str, JsonValue], content: str, of_file: str
) -> str:
    if mapping.language == FILE:
        return of_file
    if isinstance(mapping.language, str) and mapping.language != TEXT:
        return as_language(_fill(mapping.language, cells))
    language = language_among(content, () if mapping.language == TEXT else mapping.language)
    if language == UNDETERMINED and has_value_gold(mapping.verifier):
        _check_reads_alike(mapping, cells)
    return language


def as_language(text: str) -> str:
    """Return the tag of a language that a cell has.

    Raises:
        BadRow: the cell has a word for no value, or is none.
    """
    if is_missing(text):
        raise BadRow("empty_field", f"the language is {text!r}, which stands for none")
    if not is_language_tag(text):
        raise BadRow(
            "bad_language",
            f"{text!r} is no tag of a language; `values` of the mapping translates names into tags",
        )
    return text


def _check_reads_alike(mapping: ColumnMapping, cells: Mapping[str, JsonValue]) -> None:
    """Refuse a row whose answer is another number in another language: 1.299, 0,5 or 12000.

    Raises:
        BadRow: names the answer.
    """
    value = _text(_answer(mapping, cells).get("value"))
    if any(char.isdigit() for char in value) and not _SHORT.fullmatch(value):
        raise BadRow(
            "unknown_language",
            f"the prompt is too short to tell its language, by which {value!r} is read and what "
            "is answered to it; give `language`",
        )


def _facets(mapping: ColumnMapping, cells: Mapping[str, JsonValue]) -> dict[str, str]:
    """Fill the facets; add the class of a subject of maths.

    Raises:
        BadRow: a pass rate is none.
    """
    facets = {name: _fill(text, cells) for name, text in mapping.facets.items()}
    for name, value in facets.items():
        if name.startswith(PASS_RATE) and value and not is_rate(value):
            raise BadRow("bad_pass_rate", f"{name} is {value!r}, which is not from 0 to 1")
    return with_class(facets) if mapping.domain is Domain.MATHS else facets


def _cell(mapping: ColumnMapping, row: RawRow, column: str) -> JsonValue:
    """Return the value of a column, '' if it is blank, translated if the mapping says so."""
    value = _look_up(row.cells, column)
    if unread := unread_in(value):
        raise BadRow("unread_cell", f"column {column!r}: {unread.problem}")
    if value is None:
        return ""
    translation = mapping.values.get(column)
    if translation is None:
        return tidy(value) if isinstance(value, str) and type(value) is not Digits else value
    if isinstance(value, list):
        return [_translated(translation, row, column, part) for part in value]
    return _translated(translation, row, column, value)


def _translated(
    translation: Mapping[str, str | bool], row: RawRow, column: str, value: JsonValue
) -> str | bool:
    """Translate a value, which may be that of the one column that `{choices.0}` names.

    Raises:
        BadRow: no translation is for it, or those of several columns are.
    """
    text = _text(value)
    if text in translation:
        return translation[text]
    columns = [key for key in translation if _COLUMN.fullmatch(key)]
    same = [key for key in columns if text and _text(_part(row, key[1:-1])) == text]
    if len(same) == 1:
        return translation[same[0]]
    names = ", ".join(translation)
    if same:
        raise BadRow("unknown_value", f"{text!r} in column {column!r} is each of {', '.join(same)}")
    raise BadRow("unknown_value", f"{text!r} in column {column!r} is not of {names}")


def _part(row: RawRow, column: str) -> JsonValue:
    """Return what is at a path; None where a list or an object ends before it.

    Raises:
        BadRow: the row has no such column.
    """
    try:
        return _look_up(row.cells, column)
    except BadRow:
        name, *rest = parts_of(column, row.cells)
        if not rest or name not in row.cells:
            raise
        return None


def _look_up(fields: Mapping[str, object], column: str) -> JsonValue:
    """Find a column by its name, or by a dotted path into objects and lists, written ones too."""
    result: object = fields
    for part in parts_of(column, fields):
        result = written_value(result)
        if isinstance(result, list) and part.isdecimal() and int(part) < len(result):
            result = cast("list[object]", result)[int(part)]
        elif isinstance(result, Mapping) and part in result:
            result = result[part]
        elif isinstance(result, UnreadCell):
            break  # a part of what nobody can read is unread, not missing
        else:
            raise BadRow("missing_column", f"{column!r} is not among {', '.join(sorted(fields))}")
    # Cells come from JSON, CSV or parquet, and the adapter's rows are canonical JSON.
    return cast("JsonValue", result)


def as_written(cell: JsonValue, language: str) -> JsonValue:
    """Write a number as the language does, by which a verifier reads it: 1.125 is 1125 in some."""
    if isinstance(cell, Digits) or (isinstance(cell, float) and math.isfinite(cell)):
        return number_text(_text(cell), language)
    return cell


def _check_not_blank(mapping: ColumnMapping, cells: Mapping[str, JsonValue]) -> None:
    """Refuse a row without an answer, response, id or language, or with nothing to ask.

    Raises:
        BadRow: names the column.
    """
    columns = list(placeholders(mapping.prompt))
    for column in mapping.required:
        if _text(cells[column]) == "":
            raise BadRow("empty_field", f"column {column!r} is blank")
    if all(_text(cells[column]) == "" for column in columns):
        raise BadRow("empty_field", f"all columns of the prompt are blank: {', '.join(columns)}")


def _fill(template: str, cells: Mapping[str, JsonValue]) -> str:
    parts = template_parts(template)
    return tidy("".join(text + (_text(cells[column]) if column else "") for text, column in parts))


def _answer(mapping: ColumnMapping, cells: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Fill the verifier's reference, and add the options that are not correct."""
    texts = mapping.verifier in _OF_TEXTS or has_value_gold(mapping.verifier)
    answer = {
        name: _fill_value(value, cells, texts=texts) for name, value in mapping.answer.items()
    }
    if not mapping.options:
        return answer
    correct = answer["correct"]
    labels = [_text(one) for one in correct] if isinstance(correct, list) else [_text(correct)]
    for one in labels:
        if one not in mapping.options:
            raise BadRow("unknown_option", f"{one!r} is not one of {', '.join(mapping.options)}")
    others: list[JsonValue] = [[option] for option in mapping.options if option not in labels]
    return answer | {"correct": list(labels), "others": others}


def _fill_value(value: JsonValue, cells: Mapping[str, JsonValue], *, texts: bool) -> JsonValue:
    match value:
        case str():
            column = _alone(value)
            if not column:
                return _fill(value, cells)
            cell = cells[column]
            return _text(cell) if texts and not isinstance(cell, list | dict) else cell
        case list():
            return [_fill_value(item, cells, texts=texts) for item in value]
        case dict():
            return {name: _fill_value(item, cells, texts=texts) for name, item in value.items()}
        case _:
            return value


def _text(value: JsonValue) -> str:
    """Write a cell as text; what is no scalar as JSON."""
    match value:
        case str():
            return value.strip()
        case bool() | list() | dict():
            return json.dumps(value, ensure_ascii=False)
        case float() if math.isfinite(value):  # 1e-05 is a product and a sum in a formula
            return written_out(repr(value))
        case _:
            return "" if value is None else str(value)
