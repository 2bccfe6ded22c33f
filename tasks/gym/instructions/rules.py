"""Score the share of checkable instructions that a response follows (IFEval's strict accuracy).

Gold: {"instruction_id_list": [...], "kwargs": [...]}, as in IFEval; null arguments are ignored. One
table, KINDS, says what each id takes and means: IFEval's, M-IFEval's for Spanish, French and
Japanese, and ours for the languages of South-East Asian markets.

Differs: the loose accuracy (IFEval, 2311.07911, section 2.3) is not computed; it ignores an
introduction, a last line and asterisks, which a policy would learn to add.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from data_schemas.prompts import Problem
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.errors import DataError
from tasks.gym.instructions.arguments import Arguments, Kind
from tasks.gym.instructions.checks import CHECKS
from tasks.gym.instructions.european import EUROPEAN
from tasks.gym.instructions.japanese import JAPANESE
from tasks.gym.instructions.languages import is_known
from tasks.gym.instructions.southeast_asian import SEA
from tasks.gym.protocol import Gold, verify_answer

KINDS: dict[str, Kind] = {**CHECKS, **EUROPEAN, **JAPANESE, **SEA}
"""Every instruction id with its arguments and its meaning."""


class Instructions(Gold):
    """Instruction ids with their arguments, one set per id."""

    instruction_id_list: tuple[str, ...] = Field(min_length=1, strict=False)
    kwargs: tuple[dict[str, Any], ...] = Field(strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score the share of instructions followed; abstain if one is unknown or cannot be decided."""
    return verify_answer(problem, response, Instructions, _check)


def read_kind(name: str, arguments: Mapping[str, object]) -> tuple[Kind, Arguments]:
    """Look up an instruction and read its arguments.

    Raises:
        KeyError: there is no such instruction.
        DataError: its arguments are invalid.
    """
    kind = KINDS[name]
    return kind, kind.read(arguments)


def _check(gold: Instructions, answer: str) -> Verdict:
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
        language = asked[-1][2].get("language")
        if language is not None and not is_known(language):
            return abstain("unknown_language", f"{name} {language}")
    found = [(name, kind, kind.check(answer, arguments)) for name, kind, arguments in asked]
    broken = [name for name, _, followed in found if followed is False]
    undecided = [(name, kind) for name, kind, followed in found if followed is None]
    if undecided and not broken:
        name, kind = undecided[0]
        return abstain(kind.undecided, name)
    # A response that breaks an instruction is not excused by another one that is undecided.
    score = (len(names) - len(broken) - len(undecided)) / len(names)
    reason = "correct" if not broken else "partial" if score > 0 else "wrong"
    detail = f"broken: {', '.join(broken)}" if broken else ""
    detail += f"; undecided: {', '.join(name for name, _ in undecided)}" if undecided else ""
    return scored(score, reason, detail)
