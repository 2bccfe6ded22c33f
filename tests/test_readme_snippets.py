"""The code that the README shows does what the README says."""

import json
import re
from pathlib import Path

import pytest

from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow
from tasks.gym.table import score_batch
from tasks.store.files import canonical_json

README = Path(__file__).parents[1] / "README.md"
NAMES = {
    "json": json,
    "Domain": Domain,
    "Message": Message,
    "Problem": Problem,
    "Role": Role,
    "Verdict": Verdict,
    "abstain": abstain,
    "scored": scored,
    "Item": Item,
    "BadRow": BadRow,
    "RawRow": RawRow,
    "canonical_json": canonical_json,
}


@pytest.fixture(scope="module")
def shown() -> dict:
    """Functions of the README's Python blocks, by name."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    names = dict(NAMES)
    for block in blocks:
        exec(block, names)
    return names


def row(answer: str) -> RawRow:
    return RawRow(key="1", source_row="0" * 64, fields={"question": "Wet?", "answer": answer})


def test_the_adapter_makes_a_problem_that_its_verifier_can_score(shown):
    (item,) = shown["yes_no"](row("yes"))

    verdicts = score_batch([item.record, item.record], ["Answer: yes", "Answer: no"])
    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]


def test_the_adapter_quarantines_a_row_without_an_answer(shown):
    with pytest.raises(BadRow, match="perhaps"):
        shown["yes_no"](row("perhaps"))


def test_the_reward_scores_counts_and_abstains(shown):
    problem = Problem(
        id="short/1",
        domain=Domain.OPEN_TEXT,
        language="en",
        messages=(Message(role=Role.USER, content="Say it in two words."),),
        verifier="short_enough",
        answer='{"words":2}',
        source="short",
        source_row="0" * 64,
    )
    reward = shown["short_enough"]

    assert [1.0, 0.0] == [reward(problem, text).score for text in ("all good", "it is all good")]
    assert reward(problem.model_copy(update={"answer": "{}"}), "all good").abstained


def test_the_walk_through_the_code_names_files_that_exist():
    text = (README.parent / ".github/CONTRIBUTING.md").read_text()
    walk = text[text.index("## One rollout and one checkpoint") :]
    files = re.findall(r"`([a-z_/]+\.py)`", walk)

    assert len(files) > 15
    assert [] == [name for name in files if not (README.parent / "tasks" / name).is_file()]


# Not those of environments and runs, which lie beside.
FOLDERS = ("containers", "data_schemas", "tasks", "tests", "workflows")
PAGES = [README, *(path for name in FOLDERS for path in (README.parent / name).rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(README.parent)))
def test_every_file_that_a_page_names_exists(page):
    text = page.read_text()
    links = [name for name in re.findall(r"\]\(([^)#]+)", text) if "://" not in name]
    paths = re.findall(r"`((?:tasks|tests|workflows|data_schemas)/[\w/]+\.py)`", text)

    assert [] == [name for name in links if not (page.parent / name).exists()]
    assert [] == [name for name in paths if not (README.parent / name).exists()]
