"""The scoring service with what needs a model: the tokenizer of responses, a judge in this process.

The gym scores texts, and asks a judge behind an endpoint, without any of this.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer

from data_schemas.rl_settings import JudgeKind, JudgeSettings, RewardSettings
from tasks.engines.model_judge import ModelJudge
from tasks.errors import SettingsError
from tasks.gym import binding
from tasks.gym.judging.calls import CachedJudge
from tasks.gym.judging.opening import open_endpoint_judge
from tasks.gym.judging.protocol import Judge
from tasks.gym.scoring.responses import TokenizerFile, open_tokenizer
from tasks.gym.scoring.service import ScoringService
from tasks.models.architectures import end_ids, opening_of_responses

_FILE = "tokenizer.json"


def open_scoring(
    tokenizer_folder: Path | None, settings: RewardSettings, *, num_workers: int = 0
) -> ScoringService:
    """Open the scoring service of a stage.

    Args:
        tokenizer_folder: model directory whose tokenizer decodes responses; None for texts only.
        settings: settings that the verifiers are bound to.
        num_workers: 0 for as many as there are cores.

    Raises:
        SettingsError: the tokenizer cannot be used, or the judge cannot be opened.
    """
    judge = None if settings.judge.kind is JudgeKind.NONE else open_judge(settings.judge)
    tokenizer = None if tokenizer_folder is None else find_tokenizer(tokenizer_folder)
    entries = binding.entries(settings, judge)
    return ScoringService(tokenizer, settings, num_workers=num_workers, entries=entries)


def open_judge(settings: JudgeSettings) -> Judge:
    """Open the judge that the settings name, with a cache for equal prompts.

    Raises:
        SettingsError: no judge is set, or it cannot be opened.
    """
    if settings.kind is JudgeKind.MODEL:
        return CachedJudge(ModelJudge(Path(settings.address)))
    return open_endpoint_judge(settings)


def find_tokenizer(folder: Path) -> TokenizerFile:
    """Read a model directory.

    Raises:
        SettingsError: it has no tokenizer.json, no end token, or asks for a clean-up of spaces.
    """
    path = folder / _FILE
    if not path.is_file():
        raise SettingsError(
            f"{folder} holds no {_FILE}: save the model with a fast tokenizer "
            "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder))."
        )
    config = _read(folder / "special_tokens_map.json") | _read(folder / "tokenizer_config.json")
    tokenizer = open_tokenizer(str(path))
    ends = [_id(tokenizer, config.get(name)) for name in ("eos_token", "pad_token")]
    if ends[0] is None:
        raise SettingsError(f"the tokenizer in {folder} has no end token; add eos_token")
    if config.get("clean_up_tokenization_spaces") and _kind(path) != "BPE":
        raise SettingsError(
            f"the tokenizer in {folder} rewrites spaces, which changes answers; "
            "set clean_up_tokenization_spaces to false in its tokenizer_config.json"
        )
    tokens = (*end_ids(folder, ends[0]), *(end for end in ends if end is not None))
    return TokenizerFile(str(path), tuple(dict.fromkeys(tokens)), opening_of_responses(folder))


def _read(path: Path) -> dict[str, object]:
    return json.loads(path.read_bytes()) if path.is_file() else {}


def _id(tokenizer: Tokenizer, token: object) -> int | None:
    text = token.get("content") if isinstance(token, Mapping) else token
    return tokenizer.token_to_id(text) if isinstance(text, str) else None


def _kind(path: Path) -> str:
    return json.loads(path.read_bytes())["model"]["type"]
