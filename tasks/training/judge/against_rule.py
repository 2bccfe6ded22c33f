"""A judge against the rule verifier, on the open text that a model answered in an evaluation.

python -m tasks.training.judge.against_rule JUDGE EVALUATION CURATED

The three are folders of a store's objects/: the judge's model, the report of an evaluation, and the
curated data set with the held-out problems that were answered. The judge gives the reward that it
gives in RL: it compares an answer with the reference in both orders. The rule is the similarity to
that reference, which judged the evaluation; it is 1 only for the right title.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import Field
from rich.table import Table

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import HELD_OUT, Problem
from data_schemas.samples import SampleResult
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.algorithms.preferences import TIE
from tasks.engines.model_judge import ModelJudge
from tasks.errors import SettingsError
from tasks.gym.judging.comparisons import group_verifier, judged
from tasks.gym.judging.protocol import Judge
from tasks.platform.command_line import run
from tasks.platform.tables import Screen

OPEN_TEXT = "reference_text"
"""The rule verifier of open text."""


class RuleAgreement(FrozenModel):
    """How often the judge rewards real responses as the rule does."""

    responses: int
    wrong: int = Field(description="answers that the rule scores below 1")
    wrong_lose: int = Field(description="of these, answers that lose to the reference")
    wrong_unjudged: int = Field(description="of these, answers without a verdict")
    right: int
    right_tie: int = Field(description="of these, answers that do not lose")
    ordered: int = Field(description="right and wrong responses of one problem, in pairs")
    as_rule: int = Field(description="of these, pairs whose right response has the larger reward")
    inverted: int = Field(description="of these, pairs whose wrong response has the larger reward")
    groups: int = Field(description="problems with right and wrong answers")
    flat: int = Field(description="of these, problems whose answers all get one reward")


def compare_with_rule(
    judge: Judge, problems: Iterable[Problem], samples: Iterable[SampleResult]
) -> RuleAgreement:
    """Judge every response to open text and count where judge and rule agree.

    Responses without an answer are in the pairs only, where both give them nothing.
    """
    groups: dict[str, list[SampleResult]] = {}
    for sample in samples:
        groups.setdefault(sample.problem_id, []).append(sample)
    open_text = [problem for problem in problems if problem.verifier == OPEN_TEXT]
    verify = group_verifier(judge)
    counts: dict[str, int] = dict.fromkeys(RuleAgreement.model_fields, 0)
    for problem in open_text:
        group = groups.get(problem.id, [])
        verdicts = verify(judged(problem), [sample.text for sample in group]) if group else []
        rewards = [verdict.score for verdict in verdicts]
        for name, count in _count(group, rewards).items():
            counts[name] += count
    return RuleAgreement(**counts)


def _count(group: Sequence[SampleResult], rewards: Sequence[float | None]) -> Mapping[str, int]:
    judged_rows = list(zip(group, rewards, strict=True))
    answered = [
        (row.score == 1.0, reward) for row, reward in judged_rows if row.reason != "no_answer"
    ]
    wrong = [reward for is_right, reward in answered if not is_right]
    right = [reward for is_right, reward in answered if is_right]
    # A response without an answer is a wrong one, and gets nothing from both.
    others = [reward for row, reward in judged_rows if row.score != 1.0 and reward is not None]
    ahead = [ours - theirs for ours in right for theirs in others if ours is not None]
    mixed = bool(wrong) and bool(right)
    return {
        "responses": len(group),
        "wrong": len(wrong),
        "wrong_lose": wrong.count(0.0),
        "wrong_unjudged": wrong.count(None),
        "right": len(right),
        "right_tie": sum(reward is not None and reward >= TIE for reward in right),
        "ordered": len(ahead),
        "as_rule": sum(difference > 0 for difference in ahead),
        "inverted": sum(difference < 0 for difference in ahead),
        "groups": int(mixed),
        "flat": int(mixed and len({*wrong, *right}) == 1),
    }


def table(agreement: RuleAgreement) -> Table:
    """Format the counts as shares."""
    grid = Table(title=f"{agreement.responses} responses to open text")
    grid.add_column("")
    for column in ("of", "count", "share"):
        grid.add_column(column, justify="right")
    for name, of, count in (
        ("wrong answers that lose to the reference", agreement.wrong, agreement.wrong_lose),
        ("wrong answers without a verdict", agreement.wrong, agreement.wrong_unjudged),
        ("right answers that do not lose", agreement.right, agreement.right_tie),
        ("right above wrong, as the rule", agreement.ordered, agreement.as_rule),
        ("wrong above right", agreement.ordered, agreement.inverted),
        ("problems with both, all of one reward", agreement.groups, agreement.flat),
    ):
        grid.add_row(name, str(of), str(count), f"{count / of:.1%}" if of else "")
    return grid


def main(arguments: Sequence[str]) -> None:
    """Read the three folders and print the table.

    Raises:
        SettingsError: a folder lacks its file.
    """
    parser = argparse.ArgumentParser(prog="python -m tasks.training.judge.against_rule")
    for name in ("judge", "evaluation", "curated"):
        parser.add_argument(name, type=Path, help="folder in a store's objects/")
    options = parser.parse_args(arguments)
    samples, problems = options.evaluation / SAMPLES_FILE, options.curated / HELD_OUT
    for path in (samples, problems):
        if not path.is_file():
            raise SettingsError(f"{path} does not exist; give the folders in the order of --help")
    agreement = compare_with_rule(
        ModelJudge(options.judge), read_table(problems, Problem), read_table(samples, SampleResult)
    )
    Screen().print(table(agreement))


if __name__ == "__main__":
    run(main)
