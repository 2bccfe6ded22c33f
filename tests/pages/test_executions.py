"""The front page of a store, and what links its pages."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from data_schemas.statements import ExecutionRecord, Output, Statement
from tasks.pages import wording
from tasks.pages.executions import links_of, write_index
from tasks.pages.navigation import with_navigation
from tasks.provenance.lineage.statements import save_execution, save_statement
from tasks.store.interface import store_at
from tests.records import filled


class Links(HTMLParser):
    """Collects the addresses of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def ran(
    store: Path,
    execution: str,
    started: float,
    stage: str,
    gpus: int = 0,
    **facts: float | int | str,
) -> None:
    statement = filled(
        Statement,
        stage=stage,
        settings='{"name":"shop"}',
        outputs=(Output(role="out", uri="u", digest=f"{execution}{stage}"),),
        facts=facts,
    )
    record = filled(
        ExecutionRecord,
        execution=execution,
        stage=stage,
        statement=save_statement(str(store), statement),
        started=started,
        seconds=90.0,
        gpus=gpus,
        tags={"eachprompt.workflow": "post_training"},
    )
    save_execution(str(store), record)


def test_the_front_page_lists_executions_with_decisions_and_links_that_lead_somewhere(
    tmp_path: Path,
):
    store_at(str(tmp_path)).open()
    ran(tmp_path, "first", 1e9, "curate")
    ran(tmp_path, "first", 1e9 + 1, "release", released=0, gpus=0, **{"accuracy/all": 0.287})
    ran(tmp_path, "second", 2e9, "release", released=1)
    for name in (
        "reports/first.html",
        "reports/first.curation.html",
        "reports/second.html",
        "live/first/rl-one.html",
        "audits/20261126-000000.html",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("<html></html>")

    page = Path(write_index(str(tmp_path))).read_text()

    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<body>")[2]))
    assert text.index("second") < text.index("first")
    assert "2 executions" in text
    assert "shop released" in text
    line = (
        r"first shop refused report curation live rl-one 28.7 % post_training 2001-\S+ .* 2 3 min"
    )
    assert re.search(line, text), text
    places = Links(page).found
    assert 5 == len(places)
    assert all((tmp_path / place).is_file() for place in places)
    assert {"report", "curation", "live rl-one"} == links_of(str(tmp_path), "first").keys()


def test_a_page_gets_links_contents_and_scopes():
    sections = "".join(f"<section><h2>Part {n}<span>x</span></h2></section>" for n in range(4))
    table = "<table><thead><tr><th>a</th></tr></thead><tbody><tr><th>b</th></tr></tbody></table>"

    page = with_navigation(f"<header></header>{sections}{table}", {"other & more": "../x.html"})

    assert '<a href="../x.html">other &amp; more</a>' in page
    for number in range(4):
        assert f'<a href="#part-{number}">Part {number}</a>' in page
        assert f'<h2 id="part-{number}">' in page
    assert '<thead><tr><th scope="col">a' in page
    assert '<tbody><tr><th scope="row">b' in page


@pytest.mark.parametrize(
    ("price", "shown"),
    [((2.5, "EUR"), "4.0 GPU hours, 10.00 EUR"), ((0.0, ""), "4.0 GPU hours")],
)
def test_the_front_page_says_what_an_execution_reserved_and_cost(
    tmp_path: Path, monkeypatch, price, shown
):
    monkeypatch.setattr(wording, "REGISTRATION", replace(wording.REGISTRATION, gpu_hour=price))
    store_at(str(tmp_path)).open()
    ran(tmp_path, "first", 1e9, "curate")
    ran(tmp_path, "first", 1e9 + 1, "rl/one", gpus=160)  # for 90 seconds

    page = Path(write_index(str(tmp_path))).read_text().replace(wording.NBSP, " ")

    assert f"3 min 0 s<br>{shown}</td>" in page
