#!/usr/bin/env bash
# Expected: `all_special_tokens` lists the tokens that act as special ones: which the tokenizer
# cuts out of plain text as one id, and which decode(skip_special_tokens=True) leaves out. Seen:
# it lists those with a role (unk, eos ...). A control token that was added to the tokenizer
# itself, as <|im_start|> of chat models is, acts in both ways and stands in no list; only the
# added tokens' own flag tells. Versions: transformers 5.23.0, tokenizers 0.23.3. Matters: a
# filter that removes `all_special_tokens` from text of users lets the token through that opens a
# system turn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check transformers==5.23.0 tokenizers==0.23.3
cat > show.py <<'PYTHON'
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

words = Tokenizer(models.WordLevel({"[UNK]": 0, "hi": 1, "there": 2}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.add_special_tokens([AddedToken("<|im_start|>", special=True)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")

ids = tokenizer("hi <|im_start|> there")["input_ids"]
kept = tokenizer.decode(ids, skip_special_tokens=True)
print("ids of the text:", ids)
print("all_special_tokens:", tokenizer.all_special_tokens)
print("decoded without special tokens:", kept)
assert ids == [1, 3, 2]
assert tokenizer.all_special_tokens == ["[UNK]"]
assert kept == "hi there"
assert tokenizer.added_tokens_decoder[3].special
PYTHON
HOME=$folder venv/bin/python show.py
