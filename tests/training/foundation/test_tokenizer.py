"""The shipped tokenizer: any text survives, digits stand alone, chat turns are Qwen's."""

import pytest
from transformers import AutoTokenizer

from tasks.curation.marketplace.words import LANGUAGES
from tasks.training.foundation.base import shipped_base
from tasks.training.foundation.tokenizer import token_id, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(shipped_base(), local_files_only=True)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_every_word_of_every_language_survives_the_round_trip(tokenizer, language):
    words = [*language.categories, *language.colours, *(g for row in language.goods for g in row)]
    text = f"{language.which_category.format(title=', '.join(words))} {language.cheapest}"

    assert text == tokenizer.decode(tokenizer.encode(text))


@pytest.mark.parametrize("text", ["  two  spaces\n\ttab", "émoji 🦆 and ß", "a<think>b</think>\n"])
def test_text_from_outside_the_marketplace_survives_the_round_trip(tokenizer, text):
    assert text == tokenizer.decode(tokenizer.encode(text))


def test_digits_are_tokens_of_their_own(tokenizer):
    tokens = tokenizer.encode("24+380=404")

    assert list("24+380=404") == [tokenizer.decode([token]) for token in tokens]


def test_markup_is_one_token_each_and_stays_visible(tokenizer):
    text = "<think>x</think><tool_call></tool_call>"
    tokens = tokenizer.encode(text)

    assert 5 == len(tokens)
    assert text == tokenizer.decode(tokens, skip_special_tokens=True)


def test_a_chat_is_rendered_as_qwen_renders_it(tokenizer):
    messages = [{"role": "user", "content": "hi"}]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)

    assert "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n" == rendered
    assert "<|im_end|>" == tokenizer.eos_token
    assert "<|endoftext|>" == tokenizer.pad_token


def test_special_tokens_in_a_document_become_single_ids(tokenizer):
    start = token_id(tokenizer, "<|im_start|>")

    assert [start] == tokenizer.encode("<|im_start|>")


def test_training_on_the_same_texts_gives_the_same_tokenizer():
    texts = ["red bag 12", "blue bag 7", "tas merah"] * 5
    first, second = (train_tokenizer(texts, 300, 64) for _ in range(2))

    assert first.backend_tokenizer.to_str() == second.backend_tokenizer.to_str()
    assert len(first) <= 300
