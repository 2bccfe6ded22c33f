"""Which files of an inbox were processed: each exactly once, whatever their times say."""

import shutil
import threading

import pytest
from flytekit import FlyteContext
from flytekit.core.type_engine import TypeEngine
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.intake import FileStatus, InboxFile, ProcessedFiles
from data_schemas.mappings import ColumnMapping
from data_schemas.rows import Domain
from tasks.errors import DataError, TamperError
from tasks.platform import literals
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.retraining.processed import MAX_REFUSALS, identity, load, select, settle
from tasks.store import location
from tasks.store.interface import store_at

literals.register()


def _file(key, fingerprint="e1"):
    return InboxFile(key=key, uri=f"s3://b/{key}", bytes=1, fingerprint=fingerprint)


def keys(files):
    return [file.key for file in files]


@pytest.fixture
def store(tmp_path):
    return str(tmp_path)


@pytest.fixture
def done(store):
    def settled(*files, status=FileStatus.TRAINED, inbox="s3://b/in", execution="e"):
        return settle(store, inbox, files, status, execution)

    return settled


def test_nothing_of_an_unread_inbox_was_processed(store):
    assert ProcessedFiles() == load(store, "s3://b/in")


@pytest.mark.parametrize("status", [FileStatus.TRAINED, FileStatus.SKIPPED])
def test_only_what_was_not_processed_is_new(done, status):
    mark = done(_file("b"), _file("a"), status=status)

    assert ["c", "d"] == keys(select(mark, [_file(key) for key in "dacb"]))


def test_a_corrected_file_comes_again_under_its_old_name(done):
    mark = done(_file("a", "e1"))

    assert [] == select(mark, [_file("a", "e1")])
    assert ["e2"] == [file.fingerprint for file in select(mark, [_file("a", "e2")])]


def test_settling_twice_is_the_same_as_once(done):
    assert done(_file("a")) == done(_file("a"))
    assert done(_file("a")) == done()


def test_refused_files_alone_are_no_reason_to_train_again(done):
    mark = done(_file("a"), status=FileStatus.REFUSED)

    assert [] == select(mark, [_file("a")])


def test_refused_files_are_used_again_with_the_next_new_one_until_they_are_set_aside(done):
    listed = [_file("a")]
    for night in range(1, MAX_REFUSALS + 1):
        mark = done(*listed, status=FileStatus.REFUSED)
        assert night == {file.key: file.refusals for file in mark.files}["a"]
        listed = select(mark, [_file("a"), _file(f"new{night}")])
        expected = ["a", f"new{night}"] if night < MAX_REFUSALS else [f"new{night}"]
        assert expected == keys(listed)


def test_a_refused_file_that_is_then_trained_on_is_done_with(done):
    mark = done(_file("a"), status=FileStatus.REFUSED)
    mark = done(*select(mark, [_file("a"), _file("b")]))

    assert [] == select(mark, [_file("a"), _file("b")])
    assert ["c"] == keys(select(mark, [_file("a"), _file("b"), _file("c")]))


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["e1", "e2"])),
        unique_by=lambda entry: entry[0],
    ),
    st.integers(1, 4),
)
def test_every_file_is_taken_exactly_once_however_the_runs_fall(tmp_path_factory, entries, size):
    store = str(tmp_path_factory.mktemp("store"))
    listed = [_file(key, fingerprint) for key, fingerprint in entries]
    taken = []
    while found := select(load(store, "i"), listed)[:size]:
        taken += keys(found)
        settle(store, "i", found, FileStatus.TRAINED, "e")

    assert sorted(keys(listed)) == sorted(taken)


def test_runs_that_settle_at_the_same_time_lose_nothing(store, done):
    threads = [threading.Thread(target=done, args=(_file(f"file{number}"),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [f"file{number}" for number in range(8)] == keys(load(store, "s3://b/in").files)


def test_two_inboxes_of_a_store_do_not_share_a_record(store, done):
    done(_file("a"), inbox="s3://b/one")

    assert ProcessedFiles() == load(store, "s3://b/two")
    assert ["a"] == keys(load(store, "s3://b/one/").files)


def test_a_damaged_record_says_what_to_do(store, done, tmp_path):
    done(_file("a"))
    (path,) = (tmp_path / "inboxes").glob("*.json")
    path.write_bytes(seal("inbox", path.name, b'{"files":"never"}'))

    with pytest.raises(
        DataError, match=r"is no record of processed files.*Delete it to read the whole inbox again"
    ):
        load(store, "s3://b/in")


NAMES = st.text("abcdef", min_size=1, max_size=4)
MAPPINGS = st.builds(
    ColumnMapping,
    name=st.just("shop"),
    domain=st.just(Domain.CHOICE),
    language=st.just("en"),
    prompt=st.just("{question}"),
    verifier=st.just("choice"),
    answer=st.just({"others": "{wrong}", "correct": "{right}"}),
    facets=st.dictionaries(NAMES, NAMES.map(lambda name: f"{{{name}}}"), max_size=4),
)


@given(mapping=MAPPINGS)
def test_a_file_is_the_same_after_it_went_through_flyte(mapping):
    context = FlyteContext.current_context()
    file = _file("a").model_copy(update={"mapping": mapping})
    kind = TypeEngine.to_literal_type(list[InboxFile])
    literal = TypeEngine.to_literal(context, [file], list[InboxFile], kind)
    carried = type(literal.to_flyte_idl()).FromString(literal.to_flyte_idl().SerializeToString())
    (after,) = TypeEngine.to_python_value(
        context, type(literal).from_flyte_idl(carried), list[InboxFile]
    )

    assert identity(file) == identity(after)


def test_a_file_that_a_mapping_reads_is_processed_once(done):
    answer = {"others": "{wrong}", "correct": "{right}"}
    listed = _mapped(answer)
    through_flyte = _mapped(dict(sorted(answer.items())))
    mark = done(through_flyte)

    assert [] == select(mark, [listed])
    assert ["a"] == keys(select(mark, [_mapped(answer | {"correct": "{other}"})]))


def _mapped(answer):
    mapping = ColumnMapping(
        name="shop",
        domain=Domain.CHOICE,
        language="en",
        prompt="{question}",
        verifier="choice",
        answer=answer,
    )
    return _file("a").model_copy(update={"mapping": mapping})


@pytest.mark.attack
def test_marks_that_somebody_planted_do_not_keep_files_from_being_read(store, done, tmp_path):
    done(_file("a"))
    (path,) = (tmp_path / "inboxes").glob("*.json")
    payload = unseal(
        "inbox", f"{location.identity(str(path.parents[1]))}/{path.name}", path.read_bytes(), ""
    )
    path.write_bytes(payload.replace(b'"a"', b'"b"'))

    with pytest.raises(TamperError, match="is not signed; something else wrote it"):
        load(store, "s3://b/in")


@pytest.mark.attack
def test_marks_of_another_store_are_not_those_of_this_one(tmp_path):
    """One key signs for both, and both read the same inbox."""
    places = [str(tmp_path / name) for name in ("staging", "production")]
    for place in places:
        store_at(place).open()
    staging, production = places
    settle(staging, "s3://b/in", [_file("a")], FileStatus.TRAINED, "e")
    shutil.copytree(f"{staging}/inboxes", f"{production}/inboxes")

    assert ["a"] == [file.key for file in load(staging, "s3://b/in").files]
    with pytest.raises(TamperError, match="the payload is of type"):
        load(production, "s3://b/in")
