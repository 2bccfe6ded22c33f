"""The rollouts of another trainer on the page of a phase: curves of its dumps, tokens of the last.

What no dump holds is not on the page: times, domains, entropies, routes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from transformers import PreTrainedTokenizerBase

from data_schemas.reports import StepReport, StepTiming
from data_schemas.verdicts import Verdict
from tasks.engines.chat import token_texts
from tasks.evaluation.agreement import VerdictPair
from tasks.lab.dumps.rollout_dumps import Dump, DumpedResponse
from tasks.pages.live import MAX_TOKENS, by_mismatch, render, rounded
from tasks.pages.live_views import GroupView, Responses, ResponseView, StepView

METRICS = {
    "groups/one reward": "zero_variance/share",
    "mismatch/k3": "mismatch/k3",
    **{f"mismatch/k3, quarter {n}": f"mismatch/k3_quarter_{n}" for n in range(1, 5)},
}
"""Quantity of the table of a dump: metric of the page."""
TOKEN_BYTES = 50
"""Bytes of a page, for a token with its numbers."""


def page_of_dumps(
    dumps: Sequence[tuple[str, Dump, Mapping[str, float | None]]],
    verdicts: Sequence[VerdictPair],
    tokenizer: PreTrainedTokenizerBase | None,
) -> str:
    """Build the page.

    Args:
        dumps: name, responses and quantities of each, in the order of their steps; None is a
            number that is not finite.
        verdicts: of the responses of the last one that have a gold answer.
        tokenizer: of the policy; None shows the ids of tokens.
    """
    name, last, _ = dumps[-1]
    views = [
        StepView(
            report=StepReport(
                step=number,
                policy_version=number,
                metrics=_rewards(dump)
                | {
                    METRICS[key]: value
                    for key, value in quantities.items()
                    if key in METRICS and value is not None
                },
            ),
            timing=StepTiming(step=number, seconds={}),
            costs=(),
        )
        for number, (_, dump, quantities) in enumerate(dumps, start=1)
    ]
    state = f"responses of {name}, the last of {len(dumps):,} files"
    responses = _responses(last, len(dumps), verdicts, tokenizer)
    title = f"Rollouts of {last.trainer}"
    return render(title, state, views, responses, num_steps=None, running=False, in_store=False)


def _rewards(dump: Dump) -> dict[str, float]:
    rewards = [one.reward for one in dump.responses if one.reward is not None]
    lengths = [one.length for one in dump.responses]
    mean = {"reward/mean": sum(rewards) / len(rewards)} if rewards else {}
    return mean | {"rollout/length_tokens": sum(lengths) / len(lengths)}


def _responses(
    dump: Dump,
    step: int,
    verdicts: Sequence[VerdictPair],
    tokenizer: PreTrainedTokenizerBase | None,
) -> Responses:
    checked = {row.graded.id: row for row in verdicts}
    groups: defaultdict[str, list[tuple[int, DumpedResponse]]] = defaultdict(list)
    for place, one in enumerate(dump.responses):
        groups[one.group].append((place, one))
    members = list(groups.items())
    gaps = [[_largest_gap(one) for _, one in group] for _, group in members]
    tokens = [[_size(one) for _, one in group] for _, group in members]
    chosen = by_mismatch(gaps, tokens, MAX_TOKENS)
    views = tuple(
        GroupView(
            problem=name if len(name) <= 60 else f"{name[:60]}...",
            domain="",
            language="",
            prompt=name,
            answer=group[0][1].gold,
            source_row="",
            outcome="",
            responses=tuple(
                _response(one, checked.get(str(place)), tokenizer)
                for place, one in (group[sample] for sample in samples)
            ),
            left_out=len(group) - len(samples),
        )
        for samples, (name, group) in (
            (samples, members[number]) for number, samples in chosen.items()
        )
    )
    return Responses(step=step, groups=views, left_out=len(members) - len(views))


def _largest_gap(one: DumpedResponse) -> float:
    gaps_R = one.gaps_R
    return 0.0 if gaps_R is None else float(np.abs(np.nan_to_num(gaps_R)).max(initial=0.0))


def _size(one: DumpedResponse) -> int:
    """Tokens of a response, or as many as take the room of its characters."""
    return one.length // TOKEN_BYTES if one.tokens_R is None else len(one.tokens_R)


def _response(
    one: DumpedResponse, checked: VerdictPair | None, tokenizer: PreTrainedTokenizerBase | None
) -> ResponseView:
    tokens = [] if one.tokens_R is None else one.tokens_R.tolist()
    texts = (one.text,) if one.tokens_R is None else tuple(f"{token} " for token in tokens)
    if tokens and tokenizer is not None:
        texts = token_texts(tokenizer, tokens)
    gaps_R = one.gaps_R
    return ResponseView(
        tokens=texts,
        gaps=() if gaps_R is None else rounded(gaps_R),
        entropies=(),
        logprobs=() if one.rollout_R is None else rounded(one.rollout_R),
        routes=(),
        score=one.reward,
        solved=one.reward is not None and one.reward > 0.0,
        reason="recorded" if checked is None else _verdict_text(checked),
        detail="" if checked is None else checked.final.detail,
        penalty=0.0,
        advantage=one.advantage,
        stop_reason={True: "truncated", False: "ended", None: ""}[one.truncated],
    )


def _verdict_text(checked: VerdictPair) -> str:
    words = {"final_answer": checked.final, "rule_answer": checked.rule}
    return ", ".join(f"{name}: {_word(verdict)}" for name, verdict in words.items())


def _word(verdict: Verdict) -> str:
    if verdict.abstained:
        return "no verdict"
    return "right" if verdict.solved else "wrong"
