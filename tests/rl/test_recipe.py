"""A recipe from a file of a user's own: opened, pinned, trained with and replayed."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from data_schemas.rl_settings import AnyRecipe, TermSettings
from data_schemas.settings import PipelineSettings
from tasks.algorithms.choices import complete
from tasks.errors import SettingsError
from tasks.rl import step_snapshot
from tasks.rl.phase import state_folder, train
from tasks.rl.recipe import PLAIN, Recipe, open_recipe, pinned_source
from tasks.rl.replay.recompute import compare
from tasks.stages.opening import check_settings

README = Path(__file__).parents[2] / "tasks" / "rl" / "README.md"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The file that the README shows, in an empty folder."""
    (text,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "my_recipe.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    return AnyRecipe(implementation="my_recipe.py:open_hint")


def test_the_file_of_the_readme_trains_and_a_step_of_it_is_replayed(
    own, phase_in, scorer, tmp_path
):
    phase = phase_in(tmp_path / "state", steps=1)
    recipe = open_recipe(own, phase.settings)
    (record,) = train(replace(phase, recipe=recipe), scorer())

    (path,) = step_snapshot.find_snapshots(phase.state, 1)
    snapshot = step_snapshot.decode(path.read_bytes())
    shown = [bool(i.rollout.shown) for e in snapshot.groups for i in e.group.rollouts]
    assert len(shown) // 2 == sum(shown)
    assert record.gate.k3 < 1e-6
    assert not [one.name for one in compare(snapshot) if one.difference]


def test_a_term_that_judges_by_the_rollout_is_refused_where_another_prompt_is_trained(
    own, phase_in, scorer, tmp_path
):
    stale = (TermSettings(kind="stale"),)
    phase = phase_in(tmp_path / "state", steps=1, terms=stale)

    with pytest.raises(SettingsError, match=r"Stale compares .* leave it out of terms"):
        next(train(replace(phase, recipe=open_recipe(own, phase.settings)), scorer()))
    assert next(train(phase, scorer())).report.step == 1


def test_changed_source_has_another_digest_and_the_same_state(own, settings, tmp_path):
    before = pinned_source(own).code
    folders = [state_folder(tmp_path, settings, "start", "problems", recipe=own)]
    with (tmp_path / "my_recipe.py").open("a") as file:
        file.write("\n# changed\n")
    pinned = pinned_source(own)
    folders.append(state_folder(tmp_path, settings, "start", "problems", recipe=pinned))

    assert before != pinned.code
    assert folders[0] == folders[1] != state_folder(tmp_path, settings, "start", "problems")


def test_a_recipe_that_is_none_is_refused_in_one_line(own, settings, tmp_path):
    (tmp_path / "other.py").write_text("value = 3\n")

    assert PLAIN == open_recipe(None, settings) == Recipe()
    for name, message in (
        ("nowhere.py:opened", "nowhere.py is in neither"),
        ("my_recipe.py:open_hints", "has no 'open_hints'"),
        ("other.py:value", "is no function"),
        ("tasks.lab.recipes.nothing:opened", "can be imported"),
    ):
        with pytest.raises(SettingsError, match=message):
            open_recipe(AnyRecipe(implementation=name), settings)


def test_a_phase_of_the_pipeline_names_a_recipe_in_its_settings(own, tmp_path):
    settings = PipelineSettings.model_validate({"rl_one": {"recipe": own.model_dump()}})

    checked = check_settings.task_function(settings=settings, sources="")

    assert own.model_copy(update={"code": pinned_source(own).code}) == checked.rl_one.recipe
    assert checked.rl_two == complete(settings.rl_two)
    (tmp_path / "my_recipe.py").write_text("def open_hints(): ...")
    with pytest.raises(SettingsError, match=r"rl_one\.recipe: my_recipe\.py has no 'open_hint'"):
        check_settings.task_function(settings=settings, sources="")
