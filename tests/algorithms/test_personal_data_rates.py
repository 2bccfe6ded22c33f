"""How much of what rows tell of people is found, and how often a thing is taken for a person's.

The table of tasks/curation/README.md is what `python -m tests.algorithms.test_personal_data_rates`
prints.
"""

from collections import Counter
from pathlib import Path

import pytest

from tasks.algorithms.personal_data import PersonalKind, personal_passages
from tests.algorithms.people import Row, rows_of_people, rows_of_things
from tests.tables import for_each

PAGE = Path(__file__).parents[2] / "tasks/curation/README.md"
EACH = 250
SEEDS = (11, 12)
"""People and things of the table; the rules were written beside other draws."""


def is_found(row: Row) -> bool:
    """True if passages of its kind cover every letter and digit of what the row tells."""
    places = {
        place
        for one in personal_passages(row.text)
        if one.kind is row.kind
        for place in range(one.start, one.end)
    }
    span = range(row.start, row.end)
    return all(place in places for place in span if row.text[place].isalnum())


def table(each: int) -> list[str]:
    """Measure both sets and write the rows of the table."""
    people, things = rows_of_people(each, SEEDS[0]), rows_of_things(each, SEEDS[1])
    asked, found, right, said = Counter(), Counter(), Counter(), Counter()
    for row in people:
        asked[row.kind] += 1
        found[row.kind] += is_found(row)
    for row in (*people, *things):
        for one in personal_passages(row.text):
            said[one.kind] += 1
            right[one.kind] += one.kind is row.kind and row.start < one.end and one.start < row.end
    return [
        f"| {kind} | {asked[kind]} | {100 * found[kind] / asked[kind]:.1f} % "
        f"| {100 * right[kind] / said[kind]:.1f} % |"
        for kind in PersonalKind
    ] + [f"| of {len(things)} rows of things | | | {sum(map(_is_taken, things))} taken |"]


def _is_taken(row: Row) -> bool:
    return bool(personal_passages(row.text))


@for_each("row", rows_of_people(2, 5))
def test_every_form_is_found_whole_in_any_sentence(row: Row) -> None:
    assert is_found(row), row.text


def test_no_number_of_a_thing_is_taken_for_a_person_s() -> None:
    assert [] == [row.text for row in rows_of_things(8, 6) if _is_taken(row)]


@pytest.mark.slow
def test_the_page_has_the_measured_rates() -> None:
    assert "\n".join(table(EACH)) in PAGE.read_text()


if __name__ == "__main__":
    print("\n".join(table(EACH)))  # noqa: T201
