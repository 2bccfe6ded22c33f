"""Recipes: the tables of RECIPES.md are the presets', and every recipe trains on what it says."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path

import pytest
import torch
from pydantic import BaseModel

from data_schemas.artifacts import CheckpointRef, is_address
from data_schemas.laptop_recipes import RECIPES, RESPONSE_TOKENS, has_judge, scaled
from data_schemas.ledgers import GroupOutcome
from data_schemas.machine_settings import Choice
from data_schemas.presets import COMPASSMAX, CPU_SMOKE, FULL_SCALE, RING_LITE, SINGLE_NODE
from data_schemas.rl_settings import JudgeSettings, LossSettings, RLSettings, TermSettings
from data_schemas.rows import Domain
from data_schemas.verdicts import scored
from tasks.algorithms.choices import TABLES
from tasks.algorithms.losses.table import find, whole_step
from tasks.algorithms.terms.table import TERMS, find_terms
from tasks.algorithms.terms.token_budget import TokenBudget
from tasks.curation.marketplace.drawing import DRAWERS, SCHOOL
from tasks.errors import SettingsError
from tasks.rl.phase import train
from tasks.stages.opening import needs_judge, scaled_recipe
from tests.rl.conftest import even
from tests.tables import for_each

ROOT = Path(__file__).parents[2]
SECTIONS = (ROOT / "tasks" / "rl" / "RECIPES.md").read_text().split("\n## `")[1:]
ROWS = [
    (section.partition("`")[0].lower(), *re.split(r"\s*\|\s*", line.strip("| "))[:3])
    for section in SECTIONS
    for line in section.splitlines()
    if line.startswith("| `")
]


def written(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(written(key) for key in value)
    return value.value if isinstance(value, StrEnum) else str(value)


@for_each(("recipe", "setting", "paper", "here"), ROWS)
def test_the_table_of_a_recipe_is_what_its_preset_has(recipe, setting, paper, here):
    value = RECIPES[recipe]
    for name in setting.strip("`").split("."):
        # A setting that only this choice has stands in the choice that the name makes.
        is_own = isinstance(value, Choice) and name not in type(value).model_fields
        if isinstance(value, tuple):  # the terms, by kind
            value = {one.kind: TERMS.choose(one, "terms") for one in value}[name]
        else:
            chosen = TABLES[type(value)].choose(value, name) if is_own else value
            value = getattr(chosen, name)

    assert here == written(value)


def test_every_recipe_has_a_table():
    assert set(RECIPES) == {recipe for recipe, *_ in ROWS}


NO_ROW = re.compile(
    r"\.engines|\.seed$|^release|^curation\.sources|\.judge\.(address|model)$|overlong_buffer$"
)
"""Machines and places, of which no paper says anything; the buffer of a penalty that has a row."""


def leaves(value: object, name: str = "") -> dict[str, object]:
    if isinstance(value, tuple) and value and isinstance(value[0], TermSettings):
        parts = [leaves(TERMS.choose(one, "terms"), f"{name}.{one.kind}") for one in value]
        return {key: part for one in parts for key, part in one.items()}
    if not isinstance(value, BaseModel):
        return {name.strip("."): value}
    fields = [*value, *find(value)] if isinstance(value, LossSettings) else [*value]
    found = [leaves(part, f"{name}.{field}") for field, part in fields]
    return {key: one for part in found for key, one in part.items()}


@pytest.mark.parametrize(
    ("recipe", "plain"),
    [("compassmax", FULL_SCALE), ("ring_lite", FULL_SCALE), ("compass_thinker", SINGLE_NODE)],
)
def test_the_table_has_every_value_by_which_a_recipe_differs_from_the_plain_preset(recipe, plain):
    before = leaves(plain)
    changed = {
        name
        for name, value in leaves(RECIPES[recipe]).items()
        if value != before.get(name, value)  # what the plain preset's loss does not have
    } - set(filter(NO_ROW.search, before))
    shown = {setting.strip("`") for name, setting, *_ in ROWS if name == recipe}
    for_both = {name.replace("rl_one.", "rl_two.") for name in shown}

    assert set() == changed - shown - for_both


def test_the_judge_of_a_recipe_is_one_of_the_tiny_models_size():
    small = scaled(COMPASSMAX, "runs/objects/judge")

    assert JudgeSettings(kind="model", address="runs/objects/judge") == small.rl_two.rewards.judge
    assert JudgeSettings() == small.rl_one.rewards.judge == scaled(COMPASSMAX).rl_two.rewards.judge
    assert ["compassmax"] == [name for name, recipe in RECIPES.items() if has_judge(recipe)]
    assert [True, False, False] == [needs_judge(name=name) for name in RECIPES]
    assert scaled(RING_LITE) == scaled(RING_LITE, "runs/objects/judge")


def test_a_recipe_that_trains_science_or_general_questions_has_them_generated():
    sources = {
        name: [one.adapter for one in scaled(RECIPES[name]).curation.sources if not one.evaluation]
        for name in RECIPES
    }

    assert sources == {
        "compassmax": ["sample_world", "sample_general"],
        "ring_lite": ["sample_world", "sample_science"],
        "compass_thinker": ["sample_world"],
    }
    generated = {*DRAWERS, *SCHOOL}
    for recipe in map(scaled, RECIPES.values()):
        assert {*recipe.rl_one.domains, *recipe.rl_two.domains} <= generated


def test_an_unknown_recipe_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="choose from compassmax, ring_lite, compass_thinker"):
        scaled_recipe(name="ringlite")


def test_a_scaled_recipe_keeps_every_switch_and_takes_the_sizes_of_the_default():
    sizes = {"steps", "prompts_per_step", "max_new_tokens", "learning_rate", "engines"}
    sizes |= {"commit_every", "terms", "rewards"}
    for recipe in RECIPES.values():
        small = scaled(recipe)
        for whole, tiny, default in (
            (recipe.rl_one, small.rl_one, CPU_SMOKE.rl_one),
            (recipe.rl_two, small.rl_two, CPU_SMOKE.rl_two),
        ):
            assert whole.model_dump(exclude=sizes) == tiny.model_dump(exclude=sizes)
            for one, other in zip(whole.terms, tiny.terms, strict=True):
                scale = RESPONSE_TOKENS / whole.max_new_tokens
                assert {
                    name: value * scale if name == "tokens_per_response" else value
                    for name, value in one.model_dump().items()
                } == other.model_dump()
            num_responses = default.prompts_per_step * default.group_size
            assert num_responses == tiny.prompts_per_step * tiny.group_size


def test_a_trained_judge_is_named_by_its_content():
    trained = CheckpointRef(uri="runs/objects/1", digest="1" * 64, statement="2" * 64)

    settings = scaled_recipe(name="compassmax", judge=trained)

    assert f"runs/objects/1#{'2' * 64}" == settings.rl_two.rewards.judge.address
    assert is_address(settings.rl_two.rewards.judge.address)


@dataclass(frozen=True)
class Step:
    """The first step of a recipe's first phase."""

    settings: RLSettings
    metrics: dict[str, float]
    generated: int
    """Responses."""
    response_tokens: int
    outcomes: Counter[GroupOutcome]


@pytest.fixture
def first_step(phase_in, scorer, tmp_path):
    def run(name, rule=even, **sizes):
        settings = scaled(RECIPES[name]).rl_one.model_copy(update=sizes)
        changes = dict(settings) | {"domains": {Domain.MATHS: 1.0}}
        record = next(train(phase_in(tmp_path / name, **changes), scorer(rule)))
        return Step(
            settings,
            record.report.metrics,
            sum(row.rollouts for row in record.ledger),
            sum(row.generated_tokens - row.draft_tokens for row in record.ledger),
            Counter(row.outcome for row in record.ledger),
        )

    return run


def never(*_):
    return scored(0.0, "rule")


def test_compassmax_generates_no_group_to_replace_another(first_step):
    step = first_step("compassmax", never)

    assert step.settings.prompts_per_step * step.settings.group_size == step.generated
    assert {GroupOutcome.ZERO_VARIANCE_TRAINED} == set(step.outcomes)
    # RL-ZVP leaves the most uncertain token of a wrong response as it is; where no penalty differs
    # within the group, that token has no advantage at all. Every other token is trained.
    without = step.response_tokens - step.metrics["policy/trained_tokens"]
    assert 0 < without <= step.generated
    assert without == pytest.approx(
        step.response_tokens * step.metrics["tokens/no_advantage_share"]
    )


def budget_of(settings: RLSettings) -> int:
    """Tokens of an update."""
    (budget,) = (one for one in find_terms(settings.terms) if isinstance(one, TokenBudget))
    responses = settings.prompts_per_step * settings.group_size / settings.num_mini_batches
    mask = torch.ones(1, 1, dtype=torch.bool)
    return budget.budget(replace(whole_step(mask), responses_per_update=responses))


def test_ring_lite_trains_the_share_of_usual_responses_that_full_size_trains_of_the_longest(
    first_step,
):
    step = first_step("ring_lite", max_new_tokens=RESPONSE_TOKENS)  # none is shorter, hardly

    of_full_size = budget_of(RING_LITE.rl_one) / (8192 * RING_LITE.rl_one.max_new_tokens)
    assert 12_800 / 24_576 == pytest.approx(of_full_size)
    assert RESPONSE_TOKENS == pytest.approx(step.response_tokens / step.generated, rel=0.05)
    trained = step.metrics["policy/trained_tokens"]
    assert of_full_size == pytest.approx(trained / step.response_tokens, rel=0.05)
    contrasting = step.metrics["policy/trained_sequences"] / step.generated
    assert contrasting > of_full_size  # so that the budget is what limits the update
    assert budget_of(step.settings) == trained
    assert step.metrics["policy/kl"] >= 0.0


def test_ring_lite_ends_with_a_general_fine_tuning_at_a_tenth_of_the_rate():
    small = scaled(RING_LITE)

    assert [1, 0, 0] == [
        scaled(RECIPES[name]).general_sft.epochs
        for name in ("ring_lite", "compassmax", "compass_thinker")
    ]
    assert 0.1 * small.sft.learning_rate == pytest.approx(small.general_sft.learning_rate)


def test_compass_thinker_replaces_groups_without_variance_and_trains_none_of_them(first_step):
    draws = count()

    def late(*_):
        """Zero variance in the first draw, both outcomes from then on."""
        number = next(draws)
        return scored(float(number >= 192 and number % 2), "rule")

    step = first_step("compass_thinker", late)

    assert 2 * step.settings.prompts_per_step * step.settings.group_size == step.generated
    assert {GroupOutcome.SURPLUS, GroupOutcome.NON_ZERO_VARIANCE} == set(step.outcomes)
    assert step.outcomes[GroupOutcome.SURPLUS] == step.outcomes[GroupOutcome.NON_ZERO_VARIANCE]
