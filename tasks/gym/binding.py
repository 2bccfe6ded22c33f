"""Bind the verifiers of the table to settings: the judge, and how maths and code are rewarded."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from data_schemas.rl_settings import JudgeKind, MathsReward, RewardSettings
from tasks.gym import code_tests
from tasks.gym.judging import comparisons, rubric
from tasks.gym.judging.calls import MeteredJudge
from tasks.gym.judging.opening import open_endpoint_judge
from tasks.gym.judging.protocol import Judge
from tasks.gym.protocol import Entry, Verifier, own_entry, own_verifier
from tasks.gym.table import ENTRIES, PLAIN
from tasks.plugins import Table

QUESTIONS = 8
"""Judge timeouts that one response or group may take: two orders, two attempts each, in waves."""


def entries(settings: RewardSettings, judge: Judge | None = None) -> Table[Entry]:
    """Bind every verifier to the settings; those that need a judge only if one is set.

    Args:
        settings: of the rewards.
        judge: in place of the one behind the endpoint that the settings name.

    Raises:
        SettingsError: the judge cannot be opened.
    """
    code = partial(code_tests.verify, reward=settings.code)
    table = ENTRIES.with_entries({"code_tests": replace(ENTRIES["code_tests"], verify=code)})
    if settings.maths is MathsReward.RULE:
        table = table.with_entries({"final_answer": table["rule_answer"]})
    if settings.judge.kind is JudgeKind.NONE:
        unbound = {name: entry for name, entry in table.items() if not entry.needs_judge}
        return Table(unbound, own_entry)
    metered = MeteredJudge(judge or open_endpoint_judge(settings.judge))
    return table.with_entries(_bind_judge(metered, settings.judge.timeout_s))


def _bind_judge(judge: MeteredJudge, timeout_s: float) -> dict[str, Entry]:
    """Bind the verifiers that need a judge; a response costs several prompts, some repeated."""
    patience = QUESTIONS * timeout_s
    return {
        "generative_judge": replace(
            ENTRIES["generative_judge"],
            verify=comparisons.verifier(judge),
            timeout_s=patience,
            verify_group=comparisons.group_verifier(judge),
            calls=judge.count_here,
        ),
        "rubric": replace(
            ENTRIES["rubric"],
            verify=rubric.verifier(judge, PLAIN),
            timeout_s=patience,
            calls=judge.count_here,
        ),
    }


def verifiers(settings: RewardSettings) -> Mapping[str, Verifier]:
    """Bind every verifier to the settings, for use in this process."""
    functions = {name: entry.verify for name, entry in entries(settings).items()}
    return Table(functions, own_verifier)
