"""The table of a study, and how a number is written."""

import math
from collections.abc import Callable, Sequence

from data_schemas.study import EvidenceCell, StudyEvidence
from tasks.platform.tables import Screen, Sheet, screen_table, show_table

Columns = Sequence[tuple[str, Callable[[StudyEvidence, str], str]]]
SHARES = (
    *("accuracy", "macro", "use/", "of all tokens/", "outcome/"),
    *("zero variance", "clipped", "left behind", "gain", "equal", "called a tie"),
)
"""Beginnings of names whose values are shares, written as percent or points."""
FEW_VARIANTS = 5
_BRIEF = (
    "reward",
    "zero variance/first draws",
    "use/trained",
    "use/trained_zvp",
    "clipped",
    "tokens",
)


def number(cell: EvidenceCell, name: str) -> str:
    """Write a value with its interval, in the unit of its name."""
    what = name.partition("/")[2]
    difference = " minus " in name.partition("/")[0] or "gain" in what
    if cell.value is None:
        return "refused"
    scale, unit, digits = 1.0, "", None
    if what.startswith(SHARES):
        scale, digits = 100.0, 1
        unit = "" if difference else " %"
    sign = "+" if difference and "cost ratio" not in what else ""

    def text(value: float) -> str:
        if digits is not None:
            return format(scale * value, f"{sign}.{digits}f")
        if abs(value) >= 1000:
            return format(value, f"{sign},.0f")
        return format(value, f"{sign}.3g")

    interval = ""
    if cell.low is not None and cell.high is not None and math.isfinite(cell.low):
        interval = f" [{text(cell.low)}, {text(cell.high)}]"
    return f"{text(cell.value)}{unit}{interval}"


def rows_of(evidence: StudyEvidence) -> tuple[list[str], list[tuple[str, ...]]]:
    """Header and one line per arm: accuracy by checkpoint, differences, and what RL did."""
    checkpoints = [
        name
        for name in evidence.checkpoints
        if any(f"/accuracy/{name}" in key for key in evidence.cells)
    ]
    compared = any(" minus " in key for key in evidence.cells)
    metrics = [
        name
        for name in _BRIEF
        if all(f"{arm}/{name}" in evidence.cells for arm in evidence.variants)
    ]
    if not checkpoints:
        first = next(iter(evidence.variants))
        metrics = [key.partition("/")[2] for key in evidence.cells if key.startswith(f"{first}/")]
    header = ["variant", "", *checkpoints, *([f"macro, {checkpoints[-1]}"] if checkpoints else [])]
    steps = f"equal steps/{checkpoints[-1]}" if checkpoints else ""
    kinds = (steps, "equal tokens", "equal CPU seconds", "cost ratio")
    pairs = [name for name in kinds if compared and name]
    has = [name for name in pairs if any(key.endswith(f"/{name}") for key in evidence.cells)]
    header += ["against", *[name.partition("/")[0] for name in has], "shown"] if has else []
    header += metrics
    rows = []
    for arm, meaning in evidence.variants.items():
        cells = [f"{arm}/accuracy/{name}" for name in checkpoints]
        cells += [f"{arm}/macro/{checkpoints[-1]}"] if checkpoints else []
        row = [arm, meaning, *(_text(evidence, name) for name in cells)]
        if has:
            other = evidence.against[arm]
            names = [f"{arm} minus {other}/{name}" for name in has]
            row += ["" if other == arm else other, *(_text(evidence, name) for name in names)]
            row.append(shown_differences(evidence, names))
        rows.append((*row, *(_text(evidence, f"{arm}/{name}") for name in metrics)))
    return header, rows


def shown_differences(evidence: StudyEvidence, names: Sequence[str]) -> str:
    """Say which of several differences are shown."""
    cells = [(name, evidence.cells[name]) for name in names if name in evidence.cells]
    certain = [name.split("/")[1] for name, cell in cells if cell.shown]
    return ", ".join(certain) or ("no" if cells else "")


def gains_of(evidence: StudyEvidence) -> tuple[list[str], list[tuple[str, ...]]]:
    """Header and one line per gain of training: between two checkpoints, by domain."""
    rows = [
        (*key.split("/", 1), number(cell, key), "shown" if cell.shown else "not shown", cell.note)
        for key, cell in evidence.cells.items()
        if "gain" in key and " minus " not in key
    ]
    return ["variant", "", "points", "", ""], rows


def conditions(evidence: StudyEvidence) -> str:
    """Say under which conditions the numbers were measured."""
    problems = max((cell.problems for cell in evidence.cells.values()), default=0)
    held_out = f", {problems} held-out problems" if problems else ""
    return (
        f"`{evidence.command}`; commit {evidence.commit}, {evidence.date}, seeds "
        f"{', '.join(map(str, evidence.seeds))}{held_out}; {evidence.machine}. 95 % intervals: "
        "crossed bootstrap of seeds and problems for accuracies, Student's t over seeds for the "
        "others. Shown: the interval excludes 0, that of the seeds' means too, after Holm's "
        "correction; with one seed nothing is shown. Tokens are all that were generated, grading's "
        "included."
    )


def sheet(evidence: StudyEvidence) -> Sheet:
    """The table of a study."""
    header, rows = rows_of(evidence)
    return Sheet(evidence.title, header, rows, conditions(evidence))


def show(evidence: StudyEvidence) -> None:
    """Print the table, with a line per number where there are few variants."""
    header, rows = rows_of(evidence)
    if len(rows) <= FEW_VARIANTS:
        turned = [tuple(column) for column in zip(header, *rows, strict=True)]
        header, rows = list(turned[0]), turned[1:]
    show_table(screen_table(header, rows))
    if (gains := gains_of(evidence))[1]:
        show_table(screen_table(*gains))
    Screen().print(conditions(evidence))


def _text(evidence: StudyEvidence, name: str) -> str:
    return number(evidence.cells[name], name) if name in evidence.cells else ""
