import pytest

from data_schemas import presets
from data_schemas.rl_settings import (
    EngineSettings,
    MismatchSettings,
    RouterReplay,
)
from tasks.algorithms import choices
from tasks.errors import SettingsError
from tasks.lab.study import declaration
from tasks.lab.study.mismatch.numerics import PAIRS
from tasks.provenance.audit import papers
from tasks.settings import early
from tasks.settings.check import BUILT_IN, require_positions
from tasks.settings.fit import fit_to_base, require_router
from tasks.settings.options import with_inputs, with_name, with_room, with_sources, with_suites
from tests.algorithms.signals import terms_of


def of(folder, **rl):
    phase = {"router_replay": RouterReplay.OFF} | rl
    return presets.CPU_SMOKE.model_copy(
        update={
            "base_model": str(folder),
            "rl_one": presets.CPU_SMOKE.rl_one.model_copy(update=phase),
            "rl_two": presets.CPU_SMOKE.rl_two.model_copy(update=phase),
        }
    )


SHIFT = "tasks/lab/terms/router_shift.py:RouterShift"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"router_replay": RouterReplay.R3}, "router_replay is 'r3'"),
        ({"router_replay": RouterReplay.R2}, "router_replay is 'r2'"),
        ({"terms": terms_of({"kind": SHIFT})}, f"terms has '{SHIFT}'"),
        ({"engines": EngineSettings(mismatch=MismatchSettings(routes=True))}, "routes is True"),
        ({"terms": terms_of({"kind": "balance"})}, "terms has 'balance'"),
        ({"terms": terms_of({"kind": "router_z"})}, "terms has 'router_z'"),
    ],
)
def test_settings_of_a_router_are_refused_for_a_dense_base(tiny_dense, changes, field):
    with pytest.raises(SettingsError, match=rf"^rl_one\.\S*{field}, but .* is a dense model"):
        require_router(of(tiny_dense, **changes))


def test_a_dense_base_without_them_and_any_mixture_of_experts_are_accepted(tiny_dense, tiny_moe):
    require_router(of(tiny_dense))
    require_router(of(tiny_moe, router_replay=RouterReplay.R3))
    require_router(presets.CPU_SMOKE)


def test_a_phase_of_a_dense_base_does_not_replay_by_default(tiny_dense, tiny_moe):
    default, dense = of(tiny_moe, router_replay=RouterReplay.R3), of(tiny_dense)

    asked = dense.model_copy(
        update={"rl_one": dense.rl_one.model_copy(update={"router_replay": RouterReplay.R3})}
    )

    assert RouterReplay.OFF is fit_to_base(asked).rl_one.router_replay
    require_router(fit_to_base(asked))
    assert default is fit_to_base(default)


def lengths(settings) -> tuple[int, int]:
    return settings.curation.max_prompt_tokens, settings.curation.max_response_tokens


def test_rows_of_a_file_may_be_as_long_as_the_base_has_positions(caplog):
    own = with_room(with_sources(presets.CPU_SMOKE, "sample_world,mine.yaml=products.csv"))

    assert (384, 128) == lengths(own)
    assert ["384 tokens", "128, of the 512 positions"] == [
        part for part in ("384 tokens", "128, of the 512 positions") if part in caplog.text
    ]
    require_positions(own)


def test_lengths_that_are_set_and_those_of_the_sample_world_stay():
    assert presets.CPU_SMOKE is with_room(presets.CPU_SMOKE)
    own = with_sources(presets.CPU_SMOKE, "mine.yaml=products.csv")
    shorter = own.curation.model_copy(update={"max_prompt_tokens": 90})
    own = own.model_copy(update={"curation": shorter})
    assert own is with_room(own)
    suites = with_suites(presets.CPU_SMOKE, "mgsm=mgsm.jsonl")
    assert suites is with_room(suites)


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("", "eachprompt-tiny"),
        ("/models/Qwen3 0.6B/", "eachprompt-Qwen3-0.6B"),
        ("s3://bucket/base", "eachprompt-base"),
        ("models:/shop/3", "eachprompt-shop"),
        ("models:/shop@released", "eachprompt-shop"),
    ],
)
def test_a_release_is_named_after_a_base_of_ones_own(base, name):
    settings = with_inputs(presets.CPU_SMOKE, base_model=base)

    assert name == with_name(settings, "").release.name
    assert "mine" == with_name(settings, "mine").release.name


def test_the_words_that_are_known_before_a_library_is_loaded_are_those_of_the_tables():
    assert {kind: [*table] for kind, table in choices.TABLES.items()} == {
        kind: [*names] for kind, names in BUILT_IN.items()
    }
    assert tuple(PAIRS) == early.ENGINES
    assert set(early.IN_CODE) == {*declaration.PRESETS, declaration.DEFAULTS} - {*presets.names()}


def test_the_console_knows_the_papers_that_the_audit_writes(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mlflow.example:5000")
    assert tuple(papers.PAPERS) == early.PAPERS
    early.check("audit", {"format": "annex-iv", "store": "s3://bucket/x"}, None)
    with pytest.raises(SettingsError, match="--format 'annex-iv' is neither text nor json"):
        early.check("trace", {"format": "annex-iv"}, None)
