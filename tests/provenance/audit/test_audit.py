"""What an auditor sees: the verdict first, whatever becomes of the picture."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.papers import BLANK
from tasks.stages.audit import audit
from tests.slices import sliced


@pytest.mark.slow
def test_the_report_is_one_line_of_json(chain, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    page = audit.task_function(model="models:/tiny@released", store=str(chain.store), format="json")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]

    assert ("models:/tiny@released", "1", []) == tuple(
        json.loads(line)[name] for name in ("model", "version", "findings")
    )
    assert page.startswith(f"{chain.store}/audits/")


def test_a_paper_is_markdown_and_a_page_that_prints(chain, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    model = "models:/tiny@released"
    page = audit.task_function(model=model, store=str(chain.store), format="annex-iv")
    text, html = capsys.readouterr().out, Path(page).read_text()

    shown = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert [unescape(one) for one in re.findall("<h2>(.*)</h2>", html)] == shown
    assert text.count(BLANK) == html.count("<strong>Blank</strong>")
    assert f"<code>{chain.refs['policy'].statement}</code>" in html
    assert "@page{size:A4" in html
    assert not re.findall(r'(?:src|href)="http', html)  # nothing is loaded from elsewhere


@pytest.mark.parametrize("damaged", sliced([False, True], bool))
def test_a_store_that_cannot_be_written_gives_the_same_verdict(chain, monkeypatch, capsys, damaged):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", chain.tracking_uri)
    (chain.store / "audits").write_text("no folder can be made here")
    if damaged:
        (chain.folder("policy") / "config.json").write_text("x")
        with pytest.raises(TamperError, match=r"config\.json"):
            audit.task_function(model="models:/tiny@released", store=str(chain.store))
    else:
        assert "" == audit.task_function(model="models:/tiny@released", store=str(chain.store))

    assert ("BROKEN: 1 finding" if damaged else "PROVED: ") in capsys.readouterr().out


def test_an_unknown_format_is_refused_before_any_work(tmp_path):
    with pytest.raises(SettingsError, match="--format 'xml' is none of text, json, annex-iv"):
        audit.task_function(model="models:/tiny@released", store=str(tmp_path), format="xml")
