"""Adapters for instructions, rows in our schema and sample worlds."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from data_schemas.rows import Demonstration, Domain, Message, Parent, Problem, Role
from tasks.curation import sample_world
from tasks.curation.adapters.chats import read_chat
from tasks.curation.cleaning.thoughts import as_response, thought_of
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.store.files import canonical_json

_REASONING = (Domain.MATHS, Domain.CODE, Domain.INSTRUCTION)
"""Domains whose demonstrations teach the reasoning parent, unless a row says otherwise."""
COMPARISON = "comparison"
"""Reason for which a row is refused that compares answers."""
_PREFERENCES = (("chosen", "rejected"), ("preferred_output", "non_preferred_output"))
"""Names of most trainers, and of OpenAI's fine-tuning."""
# "response1", "output_2", "answer_b", "completion_j": PandaLM, LLMBar, arenas, StackExchange pairs.
_ONE_OF_TWO = re.compile(r"((?:answer|completion|generation|output|reply|response)_?)([0-9a-k])")
_PAIRS = ("ab", "01", "12", "jk")
"""How the two are told apart."""
_M_IFEVAL_LANGUAGES = ("es", "fr", "ja")


def ifeval(row: RawRow) -> list[Item]:
    """Read an IFEval row: a prompt with constraints that a program can check."""
    return _instructions(row, "ifeval", "en", "")


def m_ifeval(row: RawRow) -> list[Item]:
    """Read an M-IFEval row; the prefix of its instruction ids is the language.

    A row is refused unless all ids have the same one of the three languages.
    """
    languages = {str(name).partition(":")[0] for name in row.items("instruction_id_list")}
    language = languages.pop()
    if languages or language not in _M_IFEVAL_LANGUAGES:
        raise BadRow(
            "bad_language", f"'instruction_id_list' starts with {sorted({*languages, language})}"
        )
    return _instructions(row, "m_ifeval", language, f"{language}-")


def _instructions(row: RawRow, source: str, language: str, prefix: str) -> list[Item]:
    prompt = row.text("prompt")
    key = row.fields.get("key")
    arguments = row.items("kwargs")
    names = row.items("instruction_id_list")
    if len(arguments) != len(names) or not all(isinstance(entry, dict) for entry in arguments):
        raise BadRow("bad_gold", f"{len(names)} instructions with {len(arguments)} kwargs")
    answer = {
        "instruction_id_list": names,
        # Parquet copies of the set fill absent arguments with nulls.
        "kwargs": [
            {name: value for name, value in entry.items() if value is not None}
            for entry in arguments
            if isinstance(entry, dict)
        ],
    }
    problem = Problem(
        id=f"{source}/{row.key if key is None else f'{prefix}{key}'}",
        domain=Domain.INSTRUCTION,
        language=language,
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="instruction_rules",
        answer=canonical_json(answer).decode(),
        source=source,
        source_row=row.source_row,
    )
    return [Item(problem, prompt)]


def generated(source: str, about: str) -> Callable[[RawRow], list[Item]]:
    """Make the adapter of a generated source; `about` is what `eachprompt data` says of it."""

    def read(row: RawRow) -> list[Item]:
        return problem_or_demonstration(row, source)

    read.__doc__ = f"Read a row of {about}, as `prompt_jsonl`."
    return read


def problem_or_demonstration(row: RawRow, source: str) -> list[Item]:
    """Read a row; what a demonstration answers verifies it and is no problem."""
    items = prompt_jsonl(row, source)
    return items if len(items) == 1 else [item for item in items if item.answers]


def prompt_jsonl(row: RawRow, source: str = "prompt_jsonl") -> list[Item]:
    """Read a row that has the fields of Problem, of Demonstration, or of both.

    `prompt` may stand for `messages` with one turn of the user, `answer` may be a JSON object, and
    `reasoning` is the thought in front of `response`. A last turn of the assistant is the response;
    `conversations` with `from` and `value` (ShareGPT) are messages: what their turns may have is in
    `chats`. `parent` may be left out. With an answer, the response is verified. Cells of a CSV file
    are text: an empty one counts as missing, and `messages` is JSON. `source` and `source_row` are
    always overwritten: a row cannot declare its own origin. Two answers of one task are refused
    with the name of what they train.
    """
    if compared(row.fields):
        raise BadRow(COMPARISON, "two answers of one task train a judge: eachprompt judge --files")
    fields = {name: value for name, value in row.fields.items() if value not in ("", None)}
    key = fields.get("id", row.key)
    if isinstance(fields.get("prompt"), str):
        fields["prompt"] = [{"role": "user", "content": fields["prompt"]}]
    _split_chat(fields)
    fields |= {
        "id": key if str(key).startswith(f"{source}/") else f"{source}/{key}",
        "source": source,
        "source_row": row.source_row,
    }
    items: list[Item] = []
    problem: Problem | None = None
    response_fields = {name: fields.pop(name) for name in _SHOWN if name in fields}
    if not response_fields or "verifier" in fields or "answer" in fields:
        answer = row.gold(fields.get("answer"))
        if not isinstance(answer, str):
            fields["answer"] = canonical_json(answer).decode()
        problem = Problem.model_validate(fields)
        items.append(Item(problem, problem.prompt_text))
    if response_fields:
        question_fields = {name: value for name, value in fields.items() if name not in _VERIFIED}
        demonstration = Demonstration.model_validate(
            question_fields | _response(response_fields, fields.get("domain"))
        )
        items.append(Item(demonstration, demonstration.prompt_text, answers=problem))
    return items


def compared(fields: Iterable[str]) -> str:
    """Name the columns of two answers of one task; '' if there are none, or more than two."""
    names = {name.casefold(): name for name in fields}
    for preference in _PREFERENCES:
        if all(name in names for name in preference):
            return " and ".join(names[name] for name in preference)
    marks: dict[str, set[str]] = {}
    for name in names:
        if match := _ONE_OF_TWO.fullmatch(name):
            marks.setdefault(match[1], set()).add(match[2])
    pair = next((one for one in _PAIRS if {*one} in marks.values()), "")
    stem = next((stem for stem, ends in marks.items() if ends == {*pair}), "")
    return " and ".join(names[f"{stem}{mark}"] for mark in pair)


def _split_chat(fields: dict[str, object]) -> None:
    """Read the turns of a chat in place; a last turn of the assistant becomes the response."""
    columns = [name for name in _CHATS if name in fields]
    if not columns:
        raise BadRow("missing_field", f"none of {', '.join(_CHATS)} is there")
    if len(columns) > 1:
        raise BadRow("two_chats", f"{' and '.join(columns)} are both there; keep one")
    name = columns[0]
    turns = fields.pop(name)
    chat = read_chat(turns, name)
    if chat is None:
        fields["messages"] = turns
        return
    fields["messages"] = chat.messages
    for field, value in (("response", chat.response), ("reasoning", chat.thought)):
        if value is None:
            continue
        if fields.setdefault(field, value) != value:
            raise BadRow("two_responses", f"{field!r} and the last turn of {name!r} differ")


_CHATS = ("messages", "conversations", "prompt")
"""Columns of a chat; a prompt may be one turn's text, or turns (TRL)."""
_SHOWN = ("response", "reasoning", "parent")
_VERIFIED = ("verifier", "answer", "level")


def _response(fields: dict[str, object], domain: object) -> dict[str, object]:
    """Return the fields that only a demonstration has."""
    default = Parent.REASONING if domain in _REASONING else Parent.COMMERCE
    response, reasoning = fields.get("response"), fields.get("reasoning")
    if isinstance(response, str):
        response = as_response(response if reasoning is None else thought_of(reasoning, response))
    return {"parent": fields.get("parent", default), "response": response}


def sample(row: RawRow) -> list[Item]:
    """Read a row of the generated marketplace: a demonstration if it has a response."""
    fields = cast("Mapping[str, object]", row.gold(dict(row.fields)))
    has_response = "response" in fields
    try:
        record = (
            sample_world.demonstration_from_row(fields, row.source_row)
            if has_response
            else sample_world.problem_from_row(fields, row.source_row)
        )
        answers = sample_world.problem_from_row(fields, row.source_row) if has_response else None
    except ValueError as error:
        raise BadRow("bad_field", str(error)) from error
    return [Item(record, record.prompt_text, answers=answers)]
