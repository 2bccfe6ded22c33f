"""Held-out suites: even over sources and languages, and independent of row order."""

from collections import Counter
from collections.abc import Callable

from data_schemas.rows import Domain, Problem
from tasks.curation.items import Item
from tasks.curation.split import Draw


def hold_out(items: list[Item], per_suite: int, seed: int) -> tuple[list[Item], list[Item]]:
    drawing = Draw(per_suite, seed)
    for row, item in enumerate(items):
        if isinstance(item.record, Problem):
            record = item.record
            drawing.add((record.domain, record.source, record.language), record.id, row)
    drawn = drawing.rows()
    return (
        [item for row, item in enumerate(items) if row in drawn],
        [item for row, item in enumerate(items) if row not in drawn],
    )


Make = Callable[..., Item]


def world(make_problem: Make) -> list[Item]:
    return [
        make_problem(f"{language}{number}", f"{language} {number}", language=language)
        for language, size in (("en", 60), ("th", 10), ("id", 3), ("vi", 1))
        for number in range(size)
    ]


def test_languages_take_turns_and_none_gives_more_than_half(make_problem: Make):
    drawn, rest = hold_out(world(make_problem), 20, seed=0)

    # id gives its one (half of 3), th its five (half of 10), en the rest; vi has only one.
    assert {"en": 14, "th": 5, "id": 1} == Counter(item.record.language for item in drawn)
    assert 74 == len(drawn) + len(rest)


def test_every_domain_has_its_own_suite_and_demonstrations_are_never_drawn(
    make_problem: Make, make_demonstration: Make
):
    items = [
        make_problem(f"{domain}{number}", f"{domain} {number}", domain=domain)
        for domain in (Domain.MATHS, Domain.CODE)
        for number in range(9)
    ] + [make_demonstration(f"d{number}", "How?", "<think></think>7") for number in range(9)]

    drawn, rest = hold_out(items, 3, seed=0)

    assert {Domain.MATHS: 3, Domain.CODE: 3} == Counter(item.record.domain for item in drawn)
    assert items[-9:] == rest[-9:]


def test_the_draw_depends_on_ids_and_seed_and_not_on_the_order(make_problem: Make):
    items = world(make_problem)

    drawn = {item.record.id for item in hold_out(items, 20, seed=0)[0]}

    assert drawn == {item.record.id for item in hold_out(items[::-1], 20, seed=0)[0]}
    assert drawn != {item.record.id for item in hold_out(items, 20, seed=1)[0]}
