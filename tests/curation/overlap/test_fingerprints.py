"""Texts as numbers: equal exactly where the texts are."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from tasks.curation.cleaning.wording import normalise, words
from tasks.curation.items import Item
from tasks.curation.overlap.fingerprints import (
    Fingerprinter,
    Key,
    distinct_shingles,
    every_shingle,
    runs,
    shingles,
    split,
)

Make = Callable[..., Item]
WORDS = Fingerprinter().words


def test_one_changed_word_of_six_leaves_one_of_four_shingles():
    left, right = shingles(WORDS("a b c d e f"), 3), shingles(WORDS("a b c x e f"), 3)

    assert (4, 4, 1) == (len(left), len(right), len(np.intersect1d(left, right)))


def test_a_text_shorter_than_a_shingle_is_one_shingle_and_an_empty_one_too():
    assert 1 == len(shingles(WORDS("a b"), 3)) == len(shingles(WORDS(""), 3))
    assert shingles(WORDS("a b"), 3) != shingles(WORDS("b a"), 3)


def test_every_shingle_of_many_texts_is_one_of_each():
    texts = [WORDS(text) for text in ("a b c a b c", "x y", "", "a b c d", "1 2 3")]

    found, ends = every_shingle(texts, 3)

    parts = [found[begin:end] for begin, end in pairwise(ends)]
    assert [shingles(text, 3).tolist() for text in texts] == [
        np.unique(part).tolist() for part in parts
    ]
    assert [4, 1, 1, 2, 1] == list(map(len, parts))
    distinct = split(*distinct_shingles(texts, 3))
    assert [shingles(text, 3).tolist() for text in texts] == [one.tolist() for one in distinct]
    assert 0 == len(distinct_shingles([], 3)[0])


def test_a_prompt_that_starts_with_its_content_has_the_key_of_the_whole(make_problem: Make):
    for content, prompt in (
        ("Is 1,000 - 2 < x?", "Is 1,000 - 2 < x? Say it."),
        ("Is 1", "Is 10 of x?"),
        ("\uff11\uff12", "12 34"),
        ("e", "e\u0301 x"),
        ("紅 bag", "紅 BAG\n背包"),
    ):
        whole = make_problem("a", prompt)
        part = replace(whole, content=content)

        keys = Fingerprinter().of([part, whole]).keys[:, Key.WORDING]

        assert keys[0].tolist() == keys[1].tolist()


def test_the_key_of_a_text_is_the_digest_of_its_words_and_arithmetic_signs(make_problem: Make):
    items = [make_problem("a", text) for text in ("Is 3 - 4 < x?", "", "?!", "Is 3 - 4 < x?")]

    keys = Fingerprinter().of(items).keys[:, Key.CONTENT]

    for item, key in zip(items, keys, strict=True):
        kept = [WORDS(word) for word in words(normalise(item.content)) if word not in "?!"]
        payload = b"".join(one.tobytes() for one in kept)
        assert blake2b(payload, digest_size=16).digest() == key.tobytes()


def test_a_run_has_the_same_hash_wherever_it_stands():
    one, two = runs(WORDS("x a b c"), 3), runs(WORDS("a b c y z"), 3)

    assert one[1] == two[0]
    assert 0 == len(runs(WORDS("a b"), 3))


def test_what_two_items_share_decides_which_keys_are_equal(
    make_problem: Make, make_demonstration: Make
):
    items = [
        make_problem("a", "What is 3 + 4?"),
        make_problem("b", "what  is 3 + 4"),
        make_problem("a", "What is 3 - 4?"),
        make_demonstration("a", "What is 3 + 4?", "<think></think>7"),
    ]

    keys = Fingerprinter().of(items).keys

    def same(left: int, right: int) -> set[Key]:
        return {key for key in Key if (keys[left, key] == keys[right, key]).all()}

    assert {Key.ANSWER, Key.BUCKET, Key.CONTENT, Key.WORDING} == same(0, 1)
    assert {Key.ANSWER, Key.NAME, Key.BUCKET} == same(0, 2)
    assert {Key.PROMPT, Key.CONTENT, Key.WORDING} == same(0, 3)


def test_another_process_computes_the_same_numbers():
    text = "3 + 4 กระเป๋า 紅色 bag"
    program = (
        "from tasks.curation.overlap.fingerprints import Fingerprinter; "
        f"print(Fingerprinter().words({text!r}).tolist())"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert str(WORDS(text).tolist()) == told.stdout.decode().strip()
