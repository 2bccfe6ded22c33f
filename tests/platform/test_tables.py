from data_schemas.reports import Claim
from tasks.platform.tables import claim_sheet

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
