from io import StringIO

from data_schemas.reports import Claim
from tasks.platform.tables import Screen, claim_sheet, screen_table

CLAIMS = [
    Claim(claim="A < B", number="+1.0", interval="[0.5, 1.5]", seeds="+1.0", shown=True),
    Claim(claim="B < C", number="+0.1", interval="[-0.5, 0.7]", seeds="+0.1", shown=False),
]
SHEET = claim_sheet("One & two", CLAIMS, "3 seeds, k3 < 1.")


def test_a_sheet_in_markdown_has_a_line_per_claim_and_its_conditions():
    assert SHEET.markdown == (
        "# One & two\n\n"
        "| claim | number | 95 % interval | by seed |  |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| A < B | +1.0 | [0.5, 1.5] | +1.0 | shown |\n"
        "| B < C | +0.1 | [-0.5, 0.7] | +0.1 | not shown |\n\n"
        "3 seeds, k3 < 1.\n"
    )


def test_a_sheet_as_a_page_is_escaped():
    assert "<title>One &amp; two</title>" in SHEET.page
    assert "<td>A &lt; B</td>" in SHEET.page
    assert "<p>3 seeds, k3 &lt; 1.</p>" in SHEET.page


def test_a_sheet_on_a_narrow_terminal_has_whole_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")

    SHEET.show()

    (line,) = (one for one in capsys.readouterr().out.splitlines() if "B < C" in one)
    assert ["+0.1", "[-0.5,", "0.7]", "+0.1", "not", "shown"] == line.split()[3:]


def on_a_terminal(width: int, header: list[str], *rows: list[str]) -> list[str]:
    screen = Screen(file=StringIO(), width=width, force_terminal=True, no_color=True)
    screen.print(screen_table(header, rows))
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_a_table_that_a_terminal_would_break_within_words_has_a_line_for_each_cell():
    header, row = ["run", "accuracy", "execution"], ["rl/one", "63.6 %", "20261129-094324-39707e"]

    assert [
        "rl/one",
        "    accuracy: 63.6 %",
        "    execution:",
        "    20261129-094324-39707e",
    ] == on_a_terminal(30, header, row)
    assert "20261129-094324-39707e" in on_a_terminal(60, header, row)[-2]


def test_a_table_whose_widest_column_wraps_between_words_stays_a_table():
    lines = on_a_terminal(32, ["stage", "what it does"], ["merge", "one model of several parents"])

    assert ["merge", "one", "model", "of", "several"] == lines[-3].split()
    assert ["parents"] == lines[-2].split()
