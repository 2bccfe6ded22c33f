"""Whatever a row says in any of its fields, the release that it ends in reads as it should."""

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import mlflow
import pyarrow.parquet as pq
import pytest
import yaml

from data_schemas.rows import Demonstration, Facet, Problem
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.lookup import Lookup
from tasks.store.location import tracking_uri
from tests import tiny_chain

PLANTED = "<b id=planted>,;()|`\n\n# planted\u202e\u2066\"'</script><!--<script>"
"""A tag, what separates in names, a heading behind a newline, marks that turn text around."""
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
MLFLOW_NAME = re.compile(r"[\w\-./ :@]+")
pytestmark = pytest.mark.slow


def maths(n: int, **changes: object) -> dict[str, object]:
    return tiny_chain.rows(n + 1)[n] | changes


def choice(n: int, right: str, wrong: str) -> dict[str, object]:
    return {
        "id": f"choice-{n}",
        "domain": "choice",
        "language": "en",
        "prompt": f"Which of the two is number {n}?",
        "verifier": "choice",
        "answer": {"correct": [right], "others": [[wrong]]},
    }


FIELDS: dict[str, list[dict[str, object]]] = {
    "id": [maths(30, id=PLANTED), maths(31, id=f"31 {PLANTED}")],
    "prompt": [maths(n, prompt=f"{PLANTED} What is {n} plus {n}?") for n in range(32, 44)],
    "messages": [
        {name: value for name, value in maths(n).items() if name != "prompt"}
        | {
            "messages": [
                {"role": "system", "content": PLANTED},
                {"role": "user", "content": f"Add {n}."},
            ]
        }
        for n in range(44, 48)
    ],
    "answer": [
        {name: value for name, value in maths(n).items() if name not in ("response", "parent")}
        | {"answer": {"value": PLANTED}}
        for n in range(48, 52)
    ]
    + [choice(n, f"{n} {PLANTED}", f"no {PLANTED}") for n in range(52, 60)],
    "response": [
        maths(n, response=f"<think>{PLANTED}</think>{n + n * 7 % 5}") for n in range(60, 64)
    ],
    "reasoning": [maths(n, response=str(n + n * 7 % 5), reasoning=PLANTED) for n in range(64, 68)],
    "language": [
        maths(68, language="en,fr"),
        maths(69, language="bahasa (ID)"),
        maths(70, language=f"en{PLANTED}"),
        maths(71, language="en\n"),
    ],
    "domain": [maths(72, domain=PLANTED)],
    "verifier": [maths(73, verifier=PLANTED)],
    "parent": [maths(74, parent=PLANTED)],
    "level": [maths(75, level=PLANTED)],
    "source": [maths(76, source=PLANTED)],
    "source_row": [maths(77, source_row=PLANTED)],
    "a field that nobody knows": [maths(78) | {PLANTED: PLANTED}],
}
"""By the field that holds the text."""


def test_every_field_of_a_row_is_among_them():
    given = {*FIELDS} | {"facets"}

    assert {*Problem.model_fields, *Demonstration.model_fields} <= given
    assert {"problem", "name", "value"} == {*Facet.model_fields}  # `facets` of the mapping


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A release of rows with such fields, beside ordinary ones; the folder of its run."""
    home = tmp_path_factory.mktemp("free")
    planted = [row for rows in FIELDS.values() for row in rows]
    tiny_chain.prepare(home, [*tiny_chain.rows(), *planted])
    folder = home / "a<b id=planted>,;()\u202eb"
    folder.mkdir()
    asked = [
        {"asked": f"{PLANTED} {n} plus 40", "right": str(n + 40), "kind": f"{n % 2} {PLANTED}"}
        for n in range(8)
    ]
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    mapping = {
        "name": "mapped",
        "domain": "maths",
        "language": "en",
        "prompt": "{asked}",
        "verifier": "final_answer",
        "answer": {"value": "{right}"},
        "facets": {f"kind {PLANTED}": "{kind}"},
    }
    (home / "mapping.yaml").write_text(yaml.safe_dump(mapping))
    sources = [
        {"adapter": "prompt_jsonl", "path": str(home / "rows.jsonl")},
        {"adapter": str(home / "mapping.yaml"), "path": str(folder)},
    ]
    changes: Mapping[str, object] = {
        "curation": {
            "sources": sources,
            "max_prompt_tokens": 200,
            "max_response_tokens": 250,
            "held_out_per_suite": 12,
        },
        "grading": {"max_problems": 30},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("TMPDIR", str(home / "tmp"))
        tiny_chain.run(tiny_chain.settings(home, changes), home)
    return home


@pytest.fixture(scope="module")
def tracking(home) -> str:
    return tracking_uri(str(home / "runs"), "")


def test_the_release_is_made_and_proved(home, tracking):
    report = audit(tiny_chain.MODEL, tracking, str(home / "runs"))

    assert report.proved, report.findings


def test_the_model_card_has_no_tag_no_heading_and_no_turned_text_of_a_row(home, tracking):
    model = Lookup(tracking).version(tiny_chain.MODEL).model
    assert model is not None
    folder = Path(model.tags["uri"])
    card = (folder / "README.md").read_text(encoding="utf-8")
    _, front, body = card.split("---\n", 2)

    assert ["en"] == yaml.safe_load(front)["language"]
    assert "<b id" not in re.sub("`[^`]*`", "", body)  # what is quoted is shown, not rendered
    assert "\n# planted" not in card
    assert not TURNING.search(card)


def test_every_name_in_mlflow_is_one(tracking):
    client = mlflow.MlflowClient(tracking, tracking)
    names: set[str] = set()
    for experiment in client.search_experiments():
        names.add(experiment.name)
        for run in client.search_runs([experiment.experiment_id]):
            names |= {*run.data.metrics, *run.data.params, *run.data.tags, run.info.run_name or ""}
            names |= {one.dataset.name for one in (run.inputs.dataset_inputs if run.inputs else ())}
    for model in client.search_registered_models():
        names |= {model.name, *model.tags, *model.aliases}

    assert 100 < len(names)
    assert not [name for name in names if name and not MLFLOW_NAME.fullmatch(name)]
    assert not [name for name in names if "planted" in name]


class Elements(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.planted: list[str] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append(tag)
        if ("id", "planted") in attrs:
            self.planted.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.closed.append(tag)

    def handle_comment(self, data: str) -> None:
        self.planted.append(data)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def pages(home: Path) -> list[Path]:
    return sorted(path for path in (home / "runs").rglob("*.html") if path.is_file())


def test_no_page_has_an_element_of_a_row(home):
    found = pages(home)
    assert 3 < len(found)
    shown = 0
    for page in found:
        elements = Elements()
        elements.feed(page.read_text(encoding="utf-8"))
        elements.close()
        shown += "planted" in "".join(elements.texts)

        assert not elements.planted, page
        assert elements.opened.count("script") == elements.closed.count("script"), page
        assert "html" == elements.closed[-1], page
    assert shown  # texts of rows are on pages, as texts


def test_no_page_lets_a_row_turn_the_text_around_it(home):
    for page in pages(home):
        assert not TURNING.search(page.read_text(encoding="utf-8")), page


def test_rows_with_a_language_or_a_kind_that_is_none_are_quarantined_with_their_reason(home):
    tables = (home / "runs" / "objects").glob("*/quarantine.parquet")
    rows = [row for table in tables for row in pq.read_table(table).to_pylist()]

    assert {"language", "domain", "parent", "level"} <= {
        row["detail"].partition(":")[0] for row in rows if row["reason"] == "schema"
    }
    assert 4 == sum(row["detail"].startswith("language: ") for row in rows)
    assert any(row["reason"] == "unknown_verifier" for row in rows)
