from data_schemas.presets import CPU_SMOKE, NIGHTLY
from data_schemas.rl_settings import JudgeSettings
from data_schemas.settings import PipelineSettings
from tasks.training.foundation.named_models import replace_models

MODEL = {"kind": "model", "address": "a/judge"}
TAUGHT = {"implementation": "a.module:name", "teachers": {"maths": "a", "code": "b"}}
REMOTE = {"kind": "http", "address": "http://host/v1", "model": "judge"}


def in_store(role: str, address: str) -> str:
    return f"{role} {address}"


def test_every_model_that_settings_name_is_replaced_and_nothing_else():
    given = {
        "grading": {"judge": MODEL, "screen_model": "small"},
        "rl_one": {"rewards": {"judge": REMOTE}},
        "rl_two": {"rewards": {"judge": MODEL}, "recipe": TAUGHT},
        "evaluation": {"judge": MODEL},
        "curation": {"guard": MODEL, "encoder": MODEL},
    }
    settings = PipelineSettings.model_validate(given)

    found = replace_models(settings, in_store)

    kept = JudgeSettings(kind="model", address="judge a/judge")
    assert [kept, kept, kept] == [
        found.grading.judge,
        found.rl_two.rewards.judge,
        found.evaluation.judge,
    ]
    assert "guard a/judge" == found.curation.guard.address
    assert "encoder a/judge" == found.curation.encoder.address
    assert "screen small" == found.grading.screen_model
    recipe = found.rl_two.recipe
    assert recipe is not None
    assert {"maths": "teacher a", "code": "teacher b"} == recipe.model_dump()["teachers"]
    assert settings == replace_models(found, lambda _, address: address.split()[1])


def test_settings_without_models_stay_as_they_are():
    for settings in (CPU_SMOKE, NIGHTLY):
        assert settings == replace_models(settings, in_store)
