"""The mapping of a table: which kind of task it is, and what a person has to know about the guess.

Every guess that another one could beat is a remark, so that a person sees what is doubtful.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from data_schemas.mappings import ColumnMapping
from data_schemas.pass_rates import ANNOTATOR
from data_schemas.rows import Parent
from tasks.curation.guessing import answers, choices
from tasks.curation.guessing.columns import (
    MOST_OPTIONS,
    MOSTLY,
    Column,
    Row,
    has_braces,
    list_columns,
    listing,
)
from tasks.curation.guessing.languages import is_language, language_of
from tasks.curation.guessing.separators import check_separators
from tasks.curation.guessing.templates import (
    Templates,
    check_one_row_each,
    more_parts,
    not_used,
    unused,
)
from tasks.errors import DataError

_SURE_LEAD = 2
"""Points by which a label has to lead to be beyond doubt."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A mapping, and what a person has to know about it."""

    mapping: ColumnMapping
    remarks: tuple[str, ...] = ()
    """What is doubtful, left out or assumed; one sentence each."""
    label: str = ""
    """The column whose values are the options."""


def guess_mapping(
    name: str,
    rows: Sequence[Row],
    label: str = "",
    language: str = "",
    classes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Guess:
    """Draft the mapping of a table.

    A chat becomes demonstrations, a column of few values a choice, a question with a number as its
    answer a problem of maths, and any other pair of texts demonstrations.

    Args:
        name: of the source.
        rows: of the table, all of them if labels are rare.
        label: the column whose values are the options; '' = guess.
        language: a tag, or the column that has it; '' = guess.
        classes: column -> what its numbers from 0 stand for, where the file says it.

    Raises:
        DataError: there is no row, no column that could be an answer, or not the one that is named.
    """
    if not rows:
        raise DataError(f"{name} has no row")
    columns = list_columns(rows, classes)
    by_name = {column.name: column for column in columns}
    braced = [one for one in dict.fromkeys(one for row in rows for one in row) if has_braces(one)]
    if label in braced:
        raise DataError(f"{name}: no template can name {label!r}, as it has braces. Rename it")
    if label and label not in by_name:
        raise DataError(f"{name} has no column {label!r}; it has {listing(list(by_name))}")
    sources = [c for c in columns if is_language(c) or c.name == language]
    others = [c for c in columns if c.name not in (label, language)]
    answers.check_not_turns(name, others, rows)
    annotators = [c for c in others if c.is_named("annotator")]
    systems = [c for c in others if c.is_called(answers.SYSTEM)]
    if any("." not in c.name for c in systems):  # "system", and not "system.id"
        systems = [c for c in systems if "." not in c.name]
    thoughts = [
        c for c in others if c.is_called(answers.THOUGHTS) and c.is_free_text and c.fill >= MOSTLY
    ]
    beside = (*sources, *annotators, *systems, *thoughts)
    rest = [c for c in columns if c not in beside and not c.is_identity]
    templates = None if label else answers.chat(rows, rest) or choices.examination(rows, rest)
    blank = [one for one in rows[0] if not any(row.get(one) not in ("", None) for row in rows)]
    templates = templates or _choose(name, rest, by_name.get(label), list(by_name), blank)
    answers.check_answers(name, templates, columns, rows, label)
    templates = choices.with_options(templates, rows, label)
    choices.check_one_letter(name, templates, rows, by_name.get("" if label else templates.label))
    templates = choices.with_every_label(templates, rows, by_name.get(templates.label))
    templates = answers.with_system_and_thought(templates, systems, thoughts)
    texts = templates.texts or [
        "\n".join(cells)
        for cells in zip(*(by_name[one].values for one in templates.columns), strict=True)
    ]
    tags, values, notes = language_of(columns, sources, texts, language)
    if templates.numbers:
        check_separators(by_name[templates.numbers], tags, notes)
    fields = {"name": name, "language": tags, "parent": Parent.COMMERCE} | templates.fields
    if prompt := choices.prompt_of_choice(templates, tags, by_name):
        fields["prompt"] = prompt
    mapping = ColumnMapping.model_validate(fields | {"values": {**templates.values, **values}})
    remarks = [*templates.remarks, *notes, *answers.beside_answers(rest, templates)]
    left = unused(mapping, [*([] if templates.options else rest), *systems, *thoughts])
    remarks += not_used(left, rows)
    if braced:
        remarks.append(f"Not used, as no template can name what has braces: {listing(braced, 3)}.")
    check_one_row_each(name, mapping, rows)
    remarks += more_parts(mapping, rows)
    if annotators:
        column = annotators[0].name
        facets = {ANNOTATOR: f"{{{column}}}"} | mapping.facets
        mapping = mapping.model_copy(update={"facets": facets})
        remarks.append(f"Who labelled a row, by {column}, is kept as facet {ANNOTATOR}.")
    return Guess(mapping, tuple(remarks), templates.label)


def _choose(
    name: str,
    columns: Sequence[Column],
    label: Column | None,
    names: Sequence[str],
    blank: Sequence[str],
) -> Templates:
    """Choose between a label, a number and a pair of texts.

    Args:
        name: of the source.
        columns: with values.
        label: the one whose values are the options; None = guess.
        names: of all columns with values.
        blank: names of those without.

    Raises:
        DataError: there is none of these.
    """
    if label is not None:
        return choices.choice([c for c in columns if c is not label], label)
    labels = choices.list_labels(columns)
    if pair := answers.find_pair(columns, labels):
        if any(c is pair[1] for c, _ in labels) and choices.is_choice(*pair):
            about = [c for c in columns if c is pair[0] or c.is_named("context")]
            return choices.choice(about, pair[1], [_label_remark([(pair[1], _SURE_LEAD)])])
        likely = [c.name for c, points in labels[:1] if points > 0]
        return answers.pair(
            *pair, columns, [f"If {one} is what to answer: --label {one}." for one in likely]
        )
    if labels:
        best = labels[0][0]
        notes = [_label_remark(labels), *choices.marked(columns, best)]
        return choices.choice([c for c in columns if c is not best], best, notes)
    raise DataError(
        f"{name} has the columns {listing(names)}, and none of them is an answer: a label of at "
        f"most {MOST_OPTIONS} values, answer, response, output, or messages. Name one with "
        "--label, or write the mapping by hand (tasks/curation/README.md)"
        f"{_without_golds(columns, blank)}"
    )


def _without_golds(columns: Sequence[Column], blank: Sequence[str]) -> str:
    """Say which column may have had the answers of a test split, which is published without."""
    hidden = [c.name for c in columns if c.counts.keys() == {"-1"}]
    golds = [name for name in blank if Column(name, (), {}).is_named("answer")]
    golds += [name for name in blank if Column(name, (), {}).is_named("label")]
    if not (hidden or golds):
        return ""
    what = f"{hidden[0]} is -1" if hidden else f"{golds[0]} is blank"
    return f". {what} in all rows: a test split without its answers?"


def _label_remark(labels: Sequence[tuple[Column, int]]) -> str:
    """Say which column is taken for the label, the first, and what could be it instead."""
    best, points = labels[0]
    remark = f"The label is {best.name} ({len(choices.spellings(best))} values)"
    if best.is_named("suggested"):
        remark += ", which a model suggests, by its name"
    rivals = [column.name for column, other in labels[1:] if points - other < _SURE_LEAD]
    if rivals:
        return f"{remark}; {listing(rivals, 3)} could be it, too: --label."
    if points <= 0:
        return f"{remark}, for want of a better one: is that what to ask for?"
    if len(labels) > 1:
        return f"{remark}; next comes {labels[1][0].name}: --label."
    return f"{remark}."
