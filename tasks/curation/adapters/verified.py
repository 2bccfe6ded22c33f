"""Rows in our schema whose demonstrations are verified, as generated sources write them."""

from collections.abc import Mapping

from data_schemas.rows import Demonstration, Message, Parent, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.protocol import Verifier
from tasks.gym.table import VERIFIERS
from tasks.store.files import canonical_json


def verified(
    source: str, row: RawRow, verifiers: Mapping[str, Verifier] = VERIFIERS.data
) -> list[Item]:
    """Read a problem or, if the row has a `response`, a demonstration whose response is right.

    What is compared for duplicates leaves system messages out: an agent's are always the same.

    Args:
        source: name of the adapter.
        row: of a file.
        verifiers: those that a row may name; the built-in ones, unless the rows are generated.
    """
    fields = dict(row.fields)
    response, _ = fields.pop("response", None), fields.pop("parent", None)
    parent = row.optional("parent", Parent.REASONING)
    problem = Problem.model_validate(
        fields
        | {
            "id": f"{source}/{row.optional('id', row.key)}",
            "answer": canonical_json(row.gold(fields["answer"])).decode(),
            "source": source,
            "source_row": row.source_row,
        }
    )
    text = _dialogue_text(problem.messages)
    if response is None:
        return [Item(problem, text)]
    if not isinstance(response, str) or problem.verifier not in verifiers:
        raise BadRow("bad_response", "'response' is no text, or 'verifier' does not exist")
    verdict = verifiers[problem.verifier](problem, response)
    if not verdict.solved:
        raise BadRow("wrong_demonstration", f"{verdict.reason}: {verdict.detail}")
    demonstration = Demonstration(
        id=problem.id,
        parent=Parent(parent),
        domain=problem.domain,
        language=problem.language,
        messages=problem.messages,
        response=response,
        source=source,
        source_row=row.source_row,
    )
    return [Item(demonstration, text)]


def _dialogue_text(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages if message.role is not Role.SYSTEM)
