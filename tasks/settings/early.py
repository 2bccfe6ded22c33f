"""What is refused before any library is loaded: places and lengths that the command line names.

`eachprompt` asks here first; the stages that use a place check it again. Nothing that this module
imports may load torch, transformers or flytekit.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from data_schemas import presets
from data_schemas.artifacts import is_address
from data_schemas.machine_settings import Choice, MachineSettings, RolloutKind, models_in
from data_schemas.rl_settings import (
    AdvantageSettings,
    JudgeKind,
    LossSettings,
    TermSettings,
    is_reference,
)
from data_schemas.settings import MergeSettings, PipelineSettings, RetrainSettings, Source
from data_schemas.sources import BENCHMARKS
from tasks.algorithms import names
from tasks.curation.ingest import check_sources
from tasks.engines.support import require
from tasks.errors import DataError, SettingsError
from tasks.models.config_file import CONFIG
from tasks.models.model_folder import (
    REGISTERED,
    check_guard_folder,
    check_model_folder,
    check_tokenizer_files,
    check_weights_folder,
    local_folder,
    read_config,
)
from tasks.models.weights import check_tensors
from tasks.plugins import references_in, require_name, unknown
from tasks.provenance.lineage.lookup import missing_version, parse_model_uri
from tasks.provenance.lineage.promotions import promotions
from tasks.settings.groups import expand
from tasks.store.copies import S3
from tasks.store.interface import store_at
from tasks.store.location import absolute_store, existing_file, tracking_uri
from tasks.training.foundation.candidates import parse_candidates

EXAMPLE = "--sources gsm8k=data/train.jsonl,ae110k=data/ae110k"
ANSWERING = ("grading", "rl_one", "rl_two", "evaluation")
"""Groups of settings whose stages let the model answer prompts."""
BENCHMARK = "evaluation:"
"""In front of an adapter: its rows are only evaluated with."""
FILES = {"agreement": "file", "completeness": "file", "forget": "rows", "av-speaker": "both"}
"""Commands that read a file, and the option that names it."""
FOLDERS = {
    "capacity": "model",
    "judge": "base_model",
    "mismatch": "model_folder",
    "super-experts": "model",
    "upcycle": "model",
}
"""Commands that open one model, and the option that names it."""
READERS = ("audit", "diff-models", "forget", "ledger", "replay", "trace")
"""Commands that read a store and never make one."""
OPENERS = ("audit", "replay", "trace")
"""Commands that open this model unless an option asks for something else."""
DEFAULT_MODEL = "models:/eachprompt-tiny@released"
OTHER_OPTIONS = {"store", "format", "show", "key", "phase", "step", "loss"}
"""Options of these that ask for nothing else."""
FORMATS = ("text", "json")
PAPERS = ("annex-iv", "training-summary", "aisvs")
"""Formats of `audit` beside these."""
ENGINES = ("embedded", "real")
"""Pairs of engines that `mismatch` compares."""
BUILT_IN: Mapping[type[Choice], Mapping[str, str]] = {
    LossSettings: names.LOSSES,
    AdvantageSettings: names.ADVANTAGES,
    MergeSettings: names.MERGE_METHODS,
    TermSettings: names.TERMS,
}
"""Names of the built-in choices; their tables cannot be asked without torch."""
IN_CODE = ("shop", "defaults")
"""What a study may name as a preset that is no file."""


def check(command: str, typed: Mapping[str, str], settings: object) -> None:
    """Refuse places that are not there, and responses that the base has no positions for.

    Args:
        command: of `eachprompt`.
        typed: option without dashes -> text.
        settings: of the command; None if it has none.

    Raises:
        SettingsError: names the option or setting.
    """
    _check_words(command, typed)
    _check_places(command, typed)
    if isinstance(settings, PipelineSettings | RetrainSettings):
        _check_own_code(settings)
        require_places(settings)
    if command in ("run", "curate") and isinstance(settings, PipelineSettings):
        base = typed.get("base_model") or settings.base_model
        _check_folder(base)
        if (folder := local_folder(base)) is not None:
            check_tokenizer_files(folder)
        with_base = settings.model_copy(update={"base_model": base})
        if command == "run":
            _check_stages(with_base)
        with_base = with_sources(with_base, typed.get("sources", ""))
        require_roles(with_base)
        check_sources(with_base.curation.sources)


def _check_places(command: str, typed: Mapping[str, str]) -> None:
    """Refuse files, folders and stores that are not there."""
    if (option := FILES.get(command)) and option in typed:
        existing_file(typed[option], f"--{option}")
    if (option := FOLDERS.get(command)) and option in typed:
        _check_folder(typed[option])
    if command == "study":
        for option in ("of", "against"):
            _check_compared(option, typed.get(option, ""), is_study="against" not in typed)
    if command == "evaluate":
        for one in parse_candidates(typed.get("model", "")):
            _check_folder("" if "://" in one.address else one.address)
    if command in READERS and not (command == "replay" and typed.get("file")):
        _check_store(command, typed)
    _check_registered(command, typed)


def _check_words(command: str, typed: Mapping[str, str]) -> None:
    """Refuse what an option of every command that has it takes nowhere."""
    if "store" in typed:
        absolute_store(typed["store"])
    formats = (*FORMATS, *PAPERS) if command == "audit" else FORMATS
    if typed.get("format", "text") not in formats:
        raise SettingsError(f"--format {typed['format']!r} is neither {' nor '.join(formats)}")
    if preset := typed.get("preset"):
        try:
            presets.load(preset)
        except ValueError as error:
            raise SettingsError(f"--preset: {error}") from error
    if loss := typed.get("loss"):
        require_word("--loss", loss, list(names.LOSSES))
    if engines := typed.get("engines"):
        require_word("--engines", engines, ENGINES)
    if command == "capacity":
        require_one_shape(typed.get("preset", ""), typed.get("model", ""))


def require_word(option: str, word: str, words: Sequence[str]) -> None:
    """Refuse a word that an option does not take.

    Raises:
        SettingsError: names those that it takes.
    """
    if word not in words:
        raise SettingsError(f"{option} {word!r} is none of: {', '.join(words)}")


def require_one_shape(preset: str, model: str) -> None:
    """Refuse a budget of two models, or of none.

    Raises:
        SettingsError: names both options.
    """
    if bool(preset) == bool(model):
        raise SettingsError("give either --preset or --model")


def _check_compared(option: str, name: str, *, is_study: bool) -> None:
    """Refuse a study or, of two settings that are compared, a file or preset that is not there."""
    if not name:
        return
    if is_study or name.endswith((".yaml", ".yml", ".json")):
        existing_file(name, f"--{option}")
    elif name not in IN_CODE:
        try:
            presets.preset(name, PipelineSettings)
        except ValueError as error:
            raise SettingsError(f"--{option}: {error}") from error


def _check_store(command: str, typed: Mapping[str, str]) -> None:
    """Refuse a folder that no run has written to, and what names no registered model."""
    model = typed.get("model", "")
    if model and command in ("ledger", "replay"):
        parse_model_uri(model)
    if "folder" in typed and command == "audit":
        if model:
            raise SettingsError("--folder is audited without a store; leave out --model")
        return
    if "/objects/" in model:  # lies in the store that it is audited by
        return
    store = absolute_store(typed.get("store", "runs"))
    if store_at(store).local_path is not None and not Path(store, "statements").is_dir():
        raise SettingsError(
            f"--store {store} holds no statements. Name the folder of an earlier run; without one, "
            "eachprompt run makes it"
        )


def _check_own_code(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse a choice that is not there, and files of one's own that are not."""
    require_names(settings)
    for name, reference in references_in(settings):
        try:
            require_name(reference)
        except SettingsError as error:
            raise SettingsError(f"{name}: {error}") from error


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


def _check_stages(settings: PipelineSettings) -> None:
    """Refuse engines that are not installed, and responses that do not fit the base."""
    for name, group in settings:
        engines = getattr(group, "engines", None)
        try:
            if isinstance(engines, MachineSettings):
                require(engines)
        except SettingsError as error:
            raise SettingsError(f"{name}.{error}") from error
    require_positions(settings)


def check_model(arguments: Sequence[str]) -> None:
    """Refuse a folder or a store that does not hold the model that a command begins with."""
    if arguments and not arguments[0].startswith("-"):
        pairs = (one.split("=", 1) if one.startswith("--") else [one] for one in arguments)
        words = [word for pair in pairs for word in pair]
        model, options = words[0], dict(zip(words, [*words[1:], ""], strict=True))
        typed = {"model": model, "store": options.get("--store", "runs")}
        _check_folder(model)
        if model.startswith(REGISTERED):
            _check_store("chat", typed)
            _check_registered("chat", typed)


def _check_registered(command: str, typed: Mapping[str, str]) -> None:
    """Refuse a version that neither MLflow nor the statements of the store have."""
    store = absolute_store(typed.get("store", "runs"))
    is_default = command in OPENERS and not typed.keys() - OTHER_OPTIONS
    texts = [text for option, text in typed.items() if option != "settings"]
    for model in [DEFAULT_MODEL] if is_default else re.split("[,=]", ",".join(texts)):
        if model.startswith(REGISTERED):
            tracking = tracking_uri(store, os.environ.get("MLFLOW_TRACKING_URI", ""))
            problem = missing_version(model, tracking)
            name = parse_model_uri(model)[0]
            if problem and not promotions(name, store, None):
                raise SettingsError(problem)


def _check_folder(model: str) -> None:
    """Refuse a folder that holds no model; what lies elsewhere is looked at when it is fetched."""
    folder = None if is_address(model) else local_folder(model)
    if folder is not None:
        read_config(folder)


def with_sources(settings: PipelineSettings, sources: str) -> PipelineSettings:
    """Replace the sources of curation, unless `sources` is empty, and groups of suites in them.

    Raises:
        SettingsError: an entry is not adapter=path, or a group cannot be read.
    """
    parsed = parse_sources(sources) if sources.strip() else settings.curation.sources
    all_sources = expand(parsed)
    if all_sources == settings.curation.sources:
        return settings
    curation = settings.curation.model_copy(update={"sources": all_sources})
    return settings.model_copy(update={"curation": curation})


def parse_sources(text: str, option: str = "--sources") -> tuple[Source, ...]:
    """Parse 'adapter=path,evaluation:adapter=path'; 'sample_world' needs no path.

    Raises:
        SettingsError: an entry does not have that form.
    """
    sources: list[Source] = []
    for entry in text.split(","):
        adapter, equals, path = (part.strip() for part in entry.partition("="))
        if not adapter or (equals and not path):
            raise SettingsError(
                f"{option}: {entry.strip()!r} is not adapter=path. Example: {EXAMPLE}"
            )
        name = adapter.removeprefix(BENCHMARK)
        sources.append(Source(adapter=name, path=path, evaluation=name != adapter))
    return tuple(sources)


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


def positions_of(base: Path) -> int | None:
    """Return how many tokens a model was made for; None if its configuration does not say."""
    entry = read_config(base).get("max_position_embeddings")
    return entry if isinstance(entry, int) else None


def require_places(settings: PipelineSettings | RetrainSettings) -> None:
    """Refuse settings that name a folder of a model that is not there.

    Raises:
        SettingsError: names the setting.
    """
    for name, path, _ in model_folders(settings):
        folder = None if is_address(path) else local_folder(path)
        if folder is not None and not folder.is_dir():
            raise SettingsError(f"{name}: {path} is not a folder. Set it to a model directory.")
        try:
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
    if isinstance(settings, RetrainSettings):
        phases = {"rl": settings.rl}
    else:
        phases = {"rl_one": settings.rl_one, "rl_two": settings.rl_two}
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
