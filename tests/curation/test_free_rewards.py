"""What a text that does no task earns on a source, in the report, on the screen and on the page."""

import html
import json
import logging
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import Domain, Problem
from data_schemas.settings import CurationSettings, Source
from data_schemas.verdicts import scored
from tasks.curation.curate import REPORT, curate
from tasks.curation.free_rewards import measure
from tasks.curation.ingest import ingest
from tasks.errors import SettingsError
from tasks.gym.degenerate import MAX_PROBLEMS, TEXTS
from tasks.gym.table import score_batch
from tasks.pages.curation import render_curation
from tasks.pages.wording import percent
from tests.records import problem_of

SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=4)
MAPPING = """
name: shop_category
domain: choice
language: en
prompt: "Choose one category for this product: shoes, toys or books.\\n{title}"
verifier: choice
answer: {correct: ["{cat}"]}
options: [shoes, toys, books]
"""
POLITE = """
from data_schemas.verdicts import scored


def polite(problem, response):
    return scored(float("please" in response), "words")
"""


def curated(folder: Path, base_model: Path, rows: list[dict[str, str]]) -> Path:
    (folder / "shop.yaml").write_text(MAPPING)
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name in ("raw", "out"):
        (folder / name).mkdir()
    source = Source(adapter=str(folder / "shop.yaml"), path=str(folder / "rows.jsonl"))
    ingest([source], 0, folder / "raw")
    curate(SETTINGS, folder / "raw", base_model, folder / "out")
    return folder / "out"


def problem(number: int, verifier: str, answer: str = "{}") -> Problem:
    return problem_of(
        f"Ask for {number} shoes.",
        answer,
        id=f"own/{verifier.partition('@')[0]}/{number}",
        domain=Domain.GENERAL,
        verifier=verifier,
        source="own",
        source_row="0",
    )


def test_curation_says_how_much_of_the_reward_of_a_source_is_free(tmp_path, base_model, caplog):
    names = ["amber", "birch", "coral", "dune", "ember", "fjord", "grove", "heath", "islet", "jade"]
    rows = [{"title": f"{name} thing, number {n}", "cat": "shoes"} for n, name in enumerate(names)]

    out = curated(tmp_path, base_model, rows)

    free = json.loads((out / REPORT).read_bytes())["free_rewards"]["shop_category"]["choice"]
    assert (1.0, 1.0) == (free["score"], free["accuracy"])
    assert free["text"] in TEXTS
    (line,) = [one.getMessage() for one in caplog.records if "is free" in one.getMessage()]
    assert line.startswith("shop_category: 100 % of the reward of choice is free")
    page = html.unescape(render_curation(out, "set").decode())
    assert f"a text which does no task earns: choice {percent(1.0)} ({free['text']})" in page


@pytest.mark.slow
def test_fifty_thousand_rows_cost_as_much_as_twenty(tmp_path):
    asked = []

    def score(problems, texts):
        asked.extend(one.id for one in problems)
        return [scored(0.0, "wrong") for _ in texts]

    rows = [problem(n, "choice", '{"correct": ["a"]}') for n in range(50_000)]
    write_table(tmp_path / "problems.parquet", Problem, rows)

    free = measure(tmp_path / "problems.parquet", score)

    assert {f"own/choice/{n}" for n in range(0, 50_000, 2_500)} == set(asked)
    assert len(asked) < len(TEXTS) * MAX_PROBLEMS  # most texts are scored on a third of them
    assert MAX_PROBLEMS == free["own"]["choice"].problems


@pytest.mark.slow
def test_a_verifier_of_ones_own_is_tried_with_the_texts_of_its_module(tmp_path, caplog):
    (tmp_path / "plain.py").write_text(POLITE)
    (tmp_path / "named.py").write_text(
        POLITE + 'DEGENERATE = {"politeness alone": "please", "echo": lambda problem: "x"}\n'
    )
    caplog.set_level(logging.WARNING)
    rows = [problem(0, f"{tmp_path}/{name}.py:polite") for name in ("plain", "named")]
    write_table(tmp_path / "problems.parquet", Problem, rows)

    free = measure(tmp_path / "problems.parquet", score_batch)["own"]

    named = free[f"{tmp_path}/named.py:polite"]
    assert (1.0, f"{tmp_path}/named.py:polite, politeness alone") == (named.score, named.text)
    assert 0.0 == free[f"{tmp_path}/plain.py:polite"].score
    (missing,) = [one.getMessage() for one in caplog.records if "DEGENERATE" in one.getMessage()]
    assert f"the module of {tmp_path}/plain.py:polite names no DEGENERATE" in missing


def test_problems_for_a_judge_are_not_measured(tmp_path):
    write_table(tmp_path / "problems.parquet", Problem, [problem(0, "generative_judge")])

    assert {} == measure(tmp_path / "problems.parquet", score_batch)


@pytest.mark.parametrize("given", ['["please"]', '{"answer": 7}'])
def test_texts_that_are_none_are_refused_in_one_line(tmp_path, given):
    (tmp_path / "broken.py").write_text(POLITE + f"DEGENERATE = {given}\n")
    rows = [problem(0, f"{tmp_path}/broken.py:polite")]
    write_table(tmp_path / "problems.parquet", Problem, rows)

    with pytest.raises(SettingsError, match="DEGENERATE needs texts, or functions of a problem"):
        measure(tmp_path / "problems.parquet", score_batch)
