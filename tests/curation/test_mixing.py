"""New and old rows in one set: replay, slices of the held-out set, demonstrations."""

import json
from collections import Counter

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    REPLAYED,
    ROWS,
    Aside,
    Demonstration,
    Domain,
    Parent,
    Problem,
)
from data_schemas.settings import CurationSettings
from data_schemas.sources import RowPlace
from tasks.curation.mixing import History, load_history, mix, replay, take_slice
from tasks.curation.mixture import draw
from tasks.formats.exclusions import LIST_FILE, read_list, write_list
from tests.records import filled, problem_of

SETTINGS = CurationSettings(held_out_per_suite=5)


def problem(key, prompt="", value=7, domain=Domain.MATHS):
    return problem_of(
        prompt or f"What is {key}?",
        json.dumps({"value": str(value)}),
        id=key,
        domain=domain,
        source="shop",
    )


def shown(of, response, parent=Parent.REASONING, key=""):
    return filled(
        Demonstration,
        id=key or of.id,
        parent=parent,
        domain=of.domain,
        language=of.language,
        messages=of.messages,
        response=f"<think></think>{response}",
        source=of.source,
        source_row=of.source_row,
    )


NEW = [problem(f"n{number}") for number in range(40)]
OLD = [
    problem(f"o{number}", domain=domain)
    for number, domain in enumerate([Domain.MATHS] * 40 + [Domain.CHOICE] * 40)
]
KNOWN = History(
    problems=tuple(OLD),
    demonstrations=(
        *(shown(one, 7, key=f"d{one.id}") for one in OLD[:20]),
        *(shown(one, 7, Parent.COMMERCE, key=f"c{one.id}") for one in OLD[20:40]),
    ),
    held_out=(problem("h0"), problem("h1")),
)


@pytest.fixture
def curated(tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    write_table(folder / PROBLEMS, Problem, [*NEW, problem("x", OLD[0].prompt_text)])
    write_table(folder / DEMONSTRATIONS, Demonstration, [shown(one, 7) for one in NEW[:20]])
    (folder / "report.json").write_text("{}")
    return folder


def mixed(folder, curated, month="2026-11", known=KNOWN, merge=False):
    out = folder / f"mixed-{month}"
    out.mkdir()
    return mix(SETTINGS, month, curated, known, out, merge=merge), out


def test_old_problems_are_the_set_share_and_even_over_their_domains(tmp_path, curated):
    counts, out = mixed(tmp_path, curated)

    problems = read_table(out / PROBLEMS, Problem)
    old = set(json.loads((out / REPLAYED).read_bytes()))
    assert (36, 12) == (counts.fresh, counts.replayed)
    assert {problem.id for problem in problems} & {one.id for one in OLD} == old
    assert {Domain.MATHS: 6, Domain.CHOICE: 6} == Counter(
        one.domain for one in problems if one.id in old
    )


def test_a_problem_that_is_known_is_not_new(tmp_path, curated):
    _, out = mixed(tmp_path, curated)

    assert "x" not in {problem.id for problem in read_table(out / PROBLEMS, Problem)}


def test_a_month_gives_one_slice_which_never_changes(tmp_path, curated):
    first, out = mixed(tmp_path, curated)
    held_out = read_table(out / HELD_OUT, Problem)
    later = History(KNOWN.problems, KNOWN.demonstrations, tuple(held_out))
    again, same = mixed(tmp_path / "new", curated, known=later)

    assert (4, "slice=2026-11") == (first.added, first.slice)
    assert list(KNOWN.held_out) == held_out[:2]
    assert all(problem.id.startswith("slice=2026-11/n") for problem in held_out[2:])
    assert (0, "") == (again.added, again.slice)
    assert held_out == read_table(same / HELD_OUT, Problem)
    december, out = mixed(tmp_path, curated, month="2026-12", known=later)
    assert held_out == read_table(out / HELD_OUT, Problem)[:6]
    assert "slice=2026-12" == december.slice


def test_nothing_that_is_held_out_is_trained_on(tmp_path, curated):
    _, out = mixed(tmp_path, curated)

    asked = {problem.prompt_text for problem in read_table(out / HELD_OUT, Problem)}
    taught = [
        *read_table(out / PROBLEMS, Problem),
        *read_table(out / DEMONSTRATIONS, Demonstration),
    ]
    assert not asked & {record.prompt_text for record in taught}


def test_old_demonstrations_are_replayed_for_every_parent(tmp_path, curated):
    counts, _ = mixed(tmp_path, curated)

    assert 20 == counts.demonstrations + counts.refused.get("contaminated", 0)
    assert counts.practised == 6
    assert {"commerce": counts.demonstrations + 6} == counts.parents


def test_a_merge_keeps_the_parents_of_demonstrations(tmp_path, curated):
    counts, _ = mixed(tmp_path, curated, merge=True)

    assert 3 == counts.parents["commerce"]
    assert counts.demonstrations + 3 == counts.parents["reasoning"]


@pytest.mark.parametrize(("fresh", "count"), [(0, 0), (30, 10), (300, 80)])
def test_the_share_of_replayed_problems_is_met_until_there_are_no_more(fresh, count):
    assert count == len(replay(OLD, fresh, 0, "a"))


def test_other_old_demonstrations_are_replayed_every_night(tmp_path, curated):
    practised = []
    for night in range(4):
        new = [problem(f"night{night}-{number}") for number in range(40)]
        write_table(curated / PROBLEMS, Problem, new)
        write_table(curated / DEMONSTRATIONS, Demonstration, [shown(one, 7) for one in new[:20]])
        _, out = mixed(tmp_path, curated, month=f"2026-0{night + 1}")
        rows = read_table(out / DEMONSTRATIONS, Demonstration)
        practised.append({one.id for one in rows if one.id[0] in "dc"})

    assert [6] * 4 == [len(drawn) for drawn in practised]
    assert len(set.union(*practised)) > 12


def test_few_new_problems_give_no_slice():
    held_out, left = take_slice(NEW[:9], [], "2026-11", SETTINGS)

    assert ([], NEW[:9]) == (held_out, left)


def test_an_id_of_two_nights_is_that_of_the_new_problem(tmp_path, curated):
    known = History((problem("n3", "an older question"),), (), ())
    counts, out = mixed(tmp_path, curated, known=known)

    ids = [one.id for one in read_table(out / PROBLEMS, Problem)]
    assert 0 == counts.replayed
    assert len(ids) == len(set(ids))


def test_what_the_model_knows_is_all_that_was_curated_for_it_but_the_held_out_set(tmp_path):
    for name, problems in (("a", OLD[:2]), ("b", [NEW[0], NEW[1]])):
        (tmp_path / name).mkdir()
        write_table(tmp_path / name / PROBLEMS, Problem, problems)
        write_table(tmp_path / name / DEMONSTRATIONS, Demonstration, [shown(problems[0], 7)])
    held_out = NEW[1].model_copy(update={"id": "slice=2026-10/n1"})
    write_table(tmp_path / "b" / HELD_OUT, Problem, [held_out])

    known = load_history({"1": tmp_path / "a", "2": tmp_path / "b"}, tmp_path / "b")

    assert ["o0", "o1", "n0"] == [one.id for one in known.problems]
    assert ["o0", "n0"] == [one.id for one in known.demonstrations]
    assert (held_out,) == known.held_out


def test_a_withdrawn_row_is_not_replayed_and_its_list_is_passed_on(tmp_path, curated):
    gone, kept = (
        OLD[number].model_copy(update={"source_row": f"{number:064d}"}) for number in (1, 2)
    )
    known = tmp_path / "known"
    known.mkdir()
    write_table(known / PROBLEMS, Problem, [gone, kept])
    write_table(known / DEMONSTRATIONS, Demonstration, [shown(gone, 7), shown(kept, 7)])
    write_table(curated / HELD_OUT, Problem, [])
    write_list(curated / LIST_FILE, [gone.source_row])

    loaded = load_history({"1": known}, curated)
    _, out = mixed(tmp_path, curated, known=loaded)

    assert (kept,) == loaded.problems
    assert [kept.id] == [one.id for one in loaded.demonstrations]
    assert {gone.source_row} == read_list(out / LIST_FILE)


def of_file(one, number, digest):
    row = f"{number:064d}"
    return one.model_copy(update={"source_row": row}), RowPlace(
        source_row=row, file=digest, number=number + 1
    )


def test_rows_of_files_that_people_must_see_are_not_learned_from_now_or_later(tmp_path, curated):
    good, bad = 64 * "a", 64 * "b"
    placed = [of_file(one, n, bad if n % 2 else good) for n, one in enumerate(NEW)]
    problems, places = zip(*placed, strict=True)
    write_table(curated / PROBLEMS, Problem, problems)
    write_table(curated / DEMONSTRATIONS, Demonstration, [shown(one, 7) for one in problems])
    write_table(curated / ROWS, RowPlace, places)
    write_table(curated / HELD_OUT, Problem, [])
    out = tmp_path / "mixture"
    out.mkdir()

    mix(SETTINGS, "2026-11", curated, KNOWN, out, aside=Aside(curated="1", files=(bad,)))
    later = load_history({"1": curated, "2": out}, curated)

    expected = {one.id for one in problems[::2]}
    learned = {one.id for one in read_table(out / PROBLEMS, Problem)} - {one.id for one in OLD}
    held_out = {one.id.split("/")[-1] for one in read_table(out / HELD_OUT, Problem)}
    assert learned < expected
    assert expected - learned < held_out
    assert expected == {one.id for one in later.problems}
    assert expected == {one.id for one in later.demonstrations}
    approved = load_history(
        {"1": curated, "3": curated}, curated
    )  # the same rows, of another night
    assert {one.id for one in problems} == {one.id for one in approved.problems}


def test_replay_neither_repeats_itself_nor_crowds_out_the_new_where_fewer_are_graded():
    many = [problem(f"m{number}") for number in range(4000)]
    fresh = [problem(f"f{number}") for number in range(3000)]
    old, other = replay(many, len(fresh), 0, "a"), replay(many, len(fresh), 0, "b")
    graded = draw([*fresh, *old], {Domain.MATHS: 1.0}, 400, 0)

    assert 1000 == len(old)
    # By chance a quarter is common to both, give or take 15; 100 of 400 are old, give or take 9.
    assert 180 < len({one.id for one in old} & {one.id for one in other}) < 320
    assert 60 < len({one.id for one in old} & {one.id for one in graded}) < 140
