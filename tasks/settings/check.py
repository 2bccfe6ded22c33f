"""Whether settings can run: the one check, which the command line and the first task call.

What is light stands first, so that a wrong word or path is refused within a second; torch is loaded
by what stands last (fit.py). Nothing that this module imports may load torch, transformers or
flytekit.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

from pydantic import BaseModel

from data_schemas.artifacts import is_address
from data_schemas.machine_settings import Choice, MachineSettings, RolloutKind, models_in
from data_schemas.public_sets import BENCHMARKS
from data_schemas.references import is_reference
from data_schemas.rl_settings import (
    AdvantageSettings,
    JudgeKind,
    LossSettings,
    PairLossSettings,
    RLSettings,
    SkipSettings,
    TermSettings,
)
from data_schemas.settings import MergeSettings, PipelineSettings, RetrainSettings
from tasks.algorithms import names
from tasks.curation.ingest import check_sources
from tasks.engines.support import require
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import refuse_foreign_code
from tasks.models.config_file import CONFIG
from tasks.models.model_folder import (
    REGISTERED,
    check_guard_folder,
    check_model_folder,
    check_tokenizer_files,
    check_weights_folder,
    local_folder,
    positions_of,
    read_config,
)
from tasks.models.weights import check_tensors
from tasks.platform import resources
from tasks.platform.log_lines import in_pod
from tasks.plugins import references_in, require_name, unknown
from tasks.provenance.lineage.lookup import parse_model_uri
from tasks.settings.options import ANSWERING, BENCHMARK
from tasks.store.copies import S3
from tasks.store.interface import store_at

FIT = "tasks.settings.fit"
"""Module of what needs torch: it is imported by the last line of the check."""
BUILT_IN: Mapping[type[Choice], Mapping[str, str]] = {
    LossSettings: names.LOSSES,
    PairLossSettings: names.PAIR_LOSSES,
    AdvantageSettings: names.ADVANTAGES,
    MergeSettings: names.MERGE_METHODS,
    TermSettings: names.TERMS,
    SkipSettings: names.SKIPS,
}
"""Names of the built-in choices; their tables cannot be asked without torch."""
STAGES = {
    "sft": "sft",
    "general_sft": "sft",
    "grading": "grade",
    "rl": "rl",
    "rl_one": "rl",
    "rl_two": "rl",
    "evaluation": "evaluate",
}
"""The stage whose machine the engines of a group run on."""


def check(settings: PipelineSettings | RetrainSettings, *, trains: bool = True) -> None:
    """Refuse settings that cannot run, before any stage.

    In a pod, engines are left to the pods of other images.

    Args:
        settings: of a workflow, with the inputs of its command line.
        trains: False if the stages of the workflow only read rows.

    Raises:
        SettingsError: names the setting, its value and what to write.
    """
    require_names(settings)
    require_own_files(settings)
    if trains:
        for name, engines in engines_of(settings):
            _check_engines(name, engines)
    require_places(settings)
    if isinstance(settings, PipelineSettings):
        require_base(settings.base_model)
        if trains:
            require_positions(settings)
        require_roles(settings)
        check_sources(settings.curation.sources)
    if trains:
        require_folders(settings)
    import_module(FIT).require_fit(settings, trains=trains)


def phases_of(settings: PipelineSettings | RetrainSettings) -> Iterator[tuple[str, RLSettings]]:
    """Yield the phases of RL by the name of their group."""
    yield from ((name, group) for name, group in settings if isinstance(group, RLSettings))


def engines_of(
    settings: PipelineSettings | RetrainSettings,
) -> Iterator[tuple[str, MachineSettings]]:
    """Yield the engines of every stage that has some, by the name of its group."""
    for name, group in settings:
        engines = getattr(group, "engines", None)
        if isinstance(engines, MachineSettings):
            yield name, engines


def require_base(path: str) -> None:
    """Refuse a base model that is not there; one of MLflow's is looked up as it is copied.

    Raises:
        SettingsError: it is no folder or prefix with a configuration.
    """
    try:
        folder = local_folder(path)
        if folder is not None:
            read_config(folder)
            if not in_pod():
                check_tokenizer_files(folder)
        elif path.startswith(S3):
            require_remote_model(path)
    except (DataError, SettingsError) as error:
        raise SettingsError(f"base_model: {error}") from error


def _check_engines(group: str, engines: MachineSettings) -> None:
    """Refuse engines that are not installed, and more processes than the GPUs of a node."""
    try:
        if not in_pod():
            require(engines)
    except SettingsError as error:
        raise SettingsError(f"{group}.{error}") from error
    processes, dedicated = resources.PROCESSES, engines.layout.dedicated_rollout_gpus
    gpus = resources.STAGES[STAGES[group]].machine.gpus
    if gpus and processes + dedicated > gpus:  # none where a cluster is tested without them
        raise SettingsError(
            f"{group}.engines.layout.dedicated_rollout_gpus is {dedicated}; with {processes} "
            f"processes (EACHPROMPT_PROCESSES) that is more than the {gpus} GPUs of a node"
        )


def require_names(settings: BaseModel, where: str = "") -> None:
    """Refuse a choice that is neither built in nor a reference.

    Raises:
        SettingsError: names the setting, and what was probably meant.
    """
    for name, value in settings:
        for place, part in models_in(value):
            require_names(part, f"{where}{name}{place}.")
    if isinstance(settings, Choice):
        built_in = [*BUILT_IN[type(settings)]]
        if settings.chosen not in built_in and not is_reference(settings.chosen):
            raise unknown(settings.chosen, built_in, f"{where}{settings.CHOSEN_BY}")


def require_own_files(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse names of code in files of one's own that are not there, without running the files.

    Raises:
        SettingsError: names the setting.
    """
    for name, reference in references_in(settings):
        try:
            require_name(reference)
        except SettingsError as error:
            raise SettingsError(f"{name}: {error}") from error


def require_roles(settings: PipelineSettings) -> None:
    """Refuse a benchmark among the sources that are trained on, before anything is read.

    Raises:
        SettingsError: names it.
    """
    for source in settings.curation.sources:
        if source.adapter in BENCHMARKS and not source.evaluation:
            raise SettingsError(
                f"curation.sources trains on {source.adapter}, which is a benchmark; give it "
                f"evaluation true ({BENCHMARK}{source.adapter}=... on the command line), or take "
                "it out"
            )


def require_positions(settings: PipelineSettings) -> None:
    """Refuse responses that do not fit the context of the base model behind a longest prompt.

    Raises:
        SettingsError: names the setting and both lengths.
    """
    base = local_folder(settings.base_model)
    if base is None or not base.is_dir():
        return  # it is checked as it is ingested
    positions = positions_of(base)
    prompt = settings.curation.max_prompt_tokens
    for name in ANSWERING:
        response = getattr(settings, name).max_new_tokens
        if positions is not None and prompt + response > positions:
            raise SettingsError(
                f"{name}.max_new_tokens {response} behind a prompt of curation.max_prompt_tokens "
                f"{prompt} exceeds the {positions} positions of {base}. Lower one of them."
            )


def require_places(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse settings that name a folder of a model that is not there.

    Raises:
        SettingsError: names the setting.
    """
    for name, path, _ in model_folders(settings):
        try:
            folder = None if is_address(path) else local_folder(path)
            if folder is not None:
                read_config(folder)
            elif path.startswith(S3):
                require_remote_model(path)
        except (DataError, SettingsError) as error:
            raise SettingsError(f"{name}: {error}") from error


def require_remote_model(uri: str) -> None:
    """Refuse a prefix of S3 without a configuration of a model, before it is copied.

    Raises:
        SettingsError: it has none, or may not be read.
        EngineError: S3 does not answer.
    """
    if not store_at(uri).fingerprints([CONFIG]):
        raise SettingsError(f"{uri} has no {CONFIG}. Set it to a model directory.")


def require_folders(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse settings that name a judge, guard, encoder or screen model that cannot be opened.

    Raises:
        SettingsError: names the setting.
    """
    for name, path, check in model_folders(settings):
        folder = None if is_address(path) else local_folder(path)
        try:
            if folder is not None:
                refuse_foreign_code(folder)
                check(folder)
            elif path.startswith(REGISTERED):
                parse_model_uri(path)  # the model itself is checked as it is ingested
        except (SettingsError, DataError) as error:
            raise SettingsError(f"{name}: {error}") from error


def model_folders(
    settings: PipelineSettings | RetrainSettings,
) -> Iterator[tuple[str, str, Callable[[Path], None]]]:
    """Yield (name of the setting, folder, what checks that it can be opened)."""
    for parent, path in settings.sft.parents.items():
        yield f"sft.parents.{parent.value}", path, check_model_folder
    if settings.curation.guard.kind is JudgeKind.MODEL:
        yield "curation.guard.address", settings.curation.guard.address, check_guard_folder
    if settings.curation.encoder.kind is JudgeKind.MODEL:
        yield "curation.encoder.address", settings.curation.encoder.address, check_weights_folder
    grading = settings.grading
    if grading.screen_model:
        is_embedded = grading.engines.rollout is RolloutKind.HF
        check = check_model_folder if is_embedded else check_tensors
        yield "grading.screen_model", grading.screen_model, check
    phases = dict(phases_of(settings))
    for name, judge in (
        ("grading.judge", grading.judge),
        *((f"{phase}.rewards.judge", rl.rewards.judge) for phase, rl in phases.items()),
        ("evaluation.judge", settings.evaluation.judge),
    ):
        if judge.kind is JudgeKind.MODEL:
            yield f"{name}.address", judge.address, check_model_folder
    for phase, rl in phases.items():
        teachers = {} if rl.recipe is None else rl.recipe.model_dump().get("teachers", {})
        for domain, path in teachers.items():
            yield f"{phase}.recipe.teachers.{domain}", str(path), check_model_folder
