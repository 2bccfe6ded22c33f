"""Questions with their answers: pairs of columns, chats, and what stands beside them."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from data_schemas.rows import Domain
from tasks.curation.adapters.chats import Chat, read_chat, turns_of
from tasks.curation.guessing.columns import (
    HALF,
    MOSTLY,
    NUMBERED,
    Column,
    Row,
    without_repeats,
)
from tasks.curation.guessing.templates import MOST_COLUMNS, Templates, blanks
from tasks.curation.lettered import list_options, parts_at
from tasks.curation.readers.written_values import written_value
from tasks.curation.rows import BadRow
from tasks.errors import DataError

# ruff: noqa: RUF001 - other scripts are the point

# Whole names of columns: an `operating_system` is no system message.
SYSTEM = re.compile(
    r"(?:system(?:_?prompt|_?message|_?instruction)?|sistema?|系[統统])(?:\.(?:parts|content|text|\d+))*"
)
"""A column of system messages: "system_prompt", "systemInstruction.parts.0.text" (Gemini)."""
THOUGHTS = re.compile("reasoning(?:_content)?|thinking|thoughts?|chain_of_thought|cot|rationale")
"""A column of thoughts in front of the answers: "reasoning_content"."""
# "is_correct", "kto_tag" (KTO): if it holds booleans, it says whether an answer is good.
_VERDICT = re.compile(
    r"label|kto_tag|(?:is_)?(?:correct|right|desirable|accepted|approved|chosen|preferred)|"
    "thumbs_?up"
)
# "#### 10" at the end of a text (GSM8K), "\\boxed{5}" (MATH)
_RESULT = re.compile(r"####\s*\S*\d\S*\s*$|\\boxed\s*\{")
# "gradingResult.pass", "success" (promptfoo); of a label that people gave it says nothing.
_SUCCESS = re.compile("success|pass(?:ed)?")
# "input_output.0.output", "public_tests.output.0": what a program has to print
_TESTS = re.compile(
    r"(?:input_output|(?:\w+_)?(?:tests?|cases|examples)(?:_\w+)?)\..*", re.IGNORECASE
)
_OPTIONS = re.compile("(?:answer_)?(?:options?|choices?)|pilihan|opsi|opções|opciones|選項|选项")
_RULED = frozenset(("accept", "reject", "ignore"))
"""What annotators say of a label (Prodigy)."""


def find_pair(
    columns: Sequence[Column], labels: Sequence[tuple[Column, int]]
) -> tuple[Column, Column] | None:
    """Return the columns of a question and its answer; None if a label is a better guess.

    Names decide; then question marks; then the order of two texts.
    """
    few = {column.name for column, points in labels if points > 0}
    # "sol1" and "sol2" (PIQA) are options, whose key is not there.
    numbered = {one for many in list_options([{c.name: "-" for c in columns}]) for one in many}
    free = [
        column
        for column in columns
        if column.is_free_text
        and column.fill >= HALF
        and not column.is_called(_OPTIONS)
        and not _is_written(column)
    ]
    # "Problem Number" (AIME) asks nothing, unless there are numbers alone.
    named = [c for c in columns if c.is_question and c.fill >= HALF and not (c.is_number and free)]
    answers = list_answers([c for c in columns if c not in named])
    first = (named or free)[:1]
    questions = [
        c for c in free if sum(v.rstrip()[-1] in "?？" for v in c.counts) >= HALF * len(c.counts)
    ]
    if first and answers and answers[0].name not in few and first[0] is not answers[0]:
        # Numbers of classes beside a text that asks nothing: `target` of 0 and 4.
        is_asked = first[0] in named or first[0] in questions
        if is_asked or not (answers[0].is_number and answers[0].is_coded):
            return first[0], answers[0]
    # What a question is about answers it not, and neither does one of several parts.
    free = [c for c in free if not (c.is_part or c.is_named("context") or c.name in numbered)]
    if questions and not few:
        others = [column for column in free if column is not questions[0]]
        numbers = [
            column
            for column in columns
            if column.is_number
            and column.fill >= MOSTLY
            and not (column.is_part or column.is_named("label") or column.is_named("measure"))
        ]
        if others or len(numbers) == 1:
            return questions[0], (others or numbers)[0]
    # The summary of a review is no question, and its text no answer: stars are the label.
    is_rated = any(c.is_named("rating") and c.is_number for c in columns)
    is_pair = len(free) == 2 and not any(column.is_named("title") for column in free)
    # "sentence1" and "sentence2" are compared.
    is_pair = is_pair and len({re.sub(r"[_ ]?[12ab]$", "", column.name) for column in free}) == 2
    if is_pair and not few and not is_rated:
        return free[0], free[1]
    return None


def list_answers(columns: Sequence[Column]) -> list[Column]:
    """Return columns that are called an answer, one of each object: first what verifies the others.

    That is an amount beside a `solution`, what is expected beside what a model answered (RAGAS,
    DeepEval), and an `answer` beside an `answer_type`; but of a text and where it starts (SQuAD)
    the text, and of a turn its content and not its role, which is the same in all rows.
    """
    named = [
        c
        for c in columns
        if c.is_answer
        and c.fill >= HALF
        and not {*map(str.casefold, c.counts)} <= _RULED
        and not (c.is_part and c.is_called(_TESTS))
    ]
    firsts: dict[str, Column] = {}
    for column in sorted(
        named, key=lambda c: (len(c.counts) == 1, c.is_number, c.is_named("alias"))
    ):
        firsts.setdefault(column.name.partition(".")[0], column)
    # Ragas has a reference beside a response; beside an answer it may be a source.
    is_reference = not any(c.is_named("gold") or "answer" in c.name.casefold() for c in named)
    return sorted(
        (c for c in named if c in firsts.values()),
        key=lambda c: (
            not _is_gold(c),
            not (c.is_named("gold") or (is_reference and c.is_named("reference"))),
            not c.is_named("answer", at_end=True),
        ),
    )


def _is_gold(column: Column) -> bool:
    """True for amounts, and not for the text that works them out."""
    return column.is_amount and not _has_solutions(column)


def _has_solutions(column: Column) -> bool:
    """True if half of the texts or more work out a result, which stands in them."""
    matches = ((text, _RESULT.search(text), n) for text, n in column.counts.items())
    count = sum(
        n for text, match, n in matches if match and re.search(r"\w", text[: match.start()])
    )
    return count >= HALF * max(1, column.total)


def _is_written(column: Column) -> bool:
    """True if the texts are lists or objects, such as the tests of a program."""
    return all(isinstance(written_value(text), list | dict) for text in column.counts)


def pair(
    question: Column, answer: Column, columns: Sequence[Column] = (), remarks: Sequence[str] = ()
) -> Templates:
    """Write the templates of a question and its answer, with what the question is about.

    An amount is checked, and another answer imitated.
    """
    about = [
        c
        for c in columns
        if c.is_named("context")
        and c not in (question, answer)
        and not (c.is_form or (c.is_part and c.is_called(_TESTS)))
    ]
    about = [c.name for c in without_repeats([question, *about]) if c is not question]
    names = (question.name, *about[:MOST_COLUMNS])
    remarks = (*remarks, *blanks([answer] if about else [question, answer]))
    fields: dict[str, object] = {
        "domain": Domain.GENERAL,
        "prompt": "\n".join(f"{{{name}}}" for name in names),
        "response": f"{{{answer.name}}}",
    }
    if answer.is_named("model") and not answer.is_named("gold"):  # reward_model.ground_truth
        words = f"{answer.name} is what a model answered, by its name"
        remarks = (*remarks, f"{words}: nothing here says that it is right.")
    if not _is_gold(answer):
        if answer.share(NUMBERED) >= HALF:
            words = f"Many values of {answer.name} are numbers, which nothing checks as they stand"
            remarks = (*remarks, f"{words}: verifier final_answer would.")
        if _has_solutions(answer):
            words = f"{answer.name} ends in a result, which no template takes out of its text"
            remarks = (*remarks, f"{words}: a column of the results alone would be verified.")
        return Templates(fields, names, remarks=remarks)
    solutions = [c for c in columns if c.is_answer and c.is_free_text and c is not answer]
    has_solution = bool(solutions) and solutions[0].fill >= MOSTLY
    fields |= {
        "domain": Domain.MATHS,
        "verifier": "final_answer",
        "answer": {"value": f"{{{answer.name}}}"},
        "response": f"{{{solutions[0].name}}}" if has_solution else f"Answer: {{{answer.name}}}",
    }
    return Templates(fields, names, numbers=answer.name, remarks=remarks)


# "helpfulness" (HelpSteer2), "quality_score", "reward"
_RATES = re.compile(
    r"(?:.*_)?(?:helpfulness|correctness|quality|usefulness|score|rating|ratings|reward|rank)"
)
# "distractor1" (SciQ), "incorrect_answers.0" (OpenTDB), "wrong_answer_2"
_WRONG = re.compile(r"(?:distractors?|(?:best_)?(?:incorrect|wrong)(?:_answers?)?)(?:[_.]?\d+)?")


def beside_answers(columns: Sequence[Column], templates: Templates) -> list[str]:
    """Say of answers that are imitated what columns beside them tell, which no template uses."""
    if "verifier" in templates.fields:
        return []
    remarks: list[str] = []
    rated = next((c for c in columns if c.is_number and c.is_called(_RATES)), None)
    if rated is not None and len(rated.counts) > 1:
        remarks.append(
            f"{rated.name} rates the answers, and all of them are learned: keep the best rows."
        )
    if wrong := [c.name for c in columns if c.is_called(_WRONG)]:
        remarks.append(
            f"{wrong[0]} has a wrong answer. To have choices that are verified, write a list of "
            "options, in an order that does not give the right one away, and its letter."
        )
    return remarks


def chat(rows: Sequence[Row], columns: Sequence[Column]) -> Templates | None:
    """Return the templates of a chat, a list of messages, all of which are read.

    A chat that ends before the response (verl, TRL) is a question, whose answer a column has; and
    so is a chat of one question and its response beside an amount (OpenR1).
    """
    for name, cells in _cells_of(rows).items():
        if not _holds_chats(cells) or set(name) & set("{}"):
            continue
        chats = [_read(cell, name) for cell in cells]
        turns = [chat.messages if chat else [] for chat in chats]
        texts = tuple(map(_question_in, turns))
        answers = list_answers([c for c in columns if not c.name.startswith(f"{name}.")])
        questions = Column(name, texts, Counter(filter(None, texts)))
        if answers and not any(chat and chat.response for chat in chats):
            templates = pair(questions, answers[0])
        elif answers and _is_gold(answers[0]) and all(map(_is_one_question, turns)):
            templates = pair(questions, answers[0])
            fields = templates.fields | {"response": f"{{{name}}}"}
            templates = replace(templates, fields=fields, is_chat=True)
        else:
            fields = {"domain": Domain.GENERAL, "prompt": f"{{{name}}}", "response": f"{{{name}}}"}
            templates = Templates(fields, is_chat=True)
        has_system = any(one[:1] and one[0].get("role") == "system" for one in turns)
        return replace(templates, texts=texts, has_system=has_system)
    return None


def _cells_of(rows: Sequence[Row]) -> dict[str, Sequence[object]]:
    """Return the cells of every column, and the lists in its objects: `input.messages` (Langfuse).

    Lists that only some rows have are left out: the others would be lost.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    cells: dict[str, Sequence[object]] = {name: [row.get(name) for row in rows] for name in names}
    for name in names:
        objects = [*map(_object, cells[name])]
        if len(rows) - objects.count(None) < MOSTLY * len(rows):
            continue
        for key in dict.fromkeys(key for one in objects if one for key in one):
            parts = [one.get(key) if one else None for one in objects]
            if sum(isinstance(part, list) for part in parts) >= MOSTLY * len(rows):
                cells[f"{name}.{key}"] = parts
    return cells


def _object(cell: object) -> Row | None:
    """Return the object that a cell is, or writes as text; None if it is none."""
    value = written_value(cell) if isinstance(cell, str) and cell[:1] == "{" else cell
    return cast("Row", value) if isinstance(value, Mapping) else None


def _is_one_question(turns: Sequence[Mapping[str, object]]) -> bool:
    return sum(one.get("role") != "system" for one in turns) <= 1


def _holds_chats(cells: Sequence[object]) -> bool:
    """True if the first cell of a column is a list of messages."""
    cell = next(filter(None, cells), None)
    turns = turns_of(cell)
    if not isinstance(turns, list) or not turns or not isinstance(turns[0], Mapping):
        return False
    return bool({"role", "from"} & cast("Mapping[str, object]", turns[0]).keys())


def _read(cell: object, column: str) -> Chat | None:
    """Read a chat; None if it cannot be read."""
    try:
        return read_chat(turns_of(cell), column)
    except (BadRow, ValueError):
        return None


def _question_in(turns: Sequence[Mapping[str, object]]) -> str:
    """Return what turns say without the system message."""
    return "\n".join(str(one.get("content", "")) for one in turns if one.get("role") != "system")


def with_system_and_thought(
    templates: Templates, systems: Sequence[Column], thoughts: Sequence[Column]
) -> Templates:
    """Add the system message and the thought that columns of a table have, if it has them."""
    fields = dict(templates.fields)
    if systems and not templates.has_system:
        fields["system"] = f"{{{systems[0].name}}}"
    # The response of a chat is its last turn, with a thought of its own.
    if thoughts and not templates.is_chat:
        fields["response"] = f"<think>{{{thoughts[0].name}}}</think>{fields['response']}"
    return replace(templates, fields=fields)


def check_not_turns(name: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Refuse a table with a turn or a tree of turns in each row: no row has a question and its
    answer, or it has many (OASST).

    Raises:
        DataError: names the column that says who speaks, or the replies.
    """
    form = 'a chat a row: {"messages": [{"role": ..., "content": ...}, ...]}'
    for top, cell in rows[0].items():
        if isinstance(cell, Mapping) and isinstance(cast("Row", cell).get("replies"), list):
            raise DataError(
                f"{name}: {top}.replies has the turns of a tree. Write its best branch as {form}"
            )
    for column in columns:
        if column.is_role and len(column.counts) > 1 and "." not in column.name:
            raise DataError(
                f"{name}: {column.name} says who speaks, so that a row is a turn. Write {form}"
            )


def check_answers(
    name: str, templates: Templates, columns: Sequence[Column], rows: Sequence[Row], label: str
) -> None:
    """Refuse what is beside answers or among several of them and would be learned as right.

    Args:
        name: of the source.
        templates: of it.
        columns: of it.
        rows: of it.
        label: that was asked for; '' = none was.

    Raises:
        DataError: names the column.
    """
    check_not_judged(name, columns, templates)
    check_not_ranked(name, templates, rows)
    if not label:
        check_not_compared(name, templates, rows)
    check_one_gold(name, templates, rows)


_RANKED = frozenset(
    ("model", "rank", "score", "rating", "ratings", "overall_score", "votes", "upvotes", "accepted")
)
"""What stands beside each of several answers (UltraFeedback, Nectar)."""


def check_not_ranked(name: str, templates: Templates, rows: Sequence[Row]) -> None:
    """Refuse to imitate the first of several answers, of which models gave better and worse ones.

    Raises:
        DataError: names the list.
    """
    column = str(templates.fields["response"]).strip("{}")
    path, _, key = column.rpartition(".")
    stem, _, place = path.rpartition(".")
    if not key or not place.isdecimal():
        return
    for parts in (parts_at(row, stem) for row in rows):
        if len(parts) > 1 and all(isinstance(one, Mapping) and _RANKED & {*one} for one in parts):
            raise DataError(
                f"{name}: {stem} has several answers of a task, of which {column} is the first. "
                "Write the best one into a column, or two of them (chosen, rejected), which train "
                "a judge"
            )


# "choice" (TL;DR comparisons), "preferred", "winner": the number of one of several answers
_PREFERRED = re.compile("choice|prefer(?:red|ence)|winner|best|better(?:_id)?|chosen")


def check_not_compared(name: str, templates: Templates, rows: Sequence[Row]) -> None:
    """Refuse to ask which of several answers is preferred where the prompt has the first alone.

    Raises:
        DataError: names the list.
    """
    key = Column(templates.label, (), {})
    if not templates.label or templates.lettered or not key.is_called(_PREFERRED):
        return
    for column in templates.columns:
        path, _, inner = column.rpartition(".")
        stem, _, place = path.rpartition(".")
        several = [parts for row in rows if len(parts := parts_at(row, stem)) > 1]
        if inner and place == "0" and len(several) >= MOSTLY * len(rows):
            raise DataError(
                f"{name}: {stem} has several answers of a task, of which {templates.label} names "
                "one. Write two of them into columns (chosen, rejected), which train a judge"
            )


def check_one_gold(name: str, templates: Templates, rows: Sequence[Row]) -> None:
    """Refuse numbers of which a row has several, as roots: the first alone would be right.

    Raises:
        DataError: names the list.
    """
    path, _, place = templates.numbers.rpartition(".")
    count = sum(len(parts_at(row, path)) > 1 for row in rows) if place == "0" else 0
    if count > (1 - MOSTLY) * len(rows):
        raise DataError(
            f"{name}: {path} has several golds in {count:,} of {len(rows):,} rows, of which the "
            "first alone would be right. Write them as one text (2, -2), or keep the rows with one"
        )


def check_not_judged(name: str, columns: Sequence[Column], templates: Templates) -> None:
    """Refuse answers of which a column says that some are wrong: all would be learned.

    Raises:
        DataError: names the column.
    """
    for column in columns:
        values = {value.casefold() for value in column.counts}
        is_verdict = column.is_called(_VERDICT) or (
            not templates.options and _SUCCESS.fullmatch(column.name.rpartition(".")[2])
        )
        # A label is asked for, and judges nothing; where all are accepted, all are learned.
        is_ruling = values <= _RULED and values != {"accept"}
        if column.name != templates.label and ((column.is_boolean and is_verdict) or is_ruling):
            raise DataError(
                f"{name}: {column.name} says of each row whether its answer is right or wanted, "
                "and answers that are not would be learned, too. Keep the rows that are, or give "
                f"--label {column.name} to ask for it"
            )
