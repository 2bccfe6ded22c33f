"""What leaves a store has names in the stead of places."""

import pytest

from tasks.provenance.lineage.places import origin_name, place_name, without_places

NAMED = {
    "file:///home/ann/My%20Tables/rows.jsonl": "rows.jsonl",
    "s3://anns-bucket/tables/rows.jsonl": "rows.jsonl",
    "gsm8k=/home/ann/My Tables/rows.jsonl": "gsm8k=rows.jsonl",
    "evaluation:mine=/home/ann/a.csv,yours=/mnt/b.csv/c": "evaluation:mine=a.csv,yours=c",
    "/home/ann/my_loss.py:loss": "my_loss.py:loss",
    "~/tables/rows.jsonl": "rows.jsonl",
    "/home/o'neil/rows.jsonl": "rows.jsonl",
    "http://ann:secret@gpu-node-3:8000/v1": "http://host:8000/v1",
    "http://10.0.0.7:8000/v1": "http://host:8000/v1",
    "http://judge.corp/v1": "http://host/v1",
}
KEPT = (
    "https://huggingface.co/Qwen/Qwen3-0.6B",
    "hf://datasets/openai/gsm8k@main/main",
    "models:/shop@released",
    "answer with yes/no, and/or a number: 3/4 or a / b",
    "</think>",
    "/no_think",
    "tables/rows.jsonl",
    "my_loss.py:loss",
)


@pytest.mark.parametrize("text", NAMED)
def test_a_place_becomes_its_name_once(text):
    assert NAMED[text] == without_places(text)
    assert NAMED[text] == without_places(NAMED[text])


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_place_of_a_machine_stays(text):
    assert text == without_places(text)


def test_keys_and_values_of_nested_settings_are_named_and_numbers_stay():
    assert {"a.csv": [1.5, None, {"b": "c.csv"}]} == without_places(
        {"/home/ann/a.csv": [1.5, None, {"b": "/home/ann/c.csv"}]}
    )


def test_two_files_of_one_name_have_two_names_and_a_copy_of_the_hub_says_which():
    assert "rows.jsonl@aaaaaaaa" == origin_name("file:///x/rows.jsonl", "a" * 64)
    assert "rows.jsonl@bbbbbbbb" == origin_name("file:///y/rows.jsonl", "b" * 64)
    commit = "c" * 40
    copied = f"hf/openai/gsm8k/{commit}/main/train.parquet"
    assert copied == place_name(f"file:///home/ann/{copied}")
