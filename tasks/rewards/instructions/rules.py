"""Share of the checkable instructions that a response follows, strict or loose.

Gold: {"instruction_id_list": [...], "kwargs": [...]}, as in IFEval; null arguments are ignored. One
table, KINDS, says what each id takes and means: IFEval's, M-IFEval's for Spanish, French and
Japanese, and ours for the languages of South-East Asian markets.

Strict looks at the response as it is. Loose (IFEval, 2311.07911, section 2.3) counts an
instruction as followed if one of eight versions of the response follows it: without its first
line, its last line or both, each with and without asterisks. The reward is the strict share.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import DataError
from tasks.rewards.instructions.arguments import Arguments, Kind
from tasks.rewards.instructions.checks import CHECKS
from tasks.rewards.instructions.european import EUROPEAN
from tasks.rewards.instructions.japanese import JAPANESE
from tasks.rewards.instructions.southeast_asian import SEA
from tasks.rewards.protocol import Gold, judge

KINDS: dict[str, Kind] = {**CHECKS, **EUROPEAN, **JAPANESE, **SEA}
"""Every instruction id with its arguments and its meaning."""

_Followed = Callable[[Kind, str, Arguments], bool | None]


class Instructions(Gold):
    """Instruction ids with their arguments, one set per id."""

    instruction_id_list: tuple[str, ...] = Field(min_length=1, strict=False)
    kwargs: tuple[dict[str, Any], ...] = Field(strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score the share of instructions followed; abstain if one is unknown or cannot be decided."""
    return judge(
        problem, response, Instructions, lambda gold, answer: _check(gold, answer, _strict)
    )


def verify_loose(problem: Problem, response: str) -> Verdict:
    """Score the share of instructions that some version of the response follows.

    The detail of a scored verdict starts with the strict share, or with why there is none.
    """
    strict = verify(problem, response)
    loose = judge(
        problem, response, Instructions, lambda gold, answer: _check(gold, answer, _loose)
    )
    if loose.score is None:
        return loose
    share = strict.reason if strict.score is None else f"{strict.score:.3f}"
    return scored(loose.score, loose.reason, f"strict: {share}; {loose.detail}".rstrip("; "))


def versions(text: str) -> tuple[str, ...]:
    """Return IFEval's eight versions of a response, itself first; some may be blank."""
    lines = text.split("\n")
    cut = (lines, lines[1:], lines[:-1], lines[1:-1])
    shorter = tuple("\n".join(part).strip() for part in cut)
    return (text, *shorter[1:], *(version.replace("*", "") for version in (text, *shorter[1:])))


def read_kind(name: str, arguments: Mapping[str, object]) -> tuple[Kind, Arguments]:
    """Look an instruction up and read its arguments.

    Raises:
        KeyError: there is no such instruction.
        DataError: its arguments are not what it takes.
    """
    kind = KINDS[name]
    return kind, kind.read(arguments)


def _check(gold: Instructions, answer: str, follows: _Followed) -> Verdict:
    names = gold.instruction_id_list
    if len(names) != len(gold.kwargs):
        return abstain("bad_gold", f"{len(names)} ids, {len(gold.kwargs)} kwargs")
    asked: list[tuple[str, Kind, Arguments]] = []
    for name, arguments in zip(names, gold.kwargs, strict=True):
        try:
            asked.append((name, *read_kind(name, arguments)))
        except KeyError:
            return abstain("unknown_instruction", name)
        except DataError as error:
            return abstain("bad_gold", f"{name}: {error}")
    broken: list[str] = []
    for name, kind, arguments in asked:
        followed = follows(kind, answer, arguments)
        if followed is None:
            return abstain(kind.undecided, f"{name} {arguments.get('language', '')}".rstrip())
        if not followed:
            broken.append(name)
    score = (len(names) - len(broken)) / len(names)
    reason = "correct" if not broken else "partial" if score > 0 else "wrong"
    return scored(score, reason, f"broken: {', '.join(broken)}" if broken else "")


def _strict(kind: Kind, answer: str, arguments: Arguments) -> bool | None:
    return kind.check(answer, arguments)


def _loose(kind: Kind, answer: str, arguments: Arguments) -> bool | None:
    unsure = False
    for version in dict.fromkeys(versions(answer)):
        followed = kind.check(version, arguments) if version.strip() else False
        if followed:
            return True
        unsure |= followed is None
    return None if unsure else False
