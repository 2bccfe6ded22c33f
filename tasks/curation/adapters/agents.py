"""Adapters for the sample worlds of several agents and of self-play."""

from data_schemas.demonstrations import Demonstration, Parent
from data_schemas.prompts import Message, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import VERIFIERS
from tasks.store.files import canonical_json

AGENTS, SELF_PLAY = "sample_agents", "sample_self_play"


def sample_agents(row: RawRow) -> list[Item]:
    """Read a row of solver, verifier or corrector."""
    return _read(AGENTS, row)


def sample_self_play(row: RawRow) -> list[Item]:
    """Read a row of questioner, responder or verifier."""
    return _read(SELF_PLAY, row)


def _read(source: str, row: RawRow) -> list[Item]:
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
