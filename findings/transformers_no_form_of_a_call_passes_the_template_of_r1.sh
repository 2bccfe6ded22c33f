#!/usr/bin/env bash
# Expected: a turn that is a tool call and says nothing can be rendered for DeepSeek-R1-Distill,
# whose chat template has a branch for calls: with content None, as the client of OpenAI returns it.
# Seen: the template writes calls only if content is None, and apply_chat_template takes keys that
# are None out of each message before the template sees it, so that None is an error about a missing
# content. With the usual remedy, content "", the template writes an empty turn, without the call
# and without a warning; with a text it writes the text alone. The same template in jinja2 alone
# writes the call. Versions: transformers 5.23.0, trl 1.16.0 (the copy of the template), jinja2
# 3.1.6. Matters: trajectories with tools train the model to answer with nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3 jinja2==3.1.6
venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps trl==1.16.0
cat > show.py <<'PYTHON'
from importlib.util import find_spec
from pathlib import Path

import jinja2
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

folder = Path(find_spec("trl").origin).parent / "chat_templates"
template = (folder / "deepseek_r1_distill.jinja").read_text()
words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, bos_token="<s>")
call = {"type": "function", "function": {"name": "cancel", "arguments": '{"order": 7}'}}


def turns(content):
    call_turn = {"role": "assistant", "content": content, "tool_calls": [call]}
    return [{"role": "user", "content": "Cancel it."}, call_turn]


def rendered(content):
    try:
        text = tokenizer.apply_chat_template(turns(content), tokenize=False, chat_template=template)
    except jinja2.UndefinedError as error:
        return f"error: {error}"
    return text.partition("Cancel it.")[2]


for content in (None, "", "Done."):
    print(f"{content!r:8}", rendered(content))
assert rendered(None) == "error: 'dict object' has no attribute 'content'"
assert rendered("") == "<｜Assistant｜><｜end▁of▁sentence｜>"
assert rendered("Done.") == "<｜Assistant｜>Done.<｜end▁of▁sentence｜>"

alone = jinja2.Environment().from_string(template).render(messages=turns(None), bos_token="<s>")
print("jinja2 alone, None:", alone.partition("Cancel it.")[2])
assert "cancel" in alone and '{"order": 7}' in alone
PYTHON
HOME=$folder venv/bin/python show.py
