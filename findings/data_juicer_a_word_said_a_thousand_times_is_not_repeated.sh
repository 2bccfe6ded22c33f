#!/usr/bin/env bash
# Expected: the filter for repeated characters drops a text that says one thing a thousand times. Seen:
# its ratio counts the most frequent pieces of ten characters, but of n different pieces at most the
# square root of n. A loop of period n therefore has the ratio 1 / sqrt(n), however often it turns: "shoe
# shoe shoe ..." 0.4 and a paragraph a thousand times 0.06, below the default limit of 0.5, which only a
# single character can pass. The word with something new behind it has more: 0.96.
# Version: py-data-juicer 1.6.1. Matters: looping rollouts and pages of menus stay in a curated set; the
# filter for repeated words beside it sees them, if there are blanks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
install="venv/bin/python -m pip install --quiet --disable-pip-version-check"
$install numpy==2.4.6 pydantic==2.14.4 loguru==0.7.3 zstandard==0.25.0
$install --no-deps py-data-juicer==1.6.1
cat > show.py <<'PYTHON'
import sys
from importlib.metadata import distribution
from types import ModuleType

# The operator alone: the packages around it load clusters and clients.
for name in ("data_juicer", "data_juicer.ops", "data_juicer.ops.filter"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(distribution("py-data-juicer").locate_file(name.replace(".", "/")))]
base = ModuleType("data_juicer.ops.base_op")
base.OPERATORS = type("Table", (), {"register_module": staticmethod(lambda name: lambda operator: operator)})
base.Filter = type("Filter", (), {"text_key": "text"})
sys.modules[base.__name__] = base

from data_juicer.ops.filter.character_repetition_filter import CharacterRepetitionFilter
from data_juicer.utils.constant import Fields, StatsKeys

PARAGRAPH = """The shop opens at nine every morning, and its two clerks sort whatever the van has brought
overnight: shoes, lamps, kettles, an odd umbrella. By noon most parcels are labelled and stacked beside a
window that looks onto the harbour. """
filter = CharacterRepetitionFilter()
ratios = {}
for name, text in {
    "a paragraph once": PARAGRAPH,
    "a paragraph a thousand times": PARAGRAPH * 1000,
    "a word a thousand times": "shoe " * 1000,
    "a word a thousand times, and a paragraph": "shoe " * 1000 + PARAGRAPH,
    "a letter a thousand times": "a" * 1000,
}.items():
    rows = filter.compute_stats_batched({"text": [text], Fields.stats: [{}]})
    ratios[name] = round(rows[Fields.stats][0][StatsKeys.char_rep_ratio], 2)
    print(f"{name}: {ratios[name]}, the limit is {filter.max_ratio}")
assert list(ratios.values()) == [0, 0.06, 0.4, 0.96, 1] and filter.max_ratio == 0.5
PYTHON
HOME=$folder venv/bin/python show.py
