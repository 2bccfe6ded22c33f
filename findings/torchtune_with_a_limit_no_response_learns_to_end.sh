#!/usr/bin/env bash
# Expected: a limit of length changes nothing about a row that is shorter. Seen: as soon as the tokenizer of
# Qwen2.5 has a max_seq_len, the end token of every response is masked from the loss, that of a response of
# one token among 64 too: the mask is truncated with a mask as its end token. Version: torchtune 0.6.1.
# Matters: its recipes set a limit, and the model is not taught to end an answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
    torchtune==0.6.1 torch==2.13.0 torchao==0.13.0 2>/dev/null
cat > show.py <<'PYTHON'
import json
from pathlib import Path

from torchtune.data import CROSS_ENTROPY_IGNORE_IDX, Message
from torchtune.datasets import SFTDataset
from torchtune.models.qwen2._tokenizer import bytes_to_unicode
from torchtune.models.qwen2_5 import qwen2_5_tokenizer

Path("vocab.json").write_text(json.dumps({text: index for index, text in enumerate(bytes_to_unicode().values())}))
Path("merges.txt").write_text("#version: 0.2\n")
Path("rows.jsonl").write_text(json.dumps({"question": "2+2?", "answer": "4"}) + "\n")


def messages(row):
    question = Message(role="user", content=row["question"], masked=True)
    return {"messages": [question, Message(role="assistant", content=row["answer"])]}


for limit, trained in ((None, True), (64, False)):
    tokenizer = qwen2_5_tokenizer("vocab.json", "merges.txt", max_seq_len=limit)
    [row] = SFTDataset(
        source="json",
        data_files="rows.jsonl",
        split="train",
        message_transform=messages,
        model_transform=tokenizer,
    )
    print(f"max_seq_len {limit}: {len(row['tokens'])} tokens, the last two of the labels are {row['labels'][-2:]}")
    assert row["tokens"][-1] == tokenizer.eos_id and len(row["tokens"]) < 64
    assert bool(row["labels"][-1] != CROSS_ENTROPY_IGNORE_IDX) is trained
PYTHON
HOME=$folder HF_HOME=$folder/hf HF_DATASETS_DISABLE_PROGRESS_BARS=1 venv/bin/python show.py
