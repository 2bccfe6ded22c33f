"""The whole stage: nothing disappears, the same inputs give the same bytes."""

import errno
import functools
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_schemas.arrow import read_table
from data_schemas.rows import (
    CROISSANT,
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    ROWS,
    Demonstration,
    Domain,
    ItemKind,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import CurationSettings, PersonalData, Source
from data_schemas.sources import RawFile, RowPlace
from data_schemas.verdicts import Verdict, abstain
from tasks.curation import sample_world
from tasks.curation.cleaning.verification import WRONG
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest
from tasks.errors import DataError, TamperError
from tasks.formats.benchmark_file import read_suites
from tasks.gym.table import VERIFIERS
from tasks.store.files import sha256_bytes, sha256_file
from tests.records import filled

SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=4)


def question(number: int) -> dict[str, object]:
    return {
        "question": f"A shop has {number} bags and sells 2. How many are left?",
        "answer": f"{number}-2=<<{number}-2={number - 2}>>{number - 2}\n#### {number - 2}",
    }


def run(
    base_model: Path, folder: Path, lines: list[bytes], settings: CurationSettings = SETTINGS
) -> Path:
    folder.mkdir(parents=True)
    (folder / "set.jsonl").write_bytes(b"\n".join(lines))
    source = Source(adapter="gsm8k", path=str(folder / "set.jsonl"))
    return run_sources(base_model, folder, [source], settings)


def run_sources(
    base_model: Path, folder: Path, sources: list[Source], settings: CurationSettings = SETTINGS
) -> Path:
    for name in ("raw", "out"):
        (folder / name).mkdir(parents=True)
    ingest(sources, settings.seed, folder / "raw")
    curate(settings, folder / "raw", base_model, folder / "out", score=without_code)
    return folder / "out"


def without_code(problems: Sequence[Problem], responses: Sequence[str]) -> list[Verdict]:
    """Verify all but programs: to run a thousand of them takes longer than all tests here."""
    return [
        abstain("not_run")
        if problem.verifier == "code_tests"
        else _verdict(problem.model_dump_json(), response)
        for problem, response in zip(problems, responses, strict=True)
    ]


@functools.cache
def _verdict(problem: str, response: str) -> Verdict:
    """Verify what many runs have in common once."""
    parsed = Problem.model_validate_json(problem)
    return VERIFIERS[parsed.verifier](parsed, response)


def report(out: Path) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    return json.loads((out / REPORT).read_bytes())


@pytest.fixture(scope="module")
def world(base_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    return run_sources(base_model, folder, [Source(adapter="sample_world")])


def test_every_defect_of_the_sample_world_is_found_under_its_reason(world: Path):
    account = report(world)["sources"]["sample_world"]

    broken = {reason: count for reason, count in account["quarantined"].items() if reason != WRONG}
    expected = {
        "bad_field": 2 * sample_world.NUM_UNANSWERED,
        "not_json": 2 * sample_world.NUM_MALFORMED,
    }
    assert expected == broken
    assert 2 * sample_world.NUM_OVERLONG == account["dropped"]["prompt_too_long"]
    typed_again = sample_world.NUM_EXACT + sample_world.NUM_NEAR
    found = Counter(
        one.kind
        for one in read_table(world / QUARANTINE, QuarantinedItem)
        if one.reason in ("duplicate", "near_duplicate")
    )
    # A retyped row may have been drawn from a row that was itself refused: a few less, and of
    # demonstrations those of the hasty teacher.
    assert typed_again - 4 <= found[ItemKind.PROBLEM] <= typed_again + 4
    assert typed_again / 2 < found[ItemKind.DEMONSTRATION] <= typed_again + 4


def test_only_the_hasty_teacher_of_the_sample_world_is_wrong(world: Path):
    lines = world.parent / "raw" / "sample_world" / sample_world.DEMONSTRATIONS
    teachers = dict(re.findall(r'"id": "(d\d+)".*"teacher": "(\w+)"', lines.read_text()))
    refused = [
        one for one in read_table(world / QUARANTINE, QuarantinedItem) if one.reason == WRONG
    ]
    kept = read_table(world / DEMONSTRATIONS, Demonstration)

    wrong = Counter(teachers[one.key.removeprefix("sample_world/")] for one in refused)
    assert {"hasty": report(world)["sources"]["sample_world"]["quarantined"][WRONG]} == wrong
    verified = [shown for shown in kept if shown.domain is not Domain.CODE]
    assert len(verified) == report(world)["totals"]["verified_demonstrations"]
    unseen = Counter(teachers[one.id.removeprefix("sample_world/")] for one in verified)
    # A slip may be right by chance: the other brand may be the right one.
    assert unseen["hasty"] < wrong["hasty"] / 20


def test_the_tables_hold_what_the_report_counts(world: Path):
    account = report(world)["sources"]["sample_world"]
    problems = read_table(world / PROBLEMS, Problem)
    demonstrations = read_table(world / DEMONSTRATIONS, Demonstration)
    held_out = read_table(world / HELD_OUT, Problem)
    refused = read_table(world / QUARANTINE, QuarantinedItem)

    expected = {
        "problems": len(problems),
        "demonstrations": len(demonstrations),
        "held_out": len(held_out),
    }
    assert expected == account["kept"]
    assert Counter(account["dropped"]) + Counter(account["quarantined"]) == Counter(
        refusal.reason for refusal in refused
    )
    assert account["items"] == sum(map(len, (problems, demonstrations, held_out, refused)))
    ids = [problem.id for problem in problems + held_out]
    assert len(ids) == len(set(ids))


def test_no_held_out_prompt_is_left_to_learn_from(world: Path):
    held_out = {problem.prompt_text for problem in read_table(world / HELD_OUT, Problem)}
    learned = [problem.prompt_text for problem in read_table(world / PROBLEMS, Problem)]
    learned += [shown.prompt_text for shown in read_table(world / DEMONSTRATIONS, Demonstration)]

    assert held_out.isdisjoint(learned)


def test_the_demonstration_of_a_held_out_row_is_not_taught(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number)).encode() for number in range(10, 20)]

    account = report(run(base_model, tmp_path / "a", lines))["sources"]["gsm8k"]

    assert {"problems": 6, "demonstrations": 6, "held_out": 4} == account["kept"]
    assert {"contaminated": 4} == account["dropped"]
    assert (10, 20) == (account["rows"], account["items"])


def test_the_same_inputs_give_the_same_bytes(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number % 12)).encode() for number in range(16)] + [b"{"]
    (tmp_path / "set.jsonl").write_bytes(b"\n".join(lines))
    source = Source(adapter="gsm8k", path=str(tmp_path / "set.jsonl"))

    one, two = (run_sources(base_model, tmp_path / name, [source]) for name in ("one", "two"))

    names = [PROBLEMS, DEMONSTRATIONS, HELD_OUT, QUARANTINE, ROWS, REPORT, CROISSANT]
    assert sorted(names) == sorted(path.name for path in one.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_every_raw_row_is_recorded_with_its_file_and_number(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number)).encode() for number in range(8)]
    lines[3:3] = [b"", b"{"]  # a blank line is no row, a broken one is

    out = run(base_model, tmp_path / "a", lines)

    file = sha256_file(tmp_path / "a" / "set.jsonl")
    digests = [sha256_bytes(line) for line in lines if line]
    expected = [
        RowPlace(source_row=digest, file=file, number=number)
        for number, digest in enumerate(digests, start=1)
    ]
    assert expected == read_table(out / ROWS, RowPlace)


def test_only_the_first_rows_of_a_source_are_read(base_model: Path, tmp_path: Path):
    source = tmp_path / "set"
    source.mkdir()
    for name in ("a", "b"):
        rows = [question(number) for number in range(10 if name == "a" else 50, 60, 10)]
        (source / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sources = [Source(adapter="gsm8k", path=str(source), limit=5)]

    out = run_sources(base_model, tmp_path / "run", sources)

    assert 5 == report(out)["sources"]["gsm8k"]["rows"]
    (tmp_path / "limit6").mkdir()
    sources = [Source(adapter="gsm8k", path=str(source), limit=6)]
    # The sixth row is the first of b.jsonl and repeats a row of a.jsonl, twice: as problem
    # and as demonstration.
    out = run_sources(base_model, tmp_path / "more", sources)
    assert 2 == report(out)["sources"]["gsm8k"]["dropped"]["duplicate"]


@pytest.mark.slow
def test_a_limit_reads_problems_and_demonstrations_of_the_sample_world(
    base_model: Path, tmp_path: Path
):
    sources = [Source(adapter="sample_world", limit=60)]

    out = run_sources(base_model, tmp_path / "run", sources)

    assert 120 == report(out)["sources"]["sample_world"]["rows"]
    kept = report(out)["sources"]["sample_world"]["kept"]
    assert min(kept["problems"], kept["demonstrations"]) > 0


def test_an_empty_set_says_which_filter_took_most_and_what_to_do(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number)).encode() for number in range(5)]
    strict = SETTINGS.model_copy(update={"max_prompt_tokens": 8})

    said = r"none of 11 .*long 5, not_json 1\. For example: \d+ tokens, limit 8\. Raise curation\."
    with pytest.raises(DataError, match=said):
        run(base_model, tmp_path / "a", [*lines, b"{"], strict)


def dialogues(folder: Path) -> Source:
    """Ten dialogues, each of them twice."""
    folder.mkdir(parents=True)
    rows = [{"ask": f"Where is order {place % 10}?", "say": "On its way."} for place in range(20)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "m.yaml").write_text(
        'name: dialogues\ndomain: general\nlanguage: en\nprompt: "{ask}"\nresponse: "{say}"\n'
    )
    return Source(adapter=str(folder / "m.yaml"), path=str(folder / "rows.jsonl"))


def test_dialogues_alone_are_refused_for_what_they_lack_and_not_for_their_repeats(
    base_model: Path, tmp_path: Path
):
    said = "10 demonstrations of 20 items, and no source has problems: .* verifier and answer"
    with pytest.raises(DataError, match=said):
        run_sources(base_model, tmp_path / "out", [dialogues(tmp_path / "rows")])


def test_dialogues_are_enough_beside_a_benchmark(base_model: Path, tmp_path: Path):
    (tmp_path / "exam.jsonl").write_text("\n".join(json.dumps(question(one)) for one in (3, 4)))
    exam = Source(adapter="gsm8k", path=str(tmp_path / "exam.jsonl"), evaluation=True)

    out = run_sources(base_model, tmp_path / "out", [dialogues(tmp_path / "rows"), exam])

    assert 10 == len(read_table(out / DEMONSTRATIONS, Demonstration))
    assert 2 == len(read_table(out / HELD_OUT, Problem))


def test_one_problem_cannot_be_learned_from_and_held_out(base_model: Path, tmp_path: Path):
    with pytest.raises(DataError, match=r"1 problems, but none can be held out"):
        run(base_model, tmp_path / "a", [json.dumps(question(3)).encode()])


def test_tasks_of_one_environment_are_learned_from_and_others_of_it_held_out(
    base_model: Path, tmp_path: Path
):
    row = {"library": "example", "environment": "guess", "limit": 20, "domain": "tool_use"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {"language": "en"}))
    source = Source(adapter="environments", path=str(tmp_path / "rows.jsonl"))

    first = run_sources(base_model, tmp_path / "a", [source])
    (tmp_path / "again").mkdir()
    raw = tmp_path / "a" / "raw"
    facts = curate(SETTINGS, raw, base_model, tmp_path / "again", held_out_from=first)

    learned, held_out = (read_table(first / name, Problem) for name in (PROBLEMS, HELD_OUT))
    assert (16, 4) == (len(learned), len(held_out))
    assert {one.answer for one in learned}.isdisjoint(one.answer for one in held_out)
    assert (16, 4) == (facts["problems"], facts["dropped"])


def test_a_folder_that_cannot_be_removed_costs_no_set(
    base_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def is_held(*_: object, **__: object) -> None:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))

    lines = [json.dumps(question(number)).encode() for number in range(10, 20)]
    run(base_model, tmp_path / "a", lines)
    monkeypatch.setattr(os, "rmdir", is_held)

    facts = curate(
        *(SETTINGS, tmp_path / "a" / "raw", base_model, tmp_path / "a" / "out"),
        work=tmp_path / "work",
    )

    assert 6 == facts["problems"]


def test_a_raw_file_that_changed_since_ingestion_stops_the_stage(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number)).encode() for number in range(4)]
    run(base_model, tmp_path / "a", lines)
    (tmp_path / "a" / "set.jsonl").write_bytes(b"{}")

    with pytest.raises(TamperError, match=r"set.jsonl: sha256 is"):
        curate(SETTINGS, tmp_path / "a" / "raw", base_model, tmp_path / "a" / "out")


def test_an_earlier_held_out_set_stays_the_held_out_set(base_model: Path, tmp_path: Path):
    lines = [json.dumps(question(number)).encode() for number in range(10, 20)]
    first = run(base_model, tmp_path / "a", lines)
    (tmp_path / "again").mkdir()

    facts = curate(
        SETTINGS, tmp_path / "a" / "raw", base_model, tmp_path / "again", held_out_from=first
    )

    assert (tmp_path / "again" / HELD_OUT).read_bytes() == (first / HELD_OUT).read_bytes()
    # Held-out problems and their demonstrations come back as raw rows and are kept out.
    assert (6, 6, 8) == (facts["problems"], facts["demonstrations"], facts["dropped"])
    assert 0 == report(tmp_path / "again")["sources"]["gsm8k"]["kept"]["held_out"]


def benchmark(folder: Path, name: str, numbers: range, *, evaluation: bool) -> Source:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(json.dumps(question(number)) for number in numbers))
    return Source(adapter="gsm8k", path=str(path), evaluation=evaluation)


def test_a_benchmark_is_held_out_as_a_whole_and_trained_on_by_nobody(
    base_model: Path, tmp_path: Path
):
    exam = benchmark(tmp_path, "exam", range(10, 40), evaluation=True)
    training = benchmark(tmp_path, "training", range(35, 55), evaluation=False)

    out = run_sources(base_model, tmp_path / "run", [training, exam])

    held_out = {problem.id for problem in read_table(out / HELD_OUT, Problem)}
    learned = [problem.id for problem in read_table(out / PROBLEMS, Problem)]
    shown = [one.id for one in read_table(out / DEMONSTRATIONS, Demonstration)]
    assert {f"gsm8k/exam-{number}" for number in range(1, 31)} <= held_out
    # Five rows of the training file are of the exam; of the others, four are drawn as usual.
    assert (34, 11, 11) == (len(held_out), len(learned), len(shown))
    assert all(name.startswith("gsm8k/training") for name in learned + shown)
    account = report(out)["sources"]["gsm8k"]
    assert {"evaluation_only": 30, "contaminated": 14} == account["dropped"]


def test_the_order_of_sources_and_the_file_itself_do_not_leak_a_benchmark(
    base_model: Path, tmp_path: Path
):
    exam = benchmark(tmp_path, "exam", range(10, 40), evaluation=True)
    again = exam.model_copy(update={"evaluation": False})
    training = benchmark(tmp_path, "training", range(50, 60), evaluation=False)

    one = run_sources(base_model, tmp_path / "one", [again, exam, training])
    two = run_sources(base_model, tmp_path / "two", [training, exam, again])

    for out in (one, two):
        learned = [problem.id for problem in read_table(out / PROBLEMS, Problem)]
        assert 6 == len(learned)
        assert all(name.startswith("gsm8k/training") for name in learned)
        held_out = [problem.id for problem in read_table(out / HELD_OUT, Problem)]
        assert len(held_out) == len(set(held_out))


def test_a_run_may_have_benchmarks_only(base_model: Path, tmp_path: Path):
    exam = benchmark(tmp_path, "exam", range(10, 13), evaluation=True)

    out = run_sources(base_model, tmp_path / "run", [exam])

    assert 3 == len(read_table(out / HELD_OUT, Problem))
    assert [] == read_table(out / PROBLEMS, Problem)
    (tmp_path / "exam.jsonl").write_text("{")
    with pytest.raises(DataError, match="not_json 1"):
        run_sources(base_model, tmp_path / "broken", [exam])


def test_a_suite_asks_its_problems_in_its_own_form_and_is_listed(base_model: Path, tmp_path: Path):
    exam = benchmark(tmp_path, "exam", range(10, 13), evaluation=True)
    suite = tmp_path / "mine.yaml"
    suite.write_text("name: gsm8k\nrows: gsm8k\nk: 5\nprompt: '{prompt} Think first.'\n")

    plain = run_sources(base_model, tmp_path / "plain", [exam])
    own = exam.model_copy(update={"adapter": str(suite)})
    asked = run_sources(base_model, tmp_path / "asked", [own])

    for before, after in zip(
        read_table(plain / HELD_OUT, Problem), read_table(asked / HELD_OUT, Problem), strict=True
    ):
        assert f"{before.messages[-1].content} Think first." == after.messages[-1].content
        assert (before.id, before.source, before.answer) == (after.id, after.source, after.answer)
    assert 5 == read_suites(asked)["gsm8k"].k


def test_a_file_with_a_mapping_of_its_own_is_a_suite(base_model: Path, tmp_path: Path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(json.dumps({"problem": f"{n} + 1?", "answer": n + 1}) for n in (1, 2))
    )

    out = run_sources(
        base_model,
        tmp_path / "run",
        [Source(adapter="aime24", path=str(rows), evaluation=True)],
    )

    problems = read_table(out / HELD_OUT, Problem)
    assert ["aime24/rows-1", "aime24/rows-2"] == [problem.id for problem in problems]
    assert all("\\boxed{}" in problem.prompt_text for problem in problems)
    assert 32 == read_suites(out)["aime24"].k


LINES = st.one_of(
    st.integers(0, 6).map(lambda number: json.dumps(question(number)).encode()),
    st.binary(max_size=8).filter(lambda line: not set(line) & set(b"\r\n")),
    st.dictionaries(st.sampled_from(["question", "answer"]), st.text(max_size=9)).map(
        lambda row: json.dumps(row).encode()
    ),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(LINES, max_size=12))
def test_read_is_kept_plus_dropped_plus_quarantined(
    base_model: Path, tmp_path_factory: pytest.TempPathFactory, rows: list[bytes]
):
    sound = [json.dumps(question(number)).encode() for number in (100, 200)]
    sound[0] = sound[0].replace(b"A shop", "Ein Händler".encode())
    # Those first: what a file is, its first bytes say, and a letter, that it is UTF-8.
    out = run(base_model, tmp_path_factory.mktemp("law") / "a", [*sound, *rows])

    account = report(out)["sources"]["gsm8k"]
    shares = ("kept", "dropped", "quarantined")
    assert account["items"] == sum(sum(account[share].values()) for share in shares)
    assert account["rows"] == sum(bool(row.strip()) for row in rows) + 2


def test_new_rows_for_a_model_that_exists_may_all_be_unusable(
    base_model: Path, world: Path, tmp_path: Path
):
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    out.mkdir()
    files = {"gsm8k": "a.jsonl.gz", "our_shop": "b.jsonl", "prompt_jsonl": "c.docx"}
    for name in files.values():
        (raw / name).write_bytes(b"not what the name says")
    listed = [
        filled(
            RawFile, adapter=adapter, uri=name, sha256=sha256_file(raw / name), bytes=22
        ).model_dump()
        for adapter, name in files.items()
    ]
    (raw / "raw_files.json").write_text(json.dumps(listed))

    facts = curate(SETTINGS, raw, base_model, out, held_out_from=world)

    assert (3, 0, 3) == (facts["rows"], facts["problems"], facts["quarantined"])
    refused = {row.source: row.reason for row in read_table(out / QUARANTINE, QuarantinedItem)}
    assert {
        "gsm8k": "damaged_file",
        "our_shop": "unknown_adapter",
        "prompt_jsonl": "unknown_suffix",
    } == refused
    assert (world / HELD_OUT).read_bytes() == (out / HELD_OUT).read_bytes()


@pytest.mark.parametrize(
    ("policy", "kept", "refused", "text"),
    [
        (PersonalData.COUNT, 12, 0, "Call 0812-3456-7801 about the"),
        (PersonalData.MASK, 12, 0, "Call [phone] about the"),
        (PersonalData.QUARANTINE, 6, 12, "Call the shop about the"),
    ],
)
def test_rows_that_tell_of_a_person_are_counted_masked_or_left_out(
    base_model: Path, tmp_path: Path, policy: PersonalData, kept: int, refused: int, text: str
) -> None:
    things = ["boot", "hat", "ring", "bag", "lamp", "coat"]
    rows = [(f"Call the shop about the {thing}", place) for place, thing in enumerate(things)]
    rows += [
        (f"Call 0812-3456-780{place} about the {thing} in {thing}s", 10 + place)
        for place, thing in enumerate(things)
    ]
    lines = [
        json.dumps({"question": f"{line}: {n} + 1?", "answer": f"#### {n + 1}"}).encode()
        for line, n in rows
    ]
    settings = SETTINGS.model_copy(update={"personal": policy, "near_duplicate_jaccard": 1.0})

    out = run(base_model, tmp_path / "one", lines, settings)

    result = report(out)
    assert {"items": 12, "phone": 12} == result["sources"]["gsm8k"]["personal"]
    assert 12 == result["totals"]["personal"]
    problems = read_table(out / PROBLEMS, Problem) + read_table(out / HELD_OUT, Problem)
    assert kept == len(problems)
    assert any(text in problem.prompt_text for problem in problems)
    leaves = [
        row for row in read_table(out / QUARANTINE, QuarantinedItem) if row.stage == "privacy"
    ]
    assert [("personal_data", "phone")] * refused == [(row.reason, row.detail) for row in leaves]
