"""Stop strings: text that ends a response as soon as the response contains it."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase


class StopStrings:
    """Looks for stop strings at the end of responses that grow token by token.

    Special tokens are part of the text, as in the text that verifiers read.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._stop = stop
        self.tail = 1 + max((len(text.encode()) for text in stop), default=0)
        """Tokens in which a stop string just completed must lie: every token has at least one byte,
        and a tokenizer may strip a space from the first token it decodes."""

    def match(self, tails: list[list[int]]) -> list[bool]:
        """Whether the last `tail` tokens of each response contain a stop string."""
        texts = self._tokenizer.batch_decode(
            tails, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return [any(stop in text for stop in self._stop) for text in texts]
