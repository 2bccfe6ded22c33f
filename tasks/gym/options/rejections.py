"""Mentions of options that a text denies, refutes or only guesses.

Applied to the clauses of one announcement, or of a text that announces nothing.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from tasks.gym.denials import (
    DENIED_WITH,
    EVERY_LANGUAGE,
    HEDGED_AFTER,
    HEDGED_BEFORE,
    OR_BEFORE,
    WINDOW,
)
from tasks.gym.options.languages import FALSE, REASON, compile_folded
from tasks.gym.options.mentions import BEFORE_LETTER, Span, context_of, group_lists

_MAY_BE = compile_folded(
    r" (?:(?:could|might|may)(?: \w+)? be|(?:bisa|boleh) jadi|mungkin|barangkali|có (?:thể|lẽ)|"
    r"pode(?:ria)? (?:ser|estar)|talvez|podría (?:ser|estar)|puede (?:ser|estar)|pourrait être|"
    r"könnte|potrebbe essere|ay (?:maaari|pwede))(?!\w)|"
    r" ?(?:อาจ|可能|也[许許]|或[许許]|大概)"
)
"""Behind an option: it is a guess, `b may be right`."""
# "is b right?"
_ASKED_BEFORE = re.compile(
    r"(?:^|\| )(?:is|could|would|should|can|might|apakah|liệu|será)(?: it| that| option)* $"
)
_ASKED_AFTER = re.compile(r"[^|?]*\?")
# "all of the above except b"
EXCEPTED = compile_folded(
    r" (?:\| )?(?:except|excluding|besides|other than|but not|apart from|kecuali|selain|exceto|"
    r"exceptuando|excepto|salvo|menos|sauf|außer|tranne|eccetto|ngoại trừ|trừ|maliban sa)(?!\w)|"
    r" ?(?:\| )?(?:ยกเว้น|除了|除)"
)
_IS_FALSE = re.compile(rf"(?<!\w)(?:{FALSE})(?!\w)")


def find_denied(text: str, spans: Sequence[Span]) -> set[Span]:
    """Return the options that the words before them deny, also `C` in `not A or C`.

    Later text cannot withdraw a wrong answer.
    """
    denied: set[Span] = set()
    last = 0
    for span in sorted(spans):
        with_last = denied and DENIED_WITH.match(text[last : span[0]][:WINDOW])
        if with_last or EVERY_LANGUAGE.before.search(context_of(text, span)[0]):
            denied.add(span)
            last = max(last, span[1])
    return denied


def find_explained_away(text: str, others: Sequence[Span], right: Sequence[Span]) -> set[Span]:
    """Return the options that are denied in clauses behind the one that names the right option.

    There a denial may follow them, and holds for all of a list: `B. A, C and D are incorrect`.
    """
    end = text.find("|", min(right)[1]) if right else -1
    return {
        span
        for spans in group_lists(text, [span for span in others if span[0] > end >= 0])
        if EVERY_LANGUAGE.before.search(context_of(text, spans[0])[0])
        or is_denied_by(context_of(text, spans[-1])[1])
        for span in spans
    }


def find_refuted(text: str, spans: Sequence[Span]) -> set[Span]:
    """Return the options of clauses that say no more of them than that they are wrong.

    So begins "A and C are wrong, so B"; a question, "A is wrong?", says nothing.
    """
    refuted: set[Span] = set()
    for options in group_lists(text, spans):
        lead = REASON.split(text[: options[0][0]].rpartition("|")[2])[-1].strip()
        after, _, following = text[options[-1][1] :].partition("|")
        is_question = "?" in after or following.lstrip().startswith("?")
        is_predicate = " " in after.strip() or not after.isascii() or _IS_FALSE.search(after)
        if not is_predicate or is_question or not BEFORE_LETTER.fullmatch(lead):
            continue
        if is_denied_by(f"{after}|"):
            refuted |= {*options}
    return refuted


def find_beside_denied(
    text: str, rivals: Sequence[tuple[str, Span]], denied: set[Span]
) -> set[Span]:
    """Return the names of an option that stand beside one that is denied: `not (A) red`."""
    ordered = sorted(rivals, key=lambda rival: rival[1])
    beside: set[Span] = set()
    for (name, span), (other, following) in pairwise(ordered):
        if text[slice(*span)] == text[slice(*following)]:  # "I | I is wrong": said twice
            continue
        if name == other and not text[span[1] : following[0]].strip(" |"):
            beside |= {span, following} if denied & {span, following} else set()
    return beside


def is_denied_by(after: str) -> bool:
    """Say whether an option is denied in its own clause: `A | no` may be said of something else."""
    denial = EVERY_LANGUAGE.after.match(after)
    return denial is not None and not denial[0].startswith(" |")


def is_denied(text: str, span: Span, spans: Sequence[Span]) -> bool:
    """Say whether an option is denied; the "no" of `B) no` is its name if the option is no."""
    before, after = context_of(text, span)
    denial = EVERY_LANGUAGE.after.match(after)
    word = denial and (span[1] + denial.end() - len(denial[0].lstrip(" |")), span[1] + denial.end())
    return bool(EVERY_LANGUAGE.before.search(before)) or (word is not None and word not in spans)


def is_hedged(text: str, span: Span, *, asks: bool) -> bool:
    """Say whether an option is a guess; one that is a question itself keeps its mark."""
    before, after = context_of(text, span)
    if asks:
        after = after.lstrip(" ?|")
    if span[1] - span[0] > 1 and EXCEPTED.match(after):
        return True
    if _ASKED_BEFORE.search(before) and _ASKED_AFTER.match(after):
        return True
    hedged = HEDGED_BEFORE.search(before) or HEDGED_AFTER.match(after) or OR_BEFORE.search(before)
    return bool(hedged or _MAY_BE.match(after))
