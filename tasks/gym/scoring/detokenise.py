"""Decode response tokens in any process, byte for byte as `tasks.engines.chat.response_text`.

It reads the files of a model directory with `tokenizers` only, so that a worker that scores
answers does not import a model library.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import SettingsError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """Location of the vocabulary and the tokens that end a response; small enough to pickle."""

    path: str
    ends: tuple[int, ...]
    """Ids of the end and the padding token; trailing ones are removed from the text."""


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
    tokenizer = _open(str(path))
    ends = [_id(tokenizer, config.get(name)) for name in ("eos_token", "pad_token")]
    if ends[0] is None:
        raise SettingsError(f"the tokenizer in {folder} has no end token; add eos_token")
    if config.get("clean_up_tokenization_spaces") and _kind(path) != "BPE":
        raise SettingsError(
            f"the tokenizer in {folder} rewrites spaces, which changes answers; "
            "set clean_up_tokenization_spaces to false in its tokenizer_config.json"
        )
    return TokenizerFile(str(path), tuple(end for end in ends if end is not None))


def text_of(source: TokenizerFile, tokens: Sequence[int]) -> str:
    """Decode a response without its end token; other special tokens stay visible."""
    length = len(tokens)
    while length and tokens[length - 1] in source.ends:
        length -= 1
    ids = [int(token) for token in tokens[:length]]
    return _open(source.path).decode(ids, skip_special_tokens=False)


@functools.cache
def _open(path: str) -> "Tokenizer":
    from tokenizers import Tokenizer  # not needed to score texts

    return Tokenizer.from_file(path)


def _read(path: Path) -> dict[str, object]:
    return json.loads(path.read_bytes()) if path.is_file() else {}


def _id(tokenizer: "Tokenizer", token: object) -> int | None:
    text = token.get("content") if isinstance(token, Mapping) else token
    return tokenizer.token_to_id(text) if isinstance(text, str) else None


def _kind(path: Path) -> str:
    return json.loads(path.read_bytes())["model"]["type"]
