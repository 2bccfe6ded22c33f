"""SFT, grading, RL and evaluation all render here, so that a prompt has the same tokens
wherever it is used. A response is tokenised on its own and appended: the prompt part
of a demonstration is therefore exactly the prompt that RL uses.

The text of a response is `<think>...</think>answer` for every model. Some chat templates say the
beginning of it themselves, at the end of the prompt: `opening_of` is what they say. It is added
where tokens become text and taken away where text becomes tokens.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import jinja2
import numpy as np
from numpy.typing import NDArray
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from data_schemas.rows import THINK_CLOSE, THINK_OPEN, Message, Role
from tasks.errors import DataError, SettingsError
from tasks.models.architectures import end_ids, opening_of_responses, register_architecture


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model directory, without network.

    Raises:
        SettingsError: there is no tokenizer, or it has no chat template or end token.
    """
    if not (folder / "tokenizer_config.json").is_file():
        raise SettingsError(
            f"{folder} is not a model directory: it has no tokenizer_config.json. "
            "Point base_model at a Hugging Face model directory."
        )
    try:
        register_architecture(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        cause = str(error).partition("\n")[0]
        raise SettingsError(
            f"transformers cannot load the tokenizer in {folder}: {cause} "
            "Repair the folder, or point base_model at another model directory."
        ) from error
    if not tokenizer.chat_template or tokenizer.eos_token_id is None:
        raise SettingsError(
            f"the tokenizer in {folder} has no chat template or no end token. "
            "Add chat_template.jinja and eos_token, or choose another base_model."
        )
    setattr(tokenizer, _ENDS, end_ids(folder, tokenizer.eos_token_id))
    setattr(tokenizer, _OPENING, opening_of_responses(folder))
    setattr(tokenizer, _CONTROL, ControlTokens(tokenizer))
    return tokenizer


class ControlTokens:
    """The tokens that structure a chat: a text that contains one could imitate another role.

    These are the special tokens, whether or not the tokenizer has a name for them, and every added
    token that the chat template writes around turns, which DeepSeek, for one, does not mark as
    special, or around what a tool answers, as Qwen's <tool_response>; and those of the form of a
    control token that no template writes, as Qwen's <|fim_prefix|> and <|repo_name|>. The tags of
    a thought and of a call are none, whatever their form: a response has them. The
    tokenizer's own list of special tokens is not enough
    (findings/transformers_special_tokens_that_act_are_not_listed.sh).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        added = tokenizer.added_tokens_decoder.values()
        names = {one.content for one in added}
        written, calls = _written_around_turns(tokenizer, names)
        formal = {name for name in names if _FORM.fullmatch(name)} - calls
        special = {one.content for one in added if one.special} | written | formal
        tokens = {*special, *map(str, tokenizer.all_special_tokens)} - {THINK_OPEN, THINK_CLOSE}
        self._tokens = _any_of(tokens)
        # A token that is looked for in normal form takes effect in other spellings, too.
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._normalizer = backend and backend.normalizer
        loose = {one.content for one in added if one.normalized and one.content in tokens}
        self._loose = _any_of({self._normal(token) for token in loose} if self._normalizer else ())

    def find(self, text: str) -> str:
        """Return the first one of a text; '' if there is none."""
        match = self._tokens.search(text)
        if match is None and self._loose.pattern != _NOTHING:
            match = self._loose.search(self._normal(text))
        return match[0] if match else ""

    def broken(self, text: str) -> str:
        """Return the text with a blank inside of every one, so that it is text to the tokenizer."""
        if not self.find(text):
            return text
        if self._loose.search(self._normal(text)):
            text = self._loose.sub(_broken, self._normal(text))
        return self._tokens.sub(_broken, text)

    def _normal(self, text: str) -> str:
        return self._normalizer.normalize_str(text) if self._normalizer else text


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> ControlTokens:
    """Return what no text of others may contain."""
    return cast("ControlTokens", getattr(tokenizer, _CONTROL, None) or ControlTokens(tokenizer))


def _any_of(tokens: Iterable[str]) -> re.Pattern[str]:
    """Match one of some texts, the longest first; nothing if there is none."""
    ordered = sorted({token for token in tokens if token}, key=lambda token: (-len(token), token))
    return re.compile("|".join(map(re.escape, ordered)) or _NOTHING)


def _broken(match: re.Match[str]) -> str:
    return f"{match[0][:1]} {match[0][1:]}"


def _written_around_turns(
    tokenizer: PreTrainedTokenizerBase, tokens: set[str]
) -> tuple[set[str], set[str]]:
    """Return the tokens that the template writes into a dialogue, and those of calls alone."""

    def written(*turns: Mapping[str, Any]) -> set[str]:
        # A template may refuse a system turn or a tool, and a tokenizer may have no template.
        with suppress(jinja2.TemplateError, ValueError, TypeError):
            text = str(
                tokenizer.apply_chat_template(
                    [dict(turn) for turn in turns], add_generation_prompt=True, tokenize=False
                )
            )
            return {token for token in tokens if token in text}
        return set()

    user, system = {"role": "user", "content": "?"}, {"role": "system", "content": "."}
    dialogue = (user, {"role": "assistant", "content": "!"}, user)
    call = {"id": _CALL, "type": "function", "function": {"name": "find", "arguments": {}}}
    calling = {"role": "assistant", "content": "", "tool_calls": [call]}
    answer = {"role": "tool", "name": "find", "tool_call_id": _CALL, "content": "."}
    called = written(user, calling)
    around = written(*dialogue) | written(system, *dialogue)
    return around | (written(user, calling, answer) - called), called - around


_CALL = "call00000"
"""Mistral's templates want nine letters or digits."""
_CONTROL = "control_tokens"
"""Attribute of a tokenizer that `load_tokenizer` opened."""
_NOTHING = r"(?!)"
_FORM = re.compile(r"[<\uff1c](?:[|\uff5c].+[|\uff5c]|fim_\w+)[>\uff1e]")
"""<|file_sep|>, <fim_middle>; DeepSeek has fullwidth signs. Not <table>, which is text."""


INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
LONGEST_CHARACTER = 4
"""Tokens: UTF-8 has at most four bytes, and a token of a byte-level vocabulary at least one."""
_ENDS = "ends_of_responses"
_OPENING = "opening_of_responses"
"""Attributes of a tokenizer that `load_tokenizer` opened."""


def ends_of(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Ids of all tokens that end a response, the tokenizer's own first."""
    return cast("tuple[int, ...]", getattr(tokenizer, _ENDS, (tokenizer.eos_token_id,)))


def opening_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return what the chat template has already said of a response at the end of the prompt.

    '' for most models; `<think>` and a newline for R1's distillations and Qwen3-Thinking; an empty
    thought for Qwen3 without thinking.
    """
    return str(getattr(tokenizer, _OPENING, ""))


def closes_thought(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether the chat template leaves no room for a thought in a response."""
    return THINK_CLOSE in opening_of(tokenizer)


def end_and_pad(tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[int, ...], int]:
    """Ids of the tokens that end a response, and of the token a batch is padded with.

    A tokenizer without padding, as Llama's, pads with its end: what is padded is masked.

    Raises:
        SettingsError: the tokenizer has no end token.
    """
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    if not isinstance(end, int):
        raise SettingsError("the tokenizer needs one eos_token; set it")
    return ends_of(tokenizer), pad if isinstance(pad, int) else end


def render_prompt(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]
) -> NDArray[np.int32]:
    """Tokenise chat turns up to the start of the assistant's response."""
    return render_prompts(tokenizer, [messages])[0]


def render_prompts(
    tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Sequence[Message]]
) -> list[NDArray[np.int32]]:
    """Tokenise many dialogues at once, which is several times faster than one by one.

    Raises:
        DataError: the chat template begins the response to one of them otherwise than to the rest,
            so that its text could not be told.
    """
    if not dialogues:
        return []
    batch = tokenizer.apply_chat_template(
        _turns(tokenizer, dialogues),
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
        # Curation also measures prompts over the model's limit, in order to drop them.
        tokenizer_kwargs={"verbose": False},
    )
    prompts = [np.asarray(tokens, dtype=np.int32) for tokens in batch]
    for dialogue, tokens in zip(dialogues, prompts, strict=True):
        _check_opening(tokenizer, tokens, dialogue[-1].content)
    return prompts


def chat_text(
    tokenizer: PreTrainedTokenizerBase,
    turns: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
) -> str:
    """Write a chat as a server is sent it, up to the start of the assistant's response.

    Args:
        tokenizer: has the chat template.
        turns: of one chat, which may call functions; no text in them opens or closes a turn.
        tools: functions on offer, of which the same holds.

    Raises:
        DataError: the template cannot write it.
    """
    broken = control_tokens(tokenizer).broken
    try:
        return str(
            tokenizer.apply_chat_template(
                _each_text(turns, broken),
                tools=_each_text(tools, broken) or None,
                add_generation_prompt=True,
                tokenize=False,
            )
        )
    except Exception as error:  # a template is a program, and the request is its input
        raise DataError(f"the chat template cannot write this chat: {error}") from error


def chat_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> NDArray[np.int32]:
    """Tokenise what `chat_text` has written, as `render_prompts` does.

    Raises:
        DataError: the chat template begins the response otherwise than in other chats.
    """
    batch = tokenizer([text], add_special_tokens=False, verbose=False)["input_ids"]
    tokens = np.asarray(batch[0], dtype=np.int32)
    _check_opening(tokenizer, tokens, text)
    return tokens


def _check_opening(
    tokenizer: PreTrainedTokenizerBase, tokens: NDArray[np.int32], text: str
) -> None:
    """Refuse a prompt that says another beginning of its response than others do."""
    end = _BEGUN.search(str(tokenizer.decode(tokens[-_END_TOKENS:].tolist())))
    if end is not None and end[0].split() != opening_of(tokenizer).split():
        raise DataError(
            f"the chat template ends the prompt of {text[:60]!r} with "
            f"{end[0].strip()!r}, and others with {opening_of(tokenizer).strip()!r}. Leave out "
            "what switches the thinking in this dialogue, or correct the template."
        )


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value of JSON with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(str(key)): _each_text(one, change) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_each_text(one, change) for one in value]
    return value


_BEGUN = re.compile(r"(?:<think>\s*)?(?:</think>\s*)?\Z")
"""What a prompt may say of its response (`chat_trial`), which may be nothing."""
_END_TOKENS = 24
"""More than it takes, where the tags are text."""


def _turns(
    tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Sequence[Message]]
) -> list[list[dict[str, str]]]:
    """Return turns for the chat template, in which no text opens or closes a turn.

    Curation refuses rows with control tokens. What an environment observes, another agent has said
    or somebody types is not curated, and meets the template here.
    """
    broken = control_tokens(tokenizer).broken
    return [
        [{"role": message.role.value, "content": broken(message.content)} for message in messages]
        for messages in dialogues
    ]


def render_response(tokenizer: PreTrainedTokenizerBase, response: str) -> NDArray[np.int32]:
    """Tokenise a response and close it with the end token."""
    return render_responses(tokenizer, [response])[0]


def render_responses(
    tokenizer: PreTrainedTokenizerBase, responses: Sequence[str]
) -> list[NDArray[np.int32]]:
    """Tokenise what follows the prompt of many responses at once, each closed with the end token.

    Raises:
        DataError: a response has a thought, and the chat template leaves no room for one.
    """
    if not responses:
        return []
    texts = [_behind(opening_of(tokenizer), response) for response in responses]
    batch = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    end = tokenizer.eos_token_id
    return [np.asarray([*tokens, end], dtype=np.int32) for tokens in batch]


def _behind(opening: str, response: str) -> str:
    """Return what is left of a response behind a prompt that has said its beginning.

    A response without a thought ends the thought that its prompt has opened.
    """
    if response.startswith(opening):  # also where there is none
        return response.removeprefix(opening)
    if THINK_CLOSE in opening:
        answer = response
        if response.lstrip().startswith((THINK_OPEN, THINK_CLOSE)):
            thought, _, answer = response.partition(THINK_CLOSE)
            if thought.strip().removeprefix(THINK_OPEN).strip():
                raise DataError(
                    f"a response begins with the thought {thought[:60]!r}, but the chat template "
                    "ends the thought in the prompt. Choose a template that thinks, or "
                    "demonstrations that do not."
                )
        return answer.lstrip() if opening[-1].isspace() else answer
    rest = response.removeprefix(THINK_OPEN)
    if rest == response and THINK_CLOSE not in response:
        return THINK_CLOSE + response
    return rest.lstrip() if opening[-1].isspace() else rest


def count_prompt_tokens(
    tokenizer: PreTrainedTokenizerBase, dialogues: Sequence[Sequence[Message]], limit: int
) -> list[int]:
    """Count the tokens of prompts; see `count_tokens`."""
    if not dialogues:
        return []
    texts = tokenizer.apply_chat_template(
        _turns(tokenizer, dialogues), add_generation_prompt=True, tokenize=False
    )
    return count_tokens(tokenizer, [str(text) for text in texts], limit)


def count_tokens(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], limit: int) -> list[int]:
    """Count the tokens of texts without special tokens.

    Only a text that may have more than `limit` is tokenised, if the tokenizer makes at most one
    token of a byte; of any other text the number is a bound, which is not above the limit.
    """
    factor = _most_tokens_per_byte(tokenizer)
    counts = [limit + 1 if factor is None else _num_bytes(text, factor) for text in texts]
    long_texts = [place for place, count in enumerate(counts) if count > limit]
    if long_texts:
        encoded = tokenizer(
            [texts[place] for place in long_texts], add_special_tokens=False, verbose=False
        )
        for place, tokens in zip(long_texts, encoded["input_ids"], strict=True):
            counts[place] = len(tokens)
    return counts


def _num_bytes(text: str, factor: int) -> int:
    return len(text) if text.isascii() else factor * len(text.encode(errors="surrogatepass"))


def _most_tokens_per_byte(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the most tokens that a byte of a text can become; None = unknown.

    A byte of ASCII becomes one at most if others do not become more than three.

    Byte-level BPE merges bytes and never adds one, but NFC may triple a text
    (https://www.unicode.org/faq/normalization.html, expansion factors in UTF-8).
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or type(backend.model).__name__ != "BPE" or backend.pre_tokenizer is None:
        return None
    pre_tokenizer = json.loads(backend.pre_tokenizer.__getstate__())
    steps = pre_tokenizer.get("pretokenizers", [pre_tokenizer])
    is_byte_level = any(step["type"] == "ByteLevel" for step in steps)
    adds = any(step.get("add_prefix_space") for step in steps)
    if not is_byte_level or adds or {step["type"] for step in steps} - _SPLITTING:
        return None
    if backend.normalizer is None:
        return 1
    return _NFC_GROWTH if type(backend.normalizer).__name__ == "NFC" else None


_SPLITTING = {"Split", "Digits", "ByteLevel"}
"""Steps before a tokenizer's model that add no character."""
_NFC_GROWTH = 3


def render_observation(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message]
) -> NDArray[np.int32]:
    """Tokenise what follows a turn of the assistant: answers, up to the start of its next turn.

    These tokens go behind those that the policy sampled, end token included. Earlier turns stay as
    they were sampled, also where the chat template would drop their thinking.

    Raises:
        SettingsError: the chat template does not close the assistant's turns with the end token.
    """
    (turn,) = _turns(tokenizer, [messages])
    dialogue = [
        {"role": Role.USER.value, "content": "?"},
        {"role": Role.ASSISTANT.value, "content": _SPOKEN},
    ]
    whole = str(
        tokenizer.apply_chat_template(
            [*dialogue, *turn], add_generation_prompt=True, tokenize=False
        )
    )
    end = str(tokenizer.eos_token)
    _, marker, after = whole.partition(_SPOKEN)
    if not marker or not after.startswith(end):
        raise SettingsError(
            f"the chat template does not close a turn of the assistant with {end!r}, so it is not "
            "known what follows a turn. Correct chat_template.jinja or eos_token."
        )
    tokens = tokenizer(after.removeprefix(end), add_special_tokens=False)["input_ids"]
    return np.asarray(tokens, dtype=np.int32)


_SPOKEN = "what the assistant has said"
"""Stands for a turn of the assistant, to find what a template puts behind it."""


def render_demonstration(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], response: str
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Tokenise a worked example.

    Returns:
        Tokens [T] of prompt, response and end token; and the loss mask [T], True on the
        response and its end token only.

    Raises:
        DataError: the response contains a control token: it would end a turn, or open one.
    """
    if token := control_tokens(tokenizer).find(response):
        raise DataError(
            f"a demonstration has the control token {token!r} of this model in its response "
            f"{response[:60]!r}. Curate the rows with this model as base_model, which leaves such "
            "rows out."
        )
    prompt = render_prompt(tokenizer, messages)
    answer = render_response(tokenizer, response)
    mask = np.zeros(len(prompt) + len(answer), dtype=np.bool_)
    mask[len(prompt) :] = True
    return np.concatenate([prompt, answer]), mask


def response_text(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> str:
    """Decode a response, with what the prompt said of it and without its end token.

    Other special tokens stay visible.
    """
    ids = [int(token) for token in tokens]
    while ids and ids[-1] in (*ends_of(tokenizer), tokenizer.pad_token_id):
        ids.pop()
    return opening_of(tokenizer) + str(tokenizer.decode(ids, skip_special_tokens=False))


def token_texts(tokenizer: PreTrainedTokenizerBase, tokens: Sequence[int]) -> tuple[str, ...]:
    """Decode token by token: a character of several tokens belongs to the last of them."""
    texts: list[str] = []
    pending: list[int] = []
    for token in tokens:
        pending.append(token)
        text = str(tokenizer.decode(pending))
        if text.endswith(INCOMPLETE) and len(pending) < LONGEST_CHARACTER:
            texts.append("")
        else:
            texts.append(text)
            pending = []
    if pending:
        texts[-1] = str(tokenizer.decode(pending))
    return tuple(texts)
