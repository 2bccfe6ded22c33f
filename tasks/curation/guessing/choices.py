"""Labels and examinations: options, their spellings in a table, and how a choice is asked for."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from data_schemas.rows import Domain
from tasks.curation.cleaning.writing_systems import primary
from tasks.curation.guessing.columns import (
    HALF,
    MOST_OPTIONS,
    MOSTLY,
    Column,
    Row,
    listing,
    with_rows,
    without_repeats,
)
from tasks.curation.guessing.languages import Tags, main_language
from tasks.curation.guessing.templates import (
    MOST_COLUMNS,
    Templates,
    blanks,
)
from tasks.curation.lettered import (
    LETTERS,
    find_options,
    is_beside,
    is_key,
    list_options,
    num_options,
    parts_at,
    stem_of,
)
from tasks.curation.readers.missing import is_doubtful, is_missing
from tasks.curation.readers.written_values import written_value
from tasks.errors import DataError
from tasks.gym.instructions.languages import simplified, traditional

# ruff: noqa: RUF001 - other scripts are the point

_LEAST_ROWS_PER_OPTION = 3
_RARE = 50
"""Rows of a table in which a label of one row is an exception."""
_LONG_OPTION = 40
"""Characters above which a value is no label."""
# "1.0", as pandas writes a column of integers that has blanks.
_WHOLE = re.compile(r"-?\d+\.0")
# '="00012"', as exports keep Excel from reading a number.
_FORMULA = re.compile(r'="(.*)"')
_QUOTES = "\"'“”‘’`"
# "label.0", "sentiment.choices.0", "responses.label.0.value", "label.responses.0" (Argilla).
_PARTS = re.compile(r"(?:\.(?:\d+|choices|value|responses))+$")
# "choices", "doc.options": a list that cannot be left out of a prompt
_LIST = re.compile(
    r"(?:.*[._])?(?:options?|choices?|candidates|endings|alternatives|pilihan|opsi|opções|opciones"
    r"|選項|选项|ตัวเลือก)(?:\.text)?",
    re.IGNORECASE,
)
_ONE_TEXT = re.compile("(?:answer_?)?(?:options?|choices?)|pilihan|opsi|opções|opciones|選項|选项")
"""A column with all options in one text: "red|blue"."""
_ASK = {
    "en": ("Which {label} is this: {options}?", "or"),
    "id": ("Pilih satu {label}: {options}.", "atau"),
    "ms": ("Pilih satu {label}: {options}.", "atau"),
    "pt": ("Escolha um valor para {label}: {options}.", "ou"),
    "es": ("Elige un valor para {label}: {options}.", "o"),
    "de": ("Wähle einen Wert für {label}: {options}.", "oder"),
    "fr": ("Choisis une valeur pour {label} : {options}.", "ou"),
    "vi": ("Chọn một giá trị cho {label}: {options}.", "hoặc"),
    "fil": ("Pumili ng isa para sa {label}: {options}.", "o"),
    "th": ("เลือกหนึ่งค่าสำหรับ {label}: {options}", "หรือ"),
    "zh": ("请为{label}选择一项：{options}。", "或"),
    "zh-Hant": ("請為{label}選擇一項：{options}。", "或"),
}
"""How a label is asked for, by the language of the table; elsewhere in English."""
_ASK_LETTER = "Answer {options}."
_ASK_SOME_LETTER = {
    "en": "Answer with a letter.",
    "id": "Jawab dengan satu huruf.",
    "ms": "Jawab dengan satu huruf.",
    "pt": "Responda com uma letra.",
    "es": "Responde con una letra.",
    "de": "Antworte mit einem Buchstaben.",
    "fr": "Réponds par une lettre.",
    "vi": "Trả lời bằng một chữ cái.",
    "fil": "Sumagot gamit ang isang titik.",
    "th": "ตอบด้วยตัวอักษรหนึ่งตัว",
    "zh": "请用一个字母作答。",
    "zh-Hant": "請用一個字母作答。",
}
"""The same where some rows have fewer options than others."""


def list_labels(columns: Sequence[Column]) -> list[tuple[Column, int]]:
    """Return the columns that could be labels, the best first, each with its points."""
    labels: list[tuple[Column, int]] = []
    for place, column in enumerate(columns):
        num_options = len(spellings(column))
        is_order = column.is_number and not column.is_boolean
        if (
            not 2 <= num_options <= MOST_OPTIONS
            or column.is_role
            or column.fill < HALF
            or column.total < _LEAST_ROWS_PER_OPTION * num_options
            or any(len(value) > _LONG_OPTION for value in column.counts)
            or (is_order and not (column.is_named("rating") or column.is_named("label")))
        ):
            continue
        points = 4 * column.is_named("label") + column.is_named("rating") - 3 * is_order
        points -= 3 * column.is_named("no_label") + 2 * column.is_named("title")
        points += 5 * is_key(column.name, column.counts)
        points -= 2 * column.is_named("suggested")  # a person's label stands beside a model's
        points -= 3 * (max(column.counts.values()) > MOSTLY * column.total)
        # A label often stands behind what it is about.
        points += column.fill >= MOSTLY and place == len(columns) - 1
        labels.append((column, points))
    return sorted(labels, key=lambda one: -one[1])


def is_choice(question: Column, answer: Column) -> bool:
    """Return whether a few answers, such as yes and no, are those of many questions."""
    is_few = len(question.counts) >= _LEAST_ROWS_PER_OPTION * len(spellings(answer))
    return is_few and (answer.is_boolean or not answer.is_number)


def spellings(label: Column) -> dict[str, list[str]]:
    """Return the labels, each with its spellings.

    Case, quotes, a full stop, signs that nobody sees and another composition of letters (`é` in one
    code point or in two) make no other label.
    """
    groups: dict[str, Counter[str]] = {}
    if label.share(_WHOLE) == 1:
        return {value.removesuffix(".0"): [value] for value in label.counts}
    for value, count in label.counts.items():
        if label.classes and value not in label.classes:
            continue  # -1, as `datasets` writes what has no label
        text = _label_text(label, value)
        visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
        folded = unicodedata.normalize("NFKC", visible).casefold()
        key = folded.rstrip(".,;: ") or folded
        groups.setdefault(key, Counter())[value] += count
    return {
        _label_text(label, group.most_common(1)[0][0]): sorted(group) for group in groups.values()
    }


def _label_text(label: Column, value: str) -> str:
    """Return what a value says without quotes: the name of its class, or the text in a list."""
    parts = written_value(value)
    formula = _FORMULA.fullmatch(value)
    text = formula[1] if formula else label.classes.get(value, value)
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], str):
        text = parts[0]
    return text.strip(_QUOTES).strip() or text


def choice(columns: Sequence[Column], label: Column, remarks: Sequence[str] = ()) -> Templates:
    """Write the templates of a choice between labels.

    Raises:
        DataError: all rows have one label, or nothing is left to ask about.
    """
    values_of = spellings(label)
    if len(values_of) < 2:
        count = len(values_of)
        raise DataError(f"the label {label.name} has {count} value: nothing to choose from")
    # Beside what people said, "label.suggestion" gives it away, and so may "label.responses.users".
    stem = _PARTS.sub("", label.name)
    columns = [c for c in columns if not (c.is_named("suggested") or c.name.startswith(f"{stem}."))]
    # Of a feed with a row a variant (Shopify), title and label are in the first row of a product.
    fills = {column.name: _fill_beside(column, label) for column in columns}
    full = [c for c in columns if fills[c.name] >= MOSTLY and len(c.counts) > 1]
    same = [column.name for column in full if _is_bijection(column, label)]
    numbers = [column.name for column in full if column.is_number and column.name not in same]
    texts = [column for column in full if column.name not in {*numbers, *same}]
    if not texts:  # what is blank in more rows than a few is better than nothing to ask about
        free = [c for c in columns if c.is_free_text and fills[c.name] >= HALF]
        most = max((fills[c.name] for c in free), default=0.0)
        texts = [c for c in free if fills[c.name] == most and c.name not in same]
    if not texts:
        raise DataError(
            f"no column is left to ask about, beside the label {label.name}. Name another: --label"
        )
    best = sorted(texts, key=lambda c: (not c.is_named("title"), not c.is_free_text))
    # In the order of the table, as a person reads it.
    names = [column.name for column in texts if column in best[:MOST_COLUMNS]]
    notes = [*remarks]
    if rest := len(columns) - len(full) + len(texts) - len(names):
        notes.append(f"Not in the prompt: columns that are mostly blank, constant or many: {rest}.")
    if same:
        notes.append(f"Not in the prompt, as it gives the label away: {listing(same, 3)}.")
    notes += [*(blanks(texts) if len(texts) == 1 else []), *_label_notes(label, values_of)]
    options_of = {value: option for option, values in values_of.items() for value in values}
    templates = _templates(label.name, options_of, sorted(values_of), names, notes)
    facets = {name: f"{{{name}}}" for name in numbers[:MOST_COLUMNS]}
    return replace(templates, fields=templates.fields | {"facets": facets})


# "AC", "A, C", "A and C"
_SOME_LETTERS = re.compile(r"[A-J](?:(?:[\s,;/&|+]|and)*[A-J])*")


def check_one_letter(
    name: str, templates: Templates, rows: Sequence[Row], key: Column | None
) -> None:
    """Refuse a key that names several options at once: letters together are no label.

    Args:
        name: of the source.
        templates: of a choice.
        rows: of the table.
        key: the column of its labels; None if somebody asked for it, or it has none.

    Raises:
        DataError: names the key.
    """
    if (
        key is None
        or templates.lettered
        or any(not _SOME_LETTERS.fullmatch(value) for value in key.counts)
    ):
        return
    count = sum(n for value, n in key.counts.items() if len(value) > 1)
    letters = {one for value in key.counts for one in value if one in LETTERS}
    options = next((one for one in list_options(rows) if key.name not in one), None)
    if count and options and letters <= {*LETTERS[: len(options)]}:
        raise DataError(
            f"{name}: {key.name} names several of {len(options)} options, {options[0]} and the "
            f"others, in {count:,} of {len(rows):,} rows, and no verifier reads a set of letters. "
            f"Keep the rows with one letter, or give --label {key.name} to ask for its texts"
        )


_LEAST_FLAGS = 3


def marked(columns: Sequence[Column], label: Column) -> list[str]:
    """Say that columns of 0 and 1 mark one of them in every row: together they are the label."""
    flags = [c for c in columns if {*c.counts} == {"0", "1"} and c.fill == 1]
    if label not in flags or len(flags) < _LEAST_FLAGS:
        return []
    if any(cells.count("1") != 1 for cells in zip(*(c.values for c in flags), strict=True)):
        return []
    names = listing([c.name for c in flags], 3)
    return [f"Of {names} every row has one with 1: write its name into a column, as the label."]


def with_options(templates: Templates, rows: Sequence[Row], label: str) -> Templates:
    """Ask a question with its list of options, of which no key is known.

    Args:
        templates: of a table.
        rows: of it.
        label: that was asked for, whatever the options; '' = none was.

    Raises:
        DataError: the answer is a label or a number, which can only name one of them.
    """
    if templates.lettered or templates.is_chat or label:
        return templates
    options = next((one for one in list_options(rows) if _LIST.fullmatch(stem_of(one))), ())
    texts = next((name for name in rows[0] if _ONE_TEXT.fullmatch(name.casefold())), "")
    answer = templates.label or templates.numbers
    if answer and (options or (texts and templates.numbers)):
        raise DataError(
            f"{answer} is to name one of {stem_of(options) if options else texts}, and does so by "
            "no letter, number or text that is known here. Write the options as a list (JSON) or "
            "in a column each, and the letter of the right one into a column"
        )
    lines = [f"{letter}: {{{path}}}" for letter, path in zip(LETTERS, options, strict=False)]
    if not options and texts:
        lines = [f"{{{texts}}}"]
    if answer or not lines or texts in templates.columns:
        return templates
    fields = templates.fields | {"prompt": "\n".join([str(templates.fields["prompt"]), *lines])}
    where = stem_of(options) or texts
    remark = f"No key of {where} is known: the answer is imitated, and not verified."
    return replace(templates, fields=fields, remarks=(*templates.remarks, remark))


def with_every_label(templates: Templates, rows: Sequence[Row], label: Column | None) -> Templates:
    """Let any label of a row be right, where the labels are a list with several in some rows.

    Args:
        templates: of a choice, or others, which stay as they are.
        rows: of the table.
        label: the column of the first labels of the lists.
    """
    path, _, place = templates.label.rpartition(".")
    lists = [parts_at(row, path) for row in rows] if place == "0" else []
    if label is None or all(len(parts) < 2 for parts in lists):
        return templates
    values, options = templates.values, templates.options
    if not templates.lettered:
        labels = {str(part).strip() for parts in lists for part in parts}
        names = {one: label.classes.get(one, one) for one in labels if not is_missing(one)}
        options = tuple(sorted({*names.values()}))
        values = {label.name: names} if label.classes else {}
    fields = templates.fields | {"answer": {"correct": f"{{{path}}}"}, "options": options}
    both = {path: dict(values[label.name])} if values else {}
    return replace(templates, fields=fields, options=options, values={**values, **both})


def _templates(
    key: str,
    options_of: Mapping[str, str],
    options: Sequence[str],
    names: Sequence[str],
    remarks: Sequence[str],
) -> Templates:
    """Write the templates whose answer is the option that a value of the column `key` means."""
    is_plain = all(value == option for value, option in options_of.items())
    fields: dict[str, object] = {
        "domain": Domain.CHOICE,
        "verifier": "choice",
        "answer": {"correct": [f"{{{key}}}"]},
        "options": tuple(options),
        "response": f"{{{key}}}",
    }
    return Templates(
        fields,
        tuple(names),
        key,
        options=tuple(options),
        values={} if is_plain else {key: dict(options_of)},
        remarks=tuple(remarks),
    )


def _fill_beside(column: Column, label: Column) -> float:
    """Return the share of the rows with a label that have a value of a column."""
    pairs = zip(column.values, label.values, strict=True)
    return sum(bool(value) for value, one in pairs if one) / label.total


def _is_bijection(column: Column, label: Column) -> bool:
    """True if a column says the same as the label in other words, such as its number."""
    pairs = {(a, b) for a, b in zip(column.values, label.values, strict=True) if a and b}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _label_notes(label: Column, values_of: Mapping[str, Sequence[str]]) -> list[str]:
    """Say what was made of labels, and which may be none."""
    notes: list[str] = []
    counts = {option: sum(map(label.counts.__getitem__, raw)) for option, raw in values_of.items()}
    if odd := [value for value in label.counts if label.classes and value not in label.classes]:
        notes.append(f"{with_rows(odd, label.counts)} is no class; they are left out.")
    is_counted = label.is_number and not label.counts.keys() <= {"-1", "0", "1"}
    if doubtful := [one for one in counts if is_doubtful(one) or (is_counted and one == "-1")]:
        notes.append(
            f"{with_rows(doubtful, counts)} may stand for no label: remove it from options, and "
            "such rows are left out."
        )
    rare = [option for option, count in counts.items() if count == 1]
    if rare and label.total > _RARE:
        notes.append(
            f"Labels of a single row: {listing(rare, 3)}. Is that row a header or a note? Remove "
            "them from options, and such rows are left out."
        )
    if label.is_number and not label.classes and not label.is_named("rating"):
        notes.append(
            f"{label.name} has numbers, and nothing says what they stand for: write `values` and "
            "`options` with their names, or a model learns the numbers."
        )
    if label.classes:
        notes.append(f"The file says what the numbers of {label.name} stand for.")
    if num_merged := sum(map(len, values_of.values())) - len(values_of):
        notes.append(
            "Other spellings of labels (case, quotes, code points) are one with theirs: "
            f"{num_merged}."
        )
    return notes


def examination(rows: Sequence[Row], columns: Sequence[Column]) -> Templates | None:
    """Return the templates of a question with its options; None if the table has none."""
    exam = find_options(rows)
    if exam is None:
        return None
    of_exam = {exam.key, *exam.options}
    free = [c for c in columns if c.name not in of_exam and not is_beside(c.name, exam.options)]
    named = [
        c
        for c in free
        if (c.is_question or c.is_named("context")) and not (c.is_number or c.is_form)
    ]
    if not any(c.is_free_text for c in named):  # XCOPA's question is "cause" or "effect"
        named = [c for c in free if c in named or c.is_free_text]
    names = [c.name for c in without_repeats(named)]
    if not names:
        return None
    letters = LETTERS[: len(exam.options)]
    remarks = [f"{exam.key} names the right one of {len(letters)} options."]
    if any(value.startswith("{") for value in exam.values):
        remarks = [f"{exam.key} repeats the right one of {len(letters)} options."]
    if num_fewer := sum(num_options(row, exam.options) < len(letters) for row in rows):
        remarks.append(
            f"{num_fewer:,} of {len(rows):,} rows have fewer options, and are asked with these."
        )
    remarks += [
        f"{name} names another one in {count:,} of the first rows: is {exam.key} the right key?"
        for name, count in exam.rivals.items()
    ]
    if exam.only and len(rows) > _RARE:
        remarks.append(
            f"The right one is {exam.only} in all rows, which gives it away: shuffle the options."
        )
    templates = _templates(exam.key, exam.values, letters, names[:MOST_COLUMNS], remarks)
    return replace(templates, lettered=exam.options, is_even=not num_fewer)


def prompt_of_choice(templates: Templates, tags: Tags, columns: Mapping[str, Column]) -> str:
    """Write the prompt of a choice, in the table's language; '' if the templates have one."""
    if not templates.options:
        return ""
    names, options = templates.columns, templates.options
    texts = " ".join(value for name in names for value in columns[name].values[:50])
    key = _language_to_ask_in(main_language(tags, columns), texts)
    form, joint = _ASK[key]
    comma, space = ("、", "") if key.startswith("zh") else (", ", " ")
    text = space.join((comma.join(options[:-1]), joint, options[-1]))
    if templates.lettered:
        form = _ASK_LETTER if key == "en" else form
        if not templates.is_even:
            form = _ASK_SOME_LETTER[key]
        pairs = zip(options, templates.lettered, strict=True)
        lines = [*(f"{{{name}}}" for name in names), *(f"{a}: {{{b}}}" for a, b in pairs)]
        return "\n".join([*lines, _escaped(form.format(label=templates.label, options=text))])
    # "g:product_type", as feeds of marketplaces name it.
    label = re.sub(r"^\w{1,3}:", "", templates.label.strip())
    label = _PARTS.sub("", label).replace("_", " ")
    lines = [_escaped(form.format(label=label, options=text))]
    return "\n".join([*lines, *(f"{_escaped(name.strip())}: {{{name}}}" for name in names)])


def _language_to_ask_in(tag: str, texts: str) -> str:
    """Return the key of the question in a language: "zh-Hant" for zh-TW, "en" if there is none."""
    key = primary(tag)
    # "zh-Hant", "zh-TW"; a bare "zh" does not say which characters the texts are written in.
    if key == "zh" and (re.search("Hant|TW|HK|MO", tag) or traditional(texts) > simplified(texts)):
        return "zh-Hant"
    return key if key in _ASK else "en"


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
