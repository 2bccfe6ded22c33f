#!/usr/bin/env bash
# Expected: the hash that deepdiff computes of an object is a digest of its content: two lists with
# other elements, or the same ones in another order, differ. Seen: DeepHash ignores order and
# repetition unless it is told otherwise, while DeepDiff, of the same library, reports both. A chat,
# and its turns in another order with one left out, have one digest; so have [1, 0, 0, 0] and [0,
# 1], rewards of two groups. Version: deepdiff 9.1.0. Matters: rows of chat data, lists of rewards
# or of files that are deduplicated, cached or tracked by this digest are taken for each other.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check deepdiff==9.1.0
cat > show.py <<'PYTHON'
from deepdiff import DeepDiff, DeepHash


def digest(value, **options):
    return DeepHash(value, **options)[value]


chat = [
    {"role": "user", "content": "Is it in stock?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Is it in stock?"},
]
other = [chat[1], chat[0]]
print("turns:", digest(chat)[:12], "other order, one turn less:", digest(other)[:12])
print("rewards [1, 0, 0, 0]:", digest([1, 0, 0, 0])[:12], "[0, 1]:", digest([0, 1])[:12])
print("DeepDiff sees:", sorted(DeepDiff(chat, other)))
assert digest(chat) == digest(other)
assert digest([1, 0, 0, 0]) == digest([0, 1])
assert digest([1, 0]) != digest([1, 2])
assert DeepDiff(chat, other)

ordered = {"ignore_iterable_order": False, "ignore_repetition": False}
assert digest(chat, **ordered) != digest(other, **ordered)
PYTHON
HOME=$folder venv/bin/python show.py
