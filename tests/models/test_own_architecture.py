"""An architecture of one's own: chosen by settings, pinned by content, or refused by name."""

import json
import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.machine_settings import RolloutKind, TrainerKind
from data_schemas.rl_settings import RouterReplay
from data_schemas.settings import PipelineSettings
from tasks.capacity.plan import read_shape
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.select import require_layers
from tasks.errors import SettingsError
from tasks.models.architectures import CODE, Family, read_architecture
from tasks.models.model_folder import check_model_folder, with_code
from tasks.plugins import load, pin
from tasks.provenance.lineage.base_model import read_model
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement
from tasks.settings import check, fit
from tasks.stages.foundation import ingest_base
from tasks.store.interface import store_at

FAMILY = """
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from tasks.models.architectures import FAMILIES
from tasks.models.registration import register_classes


class OwnConfig(Qwen3MoeConfig):
    model_type = "{kind}"


class OwnForCausalLM(Qwen3MoeForCausalLM):
    config_class = OwnConfig
{forward}

class Own:
    def read(self, architecture, config):
        return FAMILIES["qwen3_moe"].read(architecture, config)

    def register(self):
        register_classes(OwnConfig, OwnForCausalLM)
"""
AROUND = """
    def forward(self, *args, **kwargs):
        found = super().forward(*args, **kwargs)
        found.logits = found.logits * 2
        return found
"""


@pytest.fixture
def own(tiny_moe, tmp_path, monkeypatch):
    """A working folder with a family and a model of its type."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_family.py").write_text(FAMILY.format(kind="own_moe", forward=""))
    folder = shutil.copytree(tiny_moe, tmp_path / "own_model")
    edit(folder, model_type="own_moe")
    return folder


def edit(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def store(tmp_path, migrated) -> StoreRef:
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    return StoreRef(uri=str(folder), id=identity, tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")


def ingested(path: Path, store: StoreRef, execution: str = "one"):
    return ingest_base(
        path=str(path),
        name="base",
        store=store,
        execution=Execution(id=execution, started=0.0),
        architecture="my_family.py:Own",
    )


def test_an_ingested_model_names_the_code_that_opens_it_and_so_does_the_statement(own, store):
    ref = ingested(own, store)

    pinned = pin("my_family.py:Own")
    assert pinned == json.loads((Path(ref.uri) / "config.json").read_text())[CODE]
    statement = load_statement(store.uri, ref.statement)
    assert pinned == json.loads(statement.settings)["architecture"]
    assert pinned.partition("@")[2] in statement.code
    assert CODE not in json.loads((own / "config.json").read_text())  # the user's is not touched


def test_changed_code_makes_another_model(own, store, tmp_path):
    first = ingested(own, store)
    path = tmp_path / "my_family.py"
    path.write_text(path.read_text() + "\n# changed\n")
    second = ingested(own, store, "two")

    assert first.digest != second.digest  # which is in Flyte's cache keys
    assert "own_moe" == read_architecture(Path(second.uri)).family


def test_code_that_changed_does_not_open_an_older_model(own):
    edit(own, **{CODE: f"my_family.py:Own@{'0' * 64}"})

    with pytest.raises(SettingsError, match=r"my_family\.py has changed since Own was chosen"):
        HFRolloutEngine(own)


def test_a_trainers_export_names_the_code_as_well(own, tmp_path):
    with with_code(own, pin("my_family.py:Own")) as opened:
        TorchTrainer(opened).export(tmp_path / "exported")

    check_model_folder(tmp_path / "exported")
    assert pin("my_family.py:Own") == json.loads(
        (tmp_path / "exported" / "config.json").read_text()
    ).get(CODE)


def test_a_judge_does_not_choose_the_code_that_opens_it(own, store):
    edit(own, **{CODE: pin("my_family.py:Own")})
    execution = Execution(id="one", started=0.0)

    with (
        pytest.raises(SettingsError, match=r"config\.json names code that opens the model"),
        stage("judge", PipelineSettings().merge, Context(store, execution), "0" * 64) as record,
    ):
        read_model("judge", str(own), record)


def test_a_model_does_not_choose_the_code_that_opens_it(own, tmp_path):
    (tmp_path / "evil.py").write_text("open('was_run', 'w')\n")
    edit(own, **{CODE: pin("my_family.py:Own").replace("my_family", "evil")})
    message = r"config\.json names code that opens the model, evil\.py:Own\. If you trust it"

    with pytest.raises(SettingsError, match=message):
        fit.fit_to_base(PipelineSettings(base_model=str(own)))
    with pytest.raises(SettingsError, match=message):
        ingest_base(
            path=str(own),
            name="base",
            store=StoreRef(uri=str(tmp_path / "s"), id="s", tracking_uri="sqlite:///m.db"),
            execution=Execution(id="one", started=0.0),
        )
    with pytest.raises(SettingsError, match=message):
        read_shape(own)
    parents = {"sft": {"parents": {"reasoning": str(own)}}}
    with pytest.raises(SettingsError, match=f"sft.parents.reasoning: {message}"):
        check.check(PipelineSettings.model_validate(parents))
    assert not (tmp_path / "was_run").exists()


def test_settings_are_checked_with_the_code_that_they_name(own):
    settings = PipelineSettings(base_model=str(own), architecture="my_family.py:Own")

    assert RouterReplay.R3 is fit.fit_to_base(settings).rl_one.router_replay
    fit.require_router(settings)
    fit.require_layers(settings)
    with pytest.raises(SettingsError, match=r"supported are .* and others by code of your own"):
        fit.fit_to_base(settings.model_copy(update={"architecture": ""}))
    real = PipelineSettings.model_validate(
        {**settings.model_dump(), "evaluation": {"engines": {"rollout": "vllm"}}}
    )
    with pytest.raises(SettingsError, match=r"evaluation: .* 'vllm' does not have the layers of"):
        fit.require_layers(real)


@pytest.mark.parametrize(
    ("rollout", "trainer", "message"),
    [
        (RolloutKind.VLLM, None, "rollout 'vllm' does not have the layers of my_family.py:Own"),
        (None, TrainerKind.MEGATRON, "trainer 'megatron' does not have the layers of my_family.py"),
    ],
)
def test_engines_of_other_processes_refuse_it_by_name(own, rollout, trainer, message):
    with (
        with_code(own, pin("my_family.py:Own")) as opened,
        pytest.raises(SettingsError, match=message),
    ):
        require_layers(opened, rollout=rollout, trainer=trainer)


def test_a_model_that_computes_around_its_modules_is_refused_by_the_rollout_engine(own, tmp_path):
    (tmp_path / "around.py").write_text(FAMILY.format(kind="around_moe", forward=AROUND))
    edit(own, model_type="around_moe")

    with (
        with_code(own, pin("around.py:Own")) as opened,
        pytest.raises(SettingsError, match=r"computes other logits than the model of around\.py:"),
    ):
        HFRolloutEngine(opened)


def test_what_is_no_family_is_refused_in_one_line_with_an_example(own, tmp_path):
    (tmp_path / "odd.py").write_text("class Odd:\n    def read(self, config): ...\n")

    with pytest.raises(SettingsError, match=r"is no Family: .*Example: class Odd: def read") as one:
        load("odd.py:Odd", Family)

    assert "\n" not in str(one.value)


def test_a_built_in_type_is_never_read_by_other_code(tiny_moe, tmp_path):
    folder = shutil.copytree(tiny_moe, tmp_path / "model")
    edit(folder, **{CODE: "evil.py:Own"})

    assert "qwen3_moe" == read_architecture(folder).family
