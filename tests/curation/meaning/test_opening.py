"""An encoder that the settings name, in the whole stage."""

import json
from pathlib import Path

import numpy as np
import pytest

from data_schemas.arrow import read_table
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import PROBLEMS, QUARANTINE, Problem, QuarantinedItem
from data_schemas.settings import CurationSettings, Source
from tasks.curation.curate import curate
from tasks.curation.ingest import ingest
from tasks.errors import DataError
from tests.chat_endpoint import NOBODY, endpoint, send

CIRCLE = 360


def degrees(text: str) -> int:
    """The number in a text is an angle."""
    return int("".join(filter(str.isdigit, text.partition("angle")[2]))[:3])


def encode(handler, asked, _):
    """Two texts are near if their angles are."""
    angles = 2 * np.pi * np.array([degrees(text) for text in asked["input"]]) / CIRCLE
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist()
    listed = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
    send(handler, json.dumps({"data": listed}).encode())


def write(path: Path, texts: list[str]) -> None:
    rows = [{"question": text, "answer": "So.\n#### 7"} for text in texts]
    path.write_text("\n".join(map(json.dumps, rows)))


def curated(base_model: Path, folder: Path, encoder: JudgeSettings, *, exam: bool = True) -> Path:
    write(folder / "exam.jsonl", [f"Ben looks at angle {n:03}. Where?" for n in range(1, 111)])
    taught = [f"They turn the {name}, its angle: {n:03}!" for name, n in (("cat", 5), ("dog", 250))]
    write(folder / "taught.jsonl", taught)
    sources = [Source(adapter="gsm8k", path=str(folder / "taught.jsonl"))]
    if exam:
        path = str(folder / "exam.jsonl")
        sources.append(Source(adapter="gsm8k", path=path, evaluation=True))
    settings = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, encoder=encoder)
    for name in ("raw", "out"):
        (folder / name).mkdir()
    ingest(sources, 0, folder / "raw")
    curate(settings, folder / "raw", base_model, folder / "out")
    return folder / "out"


def test_what_means_the_same_as_a_benchmark_s_question_is_dropped(base_model, tmp_path):
    with endpoint(encode) as address:
        served = JudgeSettings(kind=JudgeKind.HTTP, address=address, model="angles")
        out = curated(base_model, tmp_path, served)

    dropped = [one for one in read_table(out / QUARANTINE, QuarantinedItem) if "taught" in one.key]
    assert {("contaminated", "gsm8k/taught-1")} == {(one.reason, one.key) for one in dropped}
    assert {"gsm8k/taught-2"} == {one.id for one in read_table(out / PROBLEMS, Problem)}
    assert "exam-5: 'Ben looks at angle 005. Where?', similarity 1" in dropped[0].detail


def test_an_encoder_that_does_not_answer_lets_nothing_pass(base_model, tmp_path):
    nobody = JudgeSettings(kind=JudgeKind.HTTP, address=NOBODY, model="angles", timeout_s=0.1)

    with pytest.raises(DataError, match=r"angles at .* encoded no text: ConnectionRefused"):
        curated(base_model, tmp_path, nobody)


def test_without_a_benchmark_rows_are_compared_with_each_other_only(base_model, tmp_path):
    nobody = JudgeSettings(kind=JudgeKind.HTTP, address=NOBODY, model="angles")

    # The two rows have different numbers, so that nothing has to be encoded.
    out = curated(base_model, tmp_path, nobody, exam=False)

    assert 1 == len(read_table(out / PROBLEMS, Problem))
