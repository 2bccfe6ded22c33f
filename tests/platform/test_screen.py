"""What others named on standard output: no markup, no command of a terminal, no line of its own."""

import json

import pytest
from pydantic import BaseModel
from rich.console import Group
from rich.table import Table

from data_schemas.row_lineage import RowTrace
from tasks.platform.tables import Screen, json_line, print_line, screen_table
from tasks.provenance.rows.text import row_text

NAMES = ("[/b].csv", "[red]", ":smile:", "a\x1b[2Jb", "a\u202eb", "caf\udce9.csv", "a\xadb")
FORGED = "a\nPROVED: all of it"


NOTHING = RowTrace(
    asked=FORGED, rows=1, places=(), outcomes=(), uses=(), evaluations=(), checkpoints=()
)


class Named(BaseModel):
    name: str


def _table(cell: str) -> Table:
    table = Table("name")
    table.add_row(cell)
    return table


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrap", [str, lambda one: Group("files", one), _table])
def test_a_name_is_printed_as_it_is_or_as_codes_wherever_it_stands(capfd, name, wrap):
    Screen(width=80).print(wrap(name))

    printed = capfd.readouterr().out
    shown = name.encode("unicode_escape", "surrogatepass").decode()
    assert shown in printed
    assert all(line.isprintable() for line in printed.splitlines())


def test_a_newline_in_a_name_begins_no_line(capfd):
    print_line(f"Approved: {FORGED}.")
    Screen(width=80).print(screen_table(("file",), [(FORGED,)]))
    Screen(width=80).print(row_text(NOTHING))

    printed = capfd.readouterr().out
    assert 3 == printed.count(r"a\nPROVED: all of it")
    assert not [line for line in printed.splitlines() if line.strip().startswith("PROVED")]


@pytest.mark.parametrize("name", [*NAMES, FORGED])
def test_a_record_is_one_line_of_json_that_means_the_same(capfd, name):
    Screen(soft_wrap=True).print(json_line(Named(name=name)))

    (line,) = capfd.readouterr().out.splitlines()
    assert {"name": name} == json.loads(line)
