"""Numbers in pages: rendered from evidence, and stale ones say so."""

import json
import re

import pytest

from data_schemas.study import EvidenceCell, StudyEvidence
from tasks.errors import DataError
from tasks.lab.study import documents, evidence_file
from tasks.lab.study.declaration import read_study, study_of
from tasks.platform.cache_version import code_digest

UNUSED = evidence_file.COPYING + tuple(evidence_file.ENGINES.values())
README = evidence_file.ROOT / "README.md"
LADDER = "workflows/lab/studies/ladder.yaml"
PAGE = """Before.

<!-- evidence
Accuracy is {{ value("ladder", "default/accuracy/rl/two") }},
the gain {{ verdict("ladder", "default/gain/merged/rl/two") }}.
-->
anything
<!-- end of evidence -->

After.
"""


def evidence(**changes) -> StudyEvidence:
    plan = read_study(str(evidence_file.ROOT / LADDER))
    given = {
        "name": "ladder",
        "title": "t",
        "source": LADDER,
        "command": plan.command,
        "commit": "abc",
        "date": "2026-01-01",
        "machine": "m",
        "settings": plan.digest,
        "code": {"merge": code_digest("merge", UNUSED)},
        "seeds": study_of(plan).seeds,
        "variants": {"default": "as shipped"},
        "against": {"default": "default"},
        "checkpoints": ("merged", "rl/two"),
        "cells": {
            "default/accuracy/rl/two": EvidenceCell(value=0.771, low=0.7, high=0.8, runs=1),
            "default/gain/merged/rl/two": EvidenceCell(value=0.07, runs=1, shown=False),
        },
    }
    return StudyEvidence.model_validate(given | changes)


def test_a_region_is_rendered_and_the_rest_of_the_page_stays(tmp_path):
    evidence_file.write(evidence(), str(tmp_path))

    page = documents.render(PAGE, tmp_path)

    assert "Accuracy is 77.1 % [70.0, 80.0],\nthe gain not shown.\n" in page
    assert "anything" not in page
    assert page.startswith("Before.\n")
    assert page.endswith("After.\n")
    assert "<sub>`ladder`: 5 seeds, measured at abc</sub>" in page
    assert page == documents.render(page, tmp_path)


def test_what_has_changed_since_then_stands_behind_the_numbers(tmp_path):
    code = {"merge": "0" * 64, "gone": "0" * 64, "curate": code_digest("curate", UNUSED)}
    evidence_file.write(evidence(settings="0" * 64, code=code), str(tmp_path))

    page = documents.render(PAGE, tmp_path)

    assert "measured at abc; since then changed: settings, merge, gone</sub>" in page


def test_a_seed_that_the_study_names_no_more_is_a_change(tmp_path):
    seeds = (*study_of(read_study(str(evidence_file.ROOT / LADDER))).seeds, 0)
    evidence_file.write(evidence(seeds=seeds), str(tmp_path))

    assert "6 seeds, measured at abc; since then changed: seeds</sub>" in documents.render(
        PAGE, tmp_path
    )


def test_a_number_that_nobody_measured_is_refused(tmp_path):
    with pytest.raises(DataError, match="make evidence NAME=ladder measures it"):
        documents.render(PAGE, tmp_path)
    evidence_file.write(evidence(cells={}), str(tmp_path))
    with pytest.raises(DataError, match="has no 'default/accuracy/rl/two'"):
        documents.render(PAGE, tmp_path)
    broken = PAGE.replace("value(", "valeu(")
    with pytest.raises(DataError, match="valeu"):
        documents.render(broken, tmp_path)


def test_a_page_with_a_template_outside_of_it_is_rendered_whole(tmp_path):
    evidence_file.write(evidence(), str(tmp_path))
    number = 'Solves {{ value("ladder", "default/accuracy/rl/two") }}.\n'

    page = documents.render_whole(f"# A\n{number}({{{{ origins() }}}})\n", tmp_path)

    assert "# A\nSolves 77.1 % [70.0, 80.0].\n(`ladder`: 5 seeds, measured at abc)\n" == page
    with pytest.raises(DataError, match=r"write \{\{ origins\(\) \}\} behind the last one"):
        documents.render_whole(f"{{{{ origins() }}}}\n{number}", tmp_path)
    assert "no number\n" == documents.render_whole("no number\n", tmp_path)


def test_what_another_command_wrote_is_rendered_with_its_file_and_command(tmp_path):
    region = "<!-- evidence\n{{ facts('%s').final_answer.texts }}\n-->\n<!-- end of evidence -->"

    page = documents.render(region % "tests/examiner/cost.json", tmp_path)

    assert "-->\n10000\n" in page
    origin = "`tests/examiner/cost.json`, written by `python -m tests.examiner.cost --texts 20000"
    assert f"<sub>{origin}" in page
    with pytest.raises(DataError, match=r"reads runs/none\.json, which no command has written"):
        documents.render(region % "runs/none.json", tmp_path)


def test_what_another_command_measured_is_as_old_as_the_modules_that_it_named(tmp_path):
    same, old = tmp_path / "same.json", tmp_path / "old.json"
    written = evidence_file.origin("python -m a", "tasks.algorithms.advantages")
    same.write_text(json.dumps({**written, "n": 3}))
    code = {"tasks.algorithms.advantages": "0" * 64, "tasks.gone": "0" * 64}
    old.write_text(json.dumps({**written, "n": 3, "code": code}))
    summed = tmp_path / "summed.json"
    summed.write_text(json.dumps({"evidence": str(old), "n": 3}))
    region = "<!-- evidence\n{{ facts('%s').n }}\n-->\n<!-- end of evidence -->"

    ending = f"at {written['commit']}; since then changed: tasks.algorithms.advantages, tasks.gone<"
    assert "since then" not in documents.render(region % same, tmp_path)
    assert ending in documents.render(region % old, tmp_path)
    assert ending in documents.render(region % summed, tmp_path)


def test_an_evidence_file_keeps_every_number_and_has_a_line_for_each(tmp_path):
    kept = evidence()

    evidence_file.write(kept, str(tmp_path))

    text = (tmp_path / "ladder.json").read_text()
    assert kept == evidence_file.read("ladder", tmp_path)
    assert 1 == sum("default/gain/merged/rl/two" in line for line in text.splitlines())


def test_a_claim_is_shown_only_where_its_evidence_says_so():
    cells = {
        "a/x": EvidenceCell(value=0.1, low=0.05, high=0.2, runs=3, shown=True),
        "a/y": EvidenceCell(value=0.1, low=-0.1, high=0.2, runs=3, shown=False),
        "a/z": EvidenceCell(value=0.1, runs=1, shown=False, note="one run"),
    }
    kept = evidence(cells=cells)
    claims = [
        documents.ClaimLine(claim="up", study="ladder", number="a/x"),
        documents.ClaimLine(claim="down", study="ladder", number="a/x", less=True),
        documents.ClaimLine(claim="perhaps", study="ladder", number="a/y"),
        documents.ClaimLine(claim="the other arm", study="ladder", number="a/x", turned=True),
        documents.ClaimLine(claim="once", study="ladder", number="a/z"),
        documents.ClaimLine(claim="never", because="no FP8 here"),
        documents.ClaimLine(claim="later", study="nothing", number="a/x"),
    ]

    def read(name: str) -> StudyEvidence:
        if name != "ladder":
            raise DataError("none")
        return kept

    rows = documents.claim_rows(read, claims)

    assert "-0.1 [-0.2, -0.05], `ladder`" in [row[-2] for row in rows]
    assert [(row[0], row[-1]) for row in rows] == [
        ("down", "the opposite is shown"),
        ("the other arm", "the opposite is shown"),
        ("up", "shown"),
        ("perhaps", "not shown"),
        ("once", "not shown (one run)"),
        ("later", "not measured: `make evidence NAME=nothing`"),
        ("never", "cannot be shown here: no FP8 here"),
    ]


def test_a_claim_names_its_arm_its_load_and_seeds_and_is_not_tested_below_a_hundredth():
    cells = {
        "grpo minus espo/equal tokens": EvidenceCell(
            value=0.02, low=0.01, high=0.03, runs=2, shown=True
        ),
        "espo/staleness": EvidenceCell(value=1.87, runs=2),
        "espo/clipped": EvidenceCell(value=0.0052, runs=2),
    }
    kept = evidence(source="workflows/lab/studies/losses.yaml", seeds=(0, 1), cells=cells)
    line = documents.ClaimLine(
        claim="c", study="ladder", number="grpo minus espo/equal tokens", turned=True
    )
    tested = line.model_copy(update={"acts": "espo/clipped"})

    against, untested = documents.claim_rows(lambda _: kept, [tested, line])

    load = "8 updates a step, 1.9 versions behind, 0.5% clipped"
    assert ("espo against grpo", load, "2") == against[2:5] == untested[2:5]
    assert "the opposite is shown" == against[-1]
    assert "not tested: the method acts on 0.52% of the tokens" == untested[-1]


@pytest.mark.slow
def test_the_claims_of_the_papers_name_studies_and_variants_that_exist():
    for claim in documents.read_claims():
        if not claim.study:
            assert claim.because
            continue
        path = evidence_file.ROOT / "workflows" / "lab" / "studies" / f"{claim.study}.yaml"
        plan = read_study(str(path))
        for arm in claim.number.partition("/")[0].split(" minus "):
            assert arm in plan.against, claim


@pytest.mark.parametrize("path", documents.pages(), ids=lambda path: path.name)
def test_every_page_is_what_its_evidence_says(path):
    """`make docs` renders them."""
    assert documents.render_page(path) == path.read_text()


def test_the_first_page_is_short_has_at_most_eight_numbers_and_no_template():
    text = README.read_text()

    assert len(text.encode()) <= 6000
    assert 1 <= len(re.findall(r"\[[+-]?[\d.]+, [+-]?[\d.]+\]", text)) <= 8
    assert not re.search(r"\{\{|\{%|<!--", text)


def test_the_first_page_has_no_number_of_older_code():
    """Elsewhere a stale number says what has changed; here it is measured anew, or it goes."""
    assert "since then changed" not in README.read_text()


FOLDERS = (".github", "containers", "data_schemas", "docs", "tasks", "tests/bench", "workflows")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|^    [^\n]*$", re.DOTALL | re.MULTILINE)
MEASURED = re.compile(r"\d+\.\d+ ?%|\[[+-]?[\d.]+, [+-]?\d+\.\d+\]")
COMMIT = re.compile(r"\b(?=\w*[a-f])(?=\w*\d)[0-9a-f]{7,9}\b|\bat \d{8}\b")
PAPER = re.compile(r"\b\d{4}\.\d{5}\b")


def bare_numbers(text: str) -> list[str]:
    """Percentages and intervals with no commit in their section and no paper in their paragraph."""
    text = CODE.sub("", documents.REGION.sub("", text))
    sections = re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
    alone = [one for one in sections if not COMMIT.search(one)]
    alone = [one for one in alone if not PAPER.search(one.partition("\n")[0])]
    blocks = [block for one in alone for block in one.split("\n\n") if not PAPER.search(block)]
    return [match[0] for block in blocks for match in MEASURED.finditer(block)]


def test_a_number_outside_of_a_region_that_names_no_commit_is_found():
    assert ["71.5 %", "[0.4, 2.6]"] == bare_numbers(
        "# A\nThat is 71.5 %.\n# B\nGains 1.5 [0.4, 2.6]."
    )
    assert ["71.5 %"] == bare_numbers("# A\nAs in 2512.07710.\n\nThat is 71.5 %.")
    assert [] == bare_numbers("# A\nAs in 2512.07710: 71.5 %.\n# B\nAt 9077fd5.\n\n1.5 [0.4, 2.6]")
    assert [] == bare_numbers("# A\n`band: [0.9, 1.1]`\n\n    share 71.5 %\n\nA share of 40 %.")
    assert [] == bare_numbers(PAGE.replace("anything", "71.5 %"))


def test_every_number_measured_is_rendered_or_names_its_commit_or_paper():
    """Render it from an evidence file, or say "at COMMIT" in its section."""
    root = evidence_file.ROOT
    pages = [README, *(page for one in FOLDERS for page in (root / one).rglob("*.md"))]

    bare = {str(page.relative_to(root)): bare_numbers(page.read_text()) for page in pages}

    assert {} == {page: numbers for page, numbers in bare.items() if numbers}
