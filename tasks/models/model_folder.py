"""What a model directory must hold for this pipeline to train it or to sample from it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import jinja2
from tokenizers import Tokenizer

from data_schemas.addresses import redacted
from data_schemas.settings import ChatSettings
from tasks.errors import DataError, SettingsError
from tasks.models import chat_trial
from tasks.models.architectures import (
    CODE,
    FAMILIES,
    end_ids,
    is_known,
    register_architecture,
)
from tasks.models.config_file import (
    CONFIG,
    GENERATION,
    TOKENIZER_BYTES,
    check_generation,
    check_values,
    read_object,
)
from tasks.models.downloads import check_downloaded
from tasks.models.weights import check_tensors
from tasks.plugins import GUIDE
from tasks.store.interface import store_at

SHIPPED = Path(__file__).parents[1] / "training" / "foundation" / "base_model"
"""The tiny mixture-of-experts model that comes with the project."""
_PATIENCE_S = 600.0
"""For a question of 1,000 characters, of a process that may wait for a busy machine."""
_PROBES = (
    "Is 1,299.50 >= x^2?\n\n  def f(x):\n\treturn 'no' . Or ?  ",
    "Größe: ราคา ๑๒ บาท",
    "北京 मूल्य ½ 🙂",
)
"""Texts in which tokenizers differ: digits, runs of blanks, scripts, what NFKC would change."""
_PUBLISHED_WITH_CODE = ("bailing_moe", "deepseek_v3")
"""Types whose checkpoints have an auto_map beside what is built in."""
_NAMED = re.compile(r"(?!<0x)[<\[(|\uff5c].*[>\])|\uff5c]")
"""A control token that only the vocabulary has: </s>, [PAD]; not the byte <0x0A>."""
REGISTERED = "models:/"
"""Start of the name of a registered model."""


def local_folder(path: str) -> Path | None:
    """Return the folder of a model that a setting names; '' is the shipped one.

    None for s3:// and models:/, whose folder is made when the model is ingested.

    Raises:
        SettingsError: it is another address.
    """
    if path.startswith("s3://"):
        store_at(path)  # refuses credentials in the address
        return None
    if path.startswith(REGISTERED):
        return None
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
        raise SettingsError(
            f"{redacted(path)} is of an unknown kind. Give a folder, "
            "s3://bucket/prefix or models:/NAME@alias; download others first (hf download)."
        )
    return Path(path).expanduser().resolve() if path else SHIPPED


def check_model_folder(path: Path) -> None:
    """Refuse a folder that cannot be a base model, before any expensive step.

    Raises:
        SettingsError: it is not a Hugging Face model directory, not of a supported
            architecture, its sizes are absurd, its weights are not those of its config, or its
            tokenizer is missing, is read in two ways, lacks a chat template or end token, has more
            tokens than the model has embeddings, or does not render a question in time.
    """
    if path.is_dir():
        check_downloaded(path)
    config = read_config(path)
    if (path / GENERATION).exists():
        check_generation(read_object(path / GENERATION, "Repair it, or delete it: it is optional."))
    model_type = config.get("model_type")
    if not is_known(config):
        supported = ", ".join(FAMILIES)
        advice = (
            "Choose a model of that architecture, or name code that opens it as `architecture` "
            f"({GUIDE})."
        )
        if text := _text_config(config):
            advice = (
                f"It reads more than text, which nothing here trains on. Give its language model "
                f"({text.get('model_type')}) as a folder of its own: text_config as config.json, "
                "with one of these types, and its tensors, named as that type names them."
            )
        raise SettingsError(
            f"{path}/config.json has model_type {model_type!r}; supported are {supported}. {advice}"
        )
    _check_values(path, config)
    _check_same_model(path, config)
    check_tokenizer_files(path)
    highest = _try_chat(path)
    size = config.get("vocab_size")
    if not isinstance(size, int) or highest >= size:
        raise SettingsError(
            f"the tokenizer in {path} has token ids up to {highest}, but config.json has "
            f"vocab_size {size}. Tokenizer and model belong to different checkpoints."
        )
    _check_ends(path, size)
    _check_reading(path)
    try:
        check_tensors(path)
    except DataError as error:
        raise SettingsError(str(error)) from error


def _check_same_model(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse what engines would read differently: vLLM opens the class that `architectures` names
    and the weights that `quantization_config` (of MLX `quantization`, once `compression_config`)
    describes, others those of `model_type` as they are; who trusts remote code runs what `auto_map`
    names.

    Raises:
        SettingsError: names the key.
    """
    for key in ("quantization_config", "compression_config", "quantization"):
        if method := config.get(key):
            raise SettingsError(
                f"{path}/{CONFIG} has a {key} ({str(method)[:60]}), and weights are read as they "
                "are. Give the model before quantisation; if these are its weights, remove the key."
            )
    names = config.get("architectures") or []
    kind = str(config["model_type"])
    places = config.get("auto_map")
    code = places.get("AutoModelForCausalLM") if isinstance(places, dict) else places
    if code and kind in FAMILIES and kind not in _PUBLISHED_WITH_CODE:
        raise SettingsError(
            f"{path}/{CONFIG} has an auto_map ({code}), and {kind} is read without code of the "
            "folder. Remove the key if the model is computed as that type is; else give it a "
            f"model_type of its own, and name its code as `architecture` ({GUIDE})."
        )
    known = {f"{kind.replace('_', '')}{version}forcausallm" for version in ("", "v2")}
    if kind in FAMILIES and names and not {str(name).lower() for name in names} & known:
        raise SettingsError(
            f"{path}/{CONFIG} has model_type {kind!r} and architectures {names}, and engines go by "
            "one or the other. Take the file from the checkpoint as it was published."
        )


def _check_ends(path: Path, size: int) -> None:
    """Refuse end tokens that the model cannot produce: it would never stop at them.

    Raises:
        SettingsError: names the ids.
    """
    for name in (CONFIG, GENERATION):
        entry = read_object(path / name, "").get("eos_token_id") if (path / name).exists() else None
        ends = cast("list[object]", entry) if isinstance(entry, list) else [entry]
        if wrong := [end for end in ends if end is not None and type(end) is not int]:
            raise SettingsError(
                f"{path}/{name}: eos_token_id has {wrong[0]!r}, which is no token id. Write a "
                "number, or a list of numbers."
            )
    beyond = [end for end in end_ids(path, 0) if end >= size]
    if beyond:
        raise SettingsError(
            f"{path}: eos_token_id {beyond} of {CONFIG} or {GENERATION} is no token of the model, "
            f"which has vocab_size {size}. Take both files from one checkpoint."
        )


def _check_reading(path: Path) -> None:
    """Refuse a tokenizer that is read in two ways, or control tokens that are text in answers.

    transformers builds some classes of tokenizers anew and takes the vocabulary alone from
    tokenizer.json; servers and the scoring of evaluations read the file as it is.

    Raises:
        SettingsError: names the class or the token.
    """
    from transformers import AutoTokenizer  # imported here: settings are read without it

    raw = Tokenizer.from_file(str(path / "tokenizer.json"))
    settings = read_object(path / "tokenizer_config.json", "")
    _check_control_tokens(path, raw, settings)
    kind = settings.get("tokenizer_class")
    where = f"{path}/tokenizer_config.json has tokenizer_class {kind!r}"
    advice = (
        "If tokenizer.json is the model's own, set tokenizer_class to PreTrainedTokenizerFast; "
        "else take both files from the checkpoint as it was published."
    )
    try:
        register_architecture(path)
        opened = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
        for text in _PROBES:
            ids = raw.encode(text, add_special_tokens=False).ids
            read = opened(text, add_special_tokens=False)["input_ids"]
            if read != ids:
                raise SettingsError(
                    f"{where}, with which transformers reads {text[:12]!r} otherwise than "
                    f"tokenizer.json says. {advice}"
                )
            if opened.decode(ids) != raw.decode(ids, skip_special_tokens=False):
                raise SettingsError(
                    f"{path}/tokenizer_config.json rewrites blanks in answers "
                    "(clean_up_tokenization_spaces). Set it to false."
                )
    except SettingsError:
        raise
    except Exception as error:  # whatever a class makes of the file of another one
        cause = " ".join(str(error).split())[:200]
        raise SettingsError(
            f"{where}, with which it cannot be opened: {cause}. {advice}"
        ) from error


def _check_control_tokens(path: Path, raw: Tokenizer, settings: Mapping[str, Any]) -> None:
    """Refuse ends and padding that are pieces of text: answers would be cut off at them.

    A config.json that was written without them has the default of its class: 2, which is </s> in
    Llama's own tokenizer and a letter in another.

    Raises:
        SettingsError: names the token.
    """
    listed = settings.get("added_tokens_decoder") or {}
    added = {*raw.get_added_tokens_decoder(), *(int(key) for key in listed if str(key).isdigit())}

    def is_text(token: int) -> bool:
        text = raw.id_to_token(token)
        return text is not None and token not in added and not _NAMED.fullmatch(text)

    own, pad = (_token_id(raw, settings.get(name)) for name in ("eos_token", "pad_token"))
    for token in end_ids(path, -1):
        if token not in (own, -1) and is_text(token):
            raise SettingsError(
                f"{path}: eos_token_id {token} of {CONFIG} or {GENERATION} is "
                f"{raw.decode([token])!r} in the tokenizer, at which every answer with that text "
                f"would end. Write the id of its eos_token, {own}, or of another control token."
            )
    if pad is not None and pad != own and is_text(pad):
        raise SettingsError(
            f"{path}/tokenizer_config.json has pad_token {raw.decode([pad])!r}, a piece of text "
            "that answers would lose. Set it to a control token, such as the eos_token."
        )


def _token_id(tokenizer: Tokenizer, token: object) -> int | None:
    text = token.get("content") if isinstance(token, dict) else token
    return tokenizer.token_to_id(text) if isinstance(text, str) else None


@contextmanager
def with_code(folder: Path, code: str) -> Iterator[Path]:
    """Yield a folder whose config.json names this code: the same one, or links to its files.

    Args:
        folder: of a model.
        code: pinned reference to its family; '' leaves config.json as it is.
    """
    if not code or read_config(folder).get(CODE) == code:
        yield folder
        return
    text = json.dumps({**read_config(folder), CODE: code}, indent=2) + "\n"
    with _with_file(folder, CONFIG, text) as linked:
        yield linked


@contextmanager
def with_chat(folder: Path, chat: ChatSettings) -> Iterator[Path]:
    """Yield a folder whose chat template has arguments: the same one, or links to its files.

    Raises:
        SettingsError: the template does not read one of them.
    """
    template = chat_trial.template_of(folder) if chat.arguments else ""
    if not template:  # the folder's check says so
        yield folder
        return
    try:
        names = chat_trial.arguments_of(template)
    except jinja2.TemplateError as error:
        raise SettingsError(f"the chat template of {folder}: {error}") from error
    for name in chat.arguments:
        if name not in names:
            raise SettingsError(
                f"chat.arguments has {name!r}, which the chat template of {folder} does not read. "
                f"It reads {', '.join(sorted(names))}."
            )
    text = chat_trial.with_arguments(template, chat.arguments)
    settings = read_object(folder / "tokenizer_config.json", "")
    with _with_file(folder, chat_trial.TEMPLATE_FILE, text) as linked:
        if settings.pop("chat_template", None) is None:
            yield linked
            return
        rest = json.dumps(settings, indent=2) + "\n"  # without the one that has no arguments
        with _with_file(linked, "tokenizer_config.json", rest) as whole:
            yield whole


def read_by(folder: Path, chat: ChatSettings) -> ChatSettings:
    """Return the arguments that the chat template of a folder reads; the others have no effect.

    A template that is none reads nothing: the folder's check says so.
    """
    template = chat_trial.template_of(folder) if chat.arguments else ""
    try:
        names = chat_trial.arguments_of(template)
    except jinja2.TemplateError:
        names = set()
    read = {name: value for name, value in chat.arguments.items() if name in names}
    return ChatSettings(arguments=read)


@contextmanager
def _with_file(folder: Path, file: str, text: str) -> Iterator[Path]:
    """Yield links to the files of a folder, and another text in place of one of them."""
    with TemporaryDirectory() as name:
        for path in folder.iterdir():
            (Path(name) / path.name).symlink_to(path.resolve())
        own = Path(name) / file
        own.unlink(missing_ok=True)
        own.write_text(text, encoding="utf-8")
        yield Path(name)


def has_classification_head(path: Path) -> bool:
    """Return whether a model classifies texts.

    Raises:
        SettingsError: it is not a Hugging Face model directory.
    """
    architectures = read_config(path).get("architectures") or ()
    return any(str(name).endswith("ForSequenceClassification") for name in architectures)


def check_guard_folder(path: Path) -> None:
    """Refuse a folder that is neither a text classifier nor a model that the embedded engine runs.

    Raises:
        SettingsError: says what it lacks.
    """
    if has_classification_head(path):
        check_weights_folder(path)
    else:
        check_model_folder(path)


def check_weights_folder(path: Path) -> None:
    """Refuse a folder that is no model directory with safetensors; its kind is not looked at.

    Raises:
        SettingsError: says what it lacks.
    """
    _check_values(path, read_config(path))
    if not any(path.glob("*.safetensors")):
        raise SettingsError(f"{path} has no *.safetensors; other formats may execute code")


def _text_config(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the config of the language model inside one of several modalities, if there is one.

    Qwen3-Omni nests it below the config of its thinker.
    """
    text = config.get("thinker_config", config).get("text_config")
    return text if isinstance(text, dict) else None


def _download(path: Path) -> str:
    """Say how to get what was named as the hub names models; '' for another path."""
    if path.parent.parent != Path.cwd():
        return ""
    name = f"{path.parent.name}/{path.name}"
    return f" If the hub has it: HF_HUB_OFFLINE=0 hf download {name} --local-dir {name}"


def read_config(path: Path) -> dict[str, Any]:
    """Read the config.json of a model directory.

    Raises:
        SettingsError: there is none.
    """
    if path.suffix == ".gguf" or (any(path.glob("*.gguf")) and not (path / CONFIG).exists()):
        raise SettingsError(
            f"{path} has weights in GGUF, of another program. Give the checkpoint that they were "
            "made from as a folder; where there is none, python -m "
            f"tasks.training.foundation.gguf_file {path} OUT writes one (needs the package gguf)."
        )
    if not path.is_dir():
        raise SettingsError(
            f"{path} is not a folder. Give a Hugging Face model directory.{_download(path)}"
        )
    advice = "Give a folder with config.json, *.safetensors and tokenizer.json."
    if nested := sorted(path.glob(f"*/{CONFIG}")):  # checkpoint-100 of a training
        advice += f" {nested[-1].parent} has one."
    return read_object(path / CONFIG, advice)


def _check_values(path: Path, config: dict[str, Any]) -> None:
    try:
        check_values(config)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def check_tokenizer_files(path: Path) -> None:
    """Refuse a tokenizer without files, chat template or end token; nothing is executed.

    Raises:
        SettingsError: names the file.
    """
    file = path / "tokenizer.json"
    read_object(file, "Save the fast tokenizer next to the model.", TOKENIZER_BYTES)
    settings = read_object(path / "tokenizer_config.json", "Save the tokenizer with its settings.")
    templates = settings.get("chat_template")
    if isinstance(templates, list) and templates and not _default_template(path):
        raise SettingsError(
            f"{path}/tokenizer_config.json has chat templates, and none is called default. Name "
            "the one of a plain chat so, or write it to chat_template.jinja."
        )
    own = path / "chat_template.jinja"
    if (not own.exists() and not templates) or (own.is_file() and not own.stat().st_size):
        raise SettingsError(
            f"the tokenizer in {path} has no chat template. "
            "Add chat_template.jinja; prompts cannot be rendered without it."
        )
    if not settings.get("eos_token"):
        raise SettingsError(
            f"{path}/tokenizer_config.json has no eos_token. "
            "Set it to the token that ends a chat turn."
        )


def _default_template(path: Path) -> str:
    try:
        return chat_trial.template_of(path)
    except (KeyError, TypeError):  # an entry without name and template
        return ""


def _try_chat(path: Path) -> int:
    """Tokenise and render a question in a process with limits; return the highest token id.

    Raises:
        SettingsError: it fails, does not end, or needs too much memory.
    """
    try:
        result = subprocess.run(
            [sys.executable, "-I", chat_trial.__file__, str(path)],
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        reply = json.loads(result.stdout)
        wrong = " ".join(str(reply["wrong"]).split())[:300]
    except subprocess.TimeoutExpired:
        reply, wrong = {}, f"they do not answer within {_PATIENCE_S:.0f} s"
    except ValueError:  # killed by a limit, or aborted
        reply = {}
        wrong = (
            f"they need more than {chat_trial.CPU_S} s of processor time or "
            f"{chat_trial.MEMORY_BYTES // 2**30} GiB of memory"
        )
    if wrong:
        raise SettingsError(
            f"tokenizer and chat template of {path} do not render a question: {wrong}. Take them "
            "from the checkpoint as it was published."
        )
    return int(reply["highest"])


def positions_of(base: Path) -> int | None:
    """Return how many tokens a model was made for; None if its configuration does not say."""
    entry = read_config(base).get("max_position_embeddings")
    return entry if isinstance(entry, int) else None
