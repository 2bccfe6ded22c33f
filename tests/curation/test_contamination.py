"""Training items that repeat held-out problems."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_schemas.arrow import read_table
from data_schemas.rows import HELD_OUT, PROBLEMS, QUARANTINE, ItemKind, Problem, QuarantinedItem
from data_schemas.settings import CurationSettings, Source
from tasks.curation.adapters.table import read_file
from tasks.curation.contamination import as_items, decontaminate
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.curation.items import Item

Make = Callable[..., Item]
FOURTEEN = "a b c d e f g h i j k l m n"


def leaks(training: list[Item], held_out: list[Item], ngram: int = 13) -> dict[str, str]:
    return {r.key: r.detail for r in decontaminate(training, held_out, ngram)[1]}


def test_thirteen_shared_words_are_a_leak_and_twelve_are_not(make_problem: Make):
    held_out = [make_problem("question", f"start {FOURTEEN} end")]
    training = [
        make_problem("leak", f"other A, B; c d e f g h i j k l m! {FOURTEEN[::-1]}"),
        make_problem("twelve", "other a b c d e f g h i j k l Z"),
    ]

    found = leaks(training, held_out)

    assert {"test/leak": "held-out test/question: 'a b c d e f g h i j k l m'"} == found


def test_a_short_prompt_leaks_only_as_a_whole(make_problem: Make, make_demonstration: Make):
    held_out = [make_problem("question", "What is 3 + 4?")]
    training = [
        make_problem("same", "what is 3 + 4"),
        make_problem("longer", "Tell me: what is 3 + 4?"),
        make_problem("number", "What is 3 + 5?"),
        make_problem("sign", "What is 3 - 4?"),
        make_demonstration("taught", "What is 3 + 4?", "<think></think>7"),
    ]

    expected = "its words are those of held-out test/question"
    assert {"test/same": expected, "test/taught": expected} == leaks(training, held_out)


def test_instructions_around_a_row_are_no_leak(make_problem: Make):
    held_out = [make_problem("question", f"{FOURTEEN}\nred bag", content="red bag")]
    training = [
        make_problem("other", f"{FOURTEEN}\nblue shoe", content="blue shoe"),
        make_problem("same", f"{FOURTEEN}\nred bag", content="red bag"),
    ]

    assert ["test/same"] == list(leaks(training, held_out))


def test_a_phrase_that_more_than_ten_training_texts_share_is_no_leak(make_problem: Make):
    held_out = [make_problem("question", f"{FOURTEEN} one")]
    ten = [make_problem(f"{number}", f"{FOURTEEN} {number}") for number in range(10)]

    assert 10 == len(leaks(ten, held_out))
    assert {} == leaks([*ten, make_problem("10", f"{FOURTEEN} 10")], held_out)


def test_a_run_that_mostly_lies_in_a_common_phrase_is_no_leak(make_problem: Make):
    held_out = [make_problem("question", f"{FOURTEEN} 1 2 3 4 5 6 7")]
    common = [make_problem(f"{number}", f"{FOURTEEN} {number + 10}") for number in range(11)]
    seven_inside = make_problem("seven", "h i j k l m n 1 2 3 4 5 6 and more")
    six_inside = make_problem("six", "i j k l m n 1 2 3 4 5 6 7")

    assert {"test/seven", "test/six"} == leaks([seven_inside, six_inside], held_out).keys()
    assert {"test/six"} == leaks([*common, seven_inside, six_inside], held_out).keys()


def test_with_masked_numbers_a_question_is_found_with_others_but_not_a_short_one(
    make_problem: Make,
):
    text = "Ann has {} bags and {} shoes, and gives half of them to Ben. How many are left?"
    held_out = [
        make_problem("long", text.format(3, "1,200")),
        make_problem("short", "What is 3 + 4?"),
    ]
    training = [
        make_problem("other", text.format(17, 5)),
        make_problem("words", text.format("three", "four")),
        make_problem("sum", "What is 5 + 6?"),
        make_problem("same", "What is 3 + 4?"),
    ]

    _, found = decontaminate(training, held_out, any_numbers=True)

    shared = "1,200 shoes and gives half of them to ben how many are left"
    assert [("test/other", f"held-out test/long: '{shared}', with any numbers")] == [
        (one.key, one.detail) for one in found
    ]


def test_a_run_of_masked_numbers_is_everybodys(make_problem: Make):
    polynomial = " + ".join(f"{{0}}x^{power}" for power in range(9))
    lists = ", ".join(["{0}"] * 20)
    asked = [f"What is {polynomial}?", f"Add up the list of {lists}."]
    held_out = [make_problem(f"h{place}", text.format(7)) for place, text in enumerate(asked)]
    training = [make_problem(f"t{place}", text.format(8)) for place, text in enumerate(asked)]

    assert [] == decontaminate(training, held_out, any_numbers=True)[1]


@pytest.mark.parametrize(
    ("adapter", "training", "benchmark", "problems", "leaked"),
    [
        ("knights_knaves", "3ppl_train.parquet", "3ppl_test.parquet", 250, (17, 0)),
        ("math_train", "train.jsonl", "../olympiadbench/test.jsonl", 7470, (8, 7)),
    ],
)
def test_templates_and_idioms_of_public_sets_are_no_leak(
    adapter: str, training: str, benchmark: str, problems: int, leaked: tuple[int, int]
):
    folder = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / adapter
    if not (folder / benchmark).exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {adapter} and {benchmark}")
    of_benchmark = (folder / benchmark).resolve()
    reader = of_benchmark.parent.name
    rows = list(problems_of(adapter, folder / training))
    held_out = list(problems_of(reader, of_benchmark))
    left, found = decontaminate(rows, held_out)
    _, renumbered = decontaminate(left, held_out, any_numbers=True)

    assert (problems, *leaked) == (len(rows), len(found), len(renumbered))


def problems_of(adapter: str, file: Path) -> list[Item]:
    read = [row for row in read_file(adapter, 0, file) if not isinstance(row, QuarantinedItem)]
    return [item for row in read for item in row if item.kind is ItemKind.PROBLEM]


def test_in_thai_too_numbers_are_masked_in_any_digits(make_problem: Make):
    text = "ร้านขายกระเป๋า {} ใบและรองเท้า {} คู่ให้ลูกค้าทุกวันตลอดทั้งสัปดาห์"
    held_out = [make_problem("question", text.format(3, 4), language="th")]
    training = [make_problem("other", text.format("๑๒", 5), language="th")]

    assert {} == leaks(training, held_out)
    assert 1 == len(decontaminate(training, held_out, any_numbers=True)[1])


def test_numbers_are_masked_for_a_benchmark_and_not_for_what_is_drawn_from_a_source(
    base_model: Path, tmp_path: Path
):
    asked = "A shop has {} bags and sells {} of them on each day of the week. How many are left?"
    other = ["How tall is a tree?", "What is a dozen and one?", "Count the legs of a horse."]
    written = {
        "exam": [asked.format(number, number + 1) for number in range(10, 13)],
        "train": [*(asked.format(number, number + 1) for number in range(20, 26)), *other],
    }
    for name, questions in written.items():
        lines = [{"question": one, "answer": f"#### {n}"} for n, one in enumerate(questions)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    train, exam = (
        Source(adapter="gsm8k", path=str(tmp_path / f"{name}.jsonl"), evaluation=name == "exam")
        for name in ("train", "exam")
    )
    reasons = []
    for name, sources in (("drawn", [train]), ("examined", [train, exam])):
        raw, out = tmp_path / name / "raw", tmp_path / name / "out"
        raw.mkdir(parents=True)
        out.mkdir()
        ingest(sources, 0, raw)
        curate(CurationSettings(max_prompt_tokens=300, held_out_per_suite=2), raw, base_model, out)
        refused = read_table(out / QUARANTINE, QuarantinedItem)
        problems = [one.reason for one in refused if one.kind is ItemKind.PROBLEM]
        reasons.append(problems.count("contaminated"))

    assert [0, 6] == reasons


@pytest.mark.slow
def test_a_raw_row_is_not_held_out_as_one_task_and_taught_as_another(
    base_model: Path, tmp_path: Path
):
    rows = [
        {
            "id": f"prdect-{number}",
            "Product Name": f"{one} bag number {number}",
            "Category": "Camera",
            "Customer Review": f"{one} and good, {number} of them",
            "Emotion": "Happy",
        }
        for number, one in enumerate("abcdefghij")
    ]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sources = [
        Source(adapter=name, path=str(tmp_path / "set.jsonl"))
        for name in ("prdect_id", "prdect_id_emotion")
    ]
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    out.mkdir()
    ingest(sources, 0, raw)
    curate(CurationSettings(max_prompt_tokens=2000, held_out_per_suite=4), raw, base_model, out)

    held_out = {one.source_row for one in read_table(out / HELD_OUT, Problem)}
    taught = {one.source_row for one in read_table(out / PROBLEMS, Problem)}
    dropped = [
        one for one in read_table(out / QUARANTINE, QuarantinedItem) if "raw row" in one.detail
    ]
    assert (4, 6, set()) == (len(held_out), len(taught), held_out & taught)
    assert {"contaminated"} == {one.reason for one in dropped}


def test_a_problem_and_its_demonstration_count_as_one_text(
    make_problem: Make, make_demonstration: Make
):
    held_out = [make_problem("question", f"{FOURTEEN} one")]
    prompts = [f"{FOURTEEN} {number}" for number in range(6)]
    training = [make_problem(prompt, prompt) for prompt in prompts]
    training += [make_demonstration(p, p, "<think></think>7") for p in prompts]

    assert 12 == len(decontaminate(training, held_out, 13)[1])


def test_in_thai_a_word_counts_as_three_characters(make_problem: Make):
    shared = "กระเป๋าหนังสีแดงของผู้หญิงราคาถูกมากมาย"
    held_out = [make_problem("question", f"{shared}ก", language="th")]

    assert 3 * 13 == len(shared)
    assert ["test/a"] == list(leaks([make_problem("a", f"ข{shared}", language="th")], held_out))
    assert {} == leaks([make_problem("a", f"ข{shared[:-1]}", language="th")], held_out)


def test_an_earlier_held_out_set_is_compared_by_its_whole_prompt_too(make_problem: Make):
    held_out_from = make_problem("question", "Which category?\nred bag", content="red bag")
    training = [make_problem("same", "Which category?\nred bag", content="red bag")]

    assert ["test/same"] == list(leaks(training, as_items([held_out_from.record])))


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.text("ab 1", min_size=1, max_size=12).filter(str.strip), max_size=10))
def test_nothing_is_lost_and_a_second_pass_finds_nothing(make_problem: Make, prompts: list[str]):
    items = [make_problem(f"{number}", prompt) for number, prompt in enumerate(prompts)]
    held_out, training = items[::3], [item for item in items if item not in items[::3]]

    kept, refused = decontaminate(training, held_out, 4)

    assert len(training) == len(kept) + len(refused)
    assert (kept, []) == decontaminate(kept, held_out, 4)
