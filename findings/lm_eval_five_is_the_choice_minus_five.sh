#!/usr/bin/env bash
# Expected: where an answer names no letter, the filter for multiple choice looks for the text of a
# choice, and 5 is the choice "5". Seen: with ignore_punctuation, as GPQA and MMLU set it, the minus
# sign, the decimal point and the comma go before the comparison. "5" and "-5", or "3.5" and "35", are
# one text, and of two such choices the later one has it: "It is 5" is (B), minus five, and "3.5" is
# (D), thirty-five. With the choices in the other order the answers "-5" and "35" are the wrong ones.
# Version: lm_eval 0.4.13. Matters: in questions on numbers a right answer without its letter is
# counted as wrong, and a wrong one as right, depending on the order of the choices.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check lm_eval==0.4.13 datasets==5.2.0
cat > show.py <<'PYTHON'
import logging

from lm_eval.filters.extraction import MultiChoiceRegexFilter

logging.disable()
CHOICES = ["5", "-5", "3.5", "35"]
LETTERS = ["(A)", "(B)", "(C)", "(D)"]

wanted = MultiChoiceRegexFilter(
    regex_pattern=r"(\([A-Z]\))", group_select=0, ignore_case=True, ignore_punctuation=True
)


def letters(choices):
    """What the filter makes of "It is <choice>", for each of the choices."""
    answers = [[f"It is {choice}"] for choice in choices]
    return [row[0] for row in wanted.apply(answers, [{"choices": choices}] * len(choices))]


seen, turned = letters(CHOICES), letters(CHOICES[::-1])
print("choices:   ", *CHOICES, "letters:", *LETTERS, "by value:", *seen)
print("the others:", *CHOICES[::-1], "letters:", *LETTERS, "by value:", *turned)
assert seen == ["(B)", "(B)", "(D)", "(D)"]
assert turned == ["(B)", "(B)", "(D)", "(D)"]
assert letters(["red", "blue"]) == ["(A)", "(B)"]
PYTHON
HOME=$folder HF_HUB_OFFLINE=1 venv/bin/python show.py
