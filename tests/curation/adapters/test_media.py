"""Questions about clips: refused with the clip, a floor without it."""

import pytest

from data_schemas.settings import Source
from tasks.curation.adapters.media import av_speakerbench_blind
from tasks.curation.ingest import _find
from tasks.curation.rows import BadRow, RawRow
from tasks.errors import SettingsError
from tasks.gym.table import VERIFIERS

ROW: dict[str, object] = {
    "question": "Who speaks after the bell?",
    "choices": ["The man", "The woman", "The child", "Nobody"],
    "answer": "B",
    "video_path": "clips/1.mp4",
}


def row(**changes: object) -> RawRow:
    return RawRow("raw-1", "0" * 64, ROW | changes)


def test_a_run_with_the_clips_is_refused_by_name_before_its_file_is_read(tmp_path):
    source = Source(adapter="av_speakerbench", path="/nowhere", evaluation=True)
    with pytest.raises(
        SettingsError,
        match=r"curation\.sources\[2\]\.adapter is 'av_speakerbench': it asks about sound and video"
        r".*'av_speakerbench_blind'.*workflows/lab/recipes/av_speaker\.py",
    ):
        _find(2, source, tmp_path)


def test_the_questions_alone_are_choices_that_say_that_there_is_no_clip():
    (item,) = av_speakerbench_blind(row())
    problem = item.record

    assert "There is no clip" in problem.messages[0].content
    assert [1.0, 0.0] == [VERIFIERS["choice"](problem, text).score for text in ("B", "A")]


@pytest.mark.parametrize(
    "changes", [{"choices": ["a", "b", "c"]}, {"choices": ["a", "a", "b", "c"]}, {"answer": "E"}]
)
def test_a_row_without_four_different_choices_and_one_of_their_letters_is_refused(changes):
    with pytest.raises(BadRow, match="bad_gold"):
        av_speakerbench_blind(row(**changes))
