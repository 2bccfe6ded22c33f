"""What each prompt cost and earned: the ledger's tables, figure and answers."""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Group, RenderableType
from rich.table import Table

from data_schemas.arrow import read_table
from data_schemas.reports import COSTS_FILE, LEDGER_FILE
from data_schemas.rollouts import SKIPPED, GroupOutcome, LedgerRow, PromptCost, TokenUse
from data_schemas.rows import PROBLEMS_FILE, Domain, GradedProblem
from tasks.algorithms.group_size import (
    MAX_ZERO_VARIANCE,
    GroupSize,
    choose_group_size,
    predict_group_size,
)
from tasks.algorithms.token_uses import token_uses
from tasks.errors import DataError, SettingsError
from tasks.formats.progression import read_ledger
from tasks.provenance.lineage.releases import find_release
from tasks.provenance.lineage.statements import chain
from tasks.store.objects import find_beside, localise

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Aggregate ledger rows per prompt and per group outcome.

GROUP_SIZES = (4, 8, 16, 32)
"""Group sizes N in the printed table."""
STAGES = {
    "1 before rollout": SKIPPED,
    "2 at reward": (
        GroupOutcome.UNSCORED,
        GroupOutcome.ZERO_VARIANCE_PARTIAL,
        GroupOutcome.ZERO_VARIANCE_NOISE,
        GroupOutcome.ZERO_VARIANCE_JUDGED,
    ),
    "3 at update": (
        GroupOutcome.NON_ZERO_VARIANCE,
        GroupOutcome.ZERO_VARIANCE_TRAINED,
        GroupOutcome.ZERO_VARIANCE_IDLE,
        GroupOutcome.SURPLUS,
    ),
    "later": (GroupOutcome.IN_FLIGHT,),
}
"""Group outcomes by the step of zero-variance elimination that decides them (CompassMax A.4)."""
_TOKENS = ["generated_tokens", "trained_tokens", "saved_tokens"]
_OUTCOME_SUMS = ["draws", *_TOKENS, "advantage_mass"]
_PROMPT_SUMS = [*_OUTCOME_SUMS, "skips", "rollouts", "scored", "solved", "pass_rate_change"]
_COST_SUMS = ["engine_seconds", "verifier_seconds", "judge_calls"]
_PHASE_SUMS = ["draws", "rollouts", "solved", *_TOKENS, "advantage_mass", *_COST_SUMS]


@dataclass(frozen=True, slots=True)
class PromptAccount:
    """Totals of one prompt over all its draws; what other agents made of it is apart."""

    problem_id: str
    domain: Domain
    draws: int
    skips: int
    rollouts: int
    scored: int
    solved: int
    generated_tokens: int
    saved_tokens: int
    trained_tokens: int
    advantage_mass: float
    pass_rate_change: float
    """Pass rate of its last group minus that of its first."""
    engine_seconds: float
    verifier_seconds: float
    judge_calls: int

    @property
    def earned_per_kilotoken(self) -> float:
        """Sum of |advantage| per thousand generated tokens; 0 if none was generated."""
        return 1e3 * self.advantage_mass / max(1, self.generated_tokens)


@dataclass(frozen=True, slots=True)
class OutcomeAccount:
    """Totals of all draws with the same group outcome."""

    stage: str
    outcome: GroupOutcome
    draws: int
    generated_tokens: int
    trained_tokens: int
    saved_tokens: int
    advantage_mass: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """Aggregated ledger and costs of a phase."""

    prompts: list[PromptAccount]
    """Ordered by |advantage| per token, descending."""
    outcomes: list[OutcomeAccount]
    """Every outcome, by stage; zeros for outcomes that did not occur."""
    uses: dict[TokenUse, int]
    """Every use of the generated tokens, grading's too; the counts add up to all of them."""
    sizes: list[GroupSize]
    """Predicted results of other group sizes on these prompts; empty without verdicts."""
    totals: dict[str, float]


def settle(rows: Sequence[LedgerRow], costs: Sequence[PromptCost], grading: int = 0) -> Ledger:
    """Sum cost and advantage per prompt and per group outcome.

    Args:
        rows: of a phase.
        costs: of its prompts.
        grading: tokens that graded them; they are of the start model and of no draw.

    Raises:
        DataError: there are no rows, or a cost has no matching row.
    """
    if not rows:
        raise DataError("the ledger is empty: no prompt was drawn")
    draws = pd.DataFrame([row.model_dump() for row in rows]).assign(draws=1)
    prompted = set(draws["problem_id"])
    draws["problem_id"] = [row.account for row in rows]
    draws["skips"] = draws["outcome"].isin(SKIPPED).astype(int)
    draws["scored"] = draws["rollouts"] - draws["abstained"]
    spent = pd.DataFrame([cost.model_dump() for cost in costs], columns=[*PromptCost.model_fields])
    unmatched = set(spent["problem_id"]) - set(draws["problem_id"])
    if unmatched:
        raise DataError(f"{len(unmatched)} prompts have costs but no ledger row: {min(unmatched)}")
    prompts = _sum_prompts(draws, spent)
    # Group sizes are those of prompts: other agents' groups have inputs that are never drawn again.
    sizes = _predict_sizes([prompt for prompt in prompts if prompt.problem_id in prompted])
    uses = token_uses(rows, grading)
    return Ledger(prompts, _sum_outcomes(draws), uses, sizes, _sum_totals(prompts))


def to_csv(prompts: Sequence[PromptAccount]) -> bytes:
    """Write one line per prompt, in order."""
    earned = [prompt.earned_per_kilotoken for prompt in prompts]
    table = pd.DataFrame(prompts).assign(earned_per_kilotoken=earned)
    return table.to_csv(index=False, lineterminator="\n").encode()


def check_conservation(rows: Iterable[LedgerRow], generated_tokens: int) -> None:
    """Check the tokens in the ledger against the engine's own count.

    Raises:
        DataError: they differ: some generated tokens are not charged to any prompt.
    """
    charged = sum(row.generated_tokens for row in rows)
    if charged != generated_tokens:
        raise DataError(
            f"the ledger charges its prompts {charged} tokens, the engine generated "
            f"{generated_tokens}"
        )


def _sum_by(table: pd.DataFrame, key: str, names: Sequence[str]) -> pd.DataFrame:
    # The builtin sum adds floats in row order; the sum of pandas differs in the last digits.
    return table.groupby(key, sort=False).agg(dict.fromkeys(names, sum))


def _sum_prompts(draws: pd.DataFrame, spent: pd.DataFrame) -> list[PromptAccount]:
    sums = _sum_by(draws, "problem_id", _PROMPT_SUMS)
    costs = _sum_by(spent, "problem_id", _COST_SUMS).reindex(sums.index, fill_value=0)
    domains = draws.groupby("problem_id", sort=False)["domain"].first()
    records = sums.join(costs).reset_index().to_dict("records")
    prompts = [
        PromptAccount(domain=Domain(domain), **record)
        for domain, record in zip(domains, records, strict=True)
    ]
    prompts.sort(key=lambda p: (-p.earned_per_kilotoken, p.generated_tokens, p.problem_id))
    return prompts


def _sum_outcomes(draws: pd.DataFrame) -> list[OutcomeAccount]:
    sums = _sum_by(draws, "outcome", _OUTCOME_SUMS).reindex([*GroupOutcome], fill_value=0)
    records = sums.to_dict("index")
    return [
        OutcomeAccount(stage=stage, outcome=outcome, **records[outcome])
        for stage, members in STAGES.items()
        for outcome in members
    ]


def _predict_sizes(prompts: Sequence[PromptAccount]) -> list[GroupSize]:
    accounts = [prompt for prompt in prompts if prompt.scored > 0]
    if not accounts:
        return []
    solved = [prompt.solved for prompt in accounts]
    scored = [prompt.scored for prompt in accounts]
    tokens = [prompt.generated_tokens / max(1, prompt.rollouts) for prompt in accounts]
    return [predict_group_size(solved, scored, tokens, size) for size in GROUP_SIZES]


def _sum_totals(prompts: Sequence[PromptAccount]) -> dict[str, float]:
    sums = pd.DataFrame(prompts)[_PHASE_SUMS].agg(sum)
    return {"prompts": float(len(prompts)), **sums.astype(float).to_dict()}


# Figure of the ledger: tokens and advantage of every prompt, and tokens by group outcome.

_COLOURS = {
    "1 before rollout": "#8b97a3",
    "2 at reward": "#d08a1d",
    "3 at update": "#1a7f5a",
    "later": "#4c4a86",
}


def ledger_png(ledger: Ledger, title: str) -> bytes:
    """Draw both plots into one PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_prompts(left, ledger)
    _draw_outcomes(right, ledger)
    figure.suptitle(title)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def _draw_prompts(axes: "Axes", ledger: Ledger) -> None:
    rolled = [prompt for prompt in ledger.prompts if prompt.rollouts > 0]
    for domain in sorted({prompt.domain for prompt in rolled}):
        mine = [prompt for prompt in rolled if prompt.domain is domain]
        tokens = [prompt.generated_tokens for prompt in mine]
        earned = [prompt.advantage_mass for prompt in mine]
        axes.scatter(tokens, earned, s=14, alpha=0.6, label=domain.replace("_", " "))
    axes.set_xlabel("tokens generated for the prompt")
    axes.set_ylabel("sum of |advantage| it was trained with")
    axes.legend(fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def _draw_outcomes(axes: "Axes", ledger: Ledger) -> None:
    accounts = [account for account in reversed(ledger.outcomes) if account.draws > 0]
    axes.barh(
        [account.outcome.replace("_", " ") for account in accounts],
        [account.generated_tokens + account.saved_tokens for account in accounts],
        color=[_COLOURS[account.stage] for account in accounts],
    )
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("tokens generated, or not generated (skipped)")
    axes.grid(alpha=0.25, axis="x")


# Find the ledgers of a model through its chain of statements, or read them from given files.


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of RL and what its prompts cost and earned."""

    name: str
    rows: list[LedgerRow]
    costs: list[PromptCost]
    grading: int = 0
    """Tokens that graded its problems; of several phases, the first has them."""
    problems: tuple[GradedProblem, ...] = ()
    """Those that it draws from, as they were graded."""


def phases_behind(model_uri: str, tracking_uri: str, store: str, cache: Path) -> list[Phase]:
    """Read the ledger of every RL phase that led to a registered model, first phase first.

    Args:
        model_uri: 'models:/NAME@released' or 'models:/NAME/3'.
        tracking_uri: the MLflow tracking server or database.
        store: folder or s3:// prefix that holds the artifacts.
        cache: local folder for objects of a remote store.

    Raises:
        SettingsError: the model does not exist, or no RL phase led to it.
        DataError: a ledger is damaged, or its tokens differ from the engine's count.
        TamperError: a statement was changed.
    """
    roots = [find_release(model_uri, store, tracking_uri).folder.statement]
    phases: list[Phase] = []
    grading = 0
    for statement in chain(store, roots).values():
        if statement.stage == "grade":
            grading += int(statement.facts.get("generated_tokens", 0))
        reports = [output for output in statement.outputs if output.role == "report"]
        if not statement.stage.startswith("rl/") or not reports:
            continue
        folder = localise(reports[0].uri, reports[0].digest, cache)
        phase = read_folder(statement.stage, folder)
        engine_tokens = statement.facts.get("engine_tokens")
        if engine_tokens is not None:
            check_conservation(phase.rows, int(engine_tokens))
        graded = [item for item in statement.inputs if item.role == "graded"]
        for item in graded[:1]:
            table = localise(item.uri, item.digest, cache) / PROBLEMS_FILE
            phase = replace(phase, problems=tuple(read_table(table, GradedProblem)))
        phases.append(phase)
    if not phases:
        raise SettingsError(f"no RL phase led to {model_uri}; there is no ledger to read")
    return [replace(phases[0], grading=grading), *phases[1:]]


def read_folder(name: str, folder: Path) -> Phase:
    """Read the ledger and the costs from the report of an RL phase."""
    return Phase(
        name=name,
        rows=read_ledger(folder / LEDGER_FILE),
        costs=read_table(find_beside(folder, COSTS_FILE), PromptCost),
    )


# Terminal output of the ledger: best and worst prompts, outcomes, uses of tokens, group sizes.


def ledger_text(ledger: Ledger, name: str, show: int) -> RenderableType:
    """Print the first and the last prompts by advantage earned per token."""
    rolled = [prompt for prompt in ledger.prompts if prompt.rollouts > 0]
    half = min(show, (len(rolled) + 1) // 2)
    return Group(
        _prompt_table(f"{name}: prompts that earned most per token", rolled[:half]),
        _prompt_table(f"{name}: prompts that earned least per token", rolled[::-1][:half]),
        _outcome_table(ledger),
        _use_table(ledger),
        *([_size_table(ledger.sizes)] if ledger.sizes else []),
        _summary(ledger),
    )


def _prompt_table(title: str, prompts: Sequence[PromptAccount]) -> Table:
    table = Table(title=title, title_justify="left", box=None)
    table.add_column("prompt", overflow="fold", min_width=20)
    for head in ("draws", "skips", "solved", "tokens", "engine s", "verifier s"):
        table.add_column(head, justify="right")
    for head in ("|A| / ktoken", "change"):
        table.add_column(head, justify="right")
    for prompt in prompts:
        table.add_row(
            prompt.problem_id,
            str(prompt.draws),
            str(prompt.skips),
            f"{prompt.solved} of {prompt.scored}",
            f"{prompt.generated_tokens:,}",
            f"{prompt.engine_seconds:.2f}",
            f"{prompt.verifier_seconds:.3f}",
            f"{prompt.earned_per_kilotoken:.1f}",
            f"{100 * prompt.pass_rate_change:+.0f} %",
        )
    return table


def _outcome_table(ledger: Ledger) -> Table:
    table = Table(title="Outcome of every draw", title_justify="left", box=None)
    for head in ("stage", "outcome"):
        table.add_column(head, no_wrap=True)
    for head in ("draws", "tokens", "trained", "saved (predicted)", "|advantage|"):
        table.add_column(head, justify="right")
    for row in ledger.outcomes:
        table.add_row(
            row.stage,
            row.outcome.replace("_", " "),
            f"{row.draws:,}",
            f"{row.generated_tokens:,}",
            f"{row.trained_tokens:,}",
            f"{row.saved_tokens:,}",
            f"{row.advantage_mass:,.0f}",
        )
    return table


def _use_table(ledger: Ledger) -> Table:
    table = Table(title="Use of the generated tokens", title_justify="left", box=None)
    table.add_column("use", no_wrap=True)
    for head in ("tokens", "share"):
        table.add_column(head, justify="right")
    total = max(1, sum(ledger.uses.values()))
    for use, tokens in ledger.uses.items():
        table.add_row(use.replace("_", " "), f"{tokens:,}", f"{tokens / total:.1%}")
    return table


def _size_table(sizes: Sequence[GroupSize]) -> Table:
    best = choose_group_size(sizes).size
    title = (
        f"Predicted results by group size (at most {MAX_ZERO_VARIANCE:.0%} zero-variance groups)"
    )
    table = Table(title=title, title_justify="left", box=None)
    for head in ("N", "zero-variance groups", "pass@N", "mean |A|", "|A| / ktoken"):
        table.add_column(head, justify="right")
    for size in sizes:
        table.add_row(
            f"{size.size}{' *' if size.size == best else ''}",
            f"{size.zero_variance:.1%}",
            f"{size.pass_at_n:.1%}",
            f"{size.signal:.3f}",
            f"{size.signal_per_kilotoken:.2f}",
        )
    return table


def _summary(ledger: Ledger) -> str:
    total = ledger.totals
    share = total["trained_tokens"] / max(1.0, total["generated_tokens"])
    return (
        f"{total['prompts']:,.0f} prompts, {total['draws']:,.0f} draws: "
        f"{total['generated_tokens']:,.0f} tokens generated in {total['engine_seconds']:,.1f} s, "
        f"{share:.0%} of them with weight in the loss; {total['saved_tokens']:,.0f} tokens not "
        f"generated; verdicts took {total['verifier_seconds']:,.1f} s and "
        f"{total['judge_calls']:,.0f} judge calls."
    )
