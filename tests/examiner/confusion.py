"""How often each verifier was right, class by class, and every case where it was not."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from tests.examiner.scoring import UNABLE, CaseVerdict

MAX_CHARACTERS = 2000
"""Characters of a response, in the file of disagreements; both of its ends are kept."""
EXAMPLES = 10
"""Examples of each verifier and class, in the text for people."""


@dataclass
class Counts:
    """Verdicts of one verifier on one class."""

    right: bool
    cases: int = 0
    false: int = 0
    """Falsifications accepted, or equivalents rejected."""
    abstained: int = 0
    seconds: float = 0.0
    slowest: float = 0.0

    def add(self, found: CaseVerdict) -> None:
        """Count one verdict."""
        self.cases += 1
        self.abstained += found.verdict.abstained
        self.false += disagrees(found) and not found.verdict.abstained
        self.seconds += found.seconds
        self.slowest = max(self.slowest, found.seconds)


Key = tuple[str, str, str]
"""Family, class, verifier."""


@dataclass
class Confusion:
    """Counts of all verdicts so far."""

    counts: dict[Key, Counts] = field(default_factory=dict)

    def add(self, found: CaseVerdict) -> None:
        """Count one verdict."""
        case = found.case
        key = (case.family, case.kind.name, found.verifier)
        self.counts.setdefault(key, Counts(case.kind.right)).add(found)

    def by_class(self) -> Table:
        """Lay out every class, with its verifiers in rows below each other."""
        shown = _table("class", "verifier", "must be")
        for (family, kind, verifier), counts in self.counts.items():
            must = "accepted" if counts.right else "refused"
            shown.add_row(f"{family}: {kind}", verifier, must, *_cells([counts]))
        return shown

    def by_verifier(self) -> Table:
        """Lay out sums: equivalents and falsifications of each verifier and family."""
        shown = _table("family", "verifier", "must be")
        for (family, verifier, right), counts in self._groups().items():
            shown.add_row(family, verifier, "accepted" if right else "refused", *_cells(counts))
        return shown

    def sums(self) -> list[dict[str, object]]:
        """Return the same sums as records, for a file that pages are rendered from."""
        return [
            {
                "family": family,
                "verifier": verifier,
                "must_be": "accepted" if right else "refused",
                "cases": (cases := sum(c.cases for c in counts)),
                "false": sum(c.false for c in counts),
                "abstained": sum(c.abstained for c in counts),
                "ms": round(1000 * sum(c.seconds for c in counts) / cases, 2),
            }
            for (family, verifier, right), counts in self._groups().items()
        ]

    def _groups(self) -> dict[tuple[str, str, bool], list[Counts]]:
        groups: dict[tuple[str, str, bool], list[Counts]] = {}
        for (family, _, verifier), counts in self.counts.items():
            groups.setdefault((family, verifier, counts.right), []).append(counts)
        return groups


def disagrees(found: CaseVerdict) -> bool:
    """Whether a verdict is not the known one; an abstention on an equivalent counts.

    A checker of another project that knows nothing of the question disagrees with nobody.
    """
    verdict = found.verdict
    if verdict.reason == UNABLE:
        return False
    return verdict.solved != found.case.kind.right and not (
        verdict.abstained and not found.case.kind.right
    )


def row(found: CaseVerdict) -> dict[str, object]:
    """Write one disagreement as a row for people and programs."""
    case, verdict = found.case, found.verdict
    return {
        "verifier": found.verifier,
        "class": f"{case.family}: {case.kind.name}",
        "must_be": "accepted" if case.kind.right else "refused",
        "problem": case.problem.id,
        "language": case.problem.language,
        "question": case.problem.messages[-1].content[:300],
        "gold": _shortened(case.problem.answer),
        "response": _shortened(case.response),
        "score": verdict.score,
        "reason": verdict.reason,
        "detail": verdict.detail[:300],
    }


def write_examples(rows: Path, out: Path, seed: int = 0) -> None:
    """Write up to ten disagreements of each verifier and class as Markdown, drawn by seed."""
    groups: dict[tuple[str, str], list[dict[str, object]]] = {}
    seen: dict[tuple[str, str], int] = {}
    source = random.Random(seed)
    with rows.open() as lines:
        for found in map(json.loads, lines):
            key = (found["verifier"], found["class"])
            seen[key] = seen.get(key, 0) + 1
            kept = groups.setdefault(key, [])
            if len(kept) < EXAMPLES:
                kept.append(found)
            elif (place := source.randrange(seen[key])) < EXAMPLES:
                kept[place] = found
    with out.open("w") as text:
        for (verifier, kind), kept in sorted(groups.items()):
            text.write(f"## {verifier}, {kind}: {seen[verifier, kind]} disagreements\n\n")
            text.writelines(_example(found) for found in kept)


def _example(found: dict[str, object]) -> str:
    response = str(found["response"])
    return (
        f"- `{found['problem']}` ({found['language']}), must be {found['must_be']}; "
        f"{found['reason']}, score {found['score']}: {found['detail']}\n\n"
        f"      gold      {found['gold']}\n"
        f"      response  {response[-400:]!r}\n\n"
    )


def _shortened(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    half = MAX_CHARACTERS // 2
    return f"{text[:half]} [... {len(text) - MAX_CHARACTERS} characters ...] {text[-half:]}"


def _table(*names: str) -> Table:
    shown = Table()
    for name in names:
        shown.add_column(name)
    for name in ("cases", "false", "%", "abstained", "ms", "slowest ms"):
        shown.add_column(name, justify="right")
    return shown


def _cells(counts: Iterable[Counts]) -> tuple[str, ...]:
    listed = list(counts)
    cases, false = sum(c.cases for c in listed), sum(c.false for c in listed)
    return (
        f"{cases:,}",
        f"{false:,}",
        f"{100 * false / cases:.2f}",
        f"{sum(c.abstained for c in listed):,}",
        f"{1000 * sum(c.seconds for c in listed) / cases:.2f}",
        f"{1000 * max(c.slowest for c in listed):,.0f}",
    )
