"""What another precision changes, as it is shown."""

import io
from dataclasses import replace

from rich.console import Console

from tasks.pages.page import write_report
from tasks.pages.precisions import precision_tables
from tasks.pages.summary import show
from tasks.pages.wording import MINUS


def test_a_loss_that_is_certain_is_marked_and_what_was_not_measured_is_a_dash(precisions):
    (table,) = precision_tables(precisions)

    whole, thai, general = table.rows
    assert "released in int8, against fp32" == table.title
    assert ("all", f"{MINUS}1.4", f"{MINUS}4.3 to 0.0", "") == (
        *(whole.label, whole.points, whole.reach),
        whole.kind,
    )
    assert ("th", "1.1e-03", "5.5e-04 to 2.2e-03", "no") == (
        *(thai.label, thai.kl, thai.kl_reach),
        thai.kind,
    )
    assert ("\N{EN DASH}", "\N{EN DASH}", "") == (general.points, general.reach, general.kind)
    assert "layer 2 of 1 with a router" in table.layers
    assert f"expert 5 changes by {MINUS}1.1 points" in table.layers


def test_the_page_has_a_table_of_each_precision_and_without_one_no_section(
    run, precisions, tmp_path
):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()

    html = write_report(replace(run, precisions=precisions), tmp_path / "with").read_text()
    other = write_report(run, tmp_path / "without").read_text()

    assert "<h3>released in int8, against fp32</h3>" in html
    assert '<th scope="row">th <span class="pill no">fewer</span></th>' in html
    assert "5.5e-04 to 2.2e-03" in html
    assert "another precision" not in other


def test_the_table_fits_a_terminal_of_80_columns(run, precisions):
    stream = io.StringIO()

    show(replace(run, precisions=precisions), Console(file=stream, width=80))

    screen = stream.getvalue().replace("\N{NO-BREAK SPACE}", " ")
    (line,) = (one.split() for one in screen.splitlines() if one.startswith("th "))
    assert ["th", f"{MINUS}10.2", f"{MINUS}15.0", "to", f"{MINUS}5.0"] == line[:5]
    assert ["1.1e-03", "0.7", "%", "1.9", "%"] == line[5:]
