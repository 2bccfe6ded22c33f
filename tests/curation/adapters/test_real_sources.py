"""Exact counts on public sets as published; skipped where they are not at hand.

EACHPROMPT_DATA names a folder with one sub-folder per set.
"""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from data_schemas.rows import Demonstration, Problem, QuarantinedItem
from data_schemas.settings import CurationSettings, Source
from tasks.curation.adapters.table import read_file
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest, locate, raw_files
from tasks.curation.items import Item
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym.table import VERIFIERS, score_batch
from tests.tables import for_each

FOLDERS = {
    "ae110k": "attribute_extraction",
    "prdect_id": "prdect_id",
    "gsm8k": "gsm8k",
    "mbpp": "mbpp",
    "bfcl": "bfcl_v4",
    "ifeval": "ifeval",
    "m_ifeval": "m_ifeval",
}
PROBLEM, DEMONSTRATION = "problem", "demonstration"


@pytest.fixture(scope="module")
def data() -> Path:
    folder = Path(os.environ.get("EACHPROMPT_DATA", "")).resolve()
    missing = [name for name in FOLDERS.values() if not (folder / name).is_dir()]
    if "EACHPROMPT_DATA" not in os.environ or missing:
        pytest.skip(f"EACHPROMPT_DATA names no folder with {', '.join(missing)}")
    return folder


def counts(problems: int, demonstrations: int, **refused: int) -> dict[str, int]:
    return {
        "problems": problems,
        "demonstrations": demonstrations,
        "held_out": 20,
        **refused,
    }


def rows(data: Path, tmp_path: Path, adapter: str) -> list[list[Item] | QuarantinedItem]:
    ingest([Source(adapter=adapter, path=str(data / FOLDERS[adapter]))], 0, tmp_path)
    return [
        row for file in raw_files(tmp_path) for row in read_file(adapter, 0, locate(tmp_path, file))
    ]


@pytest.mark.parametrize(
    ("adapter", "expected"),
    [
        ("ae110k", {PROBLEM: 2057, DEMONSTRATION: 2057, "several_values": 35}),
        ("prdect_id", {PROBLEM: 4320, DEMONSTRATION: 4320}),
        ("gsm8k", {PROBLEM: 8792, DEMONSTRATION: 8792}),
        ("mbpp", {PROBLEM: 474}),
        ("bfcl", {PROBLEM: 1456, "multi_turn": 200, "missing_field": 12, "no_gold": 16}),
        ("ifeval", {PROBLEM: 541}),
        ("m_ifeval", {PROBLEM: 522}),
    ],
)
def test_every_raw_row_is_read_or_refused_with_its_reason(
    data: Path, tmp_path: Path, adapter: str, expected: dict[str, int]
):
    found: Counter[str] = Counter()
    for row in rows(data, tmp_path, adapter):
        found.update([row.reason] if isinstance(row, QuarantinedItem) else [i.kind for i in row])

    assert expected == found


@pytest.mark.parametrize("adapter", ["ae110k", "prdect_id", "gsm8k"])
def test_every_demonstration_solves_the_problem_of_its_row(
    data: Path, tmp_path: Path, adapter: str
):
    wrong: list[str] = []
    for row in rows(data, tmp_path, adapter):
        records = [] if isinstance(row, QuarantinedItem) else [item.record for item in row]
        problems = [record for record in records if isinstance(record, Problem)]
        shown = [record for record in records if isinstance(record, Demonstration)]
        for problem, demonstration in zip(problems, shown, strict=True):
            if not VERIFIERS[problem.verifier](problem, demonstration.response).solved:
                wrong.append(problem.id)

    assert [] == wrong


@pytest.mark.parametrize("adapter", ["mbpp", "bfcl", "ifeval", "m_ifeval"])
def test_every_gold_answer_can_be_read_by_its_verifier(data: Path, tmp_path: Path, adapter: str):
    for row in rows(data, tmp_path, adapter):
        for item in [] if isinstance(row, QuarantinedItem) else row:
            assert isinstance(item.record, Problem)
            verdict = VERIFIERS[item.record.verifier](item.record, "<think>")
            assert "no_answer" == verdict.reason, (item.record.id, verdict)


def test_the_first_300_rows_of_each_set_are_accounted_for(
    data: Path, base_model: Path, tmp_path: Path
):
    sources = [
        Source(adapter=adapter, path=str(data / folder), limit=300)
        for adapter, folder in FOLDERS.items()
    ]
    # Lengths depend on the tokenizer; here nothing is too long.
    settings = CurationSettings(
        max_prompt_tokens=100_000, max_response_tokens=100_000, held_out_per_suite=20
    )
    for name in ("raw", "out"):
        (tmp_path / name).mkdir()
    ingest(sources, 0, tmp_path / "raw")
    curate(settings, tmp_path / "raw", base_model, tmp_path / "out")

    report = json.loads((tmp_path / "out" / REPORT).read_bytes())["sources"]
    assert {
        "ae110k": counts(273, 273, contaminated=20, several_values=7),
        "prdect_id": counts(109, 109, contaminated=20, duplicate=342),
        "gsm8k": counts(280, 280, contaminated=20),
        "mbpp": counts(280, 0),
        "bfcl": counts(279, 0, contaminated=1),
        "ifeval": counts(293, 0, held_out=7),
        "m_ifeval": counts(283, 0, contaminated=4, held_out=13),
    } == {
        name: {**account["kept"], **account["dropped"], **account["quarantined"]}
        for name, account in report.items()
    }


PUBLIC = {
    "product_matching/walmart_amazon_train.parquet": ("product_matching", {"problem": 3000}),
    "product_matching/amazon_google_valid.parquet": ("amazon_google", {"problem": 2293}),
    "amc23/test.jsonl": ("amc23", {"problem": 40}),
    "cruxeval/cruxeval.jsonl": ("cruxeval", {"problem": 800}),
    "indonlu/casa_train.jsonl": ("casa", {"problem": 810}),
    "indonlu/hoasa_train.jsonl": ("hoasa", {"problem": 2283}),
    "nusax/mt_train.jsonl": ("nusax_translation", {"problem": 250}),
    "wisesight_th/test_0-1299.jsonl": ("wisesight", {"problem": 1300}),
    "shoppingbench/web_simpleqa.jsonl": ("shoppingbench_knowledge", {"problem": 150}),
    "esci_us_judgments/judgments.jsonl": ("esci", {"missing_column": 6678}),
    "nusax/sentiment_indonesian_test.jsonl": ("sentiment_id", {"problem": 400}),
    "indonlu/smsa_valid.jsonl": ("sentiment_id", {"problem": 1260}),
    "cmath_zh/test.jsonl": ("cmath", {"problem": 600}),
    "xcopa/id_test.jsonl": ("xcopa", {"problem": 500}),
    "xcopa/vi_test.jsonl": ("xcopa", {"problem": 500}),
    "s1k_sample/s1k_5.jsonl": ("s1k", {"demonstration": 5}),
    "marco_o1_cot/sft.jsonl": ("marco_o1", {"demonstration": 125}),
    "qwen_math_graded/graded.jsonl": ("qwen_math_graded", {"problem": 800, "demonstration": 800}),
    "gsm8k_model_solutions/solutions.parquet": (
        "gsm8k_model_solutions",
        {"problem": 2638, "demonstration": 2638},
    ),
    "prdect_id/reviews_dev.jsonl": ("prdect_id_emotion", {"problem": 4320}),
    "tau_bench_retail/db_users.jsonl": ("tau_bench_address", {"problem": 500}),
    "product_matching/amazon_google_test.parquet": ("amazon_google", {"problem": 2293}),
}


@for_each("path", PUBLIC)
def test_a_mapping_of_the_project_reads_every_row_of_the_public_set(path):
    file = Path(os.environ.get("EACHPROMPT_DATA", "/nowhere")) / path
    if not file.exists():
        pytest.skip(f"EACHPROMPT_DATA names no folder with {path}")
    name, expected = PUBLIC[path]
    found: Counter[str] = Counter()
    items = []
    for read in read_file(name, 0, file, shipped_mappings()[name]):
        if isinstance(read, QuarantinedItem):
            found[read.reason] += 1
        else:
            found.update(item.kind.value for item in read)
            items += read

    assert expected == found
    records = [item.record for item in items]
    problems = [record for record in records if isinstance(record, Problem)]
    assert not any(verdict.abstained for verdict in score_batch(problems, ["?"] * len(problems)))
    shown = [record.response for record in records if isinstance(record, Demonstration)]
    assert all(text.startswith("<think>") and not text.endswith("</think>") for text in shown)
