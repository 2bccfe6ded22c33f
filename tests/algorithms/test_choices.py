"""Every built-in choice by name and by reference: the same object, so the same training.

And adding one is a file and a line in its table: nothing else knows the names.
"""

import inspect
import re
from pathlib import Path

import pytest
import torch
from pydantic import BaseModel

import tasks
from data_schemas.rl_settings import LossSettings, RLSettings
from data_schemas.settings import MergeSettings, PipelineSettings
from tasks.algorithms.advantages import table as advantages
from tasks.algorithms.choices import TABLES, complete
from tasks.algorithms.losses import table
from tasks.algorithms.losses.protocol import StepTokens
from tasks.algorithms.phase_choices import counts_all_responses, require_fit, without_effect
from tasks.errors import SettingsError
from tests.tables import for_each

ROOT = Path(tasks.__file__).parents[1]
FIELDS = {"clip_low": 0.1, "clip_high": 0.3, "clip_scale": 0.02, "drop_low": True}


def by_reference(kind: str) -> str:
    model = table.LOSSES[kind]
    return f"{model.__module__}:{model.__qualname__}"


def both(kind: str, **phase: object) -> list[RLSettings]:
    """A phase with a loss by name, and with the same one by reference; with settings of its own."""
    own = {name: value for name, value in FIELDS.items() if name in table.LOSSES[kind].model_fields}
    return [
        RLSettings.model_validate(
            {"domains": {"maths": 1.0}, "loss": {"kind": one, **own}, **phase}
        )
        for one in (kind, by_reference(kind))
    ]


def judgement(settings: RLSettings) -> tuple[str, list[str]]:
    """What is refused or noticed, without the name of the loss."""
    try:
        require_fit(settings)
        refusal = ""
    except SettingsError as error:
        refusal = str(error).replace(settings.loss.kind, "LOSS")
    notices = [line.replace(settings.loss.kind, "LOSS") for line in without_effect(settings)]
    return refusal, notices


@for_each("kind", table.LOSSES)
@for_each(
    "phase",
    [
        {},
        {"num_mini_batches": 1},
        {"terms": [], "zero_variance": {"std_floor": 0.1}},
        {
            "engines": {"mismatch": {"old_policy": "rollout"}},
            "terms": [],
        },
    ],
)
def test_a_loss_is_judged_alike_by_name_and_by_reference(kind, phase):
    named, referred = both(kind, **phase)

    assert judgement(named) == judgement(referred)
    assert counts_all_responses(named) == counts_all_responses(referred)
    assert advantages.find(named) == advantages.find(referred)


@for_each("kind", table.LOSSES)
def test_a_loss_plans_and_pushes_to_the_bit_alike_by_name_and_by_reference(kind):
    generator = torch.Generator().manual_seed(1)
    mask_NT = torch.arange(6) < torch.tensor([[6], [3], [1]])
    entropy_NT = torch.rand(3, 6, generator=generator)
    old_NT = -torch.rand(3, 6, generator=generator)
    advantages_NT = torch.randn(3, 1, generator=generator) * mask_NT
    found = []
    for settings in both(kind):
        loss = table.find(settings.loss)
        plan = loss.plan(StepTokens(entropy_NT, mask_NT, 64, table.whole_step(mask_NT)))
        logprobs_NT = (1.3 * old_NT).requires_grad_()
        objective_N, clipped_NT = loss.objective(logprobs_NT, old_NT, advantages_NT, plan)
        (slope_NT,) = torch.autograd.grad(objective_N.sum(), logprobs_NT)
        found.append((*plan.columns().values(), objective_N.detach(), clipped_NT, slope_NT))

    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@for_each("kind", advantages.ADVANTAGES)
def test_an_estimator_is_judged_and_estimates_to_the_bit_alike_by_name_and_by_reference(kind):
    generator = torch.Generator().manual_seed(1)
    scores_PG = torch.rand(3, 4, generator=generator)
    valid_PG = torch.rand(3, 4, generator=generator) > 0.2
    model = advantages.ADVANTAGES[kind]
    for rewards in ({}, {"maths": "rule"}):
        words, found = [], []
        for name in (kind, f"{model.__module__}:{model.__qualname__}"):
            settings = RLSettings.model_validate(
                {"domains": {"maths": 1.0}, "advantage": name, "rewards": rewards}
            )
            refusal, notices = judgement(settings)
            words.append((refusal.replace(name, "CHOICE"), notices))
            found.append(advantages.estimate(settings, scores_PG, -0.1 * scores_PG, valid_PG))

        assert words[0] == words[1]
        assert torch.equal(*found)


@for_each(
    ("phase", "message"),
    [
        (
            {"loss": {"kind": "espo", "clip_scal": 1}},
            "rl_one.loss.clip_scal is not a setting; did you mean `clip_scale`?; "
            "rl_one.loss.kind is 'espo'",
        ),
        (
            {"loss": {"kind": "grpo", "entropy_edges": [1]}},
            "rl_one.loss.entropy_edges is not a setting; choose from clip_low, clip_high; "
            "rl_one.loss.kind is 'grpo', but of espo",
        ),
        ({"loss": {"kind": "grpo", "clip_low": "x"}}, "rl_one.loss.clip_low is 'x'; it must"),
        (
            {"advantage": {"kind": "rloo", "power": 2}},
            "rl_one.advantage.power is not a setting; none is; rl_one.advantage.kind is 'rloo'",
        ),
        ({"advantage": "rlo"}, "rl_one.advantage.kind is 'rlo'; did you mean `rloo`?"),
        (
            {"loss": {"kind": "tasks/algorithms/losses/protocol.py:Loss"}},
            "rl_one.loss.kind: tasks/algorithms/losses/protocol.py:Loss cannot be used: it has no",
        ),
        (
            {"loss": {"kind": "tasks.algorithms.advantages.rloo:RLOO"}},
            "rl_one.loss.kind: tasks.algorithms.advantages.rloo:RLOO is no Loss: it is not derived",
        ),
    ],
)
def test_what_a_choice_does_not_have_is_refused_by_the_place_where_it_is_written(phase, message):
    settings = PipelineSettings.model_validate({"rl_one": phase})

    with pytest.raises(SettingsError) as refusal:
        complete(settings)

    assert str(refusal.value).startswith(message)


@for_each("kind", table.LOSSES)
def test_complete_settings_name_every_default_and_choose_the_same(kind):
    given = RLSettings.model_validate({"domains": {"maths": 1.0}, "loss": {"kind": kind}})

    settings = complete(given)

    assert settings.loss.own.keys() == table.LOSSES[kind].model_fields.keys()
    assert table.find(given.loss) == table.find(settings.loss)
    assert settings == complete(RLSettings.model_validate_json(settings.model_dump_json()))


def test_a_loss_of_ones_own_may_be_an_object_with_other_defaults(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "narrow.py").write_text(
        "from tasks.algorithms.losses.grpo import GRPO\nNARROW = GRPO(clip_low=0.05)\n"
    )

    loss = table.find(LossSettings(kind="narrow.py:NARROW", clip_high=0.5))

    assert (0.05, 0.5) == loss.clip_range


def test_no_file_but_its_own_compares_with_the_name_of_a_choice():
    models = [model for choices in TABLES.values() for model in choices.values()]
    own = {Path(inspect.getfile(model)) for model in models}
    names = "|".join(name for choices in TABLES.values() for name in choices)
    # kind == "dppo", kind in ("dppo", ..., case "dppo":
    compared = re.compile(rf"(?:[=!]=|\b(?:is|not|in|case))\s*[(\[{{]?\s*[\"'](?:{names})[\"']")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("tasks", "workflows", "data_schemas")
        for path in (ROOT / folder).rglob("*.py")
        if path not in own
        for match in compared.finditer(path.read_text())
    ]

    assert not found


@for_each("kind", TABLES)
def test_a_choice_alone_is_completed_as_within_its_group(kind):
    class Group(BaseModel):
        choice: kind

    chosen = kind.model_validate({kind.CHOSEN_BY: next(iter(TABLES[kind]))})

    alone = complete(chosen)

    assert complete(Group(choice=chosen)).choice == alone
    assert type(alone).CHOSEN_BY in alone.model_dump()
    with pytest.raises(SettingsError, match=rf"^--settings: nonsense .*; {kind.CHOSEN_BY} is "):
        complete(chosen.model_copy(update={"nonsense": 1}), "--settings: ")
    with pytest.raises(SettingsError, match=rf"^{kind.CHOSEN_BY} is 'nonsens"):
        complete(kind.model_validate({kind.CHOSEN_BY: "nonsens"}))


def test_the_outermost_choice_gets_the_settings_that_its_method_has_besides():
    assert 0.8 == complete(MergeSettings()).model_dump()["density"]


def test_no_file_but_those_of_choices_imports_one():
    """Who asks for the class of a choice knows its name: a choice says what it needs."""
    models = [model for choices in TABLES.values() for model in choices.values()]
    own = {Path(inspect.getfile(model)) for model in models}
    names = "|".join(model.__name__ for model in models)
    imported = re.compile(rf"^from tasks\.\S+ import [^)=]*?\b(?:{names})\b", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder in ("tasks", "workflows", "data_schemas")
        for path in (ROOT / folder).rglob("*.py")
        if path not in own
        for match in imported.finditer(path.read_text())
    ]

    assert not found
