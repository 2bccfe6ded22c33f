"""Claims of CompassMax, ESPO, RL-ZVP, Router Replay, Ring-lite and Compass-Thinker, and what a run
shows of them.

Every number is read from the ablation study and from the report of the judge. *Shown*: the effect
has the claimed sign, its interval excludes 0, and so does every seed. *Not shown* says nothing
about the paper's size, where the effect may well exist. What a study did not run, and what cannot
be measured on the tiny model at all, is said instead of a number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import mean, pstdev

from tasks.ablation.report import AblationReport, Line
from tasks.algorithms.estimators import Interval
from tasks.training.judge.report import JudgeReport
from tasks.training.judge.sweep.table import false_ties

SHOWN, NOT_SHOWN, CANNOT = "shown", "not shown", "cannot show here"
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The reports of one run."""

    study: AblationReport
    judge: JudgeReport

    @property
    def lines(self) -> Mapping[str, Line]:
        """Variants of the study by name."""
        return {line.variant: line for line in self.study.lines}


@dataclass(frozen=True, slots=True)
class Found:
    """What a run has on one claim."""

    ours: str
    interval: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the paper's number, and how to find ours."""

    text: str
    paper: str
    find: Callable[[Evidence], Found]
    variants: tuple[str, ...] = ()
    """That the study needs for it."""


def rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """Return (claim, paper, ours, interval, verdict) of every claim."""
    return [(claim.text, claim.paper, *_cells(claim, evidence)) for claim in CLAIMS]


def _cells(claim: Claim, evidence: Evidence) -> tuple[str, str, str]:
    missing = [name for name in claim.variants if name not in evidence.lines]
    if missing:
        return "", "", f"{NOT_MEASURED}: the study is without {', '.join(missing)}"
    found = claim.find(evidence)
    return found.ours, found.interval, found.verdict


def points(found: Interval) -> str:
    """Write a difference of accuracies in points."""
    return f"{100 * found.mean:+.1f} points"


def _between(found: Interval, scale: float = 100.0) -> str:
    return f"[{scale * found.low:+.1f}, {scale * found.high:+.1f}]"


def _negative(found: Interval) -> Interval:
    return Interval(mean=0.0 - found.mean, low=0.0 - found.high, high=0.0 - found.low)


def _gain(variant: str, *, if_removed: bool = False) -> Callable[[Evidence], Found]:
    """Read a feature's gain in held-out accuracy from the variant that has, or removes, it."""

    def find(evidence: Evidence) -> Found:
        line = evidence.lines[variant]
        gain = _negative(line.difference) if if_removed else line.difference
        is_shown = line.certain and gain.mean > 0.0
        return Found(points(gain), _between(gain), SHOWN if is_shown else NOT_SHOWN)

    return find


def _fall(place: int) -> Callable[[Evidence], Found]:
    def find(evidence: Evidence) -> Found:
        fall = evidence.study.falls[place]
        is_shown = fall.relative.low > 0.0 and min(fall.seeds) > 0.0
        return Found(
            f"{-100 * fall.relative.mean:+.0f} %",
            _between(_negative(fall.relative)),
            SHOWN if is_shown else NOT_SHOWN,
        )

    return find


def _saving(evidence: Evidence) -> Found:
    cost = _negative(evidence.lines["dynamic"].saving)
    return Found(
        f"{100 * cost.mean:+.0f} % tokens per point",
        _between(cost),
        SHOWN if cost.low > 0.0 else NOT_SHOWN,
    )


def _replay(evidence: Evidence) -> Found:
    off, on = (evidence.lines[name].mismatch_nats for name in ("bf16_off", "bf16_r3"))
    return Found(f"{off:.1e} to {on:.1e} nats", "", SHOWN if on < off else NOT_SHOWN)


def _steadiness(evidence: Evidence) -> Found:
    """Compare the spread of the trained tokens of a step, relative to their mean."""
    spread = {
        name: mean(
            pstdev(cell.trained_tokens) / max(mean(cell.trained_tokens), 1e-12)
            for cell in evidence.study.cells
            if cell.variant == name
        )
        for name in ("grpo", "grpo_c3po")
    }
    return Found(
        f"spread {100 * spread['grpo']:.0f} % to {100 * spread['grpo_c3po']:.0f} %",
        "",
        SHOWN if spread["grpo_c3po"] < spread["grpo"] else NOT_SHOWN,
    )


def _order(evidence: Evidence) -> Found:
    orders = evidence.study.orders
    faster = orders.as_drawn / max(orders.longest_first, 1e-12)
    return Found(f"{faster:.2f}x, simulated", "", SHOWN if faster > 1.0 else NOT_SHOWN)


def _overlap(evidence: Evidence) -> Found:
    full = evidence.lines["full"]
    hidden = 1.0 - full.wait_s / max(full.verify_s, 1e-12)
    return Found(f"{-100 * hidden:+.0f} % of waiting", "", SHOWN if hidden > 0.0 else NOT_SHOWN)


def _judge(name: str, *, less_is_better: bool) -> Callable[[Evidence], Found]:
    def find(evidence: Evidence) -> Found:
        measure = next((one for one in evidence.judge.measures if one.name == name), None)
        if measure is None:
            return Found("", "", f"{NOT_MEASURED}: no held-out task has it")
        better = _negative(measure.difference) if less_is_better else measure.difference
        return Found(
            f"{100 * measure.judge.mean:.1f} % against {100 * measure.scalar.mean:.1f} %",
            _between(measure.difference),
            SHOWN if better.low > 0.0 else NOT_SHOWN,
        )

    return find


def _recognised_ties(evidence: Evidence) -> Found:
    """Ask for more than recall: a judge that calls everything a tie recalls all ties."""
    found = _judge("tie recall", less_is_better=False)(evidence)
    recall = next((one.judge for one in evidence.judge.measures if one.name == "tie recall"), None)
    others = false_ties(evidence.judge.judge_confusion)
    if recall is None or 100 * recall.low > others:
        return found
    return replace(found, verdict=f"{NOT_SHOWN}: it calls {others:.1f} % of the other pairs ties")


def _cannot(reason: str) -> Callable[[Evidence], Found]:
    return lambda _: Found("", "", f"{CANNOT}, because {reason}")


CLAIMS = (
    Claim("Zero-variance elimination, first draws", "-17 %", _fall(0), ("zv_off",)),
    Claim("Zero-variance elimination, trained batch", "-17 %", _fall(1), ("zv_off",)),
    Claim("Dynamic sampling wastes tokens", "", _saving, ("dynamic",)),
    Claim(
        "RL-ZVP learns from zero-variance groups",
        "+3.1 points of Acc@8",
        _gain("zv_3b_off", if_removed=True),
        ("zv_3b_off",),
    ),
    *(
        Claim(f"ESPO above {name}", paper, _gain(variant, if_removed=True), (variant,))
        for name, variant, paper in (
            ("GRPO", "grpo", ""),
            ("GSPO", "gspo", "up to +12.1 points"),
            ("CISPO", "cispo", "+1.4 points"),
        )
    ),
    Claim("Router Replay lowers the mismatch", "1.5e-3 to 7.5e-4", _replay, ("bf16_off",)),
    Claim(
        "Router Replay learns more",
        "+9.6 points, without it a collapse",
        _gain("bf16_off", if_removed=True),
        ("bf16_off",),
    ),
    Claim("C3PO steadies the tokens of a step", "constant", _steadiness, ("grpo_c3po",)),
    Claim("C3PO learns more than GRPO", "", _gain("grpo_c3po"), ("grpo_c3po",)),
    Claim("A larger group", "16 in Ring-lite", _gain("group_16"), ("group_16",)),
    Claim("A staged curriculum", "", _gain("curriculum"), ("curriculum",)),
    Claim("No KL to the start model", "no KL", _gain("kl", if_removed=True), ("kl",)),
    Claim("Clip-higher, 0.28", "used", _gain("clip_higher_0.28"), ("clip_higher_0.28",)),
    Claim("Clip-higher, 0.4", "swept to 0.4", _gain("clip_higher_0.4"), ("clip_higher_0.4",)),
    Claim("Maths, then code, above a mixture", "+2.6 points", _gain("two_stage"), ("two_stage",)),
    Claim(
        "A ternary judge flips fewer advantages",
        "",
        _judge("advantage inversion", less_is_better=True),
    ),
    Claim(
        "A ternary judge recognises ties",
        "98.8 % against 51.2 %",
        _recognised_ties,
    ),
    Claim("Rollouts balanced by length", "a step 1.66x, with all before it", _order),
    Claim("Rewards overlap with rollouts", "reward stage -85 %", _overlap, ("full",)),
    Claim(
        "FP8 rollouts", "1.17x to 1.52x", _cannot("the tiny model runs on CPUs, which have no FP8")
    ),
    Claim("TIES above other merges", "", _cannot("its study is another one: make merges")),
    Claim(
        "Maths alone helps outside of it",
        "61.1, code alone 59.3",
        _cannot("the report of the study has no accuracy by domain: make recipe"),
    ),
    Claim(
        "An entropy window chooses the checkpoint that RL gains most from",
        "0.3 to 0.5",
        _cannot("all phases of the study start from one checkpoint"),
    ),
)
"""In the order of the papers: zero variance, losses, replay, C3PO, recipes, judge, system."""
