"""Find the options of an examination in a table, and how its key names the right one.

Options are a list within a cell (`choices`, ARC's `choices.text`, a list of objects with a text
each, or a list that a CSV file writes as text), or columns that a letter or a number tells apart
(`A`, `option_b`, `pilihan3`), which may be those of an object (`options: {"A": ...}`). The key is a
letter, a number from 0 or 1, or the text of an option; it may stand in an object or in a list.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import cast

from tasks.curation.guessing.columns import NUMPY_LIST
from tasks.curation.readers.missing import is_null
from tasks.curation.readers.paths import parts_of
from tasks.curation.readers.written_values import written_value
from tasks.errors import DataError

Row = Mapping[str, object]

LETTERS = "ABCDEFGHIJ"
_LEAST = 2
_FIRST = 1000
"""Rows whose commonest number of options is that of the table."""
_MOSTLY = 0.95
"""Share of rows whose key is one of these options."""
# "A", "option_b", "optionC", "choice 1", "opa" (MedMCQA).
_MARKED = re.compile(r"(?P<stem>|.*[\s_.-]|.*[a-z](?=[A-J])|op)(?P<letter>[A-Ja-j])")
_NUMBERED = re.compile(r"(?P<stem>.*\D)(?P<number>\d)")
# "Answer 1 - max 75 characters" (Kahoot), "option_1_text"
# "1" in an object of options by their numbers
_DIGIT = re.compile(r"(?P<stem>)(?P<number>\d)")
_NUMBERED_WITHIN = re.compile(r"(?P<stem>\D+)(?P<number>\d)(?P<rest>\D.*)")
# The options of a question: "choices", "mc_answer1", "pilihan"; not "input_sentence_1".
_OPTIONS = re.compile(
    r"opt|choice|answer|ending|altern|pilihan|jawab|opci|opç|lựa_chọn|đáp|ตัวเลือก|選|选|보기|^[a-j]$",
    re.IGNORECASE,
)
_TEXT_KEYS = ("text", "content", "option", "value", "answer", "body")
"""Names of the text of an option that is an object."""
_LONG = 16
"""Characters of a text that is no word for a missing value, such as N/A."""
_VARIED = 2
"""Places of the right ones among options; the first of aliases is always the answer."""
# "Option 2", "The answer is B.", "pilihan_3"
_ANNOUNCED = re.compile(
    r"^(?:the )?(?:correct |right )?(?:answer|option|choice|ans|jawaban|pilihan|opsi|alternativa"
    r"|opção|opción|resposta|respuesta|đáp án|ตัวเลือก|ข้อ|选项|選項|答案)(?: is)?[\s:_.-]*",
    re.IGNORECASE,
)
# "2", and "2.0" as pandas writes integers of a column that has blanks
_WHOLE = re.compile(r"\d+(?:\.0)?")
_LETTER = re.compile(r"\(?[A-Ja-j0-9]\)?")
_KEY = re.compile(
    r"^cop$|^accept$|answer|correct|gold|label|target|solution|(?:^|_)key|kunci|jawab|benar|resposta|gabarito|correta"
    r"|jawap|respuesta|clave|đáp|trả_lời|sagot|tamang|คำตอบ|เฉลย|答|正解|정답"
    r"|antwort|lösung|réponse|risposta|ответ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LetteredOptions:
    """Where the options of a question stand, and what its key says."""

    options: tuple[str, ...]
    """Paths of the options, in the order of their letters; of a row with fewer, the first."""
    key: str
    """Path of what names the right one; of a list, the first part."""
    values: Mapping[str, str]
    """What the key says -> letter; `{choices.0}` is the text of that option."""
    only: str = ""
    """The letter of all rows; '' if there are several."""
    rivals: Mapping[str, int] = field(default_factory=dict)
    """Other keys of these options, and in how many of the first rows they name another one."""


# "model_answer", "prediction", "user_answer": what somebody chose, which may be wrong
_TRIED = re.compile(
    r"(?:^|[._])(?:models?|pred\w*|user|student|generated|ai|llm|actual|chosen|selected)(?:[._]|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Key:
    """What a path says in every row, '' where there is nothing."""

    path: str
    texts: tuple[str, ...]
    is_list: bool = False


def is_key(name: str, values: Iterable[str]) -> bool:
    """Return whether a column names the right option of an examination by its letter."""
    return bool(_KEY.search(name)) and {*map(str.upper, values)} <= {*LETTERS}


def find_options(rows: Sequence[Row]) -> LetteredOptions | None:
    """Return the options and the key of an examination; None if the table is none.

    Raises:
        DataError: the key counts from 0 or from 1, and its values do not tell which; or it marks
            the right ones within a list, which no template reads.
    """
    first = rows[:_FIRST]
    names = dict.fromkeys(name for row in first for name in row)
    every = list_options(first)
    keys = sorted(_keys(rows, names), key=lambda key: bool(_TRIED.search(key.path)))
    doubts: list[DataError] = []
    for options in every:
        if found := _key_by_letters(keys, options, first, doubts):
            return found
        taken = _columns_of(options, names)
        if found := _key_by_values(rows, [name for name in names if name not in taken], options):
            return found
    if doubts:
        raise doubts[0]
    for options, key in product(every, keys):
        if key.path not in options and _repeats(key, options, first):
            letters = zip(options, LETTERS, strict=False)
            values = {f"{{{path}}}": letter for path, letter in letters}
            return LetteredOptions(options, key.path, values)
    _check_marks(first, every)
    _check_lists(first, [name for name in names if _KEY.search(name)])
    return None


def _key_by_letters(
    keys: Sequence[_Key], options: tuple[str, ...], rows: Sequence[Row], doubts: list[DataError]
) -> LetteredOptions | None:
    """Return the options with the first key of their letters or numbers; None if there is none.

    Args:
        keys: of the table.
        options: of a row.
        rows: the first of the table.
        doubts: takes the error of numbers that may not be those of options.

    Raises:
        DataError: as `find_options`.
    """
    counts = [num_options(row, options) for row in rows] if keys else []
    mark = _first_mark(rows, options) if keys else ""
    fits: list[tuple[_Key, dict[str, str]]] = []
    for key in keys:
        if key.path in options or (is_beside(key.path, options) and not key.is_list):
            continue
        try:
            values = _letters(key, len(options), counts, mark)
        except DataError as error:
            if not fits and _OPTIONS.search(options[0].rpartition(".")[0] or options[0]):
                raise
            doubts.append(error)  # "input_sentence_1" is no option, although it is numbered
            continue
        if values:
            fits.append((key, values))
    if not fits:
        return None
    key, values = fits[0]
    _check_one_meaning(key, values, options, rows)
    rivals = {
        other.path: count
        for other, others in fits[1:]
        if (count := sum(map(_differ, _named(key, values, rows), _named(other, others, rows))))
    }
    stated = {values[text] for text in key.texts if text in values}
    only = stated.pop() if len(stated) == 1 else ""
    return LetteredOptions(options, key.path, values, only, rivals)


def _named(key: _Key, values: Mapping[str, str], rows: Sequence[Row]) -> list[str]:
    """Return the letters that a key names in the first rows."""
    return [values.get(text, "") for text in key.texts[: len(rows)]]


def _differ(left: str, right: str) -> bool:
    return bool(left and right and left != right)


def _check_one_meaning(
    key: _Key, values: Mapping[str, str], options: Sequence[str], rows: Sequence[Row]
) -> None:
    """Refuse a key that is the letter or number of one option and the text of another.

    Raises:
        DataError: it is both in nearly all rows: 2 beside the options 3, 2, 1.
    """
    num_texts = num_others = 0
    for row, text in zip(rows, key.texts, strict=False):
        texts = [option_text(row, path) for path in options] if len(text) < _LONG else []
        if text in texts:
            num_texts += 1
            num_others += LETTERS[texts.index(text)] != values.get(text)
    if num_others and num_texts >= _MOSTLY * len(rows):
        raise DataError(
            f"{key.path} may be the place of the right option or its text, which differ in "
            f"{num_others:,} of the first {len(rows):,} rows. Write its letter into a column"
        )


def _first_mark(rows: Sequence[Row], options: Sequence[str]) -> str:
    """Return the number of the first option, if the table says it; '' if not."""
    stem, _, name = options[0].rpartition(".")
    if name.isdecimal() and any(
        isinstance(written_value(value_at(row, stem)), Mapping) for row in rows[:1]
    ):
        return name  # {"1": "red", "2": "blue"}
    return _marks(rows, len(options))


def _columns_of(paths: Iterable[str], names: Container[str]) -> set[str]:
    return {parts_of(path, names)[0] for path in paths}


def is_beside(path: str, options: Sequence[str]) -> bool:
    """True for a path into the list that has the options, or into one beside it in its object.

    Of `choices.text.0` that is `choices.label.0`; of `prompts.0.choice1` and the others it is none.
    """
    first, last = (one.split(".") for one in (options[0], options[-1]))
    place = next(n for n, part in enumerate(first) if part != last[n])
    if not place or not first[place].isdecimal():
        return False
    parts = path.split(".")
    is_list = any(part.isdecimal() for part in parts[place - 1 :])
    return parts[:place] == first[:place] or (
        place > 1 and is_list and parts[: place - 1] == first[: place - 1]
    )


def _has_key_within(rows: Sequence[Row], name: str) -> bool:
    """True if a column has an object with a key: `doc.gold_index`."""
    value = next((written_value(row[name]) for row in rows if row.get(name)), None)
    return _is_object(value) and any(_KEY.search(one) for one in cast("Row", value))


def _keys(rows: Sequence[Row], names: Iterable[str]) -> list[_Key]:
    """List what may name the right option: columns, fields of objects, and lists of either."""
    keys: list[_Key] = []
    for name in names:
        if not _KEY.search(name) and not _has_key_within(rows[:_FIRST], name):
            continue
        cells = [written_value(row.get(name)) for row in rows]
        if _KEY.search(name):
            keys += _key_of(name, cells)
        objects = [cast("Row", cell) if _is_object(cell) else {} for cell in cells]
        for inner in dict.fromkeys(one for cell in objects[:_FIRST] for one in cell):
            if _KEY.search(inner) and "." not in inner:
                keys += _key_of(f"{name}.{inner}", [cell.get(inner) for cell in objects])
    return keys


def _key_of(path: str, cells: Sequence[object]) -> list[_Key]:
    """Return the key that a column is, or the first parts of its lists; nothing if it has none."""
    values = [written_value(cell) for cell in cells]
    lists = [cast("list[object]", value) if isinstance(value, list) else [] for value in values]
    if any(lists):
        texts = tuple(_text(one[0]) if one else "" for one in lists)
        is_key = sum(len(one) == 1 for one in lists) >= len(cells) / 2
        return [_Key(f"{path}.0", texts, is_list=True)] if is_key else []
    texts = tuple(map(_text, cells))
    return [_Key(path, texts)] if any(texts) else []


def list_options(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """List what may be options, by their paths, those of the most rows first.

    Of rows with fewer and with more, those with the most say how many there may be.
    """
    counts = Counter(one for row in rows[:_FIRST] for one in _candidates(row))
    longest: dict[tuple[str, ...], tuple[str, ...]] = {}
    for one in sorted(counts, key=len):
        longest |= {one[:count]: one for count in range(_LEAST, len(one) + 1)}
    totals = Counter[tuple[str, ...]]()
    for one, count in counts.items():
        totals[longest[one]] += count
    return [options for options, _ in totals.most_common()]


def num_options(row: Row, options: Sequence[str]) -> int:
    """Return how many of the options a row has, before those that fill it up."""
    count = len(options)
    stem, _, place = options[0].rpartition(".")
    is_list = isinstance(written_value(value_at(row, stem)), list)
    if is_list and place == "0" and options[-1].rpartition(".")[0] == stem:
        cells = parts_at(row, stem)[:count]
        texts = ["" if one is None else str(one) for one in cells]
        count = len(texts)
    else:
        texts = [option_text(row, path) for path in options]
    while count and len(texts[count - 1]) < _LONG and is_null(texts[count - 1]):
        count -= 1
    return count


def option_text(row: Row, path: str) -> str:
    """Return the text at a path; '' if there is none."""
    value = value_at(row, path)
    return "" if value is None else str(value).strip()


def stem_of(options: Sequence[str]) -> str:
    """Return the path of the list that has the options; '' if they are columns."""
    # "choices.0", "choices.0.text"
    match = re.fullmatch(r"(.+)\.0(?:\.[^.\d][^.]*)?", options[0]) if options else None
    return match[1] if match else ""


def parts_at(row: Row, path: str) -> list[object]:
    """Return the parts of the list at a path, as choices.text; none if there is no list."""
    value = written_value(value_at(row, path))
    return cast("list[object]", value) if isinstance(value, list) else []


def value_at(row: Row, path: str) -> object:
    """Return what is at a path; None if there is nothing."""
    cell: object = row
    for part in parts_of(path, row):
        cell = written_value(cell)
        if isinstance(cell, list):
            items = cast("list[object]", cell)
            cell = items[int(part)] if part.isdecimal() and int(part) < len(items) else None
        else:
            cell = cast("Row", cell).get(part) if isinstance(cell, Mapping) else None
    return cell


def _repeats(key: _Key, options: Sequence[str], rows: Sequence[Row]) -> bool:
    """True if a key is the text of one of the options, which is not always the first."""
    places = Counter[int]()
    for row, text in zip(rows, key.texts, strict=False):
        texts = [option_text(row, path) for path in options]
        if text and texts.count(text) == 1:
            places[texts.index(text)] += 1
    num_stated = sum(map(bool, key.texts[: len(rows)]))
    return len(places) >= _VARIED and places.total() >= _MOSTLY * num_stated


def _check_marks(rows: Sequence[Row], every: Iterable[Sequence[str]]) -> None:
    """Refuse options whose right ones a list of marks tells: [1, 0, 0, 0] beside them.

    Raises:
        DataError: names the list.
    """
    for options in every:
        for row in rows[:1]:
            count = num_options(row, options)
            for paths, cells in _lists(row):
                name = paths[0].rpartition(".")[0] if paths[0][-1:].isdigit() else paths[0]
                is_named = _KEY.search(name.rpartition(".")[2])
                if is_named and len(cells) == count and _are_marks(cells) and "1" in cells:
                    raise DataError(
                        f"{name} marks the right ones of {count} options, {options[0]} and the "
                        "others, which no template reads. Write the number of the right one into "
                        "a column, in an order that does not give it away"
                    )


def _are_marks(cells: Sequence[str]) -> bool:
    return {*cells} <= {"0", "1"}


def _check_lists(rows: Sequence[Row], keys: Sequence[str]) -> None:
    """Refuse options that cannot be told apart, beside a key of them.

    Raises:
        DataError: a column has lists as numpy prints them.
    """
    is_key = any(_LETTER.fullmatch(_text(row.get(key))) for key in keys for row in rows[:1])
    for name, cell in rows[0].items() if is_key and rows else ():
        if isinstance(cell, str) and NUMPY_LIST.fullmatch(cell.strip()):
            raise DataError(
                f"{name} has lists without commas, as numpy prints them: the options of {keys[0]} "
                "cannot be told apart. Export the table as JSON lines or Parquet"
            )


def _key_by_values(
    rows: Sequence[Row], names: Sequence[str], options: Sequence[str]
) -> LetteredOptions | None:
    """Return the options with the one column that has nothing but their letters, and several."""
    keys: list[LetteredOptions] = []
    for name in names:
        key = _Key(name, tuple(_text(row.get(name)) for row in rows))
        if len({*key.texts}) > 1 and {*key.texts} <= {*LETTERS[: len(options)]}:
            values = _letters(key, len(options))
            keys.append(LetteredOptions(tuple(options), name, values))
    return keys[0] if len(keys) == 1 else None


def _candidates(row: Row) -> list[tuple[str, ...]]:
    candidates = [
        paths
        for paths, cells in _lists(row)
        if _LEAST <= len(cells) <= len(LETTERS)
        and not {*cells} <= {*LETTERS}
        and not _are_marks(cells)
        and not {*map(str.casefold, cells)} <= {"true", "false"}
        and not _are_numbered(cells)
    ]
    stems: dict[str, dict[str, str]] = {}
    for prefix, cells in _objects(row):
        for name in cells:
            for form in (_MARKED, _NUMBERED, _NUMBERED_WITHIN, *([_DIGIT] if prefix else [])):
                if (match := form.fullmatch(name)) and cells[name] not in (None, ""):
                    stem = f"{prefix}{match[1].casefold()} {match.groupdict().get('rest', '')}"
                    stems.setdefault(stem, {})[match[2].upper()] = f"{prefix}{name}"
    for columns in stems.values():
        for marks in (LETTERS, "0123456789", "123456789"):
            run = [columns[mark] for mark in marks if mark in columns]
            if len(run) == len(columns) >= _LEAST and marks.startswith("".join(sorted(columns))):
                candidates.append(tuple(run))
    return candidates


def _are_numbered(cells: Sequence[str]) -> bool:
    """True for the numbers of options in their order, as ARC has them beside the texts."""
    return any(cells == [str(n) for n in range(start, start + len(cells))] for start in (0, 1))


def _objects(row: Row) -> Iterator[tuple[str, Row]]:
    """Yield a row and the objects in it, each with what stands before its names in a path.

    The one object of a list is one of them: `prompts: [{"premise": ..., "choice1": ...}]`.
    """
    yield "", row
    for name, cell in row.items():
        value, path = written_value(cell), f"{name}."
        if isinstance(value, list) and len(objects := cast("list[object]", value)) == 1:
            value, path = objects[0], f"{name}.0."
        if _is_object(value):
            yield path, cast("Row", value)


def _lists(row: Row) -> list[tuple[tuple[str, ...], list[str]]]:
    """List the lists of texts of a row, and those within its objects, with the paths of the texts.

    Nulls at the end of a list fill it up to the length of others: MMLU-Pro.
    """
    lists = _direct_lists(row, "")
    for name, cell in row.items():
        if _is_object(value := written_value(cell)):
            lists += _direct_lists(cast("Row", value), f"{name}.")
    return lists


def _direct_lists(row: Row, prefix: str) -> list[tuple[tuple[str, ...], list[str]]]:
    lists: list[tuple[tuple[str, ...], list[str]]] = []
    for name, cell in row.items():
        value = written_value(cell)
        if not isinstance(value, list) or (prefix and "." in name):
            continue
        cells = cast("list[object]", value)
        while cells and cells[-1] is None:
            cells = cells[:-1]
        if not cells:
            continue
        if all(isinstance(cell, str | int | float) for cell in cells):
            paths = tuple(f"{prefix}{name}.{place}" for place in range(len(cells)))
            lists.append((paths, [str(int(c)) if isinstance(c, bool) else str(c) for c in cells]))
        elif all(map(_is_object, cells)):
            lists += _fields(cast("list[Row]", cells), f"{prefix}{name}")
    return lists


def _fields(objects: Sequence[Row], path: str) -> list[tuple[tuple[str, ...], list[str]]]:
    """List what objects say under each of their names, if these are options and no turns."""
    names = [*objects[0]]
    if not any(name in _TEXT_KEYS for name in names) or {"role", "from"} & {*names}:
        return []
    lists: list[tuple[tuple[str, ...], list[str]]] = []
    for name in names:
        cells = [one.get(name) for one in objects]
        if all(isinstance(cell, str | int | float) for cell in cells):
            paths = tuple(f"{path}.{place}.{name}" for place in range(len(objects)))
            texts = [str(int(one)) if isinstance(one, bool) else str(one) for one in cells]
            lists.append((paths, texts))
    return lists


def _is_object(value: object) -> bool:
    """Say whether a cell has fields that a path can name; those of `{1: 2}` are numbers."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _text(value: object) -> str:
    """Return what a scalar says; '' of what is no key, such as -1 in a test split."""
    if value is None or isinstance(value, list | dict | bool):
        return ""
    text = str(value).strip()
    return "" if text == "-1" else text


def _marks(rows: Sequence[Row], count: int) -> str:
    """Return the number of the first option, where lists name them all (ARC); '' if none do."""
    for row in rows:
        for _, cells in _lists(row):
            if _LEAST <= len(cells) <= count and _are_numbered(cells):
                return cells[0]
    return ""


def _letters(key: _Key, count: int, counts: Sequence[int] = (), mark: str = "") -> dict[str, str]:
    """Return which letter each value of a key means; nothing if it is no key of these options.

    A key may have letters in some rows and numbers in others, as ARC's, and a few rows that have
    more options than the others may have other letters.

    Args:
        key: what names the right one.
        count: of the options.
        counts: how many the first rows have.
        mark: number of the first option, if the table says it.

    Raises:
        DataError: its numbers may count from 0 or from 1.
    """
    entries = Counter(filter(None, key.texts))
    own = LETTERS[:count]
    bare = {value: _ANNOUNCED.sub("", value).strip("(). ").upper() for value in entries}
    letters = {value: one for value, one in bare.items() if len(one) == 1 and one in own}
    whole = {
        value: int(one.removesuffix(".0")) for value, one in bare.items() if _WHOLE.fullmatch(one)
    }
    numbers = sorted(whole.values())
    others = sum(n for one, n in entries.items() if one not in letters and one not in whole)
    if others > (1 - _MOSTLY) * sum(entries.values()) or not (letters or numbers):
        return {}
    if not numbers:
        return dict(sorted(letters.items()))
    pairs = zip(key.texts, counts, strict=False)
    is_last = numbers[-1] == count or any(whole.get(text) == most for text, most in pairs)
    if numbers[-1] > count or (numbers[0] == 0 and numbers[-1] == count):
        return {}
    if not mark and numbers[0] > 0 and not is_last:
        raise DataError(
            f"{key.path} names the right one of {count} options by numbers from {numbers[0]} to "
            f"{numbers[-1]}: do they count from 0 or from 1? Write the mapping by hand "
            "(tasks/curation/README.md), with `values` that say which letter each one is"
        )
    first = int(mark) if mark else 0 if numbers[0] == 0 else 1
    # "2", "2.0", "Option 2": as the key writes its numbers
    written = {re.sub(r"\d+(?=(?:\.0)?\D*$)", "{}", value, count=1) for value in whole}
    forms = dict.fromkeys(["{}", *sorted(one for one in written if one.count("{") == 1)])
    return {
        form.format(n): own[n - first] for form in forms for n in range(first, count + first)
    } | dict(sorted(letters.items()))
