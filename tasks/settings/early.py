"""What the options of a command name: words, files, folders, stores and registered models.

`eachprompt` asks here before any library is loaded, then checks the settings (check.py). Nothing
that this module imports may load torch, transformers or flytekit.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas import presets
from data_schemas.artifacts import is_address
from data_schemas.settings import PipelineSettings, RetrainSettings
from tasks.algorithms import names
from tasks.errors import SettingsError
from tasks.models.model_folder import (
    REGISTERED,
    local_folder,
    read_config,
)
from tasks.provenance.lineage.lookup import missing_version, parse_model_uri
from tasks.provenance.lineage.promotions import promotions
from tasks.settings import options
from tasks.settings.check import check as require_settings
from tasks.settings.check import require_names
from tasks.store.interface import store_at
from tasks.store.location import absolute_store, existing_file, tracking_uri
from tasks.training.foundation.candidates import parse_candidates, parse_precisions

READING = ("curate",)
"""Commands with settings whose stages only read rows."""
ELSEWHERE = ("super-experts",)
"""Commands that write settings out for a pipeline that may run on another machine."""
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
IN_CODE = ("shop", "wishes", "defaults")
"""What a study may name as a preset that is no file."""


def check(command: str, typed: Mapping[str, str], settings: object) -> None:
    """Refuse what a command cannot run with, before any stage.

    Args:
        command: of `eachprompt`.
        typed: option without dashes -> text.
        settings: of the command; None if it has none.

    Raises:
        SettingsError: names the option or setting.
    """
    _check_words(command, typed)
    _check_places(command, typed)
    if isinstance(settings, PipelineSettings):
        inputs = {name: typed.get(name, "") for name in ("sources", "suites", "base_model")}
        settings = options.with_inputs(settings, **inputs)
        if precision := typed.get("precision"):
            candidates = parse_candidates(typed.get("model", ""))
            parse_precisions(precision, candidates, settings.evaluation.engines)
    if isinstance(settings, PipelineSettings) and command in ELSEWHERE:
        require_names(settings)
    elif isinstance(settings, PipelineSettings | RetrainSettings):
        require_settings(settings, trains=command not in READING)


def _check_places(command: str, typed: Mapping[str, str]) -> None:
    """Refuse files, folders and stores that are not there."""
    if (option := FILES.get(command)) and option in typed:
        existing_file(typed[option], f"--{option}")
    if (option := FOLDERS.get(command)) and option in typed:
        _check_folder(typed[option], f"--{option}")
    if command == "study":
        for option in ("of", "against"):
            _check_compared(option, typed.get(option, ""), is_study="against" not in typed)
    if command == "evaluate":
        for one in parse_candidates(typed.get("model", "")):
            _check_folder("" if one.served_as else one.address, "--model")
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


def check_model(arguments: Sequence[str]) -> None:
    """Refuse a folder or a store that does not hold the model that a command begins with."""
    if arguments and not arguments[0].startswith("-"):
        pairs = (one.split("=", 1) if one.startswith("--") else [one] for one in arguments)
        words = [word for pair in pairs for word in pair]
        model, options = words[0], dict(zip(words, [*words[1:], ""], strict=True))
        typed = {"model": model, "store": options.get("--store", "runs")}
        _check_folder(model, "MODEL")
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


def _check_folder(model: str, option: str) -> None:
    """Refuse a folder that holds no model; what lies elsewhere is looked at when it is fetched."""
    try:
        folder = None if is_address(model) else local_folder(model)
        if folder is not None:
            read_config(folder)
    except SettingsError as error:
        raise SettingsError(f"{option}: {error}") from error
