"""How far an inbox has been read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.intake import InboxFile, Watermark
from tasks.errors import DataError
from tasks.retraining.watermark import LOOKBACK_S, advance, load, new_files

DAY = 1_800_000_000.0


def _file(key, modified, fingerprint="e1"):
    return InboxFile(
        key=key, uri=f"s3://b/{key}", modified=modified, bytes=1, fingerprint=fingerprint
    )


@pytest.fixture
def store(tmp_path):
    return str(tmp_path)


def test_an_unread_inbox_starts_at_the_beginning_of_time(store):
    assert Watermark() == load(store, "s3://b/in")


def test_only_what_came_after_is_new_and_oldest_comes_first(store):
    advance(store, "s3://b/in", [_file("b", DAY), _file("a", DAY - 5)])
    listed = [_file("d", DAY + 9), _file("a", DAY - 5), _file("c", DAY + 1), _file("b", DAY)]

    assert ["c", "d"] == [file.key for file in new_files(load(store, "s3://b/in"), listed)]
    assert (DAY, "b") == (load(store, "s3://b/in").modified, load(store, "s3://b/in").key)


def test_a_file_of_the_same_second_with_a_smaller_name_is_not_lost(store):
    mark = advance(store, "i", [_file("b", DAY)])

    assert ["a"] == [file.key for file in new_files(mark, [_file("a", DAY), _file("b", DAY)])]


def test_an_upload_that_began_before_the_mark_is_not_lost(store):
    mark = advance(store, "i", [_file("b", DAY)])

    assert ["slow"] == [file.key for file in new_files(mark, [_file("slow", DAY - 3600)])]


def test_a_corrected_file_comes_again_under_its_old_name(store):
    mark = advance(store, "i", [_file("a", DAY, "e1")])

    assert [] == new_files(mark, [_file("a", DAY, "e1")])
    assert ["e2"] == [file.fingerprint for file in new_files(mark, [_file("a", DAY + 60, "e2")])]


def test_what_is_older_than_the_look_back_is_done_with(store):
    mark = advance(store, "i", [_file("a", DAY)])

    assert [] == new_files(mark, [_file("ancient", DAY - LOOKBACK_S - 1)])


def test_the_mark_never_goes_back(store):
    advance(store, "i", [_file("b", DAY)])
    mark = advance(store, "i", [_file("a", DAY - 60)])

    assert (DAY, "b", {"a", "b"}) == (mark.modified, mark.key, {file.key for file in mark.recent})


def test_advancing_over_nothing_changes_nothing(store):
    mark = advance(store, "i", [_file("a", DAY)])

    assert mark == advance(store, "i", [])


def test_files_far_from_the_mark_are_forgotten(store):
    advance(store, "i", [_file("a", DAY)])
    mark = advance(store, "i", [_file("b", DAY + LOOKBACK_S + 1)])

    assert ["b"] == [file.key for file in mark.recent]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 1000), st.sampled_from(["e1", "e2"])),
        unique_by=lambda entry: entry[0],
    ),
    st.integers(1, 4),
)
def test_every_file_is_new_exactly_once_however_the_runs_fall(tmp_path_factory, entries, size):
    store = str(tmp_path_factory.mktemp("store"))
    listed = [_file(key, DAY + second, print_) for key, second, print_ in entries]
    taken = []
    while found := new_files(load(store, "i"), listed)[:size]:
        taken += [file.key for file in found]
        advance(store, "i", found)

    assert sorted(file.key for file in listed) == sorted(taken)


def test_two_inboxes_of_a_store_do_not_share_a_mark(store):
    advance(store, "s3://b/one", [_file("a", DAY)])

    assert Watermark() == load(store, "s3://b/two")
    assert DAY == load(store, "s3://b/one/").modified


def test_a_damaged_watermark_says_what_to_do(store, tmp_path):
    advance(store, "i", [_file("a", DAY)])
    (path,) = (tmp_path / "watermarks").iterdir()
    path.write_text('{"modified":"never"}')

    with pytest.raises(
        DataError, match=r"is no watermark.*Delete it to read the whole inbox again"
    ):
        load(store, "i")
