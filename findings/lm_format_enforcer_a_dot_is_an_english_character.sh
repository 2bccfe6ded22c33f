#!/usr/bin/env bash
# Expected: in an expression that a response is held to, a dot, \w or [^,] allows letters of every
# language. Seen: lm-format-enforcer has such classes stand for the letters of its own alphabet,
# which are ASCII: "ราคา 120 บาท", "Tiếng Việt" and "café" cannot be written under .+ or [^,]+,
# while a letter that the expression names is allowed. A JSON string without a pattern is free text
# of every language; with "pattern": "^.{1,40}$" it is ASCII. Nothing is said; the model is made to
# write something else. Version: lm-format-enforcer 0.11.3. Matters: guided answers in Thai,
# Vietnamese or Portuguese become English or lose their marks, and the model is blamed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check lm-format-enforcer==0.11.3 numpy==2.4.6
cat > show.py <<'PYTHON'
from lmformatenforcer import JsonSchemaParser, RegexParser
from lmformatenforcer.tokenenforcer import TokenEnforcer, TokenEnforcerTokenizerData


def can_be_written(expression, text):
    parser = RegexParser(expression)
    for character in text:
        if character not in parser.get_allowed_characters():
            return False
        parser = parser.add_character(character)
    return parser.can_end()


for expression in (".+", "[^,]+", r"(\w|\s)+", "[ 0-9ก-๙]+"):
    texts = ("price 120", "ราคา 120 บาท", "Tiếng Việt", "café")
    seen = {text: can_be_written(expression, text) for text in texts}
    print(f"{expression:12}", seen)
    if "ก" in expression:
        assert seen["ราคา 120 บาท"]
    else:
        assert [*seen.values()] == [True, False, False, False]

VOCABULARY = ['"', "price", "ราคา", "café"]
END = len(VOCABULARY)
tokens = [(number, text, False) for number, text in enumerate(VOCABULARY)]
data = TokenEnforcerTokenizerData(
    tokens, lambda ids: "".join(VOCABULARY[one] for one in ids), END, False, END + 1
)
for schema, words in (
    ({"type": "string"}, {"price", "ราคา", "café"}),
    ({"type": "string", "pattern": "^.{1,40}$"}, {"price"}),
):
    enforcer = TokenEnforcer(data, JsonSchemaParser(schema))
    enforcer.get_allowed_tokens([])
    allowed = enforcer.get_allowed_tokens([0]).allowed_tokens
    seen = {VOCABULARY[one] for one in allowed if one != END} - {'"'}
    print(schema, "allows", seen)
    assert seen == words
PYTHON
HOME=$folder venv/bin/python show.py
