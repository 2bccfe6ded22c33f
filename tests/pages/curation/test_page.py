"""The page of a curated set says what its tables say."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from data_schemas.arrow import write_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    FACETS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Domain,
    Facet,
    ItemKind,
    Message,
    Outcome,
    Problem,
    QuarantinedItem,
    Role,
)
from tasks.pages.curated_contents import MAX_EXAMPLES, MAX_SUBJECTS, read_contents
from tasks.pages.curation import render_curation
from tests.records import filled


def problem(key: str, **changes: object) -> Problem:
    fields = {
        "id": key,
        "domain": Domain.MATHS,
        "language": "en",
        "messages": (Message(role=Role.USER, content=f"<b>{key}</b> and 3 + 4?"),),
        "verifier": "final_answer",
        "answer": '{"value":"7"}',
        "source": key.partition("/")[0],
        "source_row": "0" * 64,
        "level": 2,
    }
    return Problem.model_validate(fields | changes)


def refused(key: str, stage: str, reason: str, detail: str) -> QuarantinedItem:
    broken = stage in ("read", "verification")
    return QuarantinedItem(
        stage=stage,
        outcome=Outcome.QUARANTINED if broken else Outcome.DROPPED,
        kind=ItemKind.PROBLEM,
        source=key.partition("/")[0],
        key=key,
        reason=reason,
        detail=detail,
        source_row="ab" * 32,
    )


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curated")
    trained = [problem(f"a/{n}") for n in range(5)]
    trained.append(problem("b/x y", language="th", level=0))
    shown = filled(
        Demonstration, id="a/0", messages=trained[0].messages, response="<think>3 and 4</think>7"
    )
    left_out = [
        refused("a/5", "dedup", "duplicate", "of b/x y"),
        refused("a/6", "dedup", "near_duplicate", "of b/x y, Jaccard 0.93"),
        refused("a/7", "dedup", "conflicting_answers",
                "a/1 and b/9 have the same prompt and different answers"),
        refused("a/8", "decontaminate", "contaminated", "its words are those of held-out b/h"),
        refused("b/8", "decontaminate", "contaminated", "held-out mgsm/1, x: 'three and four'"),
        *(refused(f"b/{n}", "read", "empty_field", "'answer' is <blank>") for n in range(5)),
    ]  # fmt: skip
    write_table(folder / PROBLEMS, Problem, trained)
    write_table(folder / DEMONSTRATIONS, Demonstration, [shown])
    write_table(folder / HELD_OUT, Problem, [problem("b/h", language="th")])
    write_table(folder / QUARANTINE, QuarantinedItem, left_out)
    sources = {
        "a": {
            "rows": 9,
            "items": 10,
            "kept": {"problems": 5, "demonstrations": 1, "held_out": 0},
            "dropped": {"duplicate": 1, "near_duplicate": 1, "conflicting_answers": 1,
                        "contaminated": 1},
            "quarantined": {},
        },
        "b": {
            "rows": 8,
            "items": 8,
            "kept": {"problems": 1, "demonstrations": 0, "held_out": 1},
            "dropped": {"contaminated": 1},
            "quarantined": {"empty_field": 5},
        },
    }  # fmt: skip
    thinking = {"a": {"maths": {"demonstrations": 1, "empty": 0, "median_words": 3}}}
    (folder / "report.json").write_text(json.dumps({"sources": sources, "thinking": thinking}))
    return folder


def test_refusals_are_counted_by_source_and_reason_with_few_examples(curated):
    contents = read_contents(curated)

    assert Counter(empty_field=5) == contents.reasons["b", "read", "quarantined"]
    assert MAX_EXAMPLES == len(contents.refused["b", "empty_field"])
    assert Counter({("a", "b"): 1, ("b", "mgsm"): 1}) == contents.leaks


def test_copies_are_grouped_under_the_item_that_was_kept(curated):
    contents = read_contents(curated)

    assert Counter({"b/x y": 2, "a/1": 1}) == contents.clusters
    assert ["a/5", "a/6"] == [copy.key for copy in contents.copies["b/x y"]]
    assert {"b/x y", "a/1"} == set(contents.texts)


def test_kept_items_are_counted_by_domain_and_language(curated):
    contents = read_contents(curated)

    assert Counter({("maths", "en"): 5, ("maths", "th"): 1}) == contents.families["problems"]
    assert Counter({("maths", "th"): 1}) == contents.families["held_out"]
    assert Counter({2: 5}) == contents.levels
    assert (6, 1) == (contents.prompts.total(), contents.responses.total())


def test_the_page_shows_every_part_and_loads_nothing(curated):
    page = render_curation(curated, "Curation", "execution e1").decode()

    assert "8 of 18 items are in the set" in page
    for part in ("5 of them broken", "What the set is made of", "Difficulty", "2 copies"):
        assert part in page
    assert "&lt;b&gt;a/0&lt;/b&gt;" in page
    assert "<b>a/0" not in page
    assert "&#39;answer&#39; is &lt;blank&gt;" in page
    assert not re.search(r"(?:src|href)=\"http|<script|@import", page)


def test_a_set_in_which_nothing_was_left_out_has_no_empty_sections(curated, tmp_path):
    for name, record in ((PROBLEMS, Problem), (DEMONSTRATIONS, Demonstration)):
        write_table(tmp_path / name, record, [problem("a/0")] if record is Problem else [])
    write_table(tmp_path / HELD_OUT, Problem, [])
    write_table(tmp_path / QUARANTINE, QuarantinedItem, [])
    kept = {"problems": 1, "demonstrations": 0, "held_out": 0}
    source = {"rows": 1, "items": 1, "kept": kept, "dropped": {}, "quarantined": {}}
    (tmp_path / "report.json").write_text(json.dumps({"sources": {"a": source}}))

    page = render_curation(tmp_path, "Curation").decode()

    assert "1 of 1 items are in the set" in page
    assert "median words of thinking" not in page
    assert "<h2>Copies" not in page
    assert "<h2>Overlap" not in page


def test_thinking_is_counted_by_source_and_domain_with_its_empty_blocks(curated):
    report = json.loads((curated / "report.json").read_text())
    report["thinking"]["<b>"] = {
        "open_text": {"demonstrations": 3000, "empty": 750, "median_words": 1234.5}
    }
    report["thinking_languages"] = {
        "a": {
            "vi": {
                "demonstrations": 4,
                "empty": 0,
                "confirmed": 1,
                "median_words": 12,
                "long_words": 80,
            }
        }
    }
    (curated / "report.json").write_text(json.dumps(report))

    page = render_curation(curated, "Curation").decode().replace("\xa0", " ")

    rows = re.findall(r"<tr><th>(\S+)</th><td>([^<]*)</td>((?:<td[^>]*>[^<]*</td>){5})</tr>", page)
    assert [
        ("a", "maths", ["1", "not counted", "0", "3", "not counted"]),
        (
            "&lt;b&gt;",
            "open text",
            ["3,000", "not counted", "750 (25.0 %)", "1,234.5", "not counted"],
        ),
        ("a", "vi", ["4", "1 (25.0 %)", "0", "12", "80"]),
    ] == [(*names, re.findall(r">([^<]+)</td>", cells)) for *names, cells in rows]


def test_subjects_are_those_that_sources_name(curated):
    names = ["Algebra"] * 3 + [f"Topic {number}" for number in range(MAX_SUBJECTS + 1)]
    facets = [Facet(problem="a/0", name="subject", value=name) for name in names]
    facets += [Facet(problem="a/0", name="brand", value="Lego")] * 9
    write_table(curated / FACETS, Facet, facets)

    page = render_curation(curated, "Curation").decode()

    assert '<th>Algebra</th><td class="n">3</td>' in page
    assert '<th>2 others</th><td class="n">2</td>' in page
    assert "Lego" not in page
    assert "MSC 2020" not in page
    assert "how often a model solves" not in page


def test_classes_have_their_names_and_models_the_shares_of_their_pass_rates(curated):
    facets = [
        Facet(problem=f"a/{place}", name=name, value=value)
        for name, values in {
            "msc": ["11", "11", "05, 60", "99"],
            "pass_rate:small": ["0.0", "0.25", "0.5", "0.5"],
            "pass_rate:<large>": ["1.0", "0.75"],
        }.items()
        for place, value in enumerate(values)
    ]
    write_table(curated / FACETS, Facet, facets)

    page = render_curation(curated, "Curation").decode().replace("\xa0", " ")

    for name, count in (
        ("11 Number theory", 2),
        ("05, 60 Combinatorics; Probability theory and stochastic processes", 1),
        ("99", 1),
    ):
        assert f'<th>{name}</th><td class="n">{count}</td>' in page
    rows = re.findall(r"<tr><th>(\S+)</th>((?:<td class=\"n\">[^<]*</td>){7})</tr>", page)
    assert {
        "&lt;large&gt;": ["2", "87.5 %", "0.0 %", "0.0 %", "0.0 %", "50.0 %", "50.0 %"],
        "small": ["4", "31.2 %", "25.0 %", "25.0 %", "50.0 %", "0.0 %", "0.0 %"],
    } == {model: re.findall(r">([^<]+)</td>", cells) for model, cells in rows}
