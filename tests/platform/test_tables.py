from io import StringIO

from rich.table import Table

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
    assert ">3 seeds, k3 &lt; 1.</p>" in SHEET.page


def test_a_sheet_on_a_narrow_terminal_has_whole_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")

    SHEET.show()

    (line,) = (one for one in capsys.readouterr().out.splitlines() if "B < C" in one)
    assert ["+0.1", "[-0.5,", "0.7]", "+0.1", "not", "shown"] == line.split()[3:]


def printed(what: Table | str, width: int, *, on_a_terminal: bool = True) -> list[str]:
    file = StringIO()
    Screen(
        file=file, width=width, force_terminal=on_a_terminal, no_color=True, soft_wrap=True
    ).print(what)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_table_that_a_terminal_would_break_within_words_has_a_line_for_each_cell():
    row = ["rl/one", "63.6 %", "20261129-094324-39707e"]
    table = screen_table(["run", "accuracy", "execution"], [row])

    assert [
        "rl/one",
        "    accuracy: 63.6 %",
        "    execution:",
        "    20261129-094324-39707e",
    ] == printed(table, 30)
    assert "20261129-094324-39707e" in printed(table, 60)[-2]


def test_a_table_whose_widest_column_wraps_between_words_stays_a_table():
    table = screen_table(["stage", "what it does"], [["merge", "one model of several parents"]])

    lines = printed(table, 32)

    assert ["merge", "one", "model", "of", "several"] == lines[-3].split()
    assert ["parents"] == lines[-2].split()


def test_a_line_wider_than_a_terminal_goes_on_below_itself_and_a_trunk_beside_it():
    text = "│  ├─ curate [d8cf8d292c23] -> curated 821b\n  1234  /a/path/that/is/wider/than/all"

    assert [
        "│  ├─ curate [d8cf8d292c23] ->",
        "│  │    curated 821b",
        "  1234",
        "    /a/path/that/is/wider/than/all",
    ] == printed(text, 32)
    assert text.split("\n") == printed(text, 32, on_a_terminal=False)
