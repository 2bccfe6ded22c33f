"""Rows in our schema whose demonstrations are verified, as generated sources write them."""

from data_schemas.demonstrations import Demonstration, Parent
from data_schemas.prompts import Message, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import VERIFIERS
from tasks.store.files import canonical_json


def verified(source: str, row: RawRow) -> list[Item]:
    """Read a problem or, if the row has a `response`, a demonstration whose response is right.

    What is compared for duplicates leaves system messages out: an agent's are always the same.
    """
    fields = dict(row.fields)
    response, parent = fields.pop("response", None), fields.pop("parent", Parent.REASONING)
    problem = Problem.model_validate(
        fields
        | {
            "id": f"{source}/{fields.get('id', row.key)}",
            "answer": canonical_json(fields["answer"]).decode(),
            "source": source,
            "source_row": row.source_row,
        }
    )
    said = _said(problem.messages)
    if response is None:
        return [Item(problem, said)]
    if not isinstance(response, str) or problem.verifier not in VERIFIERS:
        raise BadRow("bad_response", "'response' is no text, or 'verifier' does not exist")
    verdict = VERIFIERS[problem.verifier](problem, response)
    if not verdict.solved:
        raise BadRow("wrong_demonstration", f"{verdict.reason}: {verdict.detail}")
    shown = Demonstration(
        id=problem.id,
        parent=Parent(parent),
        domain=problem.domain,
        language=problem.language,
        messages=problem.messages,
        response=response,
        source=source,
        source_row=row.source_row,
    )
    return [Item(shown, said)]


def _said(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages if message.role is not Role.SYSTEM)
