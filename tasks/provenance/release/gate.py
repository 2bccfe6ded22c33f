"""The release gate: every rule reports its numbers and whether it passed.

The candidate is measured against the base and the merged model if both are among its parents (a
full run), else against all of them (a retrained model against the released one), and against the
released model, whatever it was trained from. A rule that cannot be evaluated fails: a missing
comparison, a suite without problems, a NaN.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from data_schemas.reports import Comparison, EvaluationReport, GateDecision, PhaseGates, SuiteScore
from data_schemas.settings import ReleaseSettings
from tasks.provenance.release import mismatch
from tasks.provenance.release.evidence import Audited, Contamination, Practised, Waste
from tasks.provenance.release.promotion import Champion

MERGED = "merged"
STARTS = ("base", MERGED)
"""What a candidate of the pipeline has to surpass, as a whole and in every domain: the model before
any training, and the model before RL."""
ALL = "all"
_SLICES = ("domain:", "language:")
MAX_ABSTAINED_SHARE = 0.1
"""Share of abstentions above which an improvement cannot be shown."""

Rule = tuple[bool, str]
"""(passed, description of the comparison)"""


@dataclass(frozen=True, slots=True)
class Background:
    """What is known about a candidate beside its evaluation."""

    gates: tuple[PhaseGates, ...] = ()
    """Of every RL phase that led to it; empty if none did."""
    start_is_released: bool | None = None
    """Whether the version it is to replace is still the released one; None if it replaces
    whichever is."""
    champion: Champion | None = None
    """The released model; None if there is none."""
    audit: Audited | None = None
    """Its chain, hashed again."""
    contamination: Contamination | None = None
    waste: Waste | None = None
    practised: Practised | None = None
    """By the night that made it; None if none did."""


def decide(
    settings: ReleaseSettings,
    candidate: EvaluationReport,
    parents: Mapping[str, EvaluationReport],
    comparisons: Sequence[Comparison],
    background: Background | None = None,
) -> GateDecision:
    """Apply all rules; the model passes if every one of them does.

    Args:
        settings: thresholds.
        candidate: its held-out scores.
        parents: name in the checkpoint progression -> scores of its parents.
        comparisons: candidate minus parent on the same problems.
        background: what else is known.
    """
    facts = background or Background()
    references = STARTS if set(STARTS) <= parents.keys() else sorted(parents)
    by_suite = {(comparison.parent, comparison.suite): comparison for comparison in comparisons}
    suites = {suite.suite: suite for suite in candidate.suites}
    rules: list[Rule] = []
    if not references:
        rules.append((False, "there is no parent to compare with"))
    for name in references:
        rules += _gain(settings, name, by_suite.get((name, ALL)))
        rules += _domains(settings, name, suites, by_suite)
    for name in references:
        rules += _above_echoes(name, candidate, suites, by_suite)
    rules += _answers(settings, candidate, suites.get(ALL))
    rules += mismatch.rules(facts.gates)
    compared = comparisons
    if facts.champion is not None:
        names = [
            name for name, one in parents.items() if one.checkpoint == facts.champion.checkpoint
        ]
        against = [one for one in comparisons if one.parent in names[-1:]]
        if not against:
            against = list(facts.champion.comparisons)
            compared = (*comparisons, *against)
        rules += _champion(settings, facts.champion, candidate.checkpoint, against)
    rules += _background(facts)
    return GateDecision(
        released=all(passed for passed, _ in rules),
        reasons=tuple(f"{'passed' if passed else 'FAILED'}: {text}" for passed, text in rules),
        comparisons=tuple(compared),
    )


def _gain(settings: ReleaseSettings, name: str, comparison: Comparison | None) -> Iterator[Rule]:
    if comparison is None:
        yield False, f"gain over {name}: the comparison on {ALL!r} is missing"
    elif name == MERGED and not settings.rl_has_to_gain:
        result = "shown" if comparison.low > settings.min_gain else "not shown"
        yield (
            comparison.high >= 0.0,
            f"gain over {name}: {_numbers(comparison)}: {result}, which release.rl_has_to_gain "
            "leaves open; its upper end must not be below 0",
        )
    else:
        yield (
            comparison.low > settings.min_gain,
            f"gain over {name}: {_numbers(comparison)}; its lower end must exceed "
            f"{100 * settings.min_gain:+.1f}",
        )


def _domains(
    settings: ReleaseSettings,
    name: str,
    suites: Mapping[str, SuiteScore],
    by_suite: Mapping[tuple[str, str], Comparison],
) -> Iterator[Rule]:
    domains = sorted(suite for suite in suites if suite.startswith("domain:"))
    if not domains:
        yield False, "domains: the candidate was not evaluated on any domain"
    for domain in domains:
        comparison = by_suite.get((name, domain))
        if comparison is None:
            yield False, f"{domain} against {name}: the comparison is missing"
            continue
        yield _check_drop(settings, f"{domain} against {name}", comparison)


def _above_echoes(
    name: str,
    candidate: EvaluationReport,
    suites: Mapping[str, SuiteScore],
    by_suite: Mapping[tuple[str, str], Comparison],
) -> Iterator[Rule]:
    """Refuse a gain in a family where a text that does no task earns as much as the candidate."""
    for echo in candidate.echoes:
        suite, comparison = suites.get(echo.suite), by_suite.get((name, echo.suite))
        if suite is None or comparison is None or comparison.difference <= 0.0:
            continue
        yield (
            suite.score > echo.score,
            f"{echo.suite} gained over {name}: its mean score {100 * suite.score:.1f} must exceed "
            f"the {100 * echo.score:.1f} of a text that does no task ({echo.text})",
        )


def _champion(
    settings: ReleaseSettings, champion: Champion, candidate: str, against: Sequence[Comparison]
) -> Iterator[Rule]:
    """Refuse what is clearly worse than the released model: the whole interval is below zero."""
    if champion.checkpoint == candidate:
        return  # the same release again is the same folder
    overall = next((one for one in against if one.suite == ALL), None)
    if overall is None:
        yield (
            False,
            f"released model: {champion.version} and the candidate have no held-out problem in "
            "common; release the candidate under another name (release.name)",
        )
        return
    yield (
        overall.high >= 0.0,
        f"released model {champion.version}: {_numbers(overall)}; its upper end must not be "
        "below 0",
    )
    for one in against:
        if one.suite.startswith(_SLICES):
            yield _check_drop(
                settings, f"{one.suite} against released model {champion.version}", one
            )


def _check_drop(settings: ReleaseSettings, what: str, comparison: Comparison) -> Rule:
    """Fail if too much of a slice is lost, and for certain: the whole interval is below zero."""
    return (
        comparison.high >= 0.0 or comparison.difference >= -settings.max_domain_drop,
        f"{what}: {_numbers(comparison)}; with the interval below 0, at most "
        f"{100 * settings.max_domain_drop:.1f} may be lost",
    )


def _numbers(comparison: Comparison) -> str:
    return (
        f"{100 * comparison.difference:+.1f} points on {comparison.problems} problems, interval "
        f"{100 * comparison.low:+.1f} to {100 * comparison.high:+.1f}"
    )


def _uses(tokens: Waste) -> Iterator[str]:
    """Name the shares of the generated tokens by use, the largest first."""
    for use, count in sorted(tokens.uses.items(), key=lambda pair: -pair[1]):
        if count:
            yield f"{use.replace('_', ' ')} {count / tokens.generated:.1%}"


def _background(facts: Background) -> Iterator[Rule]:
    rows, tokens = facts.contamination, facts.waste
    if facts.audit is not None:
        yield (
            not facts.audit.problems,
            f"audit: {facts.audit.statements} statements and {facts.audit.objects} objects of its "
            "chain were hashed again; each must be as recorded, and made and signed by this run's "
            "key or one that it trusts"
            + (f"; {len(facts.audit.problems)} are not" if facts.audit.problems else "")
            + (f", first {facts.audit.problems[0]}" if facts.audit.problems else ""),
        )
    if rows is not None:
        yield (
            not rows.repeated,
            f"contamination: {len(rows.repeated)} of {rows.held_out} held-out problems are among "
            f"{rows.training_rows} training rows, by raw row or prompt"
            + (f", first {rows.repeated[0]!r}" if rows.repeated else ""),
        )
    if tokens is not None:
        ratio = tokens.token_efficiency
        yield (
            tokens.trained > 0,
            f"waste: {tokens.trained_share:.1%} of the {tokens.generated} tokens that grading and "
            "RL generated had weight in the loss; some must"
            + ("" if ratio is None else f" ({ratio:.2f} for each token of fine-tuning)")
            + f"; by use: {', '.join(_uses(tokens))}",
        )
    if facts.practised is not None:
        yield (
            facts.practised.new + facts.practised.demonstrations > 0,
            f"new rows: {facts.practised.explain()}; it must be at least one new one (with more "
            "rl.steps RL draws more of them)",
        )
    if facts.start_is_released is not None:
        yield (
            facts.start_is_released,
            "start: the version that the candidate was trained from must still be the released "
            "one; replacing a newer one would lose what that one was trained on",
        )


def _answers(
    settings: ReleaseSettings, candidate: EvaluationReport, overall: SuiteScore | None
) -> Iterator[Rule]:
    yield (
        candidate.truncated_share <= settings.max_truncated_share,
        f"truncated: {candidate.truncated_share:.1%} of the responses reached the length limit; "
        f"at most {settings.max_truncated_share:.1%} may",
    )
    if overall is None or not overall.problems * overall.samples:
        yield False, f"abstentions: the candidate has no responses on {ALL!r}"
        return
    responses = overall.problems * overall.samples
    yield (
        overall.abstained < MAX_ABSTAINED_SHARE * responses,
        f"abstentions: {overall.abstained} of {responses} responses got no verdict; less than "
        f"{MAX_ABSTAINED_SHARE:.0%} must",
    )
