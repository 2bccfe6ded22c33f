"""Nothing is cut off at 1280 pixels, nor long names on a telephone, as a browser lays it out."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from data_schemas.settings import EvaluationSettings
from tasks.evaluation.runner import summarise
from tasks.lab.study import evidence_file
from tasks.lab.study.page import page
from tasks.pages import answers
from tasks.pages.executions import write_index
from tasks.pages.figures import phases_figure
from tasks.pages.style import STYLE
from tasks.store.interface import store_at
from tests.evaluation.conftest import make_problem, make_samples
from tests.pages.test_executions import ran

__all__ = ["make_problem", "make_samples"]
BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""
PROBE = """<script>addEventListener("load", () => {
const wide = [...document.querySelectorAll(".card, main, body")].filter(
  e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText.slice(0, 60));
for (const head of document.querySelectorAll("tbody th")) {
  const text = document.createRange();
  text.selectNodeContents(head);
  const lines = new Set([...text.getClientRects()].map(line => Math.round(line.top)));
  if (head.innerText.trim().length < 12 && lines.size > 1) wide.push("broken: " + head.innerText);
}
document.body.textContent = "WIDE[" + wide.join(" | ") + "]"; });</script>"""
pytestmark = pytest.mark.skipif(not BROWSER, reason="needs Chromium")


def cut_off(path: Path, width: int = 1280, probe: str = PROBE) -> str:
    """The beginnings of what is wider than its place, and short heads of rows in two lines."""
    probed = path.with_suffix(".probe.html")
    probed.write_text(path.read_text() + probe)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    command += [f"--user-data-dir={path.parent / 'browser'}", "--virtual-time-budget=2000"]
    command += ["--dump-dom", probed.as_uri()]
    # A busy machine may draw no frame before the page is read: then its script, which waits for
    # one, stands there yet, and nothing was measured.
    for _ in range(20):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        measured = re.findall(r"WIDE\[(.*?)\]", done.stdout, re.DOTALL)[-1]
        if "join(" not in measured:
            return measured
    raise AssertionError("the browser drew no frame")


def test_the_page_of_answers_has_no_cut_column(tmp_path: Path, make_problem, make_samples):
    settings = EvaluationSettings(top_p=0.95, min_p=0.05, stop=("</answer>",))
    names = ("base", "sft/reasoning", "sft/commerce", "merged", "rl/one", "rl/two")
    evaluated = [
        (summarise(settings, name, "c" * 64, rows), rows)
        for name, rows in ((name, make_samples("a", [0.0, 1.0])) for name in names)
    ]
    html = answers.render("Evaluation", evaluated, {"a": make_problem("a")}, {}, settings)
    (tmp_path / "answers.html").write_bytes(html)

    assert "" == cut_off(tmp_path / "answers.html")


def test_the_front_page_has_no_cut_column(tmp_path: Path):
    execution = "20261126-020424-58036c"
    store_at(str(tmp_path / "runs")).open()
    ran(tmp_path / "runs", execution, 1e9, "release", released=1, **{"accuracy/all": 0.287})
    pages = [
        f"reports/{execution}{end}"
        for end in ("", ".curation", "-answers", f"-against-{execution}")
    ]
    for name in [*pages, f"live/{execution}/rl-one", f"live/{execution}/rl-two"]:
        place = tmp_path / "runs" / f"{name}.html"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
    write_index(str(tmp_path / "runs"))

    assert "" == cut_off(tmp_path / "runs" / "index.html")


def test_names_fit_a_narrow_page_and_short_ones_are_not_broken(tmp_path: Path):
    cells = "<td class=n>sft/reasoning</td>" * 8
    name = "my_rows.py:words@" + "c0ffee" * 11
    page = tmp_path / "page.html"
    page.write_text(
        f"<meta name=viewport content='width=device-width'><style>{STYLE}</style><main>"
        f"<details class=card><summary>{name}</summary></details><div class='card scroll'><table>"
        f"<tbody><tr><th>{name}</th><td class=n>40</td></tr></tbody></table></div>"
        f"<div class=scroll style='overflow:auto'><table><tbody><tr><th>instruction</th>{cells}"
        "</tr></tbody></table></div></main>"
    )

    assert "" == cut_off(page, width=500)


LINES = """<script>addEventListener("load", () => requestAnimationFrame(() =>
requestAnimationFrame(() => {  // a scroll timeline runs from the second frame on
const wide = [...document.querySelectorAll(".scroll")].map(
  e => parseFloat(getComputedStyle(e, "::before").height) > 5);
document.body.textContent = "WIDE[" + wide.join(" ") + "]"; })));</script>"""


def test_a_table_that_goes_on_sideways_says_so_and_another_does_not(tmp_path: Path):
    table = "<div class='card scroll'><table><tbody><tr>{}</tr></tbody></table></div>"
    page = tmp_path / "page.html"
    page.write_text(
        f"<style>{STYLE}</style><main>{table.format('<td class=n>sft/reasoning</td>' * 20)}"
        f"{table.format('<td class=n>1</td>')}</main>"
    )

    assert "true false" == cut_off(page, width=500, probe=LINES)


BROKEN = """<script>addEventListener("load", () => {
document.querySelectorAll("details").forEach(e => e.open = true);
const wide = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = texts.nextNode(); node; node = texts.nextNode()) {
  if (node.parentElement.closest("script, style, code, pre")) continue;
  for (const word of node.data.matchAll(/[a-z_]+/gi)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map(e => Math.round(e.top))).size > 1)
      wide.push(word[0]);
  }
}
const ticks = [...document.querySelectorAll("svg text")].map(e => e.getBoundingClientRect());
const over = ticks.some((a, k) => ticks.slice(k + 1).some(b => a.width && b.width &&
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3));
document.body.textContent = "WIDE[" + wide.join(" ") + (over ? " text over text" : "") + "]"; });
</script>"""


@pytest.mark.parametrize("study", ["ladder", "real_arms"])
def test_no_word_of_a_study_is_broken_on_a_telephone(study, tmp_path: Path):
    (tmp_path / "study.html").write_text(page(evidence_file.read(study)))

    assert "" == cut_off(tmp_path / "study.html", width=500, probe=BROKEN)


def test_the_exponent_of_an_axis_is_not_over_its_highest_tick(tmp_path: Path):
    series = {"rl/one": [(1, 0.4e-5), (2, 1.48e-5), (3, 0.6e-5)]}
    curve = phases_figure(series, "mismatch", "Mismatch")
    (tmp_path / "curve.html").write_text(f"<style>{STYLE}</style><main>{curve}</main>")

    assert "" == cut_off(tmp_path / "curve.html", width=500, probe=BROKEN)


WHERE = """<script>addEventListener("load", () => {
const wide = [...document.querySelectorAll("#pairs tbody th")].map(e => e.innerText);
document.body.textContent = "WIDE[" + wide.join(" | ") + "]"; });</script>"""


def test_a_difference_says_of_which_kind_its_slice_is(tmp_path, make_problem, make_samples):
    settings = EvaluationSettings()
    evaluated = [
        (summarise(settings, name, "c" * 64, rows), rows)
        for name, rows in (("base", make_samples("a", [0.0])), ("rl/one", make_samples("a", [1.0])))
    ]
    html = answers.render("Evaluation", evaluated, {"a": make_problem("a")}, {}, settings)
    (tmp_path / "answers.html").write_bytes(html)

    assert "language en" in cut_off(tmp_path / "answers.html", probe=WHERE)
