"""Score demonstrations by the verifier of their problem: what is wrong is not imitated.

A response has to get full marks, as a solved problem of RL does. Without a problem, or if the
verifier abstains, a response cannot be verified; it is kept and counted as unverified: dialogues
and advice have no answer to check against. That is a rule and no setting [I]: without them,
nothing would teach these domains, and `sft.domains` leaves out whole domains. Source: the
rejection sampling of Ring-lite and DeepSeek-R1, whose long-CoT responses are kept if their final
answer is right.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from data_schemas.rows import Outcome, Problem, QuarantinedItem
from data_schemas.verdicts import Verdict
from tasks.curation.items import Item, Partition, refuse
from tasks.gym.table import is_judged

VERIFICATION = "verification"
WRONG = "wrong_demonstration"

Score = Callable[[Sequence[Problem], Sequence[str]], Sequence[Verdict]]
"""Score responses[i] as an answer to problems[i]."""


def verify(items: Sequence[Item], score: Score) -> Partition:
    """Quarantine the demonstrations whose response is wrong.

    Args:
        items: problems pass through.
        score: scores responses. Verifiers that need a judge are not asked: their scores compare
            responses, and do not say which is right.

    Returns:
        The other items in order, those that could not be verified without `answers`; the refusals.
    """
    triples = [
        (place, item.answers, item.response)
        for place, item in enumerate(items)
        if item.answers is not None and not is_judged(item.answers)
    ]
    verdicts = score([problem for _, problem, _ in triples], [response for *_, response in triples])
    results = {place: verdict for (place, *_), verdict in zip(triples, verdicts, strict=True)}
    survivors: list[Item] = []
    refused: list[QuarantinedItem] = []
    for place, item in enumerate(items):
        verdict = results.get(place)
        if verdict is None or verdict.abstained:
            survivors.append(replace(item, answers=None))
        elif verdict.solved:
            survivors.append(item)
        else:
            detail = f"{verdict.reason}: {verdict.detail}" if verdict.detail else verdict.reason
            refused.append(refuse(item, VERIFICATION, Outcome.QUARANTINED, WRONG, detail))
    return survivors, refused
