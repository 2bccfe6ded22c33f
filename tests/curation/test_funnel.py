"""Five lines say what became of the rows."""

from pathlib import Path

import pytest

from data_schemas.settings import CurationSettings, Source
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.gym.table import score_batch

MAPPING = """
name: colours
domain: choice
language: "{locale}"
prompt: "Colour of: {title}?"
verifier: choice
answer: {correct: ["{colour}"]}
options: [red, blue]
"""


@pytest.mark.slow
def test_faults_that_the_sample_world_has_on_purpose_alarm_nobody(
    base_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
):
    for name in ("raw", "out"):
        (tmp_path / name).mkdir()
    settings = CurationSettings(
        sources=(Source(adapter="sample_world", limit=60),), held_out_per_suite=2
    )
    ingest(settings.sources, 0, tmp_path / "raw")

    curate(settings, tmp_path / "raw", base_model, tmp_path / "out", score=score_batch)

    said = capsys.readouterr().err.splitlines()
    assert ["kept", "left", "by", "by"] == [line.split()[0] for line in said]
    assert "wrong_demonstration" in said[1]
    assert [] == [one.getMessage() for one in caplog.records if "free" in one.getMessage()]


def test_five_lines_name_what_was_left_out_by_source_and_by_language(
    base_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    nouns = ["boot", "hat", "ring", "bag", "lamp", "coat", "sock", "cap", "belt", "shoe"]
    rows = [f"{noun} number {place},red,en" for place, noun in enumerate(nouns)]
    rows += [f"{noun} {'รองเท้าแตะ ' * length},blue,th" for noun, length in (("x", 1), ("y", 30))]
    rows += ["hat,green,en"]
    (tmp_path / "rows.csv").write_text("\n".join(["title,colour,locale", *rows]))
    (tmp_path / "m.yaml").write_text(MAPPING)
    for name in ("raw", "out"):
        (tmp_path / name).mkdir()
    source = Source(adapter=str(tmp_path / "m.yaml"), path=str(tmp_path / "rows.csv"))
    settings = CurationSettings(sources=(source,), held_out_per_suite=4, max_prompt_tokens=200)
    ingest([source], 0, tmp_path / "raw")

    curate(settings, tmp_path / "raw", base_model, tmp_path / "out", score=score_batch)

    said = capsys.readouterr().err.splitlines()
    assert [
        "  kept        11 of 13: 7 problems, 0 demonstrations, 4 held out",
        "  left out    2: unknown_option 1, prompt_too_long 1",
        "  by source   colours 11 of 13",
        "  by language en 10 of 10, th 1 of 2",
        "  lost more than 5%: colours 2 of 13, 1 as prompt_too_long. Raise "
        "curation.max_prompt_tokens. "
        "th 1 of 2, 1 as prompt_too_long. Raise curation.max_prompt_tokens.",
    ] == said
