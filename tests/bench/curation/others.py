"""Remove duplicates with datatrove or rensa, in an environment of their own that has no other code
of this project: `python others.py rensa rows.jsonl removed.json`.

Both see the questions as 3-grams of words with 128 permutations. rensa compares sketches at 0.9;
datatrove 0.10 compares nothing, so that 14 bands of 8 rows decide. Writes the numbers of the rows
that are removed, from 0.
"""

# pyright: reportMissingImports=false
# Both packages are in an environment of their own.

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def questions(path: Path) -> Iterator[str]:
    """Yield the text of every row."""
    with path.open() as lines:
        for line in lines:
            yield json.loads(line)["question"]


def with_rensa(path: Path) -> list[int]:
    """Return the rows that rensa's deduplicator does not keep."""
    from rensa import RMinHashDeduplicator

    index = RMinHashDeduplicator(threshold=0.9, num_perm=128, use_lsh=True)
    removed = []
    for number, text in enumerate(questions(path)):
        words = text.casefold().split()
        grams = [" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))]
        if not all(index.add_pairs([(str(number), grams)])):
            removed.append(number)
    return removed


def with_datatrove(path: Path) -> list[int]:
    """Return the rows that datatrove's four steps of MinHash remove."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.utils.hashing import HashConfig

    config = MinhashConfig(
        hash_config=HashConfig(precision=64), num_buckets=14, hashes_per_bucket=8, n_grams=3
    )

    def documents() -> Iterator[Document]:
        for number, text in enumerate(questions(path)):
            yield Document(text=text, id=str(number))

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        signatures, buckets, removed = (
            str(folder / step) for step in ("signatures", "buckets", "removed")
        )
        MinhashDedupSignature(output_folder=signatures, config=config).run(documents(), 0, 1)
        for bucket in range(config.num_buckets):
            MinhashDedupBuckets(input_folder=signatures, output_folder=buckets, config=config).run(
                None, bucket, config.num_buckets
            )
        MinhashDedupCluster(input_folder=buckets, output_folder=removed, config=config).run(
            None, 0, 1
        )
        kept = MinhashDedupFilter(input_folder=removed).run(documents(), 0, 1)
        left = {int(document.id) for document in kept}
    return [number for number in range(sum(1 for _ in questions(path))) if number not in left]


TOOLS = {"rensa": with_rensa, "datatrove": with_datatrove}

if __name__ == "__main__":
    found = TOOLS[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[3]).write_text(json.dumps(found))
