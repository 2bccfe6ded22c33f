"""Adapters for instructions (IFEval, M-IFEval), rows in our schema, and the sample world."""

import json

from data_schemas.demonstrations import Demonstration
from data_schemas.prompts import Domain, Message, Problem, Role
from tasks.curation import sample_world
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.store.files import canonical_json

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
        raise BadRow("bad_language", f"instructions start with {sorted({*languages, language})}")
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


def prompt_jsonl(row: RawRow) -> list[Item]:
    """Read a row that has the fields of Problem or, with a `response`, of Demonstration.

    `prompt` may stand for `messages` with one turn of the user, and `answer` may be a JSON object.
    Cells of a CSV file are text: an empty one counts as missing, and `messages` is JSON.
    `source` and `source_row` are always overwritten: a row cannot declare its own origin.
    """
    fields = {name: value for name, value in row.fields.items() if value != ""}
    key = fields.get("id", row.key)
    if "prompt" in fields and "messages" not in fields:
        fields["messages"] = [{"role": "user", "content": fields.pop("prompt")}]
    if isinstance(fields.get("messages"), str):
        fields["messages"] = json.loads(str(fields["messages"]))
    fields |= {
        "id": key if str(key).startswith("prompt_jsonl/") else f"prompt_jsonl/{key}",
        "source": "prompt_jsonl",
        "source_row": row.source_row,
    }
    if "response" in fields:
        demonstration = Demonstration.model_validate(fields)
        return [Item(demonstration, demonstration.prompt_text)]
    answer = fields.get("answer")
    if not isinstance(answer, str):
        fields["answer"] = canonical_json(answer).decode()
    problem = Problem.model_validate(fields)
    return [Item(problem, problem.prompt_text)]


def sample(row: RawRow) -> list[Item]:
    """Read a row of the generated marketplace: a demonstration if it has a response."""
    read = (
        sample_world.demonstration_from_row
        if "response" in row.fields
        else sample_world.problem_from_row
    )
    try:
        record = read(row.fields, row.source_row)
    except ValueError as error:
        raise BadRow("bad_field", str(error)) from error
    return [Item(record, record.prompt_text)]
