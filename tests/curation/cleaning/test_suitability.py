"""Problems that cannot be a reward, responses not to imitate, and those that only look so."""

import json
import os
import re
import string
import sys
from collections import Counter
from pathlib import Path

import pytest

from data_schemas.rows import Demonstration, Domain, QuarantinedItem
from data_schemas.settings import CurationSettings
from tasks.curation.adapters.table import read_file
from tasks.curation.cleaning.quality import cleanse
from tasks.curation.cleaning.suitability import folded, unsuitable_problem, unsuitable_response
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym.table import VERIFIERS
from tests.tables import for_each


def reason(found: tuple[str, str] | None) -> str:
    return found[0] if found else ""


def test_folding_case_keeps_every_letter_that_a_pattern_takes_for_one_of_ascii():
    every = "".join(map(chr, range(sys.maxunicode + 1)))

    for letter in string.ascii_lowercase:
        found = re.findall(letter, every, re.IGNORECASE)
        assert [letter] * len(found) == [folded(one) for one in found]


@for_each(
    ("prompt", "gold", "expected"),
    [
        ("What is the area of ![](https://x.example/a.png)?", "7", "image"),
        ("In the figure below, AB = 3. Find BC.", "7", "image"),
        ("如图\uff0c求三角形的面积。", "7", "image"),
        ("ดังรูป x \u0e04\u0e37\u0e2d", "7", "image"),
        ("See the d\u0131agram shown. x\u00b2?", "7", "image"),
        ("Perhatikan gambar berikut. Berapa x\u00b2?", "7", "image"),
        ("NA F\u0130GURA ABAIXO, x\u00b2?", "7", "image"),
        ("The rows are shown below.\nRow 1: 2, 2. What comes next?", "7", ""),
        ("See the diagram at right. [asy] draw((0,0)--(1,1)); [/asy] Find x.", "7", ""),
        ("Solve. (a) Find x. (b) Hence find y.", "7", "multi_part"),
        ("Solve.\n1) Compute x.\n2) Compute y.", "7", "multi_part"),
        ("Let (a) x > 0 and (b) y > x. Find x + y.", "7", ""),
        ("Show that f is even and find f(2).", "7", ""),
        ("Prove that there are infinitely many primes.", "7", "missing_answer"),
        ("What is x?", "N/A", "missing_answer"),
        ("What is x?", "\\text{See solution}", "missing_answer"),
        ("What is x?", "-", "missing_answer"),
        ("What is x?", "-7", ""),
        ("Is 7 prime?", "\\text{Yes}", "guessable"),
        ("7 adalah bilangan prima?", "Benar", "guessable"),
        ("Which? (A) 1 (B) 2 (C) 3", "(B)", "guessable"),
        ("What is the name of the point where A and B meet?", "B", ""),
        ("Which x solve it?", "2 \\text{ or } 3", "non_unique_answer"),
        ("Give an example of a number that 7 divides.", "14", "non_unique_answer"),
        ("For example, 7 is prime. What is the next prime?", "11", ""),
        ("Find the orbit.", "\\text{orbit}", ""),
    ],
)
def test_a_maths_problem_is_dropped_for_the_rule_that_it_breaks(
    make_problem, prompt, gold, expected
):
    problem = make_problem("p", prompt, answer=json.dumps({"value": gold})).record

    assert expected == reason(unsuitable_problem(problem))


@for_each(
    ("prompt", "reasons"),
    [
        ("In the {} below, AB = 3. Find BC.", ("figure", "diagram", "picture", "graph", "image")),
        ("Pada {} berikut, cari x. Berapa?", ("gambar",)),
        ("Na {} acima, qual é x?", ("figura",)),
        ("Solve.{} Hence find y.", (" (i) Find x. (ii)", " 1) Find x. 2)", " (A) Is x 2? (B)")),
        ("{} infinitely many primes exist.", ("Prove that", "Show that")),
        ("{} that 7 divides.", ("Write down an example", "Find any number", "Name any one")),
    ],
)
def test_a_rule_finds_its_words_in_any_case(make_problem, prompt, reasons):
    for words in reasons:
        for text in (prompt.format(words), prompt.format(words).upper()):
            assert unsuitable_problem(make_problem("p", text).record), text


@for_each(
    "said",
    [
        "the reference answer is", "the official answer", "the provided label", "the gold answer",
        "golden labels", "ground-truth label", "ground truth answer", "the expected answer",
        "the answer key", "hardcode the output", "hard-coding the expected", "pass the grader",
        "trick the checker", "fool the verifier", "satisfy the reward",
    ],
)  # fmt: skip
def test_words_of_reward_hacking_are_found_in_any_case(make_demonstration, said):
    for text in (said, said.upper(), f"{said} é"):
        shown = make_demonstration("d", "How much?", f"<think>Now {text}.</think>7").record

        assert "reward_hacking" == reason(unsuitable_response(shown))


def test_a_choice_by_design_and_a_page_that_a_tool_reads_stay(make_problem):
    choice = make_problem(
        "c", "Same product? yes or no", verifier="choice", answer='{"correct":["yes"]}'
    )
    page = make_problem("t", 'Read <img src="a.png">', domain=Domain.TOOL_USE)

    assert ["", ""] == [reason(unsuitable_problem(item.record)) for item in (choice, page)]


@for_each(
    ("response", "changes", "expected"),
    [
        ("<think></think>I'm sorry, but I can't help with that.", {}, "refusal"),
        ("<think></think>As an AI language model, I cannot judge taste.", {}, "refusal"),
        ("<think></think>As an AI language model, I have no home. Paris is far.", {}, "refusal"),
        ("<think></think>Well, as an AI model I have no taste: take red.", {}, "refusal"),
        ("<think></think>As an AI, I love this question. 7", {}, "refusal"),
        ("<think></think>作为一个人工智能\uff0c我很乐意回答\uff1a7", {}, "refusal"),
        ("<think></think>作为AI助手\uff0c我认为是7", {}, "refusal"),
        ("<think></think>Used as a language model, a tree is slow.", {}, ""),
        ("<think></think>数学作为人工智能的基础很重要。", {}, ""),
        ("<think>As an AI language model, I add.</think>7", {}, ""),
        ("<think></think>As an AI model, I see no tool.", {"domain": Domain.TOOL_USE}, ""),
        ("<think></think>Maaf, saya tidak bisa menjawab.", {}, "refusal"),
        ("<think></think>抱歉\uff0c我无法回答。", {}, "refusal"),
        ("<think></think>ขออภัย ไม่สามารถตอบได้", {}, "refusal"),
        ("<think></think>I'm sorry, but I can't.", {"domain": Domain.TOOL_USE}, ""),
        ("<think>I'm sorry, I can't see it yet.</think>7", {}, ""),
        ("<think></think>I cannot recommend it more.", {}, ""),
        ("<think>The reference answer is 7.</think>7", {}, "reward_hacking"),
        ("<think>I just hardcode the expected output.</think>7", {}, "reward_hacking"),
        ("<think>The correct answer is 7.</think>7", {}, ""),
        ("<think></think>os._exit(0)", {"domain": Domain.CODE}, "reward_hacking"),
        (
            "<think></think>class A:\n  def __eq__(self, o):\n    return True",
            {"domain": Domain.CODE},
            "reward_hacking",
        ),
        ("<think></think>import sys\nsys.exit()", {"domain": Domain.CODE}, ""),
    ],
)
def test_a_response_that_teaches_a_bad_habit_is_dropped(
    make_demonstration, response, changes, expected
):
    shown = make_demonstration("d", "What is 3 + 4?", response, **changes).record

    assert expected == reason(unsuitable_response(shown))


def test_cleansing_drops_them_with_the_reason_but_leaves_a_benchmark_whole(make_problem, tokenizer):
    guessable = make_problem("p", "Is 7 prime?", "yes")
    benchmark = type(guessable)(guessable.record, guessable.content, evaluation=True)
    settings = CurationSettings(max_prompt_tokens=1000, max_response_tokens=1000)

    kept, refused = cleanse([guessable, benchmark], tokenizer, settings, VERIFIERS)

    assert [benchmark] == kept
    assert [("dropped", "guessable")] == [(one.outcome, one.reason) for one in refused]


@for_each(
    ("adapter", "path", "expected"),
    [
        ("gsm8k", "gsm8k/train.jsonl", {}),
        ("math_train", "math_train/train.jsonl", {"guessable": 24, "non_unique_answer": 3}),
        ("mgsm", "mgsm/zh.jsonl", {}),
        ("cmath", "cmath_zh/test.jsonl", {}),
        ("olympiadbench", "olympiadbench/test.jsonl", {}),
        ("marco_o1", "marco_o1_cot/sft.jsonl", {}),
        ("s1k", "s1k_sample/s1k_5.jsonl", {}),
        ("toolrl_rlla", "toolrl_rlla/sft.jsonl", {"reward_hacking": 2}),
    ],
)
def test_the_rules_drop_these_and_no_other_rows_of_public_sets(adapter, path, expected):
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / path
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {path}")
    found: Counter[str] = Counter()
    for items in read_file(adapter, 0, file, shipped_mappings().get(adapter)):
        for item in [] if isinstance(items, QuarantinedItem) else items:
            record = item.record
            if isinstance(record, Demonstration):
                found[reason(unsuitable_response(record))] += 1
            else:
                found[reason(unsuitable_problem(record))] += 1

    del found[""]
    assert expected == found


@pytest.mark.parametrize(
    ("thought", "refused"),
    [
        (" ".join(f"step {n} adds {n} to the sum so far" for n in range(400)), []),
        ("wait let me check that again " * 300, ["repetitive_response"]),
        (" ".join(f"w{n}" for n in range(300)) * 20, ["repetitive_response"]),
    ],
)
def test_a_long_thought_may_come_back_to_its_words_but_not_loop(
    make_demonstration, tokenizer, thought, refused
):
    shown = make_demonstration("d", "What is 3 + 4?", f"<think>{thought}</think>7")
    settings = CurationSettings(max_prompt_tokens=10**6, max_response_tokens=10**6)

    _, found = cleanse([shown], tokenizer, settings, VERIFIERS)

    assert refused == [one.reason for one in found]


def test_no_genuine_trace_of_s1k_is_repetitive(tokenizer):
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / "s1k_sample/s1k_5.jsonl"
    if not file.exists():
        pytest.skip("EACHPROMPT_DATA names no folder with s1k_sample")
    settings = CurationSettings(max_prompt_tokens=10**6, max_response_tokens=10**6)
    read = read_file("s1k", 0, file, shipped_mappings()["s1k"])
    items = [item for items in read if not isinstance(items, QuarantinedItem) for item in items]

    kept, _ = cleanse(items, tokenizer, settings, VERIFIERS)

    assert 5 == len(kept)
