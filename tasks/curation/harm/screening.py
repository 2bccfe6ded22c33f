"""Leave out what a guard calls harmful; quarantine what it cannot rate."""

import logging
from collections.abc import Sequence

from data_schemas.rows import Demonstration, Message, Outcome, Problem, QuarantinedItem, Role
from tasks.curation.harm.protocol import Guard
from tasks.curation.items import Item, Partition, refuse
from tasks.gym import refusal

_LOG = logging.getLogger(__name__)

STAGE = "harm"
HARMFUL, UNRATED = "harmful", "harm_not_rated"


def screen(items: Sequence[Item], guard: Guard) -> Partition:
    """Keep what the guard calls harmless.

    Problems of the verifier `refusal` are kept unrated: their prompts are harmful on purpose.
    """
    rated = [item for item in items if not _is_harmful_on_purpose(item)]
    ratings = dict(zip(map(id, rated), guard.rate([_chat(item) for item in rated]), strict=True))
    survivors: list[Item] = []
    refused: list[QuarantinedItem] = []
    for item in items:
        rating = ratings.get(id(item))
        if rating is None or rating.harmful is False:
            survivors.append(item)
        elif rating.harmful:
            refused.append(refuse(item, STAGE, Outcome.DROPPED, HARMFUL, rating.detail))
        else:
            refused.append(refuse(item, STAGE, Outcome.QUARANTINED, UNRATED, rating.detail))
    if unrated := sum(one.reason == UNRATED for one in refused):
        _LOG.warning("the guard could not rate %d of %d items: quarantined", unrated, len(rated))
    return survivors, refused


def _is_harmful_on_purpose(item: Item) -> bool:
    return isinstance(item.record, Problem) and item.record.verifier == refusal.NAME


def _chat(item: Item) -> tuple[Message, ...]:
    if not isinstance(item.record, Demonstration):
        return item.record.messages
    response = Message(role=Role.ASSISTANT, content=item.record.response)
    return (*item.record.messages, response)
