#!/usr/bin/env bash
# Expected: a conversation that goes on only grows: the tokens of its first turns are a prefix of the
# tokens of all turns, whatever the version of the tokenizer. Seen: v2 and v3 write the system prompt
# into the *last* user turn. With the second turn it leaves the first, so that the tokens of turn one
# are no prefix; v1 and v7 keep it at the start. Version: mistral-common 1.13.1. Matters: agents in
# RL: what was sampled in turn one was conditioned on other tokens than those that the trainer sees;
# prefix caches miss; fine-tuning teaches first turns without their instructions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check mistral-common==1.13.1 sentencepiece==0.2.1
cat > show.py <<'PYTHON'
from mistral_common.protocol.instruct.messages import (
    AssistantMessage,
    SystemMessage,
    UserMessage,
)
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

first = [SystemMessage(content="Answer in Thai."), UserMessage(content="What is 2+3?")]
second = [*first, AssistantMessage(content="5"), UserMessage(content="And 4+4?")]
for version, seen in {"v1": True, "v2": False, "v3": False, "v7": True}.items():
    tokenizer = getattr(MistralTokenizer, version)()
    short, long = (
        tokenizer.encode_chat_completion(ChatCompletionRequest(messages=turns))
        for turns in (first, second)
    )
    grows = long.tokens[: len(short.tokens)] == short.tokens
    print(f"{version}: turn one is a prefix of both: {grows}\n    {long.text}")
    assert grows is seen, version
PYTHON
HOME=$folder venv/bin/python show.py
