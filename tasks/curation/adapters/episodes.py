"""Adapter for problems with an environment, and for demonstrations of several turns."""

from dataclasses import replace

from data_schemas.rows import OUTSIDE, Demonstration, Message, Parent, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.protocol import join_turns
from tasks.gym.table import VERIFIERS
from tasks.store.files import canonical_json


def episodes(row: RawRow, source: str = "episodes") -> list[Item]:
    """Read a problem with an environment or, if the row has `turns`, its demonstration.

    `turns` are the policy's; the environment answers them as in RL. Every turn becomes one
    demonstration, whose prompt is what was said before. An episode that does not solve its problem
    is refused with the verdict. What is compared for duplicates leaves system messages out: the
    rules of a shop are the same in every row.
    """
    fields = dict(row.fields)
    turns, _ = fields.pop("turns", None), fields.pop("parent", None)
    parent = row.optional("parent", Parent.COMMERCE)
    if not isinstance(fields.get("answer"), dict):
        raise BadRow("bad_gold", "'answer' is not an object")
    problem = Problem.model_validate(
        fields
        | {
            "id": f"{source}/{row.optional('id', row.key)}",
            "answer": canonical_json(row.gold(fields["answer"])).decode(),
            "source": source,
            "source_row": row.source_row,
        }
    )
    # Built-in ones only: a row must not name code to run.
    if problem.verifier not in ENVIRONMENTS.data:
        raise BadRow("no_environment", f"verifier {problem.verifier!r} has no environment")
    if turns is None:
        return [Item(problem, _dialogue_text(problem.messages))]
    if not isinstance(turns, list) or not turns or not all(isinstance(t, str) for t in turns):
        raise BadRow("bad_turns", "'turns' is not a list of texts")
    verdict = VERIFIERS.data[problem.verifier](problem, join_turns(turns))
    if not verdict.solved:
        raise BadRow("wrong_demonstration", f"{verdict.reason}: {verdict.detail}")
    return _demonstrate(problem, turns, Parent(parent))


def sample_shop(row: RawRow) -> list[Item]:
    """Read a row of the generated shop, as `episodes`."""
    return episodes(row, "sample_shop")


def sample_wishes(row: RawRow) -> list[Item]:
    """Read a purchase of the generated shop, as `episodes`."""
    return episodes(row, "sample_wishes")


def sample_purchases(row: RawRow) -> list[Item]:
    """Read a row of the generated purchases, as `episodes`, with the environment that plays them.

    Raises:
        BadRow: it asks for another library's environment, which would be code that a row names.
    """
    gold = row.fields.get("answer")
    if not isinstance(gold, dict) or gold.get("library") != "shopping":
        raise BadRow("bad_gold", "'answer' is no purchase")
    return episodes(replace(row, fields={**row.fields, "verifier": OUTSIDE}), "sample_purchases")


def _demonstrate(problem: Problem, turns: list[str], parent: Parent) -> list[Item]:
    """Play an episode; one demonstration per turn."""
    environment = ENVIRONMENTS.data[problem.verifier]
    messages = list(problem.messages)
    items: list[Item] = []
    for place, turn in enumerate(turns):
        demonstration = Demonstration(
            id=f"{problem.id}/{place}",
            parent=parent,
            domain=problem.domain,
            language=problem.language,
            messages=tuple(messages),
            response=turn,
            source=problem.source,
            source_row=problem.source_row,
        )
        items.append(Item(demonstration, _dialogue_text(messages)))
        answer = environment(problem, turns[: place + 1])
        if answer is None and place + 1 < len(turns):
            raise BadRow("bad_turns", f"the episode ends with turn {place + 1} of {len(turns)}")
        messages += [Message(role=Role.ASSISTANT, content=turn), *(answer or ())]
    return items


def _dialogue_text(messages: list[Message] | tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages if message.role is not Role.SYSTEM)
