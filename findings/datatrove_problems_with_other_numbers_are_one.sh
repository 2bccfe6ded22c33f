#!/usr/bin/env bash
# Expected: near duplicates are texts that differ a little, and problems with other numbers have other
# answers. Seen: before texts are compared every number becomes 0, by default (norm_numbers): of four
# problems that differ in all their numbers MinHash keeps one, without it all four.
# Version: datatrove 0.10.1. Matters: a set of mathematics loses its variants to deduplication.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check "datatrove[processing,io]==0.10.1" spacy==3.8.11
cat > show.py <<'PYTHON'
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.utils.text import TextNormConfig


def kept(texts, name, config):
    documents = [Document(text=text, id=str(index)) for index, text in enumerate(texts)]
    left = []

    def collect(data, rank, world_size):
        left.extend(document.text for document in data)
        yield from ()

    for tasks, steps in (
        (1, [documents, MinhashDedupSignature(f"{name}/signatures", config=config)]),
        (config.num_buckets, [MinhashDedupBuckets(f"{name}/signatures", f"{name}/buckets", config=config)]),
        (1, [MinhashDedupCluster(f"{name}/buckets", f"{name}/removed", config=config)]),
        (1, [documents, MinhashDedupFilter(f"{name}/removed"), collect]),
    ):
        logs = f"{name}/{type(steps[-1]).__name__}"
        LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=logs).run()
    return len(left)


if __name__ == "__main__":
    text = "A shop sells {} boxes of {} pens each for ${}. How many pens does it sell, and for how much in total?"
    problems = [text.format(*numbers) for numbers in ((3, 12, 40), (5, 8, 31), (70, 2, 9.5), (6, 6, 100))]
    for name, norm, expected in (("default", TextNormConfig(), 1), ("numbers", TextNormConfig(norm_numbers=False), 4)):
        seen = kept(problems, name, MinhashConfig(norm_config=norm))
        print(f"{name}: {seen} of {len(problems)} problems are kept")
        assert seen == expected
PYTHON
HOME=$folder venv/bin/python show.py 2>/dev/null
