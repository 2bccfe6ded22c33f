"""The release gate: every rule reports its numbers and whether it passed.

The candidate is measured against the merged model if that is among its parents (a full
run), else against all of them (a retrained model against the released one). A rule that cannot
be evaluated fails: a missing comparison, a suite without problems, a NaN.
"""

from collections.abc import Iterator, Mapping, Sequence

from data_schemas.mismatch import PhaseGates
from data_schemas.reports import Comparison, EvaluationReport, GateDecision, SuiteScore
from data_schemas.settings import ReleaseSettings
from tasks.release import mismatch

MERGED = "merged"
ALL = "all"
MAX_ABSTAINED_SHARE = 0.1
"""Share of abstentions above which an improvement cannot be shown."""

Rule = tuple[bool, str]
"""(passed, description of the comparison)"""


def decide(
    settings: ReleaseSettings,
    candidate: EvaluationReport,
    parents: Mapping[str, EvaluationReport],
    comparisons: Sequence[Comparison],
    gates: tuple[PhaseGates, ...] = (),
    *,
    start_is_released: bool | None = None,
) -> GateDecision:
    """Apply all rules; the model passes if every one of them does.

    Args:
        settings: thresholds.
        candidate: its held-out scores.
        parents: name in the checkpoint progression -> scores of its parents.
        comparisons: candidate minus parent on the same problems.
        gates: of every RL phase that led to the candidate; empty if none did.
        start_is_released: whether the version the candidate is to replace is still the released
            one; None if it replaces whichever is.
    """
    references = [MERGED] if MERGED in parents else sorted(parents)
    found = {(comparison.parent, comparison.suite): comparison for comparison in comparisons}
    suites = {suite.suite: suite for suite in candidate.suites}
    rules: list[Rule] = []
    if not references:
        rules.append((False, "there is no parent to compare with"))
    for name in references:
        rules += _gain(settings, name, found.get((name, ALL)))
        rules += _domains(settings, name, suites, found)
    rules += _answers(settings, candidate, suites.get(ALL))
    rules += mismatch.rules(gates)
    if start_is_released is not None:
        rules.append(
            (
                start_is_released,
                "start: the version that the candidate was trained from must still be the released "
                "one; replacing a newer one would lose what that one was trained on",
            )
        )
    return GateDecision(
        released=all(passed for passed, _ in rules),
        reasons=tuple(f"{'passed' if passed else 'FAILED'}: {text}" for passed, text in rules),
        comparisons=tuple(comparisons),
    )


def _gain(settings: ReleaseSettings, name: str, comparison: Comparison | None) -> Iterator[Rule]:
    if comparison is None:
        yield False, f"gain over {name}: the comparison on {ALL!r} is missing"
        return
    yield (
        comparison.low > settings.min_gain,
        f"gain over {name}: {100 * comparison.difference:+.1f} points on {comparison.problems} "
        f"problems, interval {100 * comparison.low:+.1f} to {100 * comparison.high:+.1f}; its "
        f"lower end must exceed {100 * settings.min_gain:+.1f}",
    )


def _domains(
    settings: ReleaseSettings,
    name: str,
    suites: Mapping[str, SuiteScore],
    found: Mapping[tuple[str, str], Comparison],
) -> Iterator[Rule]:
    domains = sorted(suite for suite in suites if suite.startswith("domain:"))
    if not domains:
        yield False, "domains: the candidate was not evaluated on any domain"
    for domain in domains:
        comparison = found.get((name, domain))
        if comparison is None:
            yield False, f"{domain} against {name}: the comparison is missing"
            continue
        yield (
            comparison.difference >= -settings.max_domain_drop,
            f"{domain} against {name}: {100 * comparison.difference:+.1f} points on "
            f"{comparison.problems} problems; a drop of at most "
            f"{100 * settings.max_domain_drop:.1f} is allowed",
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
