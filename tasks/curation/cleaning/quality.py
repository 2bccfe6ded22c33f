"""Cleansing: each item is kept, or refused for the first rule it breaks.

Broken items are quarantined, because their producer has to correct them; unsuitable items
are dropped.
Source: the filters that CompassMax-V3-Thinking lists for its long-CoT data and Ring-lite's
rules for RL prompts. Differs: neither states thresholds; the constants here are ours.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from transformers import PreTrainedTokenizerBase

from data_schemas.rows import Demonstration, Outcome, Problem
from data_schemas.settings import CurationSettings
from tasks.algorithms.penalties import repetition_ratio
from tasks.curation.cleaning.golds import gold_fault
from tasks.curation.cleaning.suitability import (
    Unsuitable,
    unsuitable_problem,
    unsuitable_response,
)
from tasks.curation.cleaning.wording import ByPart, parts, words
from tasks.curation.cleaning.writing_systems import foreign_share
from tasks.curation.items import Item, Partition, refuse
from tasks.curation.readers.missing import is_null
from tasks.engines.chat import (
    ControlTokens,
    closes_thought,
    control_tokens,
    count_prompt_tokens,
    count_tokens,
)
from tasks.gym.protocol import THINK_CLOSE, THINK_OPEN, Verifier
from tasks.gym.tools.forms import calls_while_thinking

STAGE = "quality"
MAX_REPETITION = 0.6
"""Largest share of repeated word 3-grams in a demonstration, the mean over its windows. Words
instead of tokens, because every long text repeats the token 3-grams of a small vocabulary; windows,
because every long text repeats itself: five genuine traces of s1K have up to 0.80 as a whole and
0.51 in windows. The most repetitive solution of GSM8K has 0.40."""
WINDOW_WORDS = 256
MAX_WHOLE_REPETITION = 0.9
"""The same of the whole response: a loop may be longer than a window."""
MAX_FOREIGN_SHARE = 0.3
"""Largest share of the letters of a prompt or response that belong to another language."""

_BATCH = 512
# C0 and C1 controls except tab and newline, the replacement character, private use, non-characters.
_INVALID = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff\ufdd0-\ufdef\ufffe\uffff]")
_MARKUP = re.compile(r"</?\w+>")
_HOW = "is how exports write that there is none"
_UNANSWERED = THINK_OPEN
"""A response that never ends its thought, so that a verifier only reads the gold answer."""
_REMEMBERED = 8
"""Texts whose faults are kept: a problem and its demonstrations share them."""

Fault = tuple[Outcome, str, str]
"""Outcome, reason, detail."""


def cleanse(
    items: Sequence[Item],
    tokenizer: PreTrainedTokenizerBase,
    settings: CurationSettings,
    verifiers: Mapping[str, Verifier],
) -> Partition:
    """Keep the items that break no rule."""
    control = control_tokens(tokenizer)
    look = lru_cache(_REMEMBERED)(lambda text: _bad_characters(text, control))
    golds: dict[int, Fault | None] = {}  # by identity: a demonstration answers the problem itself

    def check(problem: Problem) -> Fault | None:
        if id(problem) not in golds:
            golds[id(problem)] = _problem_fault(problem, verifiers)
        return golds[id(problem)]

    partition: Partition = ([], [])
    for start in range(0, len(items), _BATCH):
        batch = items[start : start + _BATCH]
        faults = [_text_fault(item, look) or _form_fault(item, check) for item in batch]
        sound = [item for item, fault in zip(batch, faults, strict=True) if fault is None]
        lengths = iter(_length_faults(sound, tokenizer, settings))
        for item, fault in zip(batch, faults, strict=True):
            result = fault or next(lengths)
            if result is None:
                partition[0].append(item)
            else:
                partition[1].append(refuse(item, STAGE, *result))
    return partition


def _text_fault(item: Item, look: Callable[[str], tuple[str, str] | None]) -> Fault | None:
    """Check the characters."""
    broken = Outcome.QUARANTINED
    for message in item.record.messages:
        if not message.content.strip():
            return broken, "empty_prompt", f"the {message.role} message is blank"
    if item.content.strip() and all(map(is_null, item.content.splitlines())):
        return broken, "empty_prompt", f"{item.content!r} {_HOW}"
    texts = [message.content for message in item.record.messages]
    if isinstance(item.record, Demonstration):
        texts.append(item.record.response)
    for number, text in enumerate(texts):
        if bad := look(text):
            reason, place = bad
            return broken, reason, f"{place} the {_name(item, number)}"
    for number, text in enumerate(texts):
        if text.isascii():
            continue
        share = foreign_share(_MARKUP.sub("", text), item.record.language)
        if share > MAX_FOREIGN_SHARE:
            return (
                Outcome.DROPPED,
                "language_mix",
                f"{share:.0%} of the {_name(item, number)}'s letters are not "
                f"{item.record.language}",
            )
    return None


def _name(item: Item, number: int) -> str:
    """Name a text of an item: its messages come before its response."""
    messages = item.record.messages
    return f"{messages[number].role} message" if number < len(messages) else "response"


def _bad_characters(text: str, control: ControlTokens) -> tuple[str, str] | None:
    """Return reason and place of the first character or token that no text may have."""
    if bad := _INVALID.search(text):
        return "invalid_characters", f"{bad[0]!a} at {bad.start()} of"
    token = control.find(text)
    return ("control_token", f"{token} in") if token else None


def _form_fault(item: Item, check: Callable[[Problem], Fault | None]) -> Fault | None:
    """Check the gold answer of a problem, or the form of a response, and whether they suit."""
    if isinstance(item.record, Problem):
        fault = check(item.record)
        unsuitable = None if fault or item.evaluation else unsuitable_problem(item.record)
        return fault or _dropped(unsuitable)
    fault = _response_fault(item.record) or _dropped(unsuitable_response(item.record))
    return fault or (check(item.answers) if item.answers else None)


def _dropped(unsuitable: Unsuitable | None) -> Fault | None:
    return unsuitable and (Outcome.DROPPED, *unsuitable)


def _problem_fault(problem: Problem, verifiers: Mapping[str, Verifier]) -> Fault | None:
    verifier = verifiers.get(problem.verifier)
    if verifier is None:
        names = ", ".join(sorted(verifiers))
        return (
            Outcome.QUARANTINED,
            "unknown_verifier",
            f"{problem.verifier!r} is not one of {names}",
        )
    verdict = verifier(problem, _UNANSWERED)
    if verdict.abstained:
        return Outcome.QUARANTINED, "bad_answer", f"{verdict.reason}: {verdict.detail}"
    fault = gold_fault(problem)
    return fault and (Outcome.QUARANTINED, *fault)


def _response_fault(demonstration: Demonstration) -> Fault | None:
    before, opening, rest = demonstration.response.partition(THINK_OPEN)
    _, closing, answer = rest.partition(THINK_CLOSE)
    if before or not opening or not closing or THINK_OPEN in rest or THINK_CLOSE in answer:
        return (
            Outcome.QUARANTINED,
            "malformed_think",
            "the response is not one <think>...</think> followed by an answer",
        )
    if not answer.strip():
        return Outcome.QUARANTINED, "empty_answer", "nothing follows </think>"
    # Whoever is told to write N/A where nothing is known writes it.
    if is_null(answer) and answer.strip().casefold() not in demonstration.prompt_text.casefold():
        return Outcome.QUARANTINED, "empty_answer", f"{answer.strip()!r} {_HOW}"
    if calls_while_thinking(demonstration.response):
        detail = "a <tool_call> within the thought: some servers end the thought there and make it"
        return Outcome.QUARANTINED, "call_in_thought", detail
    result = parts(_MARKUP.sub(" ", demonstration.response))
    return repetition_fault(list(chain.from_iterable(map(_words().__getitem__, result))))


def repetition_fault(words: Sequence[str]) -> Fault | None:
    """Check how often a response, given by its words, repeats itself; without words it does not."""
    starts = range(0, max(1, len(words)), WINDOW_WORDS)
    windows = [words[start : start + WINDOW_WORDS] for start in starts]
    if _is_varied(words, MAX_WHOLE_REPETITION) and all(
        _is_varied(window, MAX_REPETITION) for window in windows
    ):
        return None
    whole = repetition_ratio(words, window=max(1, len(words)))
    ratios = [repetition_ratio(window) for window in windows]
    ratio = sum(ratios) / len(ratios)
    if ratio > MAX_REPETITION or whole > MAX_WHOLE_REPETITION:
        detail = f"{whole:.2f} of its 3-grams are repeats, {ratio:.2f} within {WINDOW_WORDS} words"
        return Outcome.DROPPED, "repetitive_response", detail
    return None


def _is_varied(words: Sequence[str], limit: float) -> bool:
    """Return whether the words alone say that no more of the 3-grams are repeats than a limit.

    Every word but the last two begins a 3-gram, so that as many differ as words do, less two. Most
    texts are varied, and their 3-grams are not looked at. One or two words never are.
    """
    return len(set(words)) - 2 >= (1 - limit) * len(words)


def _length_faults(
    items: Sequence[Item], tokenizer: PreTrainedTokenizerBase, settings: CurationSettings
) -> Iterator[Fault | None]:
    """Check what the tokenizer makes of a row: numbers of tokens, and room for its thought.

    A response has its end token besides.
    """
    no_thought = closes_thought(tokenizer)
    longest, longest_response = settings.max_prompt_tokens, settings.max_response_tokens
    chats = list(dict.fromkeys(item.record.messages for item in items))
    prompts = dict(zip(chats, count_prompt_tokens(tokenizer, chats, longest), strict=True))
    response_texts = [one.record.response for one in items if isinstance(one.record, Demonstration)]
    responses = iter(count_tokens(tokenizer, response_texts, longest_response - 1))
    for item in items:
        response = 1 + next(responses) if isinstance(item.record, Demonstration) else 0
        prompt = prompts[item.record.messages]
        if no_thought and isinstance(item.record, Demonstration) and _thinks(item.record):
            detail = "the chat template of base_model ends the thought in the prompt"
            yield Outcome.QUARANTINED, "thought_not_rendered", detail
        elif prompt > longest:
            yield Outcome.DROPPED, "prompt_too_long", f"{prompt} tokens, limit {longest}"
        elif response > longest_response:
            detail = f"{response} tokens, limit {longest_response}"
            yield Outcome.DROPPED, "response_too_long", detail
        else:
            yield None


def _thinks(demonstration: Demonstration) -> bool:
    thought = demonstration.response.partition(THINK_CLOSE)[0]
    return bool(thought.removeprefix(THINK_OPEN).strip())


@lru_cache(maxsize=1)
def _words() -> ByPart[list[str]]:
    return ByPart(words)
