"""The list of adapters agrees with what they refuse."""

import functools

from tasks.curation import listing
from tasks.curation.adapters.table import ADAPTERS
from tasks.formats.benchmark_file import shipped_groups
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym.scoring.canaries import example_answer
from tasks.gym.table import VERIFIERS
from tests.tables import for_each


def test_every_adapter_and_mapping_is_listed_with_its_columns(capsys):
    listing.show()

    shown = capsys.readouterr().out
    for name in [*ADAPTERS, *shipped_mappings(), *shipped_groups()]:
        assert name in shown
    assert "Product Name" in shown


def test_every_verifier_is_listed_with_an_answer_that_it_reads(capsys):
    listing.show()

    shown = "".join(capsys.readouterr().out.split())
    for name in VERIFIERS:
        assert f"verifier{name}" in shown
        answer = example_answer(name)
        assert answer, name
        assert "".join(answer.split())[:20] in shown


@for_each("name", ADAPTERS)
def test_every_adapter_says_what_it_reads(name):
    assert ADAPTERS[name].columns
    read = ADAPTERS[name].read
    says = (read.func if isinstance(read, functools.partial) else read).__doc__ or ""
    assert says.startswith("Read a")


def test_the_list_stands_in_groups_that_fit_a_terminal_of_80_columns():
    texts = list(listing.lines(80))

    assert 5 == sum(line.endswith(":") and not line.startswith(" ") for line in texts)
    assert [] == [line for line in texts if len(line) > 80 and " " in line.strip()]
