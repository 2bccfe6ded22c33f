"""The tokenizer of the shipped base model: byte-level BPE with single digits and a chat template.

It works on bytes, so that every string in every script survives the round trip. Every digit
is one token, which column arithmetic needs. Words are split only at spaces, digits and
punctuation: GPT-2's pattern would also split Thai words at their vowel marks.
"""

from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tasks.models.model_folder import SHIPPED

PAD = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
_CONTROL = (PAD, TURN_START, TURN_END)
_MARKUP = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""One token each, but not special, so that decoding keeps them for the verifiers."""

_PIECES = r" ?[^\s\d\p{P}\p{S}]+|\d| ?[\p{P}\p{S}]+|\s+"


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, max_length: int
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on texts; the vocabulary counts bytes, merges and added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = len(_CONTROL) + len(_MARKUP)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - added,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _CONTROL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in _MARKUP])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PAD,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = (SHIPPED / "chat_template.jinja").read_text(encoding="utf-8")
    return fast


def token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    """Return the id of a token of the vocabulary."""
    return tokenizer.get_vocab()[token]
