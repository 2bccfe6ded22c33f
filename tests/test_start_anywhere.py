"""Every stage of training can be skipped, and the parents of the merge can be existing models."""

import json
import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from data_schemas import presets
from data_schemas.arrow import write_table
from data_schemas.artifacts import (
    CheckpointRef,
    Context,
    DatasetRef,
    Execution,
    GradedRef,
    ReportRef,
    StoreRef,
)
from data_schemas.faults import explain
from data_schemas.reports import SKIPPED_FILE
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import (
    DEMONSTRATIONS,
    HELD_OUT,
    MERGED,
    PROBLEMS,
    Demonstration,
    Domain,
    Message,
    Parent,
    Problem,
    Role,
)
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    MergeSettings,
    PipelineSettings,
    ReleaseSettings,
    RetrainSettings,
    SFTSettings,
)
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.errors import SettingsError
from tasks.formats.readiness import fit_phase
from tasks.models.weights import Weights
from tasks.pages.collect import _under
from tasks.provenance.lineage.promotions import next_promotion
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement
from tasks.settings import check, fit
from tasks.stages.foundation import ingest_base, ingest_parents
from tasks.stages.merge import merge
from tasks.stages.rl import rl
from tasks.stages.sft import has_epochs, keep_model, sft
from tasks.store.interface import store_at
from tests.records import filled, problem_of
from workflows.post_training import general_tuning

EXECUTION = Execution(id="exec-1", started=1000.0)
UNREAD = DatasetRef(uri="/no/such/place", digest="0" * 64)
UNGRADED = GradedRef(uri="/no/such/place", digest="0" * 64)


@pytest.fixture
def store(tmp_path, migrated) -> StoreRef:
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    return StoreRef(uri=str(folder), id=identity, tracking_uri=uri)


@pytest.fixture
def base(store, tiny_moe):
    return ingest_base(path=str(tiny_moe), name="base", store=store, execution=EXECUTION)


def fine_tuned(store, base, curated=UNREAD, **changes):
    settings = SFTSettings(**changes)
    starts = ingest_parents(settings=settings, base=base, store=store, execution=EXECUTION)
    return {
        parent: sft(
            settings=settings,
            parent=parent,
            curated=curated,
            base=start,
            store=store,
            execution=EXECUTION,
        )
        for parent, start in (
            (Parent.REASONING, starts.reasoning),
            (Parent.COMMERCE, starts.commerce),
        )
    }


def merged(store, base, tuned):
    return merge(
        settings=MergeSettings(),
        base=base,
        reasoning=tuned[Parent.REASONING].model,
        commerce=tuned[Parent.COMMERCE].model,
        store=store,
        execution=EXECUTION,
    )


def skipped_because(store, ref) -> str:
    """The reason in a report, which the statement of its stage repeats."""
    (reason,) = json.loads(store_at(f"{ref.uri}/{SKIPPED_FILE}").read_bytes()).values()
    assert reason == load_statement(store.uri, ref.statement).facts["skipped"]
    return reason


@pytest.mark.slow
def test_without_epochs_rl_starts_from_the_base_and_nothing_is_merged(store, base):
    tuned = fine_tuned(store, base, epochs=0)

    assert base == merged(store, base, tuned)
    for part in tuned.values():
        assert base == part.model
        assert "settings.epochs is 0: the base is passed on" == skipped_because(store, part.report)


@pytest.mark.slow
def test_a_parent_without_demonstrations_is_the_base(store, base):
    with stage("curate", CurationSettings(), Context(store, EXECUTION), "0" * 64) as record:
        with record.output("curated") as out:
            write_table(out / DEMONSTRATIONS, Demonstration, [])
        curated = record.ref("curated", DatasetRef)

    tuned = fine_tuned(store, base, curated=curated)

    assert base == merged(store, base, tuned)
    for parent, part in tuned.items():
        reason = f"no source has demonstrations for {parent.value}: the base is passed on"
        assert reason == skipped_because(store, part.report)


def scale(folder: Path) -> None:
    """Give a model other weights."""
    trainer = TorchTrainer(folder)
    for _, tensor in trainer.weights():
        tensor.data.mul_(1.5)
    trainer.export(folder)


@pytest.mark.slow
def test_an_existing_model_is_a_parent_with_its_lineage(store, base, tiny_moe, tmp_path):
    shutil.copytree(tiny_moe, tmp_path / "v3")
    scale(tmp_path / "v3")
    tuned = fine_tuned(store, base, epochs=0, parents={"commerce": str(tmp_path / "v3")})
    commerce = tuned[Parent.COMMERCE]

    (origin,) = load_statement(store.uri, commerce.model.statement).inputs
    assert ("origin", (tmp_path / "v3").as_uri(), "") == (
        origin.role,
        origin.uri,
        origin.statement,
    )
    assert skipped_because(store, commerce.report).endswith("v3")
    scale(tmp_path / "v3")  # the content of the folder decides, not its name
    again = fine_tuned(store, base, epochs=0, parents={"commerce": str(tmp_path / "v3")})
    assert commerce.model.digest != again[Parent.COMMERCE].model.digest
    folder = merged(store, base, tuned).uri
    assert commerce.model.uri == folder  # beside the base there is nothing to merge
    with Weights(tiny_moe) as before, Weights(Path(folder)) as after:
        name = "model.norm.weight"
        assert not before.read_finite(name).equal(after.read_finite(name))


def registered(store, model: Path):
    """Release a model under the name v3, as another pipeline on the same MLflow would have."""
    execution = Execution(id="earlier", started=1.0)
    with stage("release", ReleaseSettings(name="v3"), Context(store, execution), "c") as record:
        with record.output("model") as out:
            shutil.copytree(model, out, dirs_exist_ok=True)
            scale(out)
        record.facts(next_promotion("v3", store.uri, {}, ""))
        record.register("model", "v3", released=True, tags={})
        return record.ref("model", CheckpointRef)


@pytest.mark.slow
@pytest.mark.parametrize("uri", ["models:/v3@released", "models:/v3/1"])
def test_a_registered_model_is_a_parent_whose_lineage_goes_on(store, base, tiny_moe, uri):
    v3 = registered(store, tiny_moe)

    tuned = fine_tuned(store, base, epochs=0, parents={"commerce": uri})

    commerce = tuned[Parent.COMMERCE].model
    (origin,) = load_statement(store.uri, commerce.statement).inputs
    assert ("origin", v3.uri, v3.digest, v3.statement) == (
        origin.role,
        origin.uri,
        origin.digest,
        origin.statement,
    )
    assert skipped_because(store, tuned[Parent.COMMERCE].report).endswith(uri)
    assert commerce == merged(store, base, tuned)


def test_a_parent_that_nobody_registered_is_refused_by_its_setting(store, base):
    with pytest.raises(SettingsError, match=r"sft\.parents\.commerce: models:/v3/7 is not in this"):
        fine_tuned(store, base, epochs=0, parents={"commerce": "models:/v3/7"})


def test_a_phase_without_steps_passes_its_start_model_on(store, base):
    phase = RLSettings(domains={Domain.MATHS: 1.0}, steps=0)
    trained = rl(
        settings=phase,
        name="rl/two",
        start=base,
        graded=UNGRADED,
        store=store,
        execution=EXECUTION,
    )

    assert base == trained.model
    assert "settings.steps is 0: the start model is passed on" == skipped_because(
        store, trained.report
    )
    assert phase == fit_phase(phase, [], "rl_two")


def test_a_skipped_stage_has_no_curves_in_the_report(tmp_path):
    folders = {name: tmp_path / name for name in ("sft/reasoning", "sft/commerce", "rl/one")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (folders["sft/commerce"] / SKIPPED_FILE).touch()

    assert ["sft/reasoning"] == list(_under("sft/", folders))


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"judge": "folder"}, "parents names 'judge' with 'folder'"),
        ({"commerce": ""}, "an existing model for reasoning or commerce"),
    ],
)
def test_a_parent_that_nothing_merges_is_refused(parents, message):
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({"sft": {"parents": parents}})

    assert message in explain(refused.value, PipelineSettings)


def test_an_existing_parent_that_is_missing_is_refused_before_anything_runs():
    settings = PipelineSettings.model_validate({"sft": {"parents": {"commerce": "/no/model"}}})

    with pytest.raises(SettingsError, match=r"^sft\.parents\.commerce: /no/model is not a folder"):
        check.check(settings)


def test_a_registered_parent_without_a_version_is_refused_before_anything_runs():
    settings = PipelineSettings.model_validate({"sft": {"parents": {"commerce": "models:/v3"}}})

    message = r"^sft\.parents\.commerce: 'models:/v3' names no model; use models:/NAME@released"
    with pytest.raises(SettingsError, match=message):
        check.check(settings)


def demonstration(number: int, parent: Parent) -> Demonstration:
    return filled(
        Demonstration,
        id=f"d{number}",
        parent=parent,
        messages=(Message(role=Role.USER, content=f"What is {number} + 1?"),),
        response=str(number + 1),
        source="hand",
    )


@pytest.mark.slow
def test_a_general_fine_tuning_after_rl_learns_from_both_parents_rows_and_is_evaluated(store, base):
    rows = [demonstration(n, MERGED[n % 2]) for n in range(8)]
    question = problem_of(rows[0].messages, '{"value":"1"}', id="p", source="hand")
    with stage("curate", CurationSettings(), Context(store, EXECUTION), "code") as record:
        with record.output("curated") as out:
            write_table(out / DEMONSTRATIONS, Demonstration, rows)
            write_table(out / HELD_OUT, Problem, [question])
            write_table(out / PROBLEMS, Problem, [])
        curated = record.ref("curated", DatasetRef)

    last = general_tuning(
        settings=PipelineSettings(
            general_sft=SFTSettings(epochs=1, entropy_prompts=1),
            evaluation=EvaluationSettings(samples=1, max_new_tokens=4),
        ),
        start=base,
        curated=curated,
        store=store,
        execution=EXECUTION,
    )

    made = load_statement(store.uri, last.model.statement)
    assert ("sft/general", 8) == (made.stage, made.facts["demonstrations"])
    assert {base.statement, curated.statement} == {given.statement for given in made.inputs}
    assert "evaluate/sft/general" == load_statement(store.uri, last.evaluation.statement).stage
    assert base.digest != last.model.digest


def test_the_default_pipeline_ends_with_rl_and_its_last_model_is_passed_on(store, base):
    report = ReportRef(uri="/no/such/place", digest="1" * 64)

    last = keep_model(model=base, training=report, evaluation=report)

    assert not has_epochs(settings=PipelineSettings().general_sft)
    assert (base, report, report) == (last.model, last.training, last.evaluation)


def test_a_model_after_rl_is_merged_with_none():
    with pytest.raises(ValidationError) as refused:
        PipelineSettings.model_validate({"general_sft": {"parents": {"commerce": "v3"}}})

    assert "general_sft.parents is set" in explain(refused.value, PipelineSettings)


def test_one_field_of_the_last_fine_tuning_switches_it_on():
    settings = PipelineSettings.model_validate({"general_sft": {"epochs": 2}})

    assert SFTSettings(epochs=2) == settings.general_sft
    assert has_epochs(settings=settings.general_sft)


def test_a_router_setting_of_a_skipped_phase_does_not_refuse_a_dense_base(tiny_dense):
    settings = PipelineSettings.model_validate(
        {"base_model": str(tiny_dense), "rl_one": {"steps": 0}, "rl_two": {"steps": 0}}
    )

    fit.require_router(settings)


def test_retraining_without_steps_is_refused():
    with pytest.raises(ValidationError) as refused:
        RetrainSettings.model_validate({"rl": {"steps": 0}})

    assert "rl.steps is 0" in explain(refused.value, RetrainSettings)


def test_compass_thinker_starts_rl_from_its_base():
    assert 0 == presets.COMPASS_THINKER.sft.epochs
    assert not presets.COMPASS_THINKER.sft.parents


@pytest.mark.parametrize("path", ["models:/v3@released", f"runs/o#{'0' * 64}"])
def test_a_model_that_a_store_has_is_checked_as_it_is_ingested(path):
    judge = {"kind": "model", "address": path}
    settings = PipelineSettings.model_validate(
        {"sft": {"parents": {"commerce": path}}, "evaluation": {"judge": judge}}
    )

    check.check(settings)
