"""Stop strings are found in the text of the last tokens, wherever token boundaries fall."""

import pytest
from transformers import PreTrainedTokenizerBase

from tasks.engines.protocols import Sampling
from tasks.engines.stop_strings import StopStrings
from tasks.errors import SettingsError
from tasks.training.foundation.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return train_tokenizer(["text of some length, then 12 5 and more"] * 9, 300, 512)


@pytest.mark.parametrize("stop", ["5", "12 5", "\u00e9\u4e2d", "</think>", " a\n"])
@pytest.mark.parametrize("before", ["", "text of some length, then ", "\U0001f600"])
def test_a_stop_string_is_found_with_the_token_that_completes_it(
    tokenizer: PreTrainedTokenizerBase, before, stop
):
    tokens = tokenizer(before + stop + " and more", add_special_tokens=False)["input_ids"]
    strings = StopStrings(tokenizer, ["never", stop])
    tails = [tokens[max(0, end - strings.tail) : end] for end in range(1, len(tokens) + 1)]
    contained = [stop in tokenizer.decode(tokens[:end]) for end in range(1, len(tokens) + 1)]

    assert contained.index(True) == strings.match(tails).index(True)


def test_a_response_without_one_goes_on(tokenizer: PreTrainedTokenizerBase):
    tokens = tokenizer("Answer: 4", add_special_tokens=False)["input_ids"]

    assert [False] == StopStrings(tokenizer, ["Answer:5"]).match([tokens])


def test_stop_strings_of_a_response_in_segments_are_refused():
    with pytest.raises(SettingsError, match=r"set engines\.segment_tokens to 0"):
        Sampling(8, 1.0, 0, segment_tokens=4, stop=("a",))
