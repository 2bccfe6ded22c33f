"""Exact and near duplicates. Problems are compared with problems, demonstrations with theirs.

Exact: equal prompts (and responses) after NFKC, case folding and whitespace, with the
same answer. Near: MinHash LSH (Broder 1997) over 3-grams of words, and every candidate
pair checked by its true Jaccard similarity. Prompts whose numbers or answers differ are
never duplicates: templated arithmetic differs in nothing else.

Of several alike the first by (source order, id) is kept, so the order of rows within a
source has no influence. Running the filter on its own output changes nothing.
"""

from collections import defaultdict
from collections.abc import Sequence

from datasketch import MinHash, MinHashLSH

from data_schemas.demonstrations import Demonstration
from data_schemas.quarantine import Outcome, Quarantined
from tasks.curation.items import Item, Sieved, refuse
from tasks.curation.wording import jaccard, normalised, numbers, shingles, words
from tasks.store.files import sha256_bytes

STAGE = "dedup"
NGRAM = 3
_PERMUTATIONS = 128
_MINHASH_SEED = 1

Shingles = set[tuple[str, ...]]


def deduplicate(items: Sequence[Item], threshold: float) -> Sieved:
    """Drop contradictions, duplicates and near duplicates; quarantine reused ids.

    Args:
        items: in the order in which the kept ones are returned.
        threshold: smallest Jaccard similarity that counts as near; 1 = exact only.
    """
    ranked = sorted(items, key=lambda item: (item.source, item.record.id, item.record.source_row))
    refused: dict[int, Quarantined] = {}
    for find in (_contradictions, _exact, _reused_ids):
        found = find([item for item in ranked if id(item) not in refused])
        refused |= found
    if threshold < 1.0:
        refused |= _near([item for item in ranked if id(item) not in refused], threshold)
    kept = [item for item in items if id(item) not in refused]
    return kept, [refused[id(item)] for item in items if id(item) in refused]


def _contradictions(ranked: Sequence[Item]) -> dict[int, Quarantined]:
    """Refuse all items with a prompt for which two problems expect different answers."""
    asked: dict[str, dict[str, str]] = defaultdict(dict)
    for item in ranked:
        if not isinstance(item.record, Demonstration):
            asked[item.record.prompt_text].setdefault(item.answer_key, item.record.id)
    refused: dict[int, Quarantined] = {}
    for item in ranked:
        rivals = asked.get(item.record.prompt_text, {})
        if len(rivals) > 1:
            first, second, *_ = rivals.values()
            detail = f"{first} and {second} ask the same and expect different answers"
            refused[id(item)] = refuse(item, STAGE, Outcome.DROPPED, "conflicting_answers", detail)
    return refused


def _exact(ranked: Sequence[Item]) -> dict[int, Quarantined]:
    first: dict[tuple[str, ...], Item] = {}
    refused: dict[int, Quarantined] = {}
    for item in ranked:
        key = (item.kind, *_parent(item), normalised(_said(item.record.prompt_text, item)))
        twin = first.setdefault((*key, item.answer_key), item)
        if twin is not item:
            refused[id(item)] = refuse(
                item, STAGE, Outcome.DROPPED, "duplicate", f"of {twin.record.id}"
            )
    return refused


def _reused_ids(ranked: Sequence[Item]) -> dict[int, Quarantined]:
    first: dict[tuple[str, ...], Item] = {}
    refused: dict[int, Quarantined] = {}
    for item in ranked:
        if first.setdefault((item.kind, item.record.id), item) is not item:
            refused[id(item)] = refuse(
                item, STAGE, Outcome.QUARANTINED, "reused_id", "another row has this id"
            )
    return refused


def _near(ranked: Sequence[Item], threshold: float) -> dict[int, Quarantined]:
    """Compare each item with those kept before it that have its numbers and its answer."""
    rooms: dict[tuple[object, ...], list[Item]] = defaultdict(list)
    texts = {id(item): normalised(_said(item.content, item)) for item in ranked}
    for item in ranked:
        room = (item.kind, *_parent(item), numbers(texts[id(item)]), item.answer_key)
        rooms[room].append(item)
    crowded = {name: room for name, room in rooms.items() if len(room) > 1}
    refused: dict[int, Quarantined] = {}
    if crowded:
        index = MinHashLSH(threshold=threshold, num_perm=_PERMUTATIONS)
        for name, room in crowded.items():
            # In every hash, the room's name keeps items of two rooms from being candidates.
            salt = sha256_bytes(repr(name).encode())[:16]
            refused |= _near_in_room(room, salt, texts, threshold, index)
    return refused


def _near_in_room(
    room: Sequence[Item], salt: str, texts: dict[int, str], threshold: float, index: MinHashLSH
) -> dict[int, Quarantined]:
    kept: dict[str, tuple[Item, Shingles]] = {}
    refused: dict[int, Quarantined] = {}
    grams = [shingles(words(texts[id(item)]), NGRAM) for item in room]
    hashes = MinHash.bulk(
        ([f"{salt}\n{' '.join(gram)}".encode() for gram in sorted(each)] for each in grams),
        num_perm=_PERMUTATIONS,
        seed=_MINHASH_SEED,
    )
    for position, (item, mine, minhash) in enumerate(zip(room, grams, hashes, strict=True)):
        candidates = sorted(str(key) for key in index.query(minhash) if key in kept)
        for key in candidates:
            twin, theirs = kept[key]
            similarity = jaccard(mine, theirs)
            if similarity >= threshold:
                refused[id(item)] = refuse(
                    item,
                    STAGE,
                    Outcome.DROPPED,
                    "near_duplicate",
                    f"of {twin.record.id}, Jaccard {similarity:.2f}",
                )
                break
        else:
            key = f"{salt}/{position:09d}"
            kept[key] = (item, mine)
            index.insert(key, minhash)
    return refused


def _said(prompt: str, item: Item) -> str:
    if isinstance(item.record, Demonstration):
        return f"{prompt}\n{item.record.response}"
    return prompt


def _parent(item: Item) -> tuple[str, ...]:
    """A demonstration may teach both parents; only within one it is a duplicate."""
    return (item.record.parent,) if isinstance(item.record, Demonstration) else ()
