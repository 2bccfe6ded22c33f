"""Texts without a model library, the same bytes as with one."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.engines.chat import load_tokenizer, response_text
from tasks.engines.scoring import find_tokenizer
from tasks.errors import SettingsError
from tasks.gym.scoring.responses import text_of
from tasks.gym.table import score_batch

BASE_MODEL = Path(__file__).parents[3] / "tasks/training/foundation/base_model"
TOKENIZER = load_tokenizer(BASE_MODEL)
FOUND = find_tokenizer(BASE_MODEL)


@given(st.lists(st.integers(0, len(TOKENIZER) + 10), max_size=60))
def test_the_bytes_are_those_of_the_model_library(tokens) -> None:
    end, pad = TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
    for ids in (tokens, [*tokens, end], [*tokens, end, pad, pad], [end, *tokens]):
        assert response_text(TOKENIZER, ids).encode() == text_of(FOUND, ids).encode()


def test_a_model_of_another_making_reads_the_same(tiny_moe) -> None:
    tokenizer, found = load_tokenizer(tiny_moe), find_tokenizer(tiny_moe)
    ids = [*tokenizer("<think>ก</think> 7 .")["input_ids"], tokenizer.eos_token_id]

    assert "<think>ก</think> 7 ." == text_of(found, ids) == response_text(tokenizer, ids)


@pytest.fixture
def model(tmp_path):
    """A copy of the tokenizer whose configuration can be changed."""

    def change(**config):
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(BASE_MODEL / name, tmp_path / name)
        path = tmp_path / "tokenizer_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        return tmp_path

    return change


def test_a_folder_without_a_fast_tokenizer_is_refused(tmp_path) -> None:
    with pytest.raises(SettingsError, match=r"holds no tokenizer\.json: save the model with"):
        find_tokenizer(tmp_path)


def test_a_tokenizer_without_an_end_is_refused(model) -> None:
    with pytest.raises(SettingsError, match="no end token"):
        find_tokenizer(model(eos_token=None))


def test_the_end_token_may_be_written_as_a_record(model) -> None:
    written = model(eos_token={"content": "<|im_end|>"})

    assert FOUND.ends == find_tokenizer(written).ends


def test_a_clean_up_of_spaces_counts_only_where_the_library_would_do_it(model) -> None:
    folder = model(clean_up_tokenization_spaces=True)
    assert FOUND.ends == find_tokenizer(folder).ends  # BPE: the library leaves spaces alone

    whole = json.loads((folder / "tokenizer.json").read_text())
    whole["model"] = {"type": "WordLevel", "vocab": {"<|im_end|>": 0}, "unk_token": "<|im_end|>"}
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(SettingsError, match="rewrites spaces"):
        find_tokenizer(folder)


def test_a_thought_that_the_prompt_opened_is_part_of_the_text_and_its_cut_earns_nothing(
    tiny_moe, tmp_path, problem
) -> None:
    folder = shutil.copytree(tiny_moe, tmp_path / "model")
    template = folder / "chat_template.jinja"
    written = template.read_text()
    template.write_text(written.replace("assistant\n", "assistant\n<think>\n"))
    assert written != template.read_text()
    tokenizer, found = load_tokenizer(folder), find_tokenizer(folder)

    cut, ended = (
        tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in ("7 is 42 . so 42", "7 is 42 . </think> 42")
    )

    for ids in (cut, ended):
        assert text_of(found, ids) == response_text(tokenizer, ids)
    asked = problem("final_answer", {"value": "42"})
    verdicts = score_batch([asked, asked], [text_of(found, ids) for ids in (cut, ended)])
    assert [(0.0, "no_answer"), (1.0, "correct")] == [(v.score, v.reason) for v in verdicts]
