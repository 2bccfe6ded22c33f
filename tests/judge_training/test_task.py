"""The workflow as a whole: in miniature, and the embedded default (slow)."""

import json
from pathlib import Path

import pytest

from data_schemas import presets
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.settings import SFTSettings
from tasks.judge_training.measurement import PICTURE_FILE, REPORT_FILE
from tasks.judge_training.report import JudgeReport
from tasks.rewards.judging.form import comparison_prompt
from tasks.rewards.judging.opening import open_judge
from workflows.judge import judge


def report_in(folder: str) -> JudgeReport:
    return JudgeReport.model_validate_json((Path(folder) / REPORT_FILE).read_bytes())


def test_comparisons_become_a_judge_and_a_report(tmp_path):
    answers = ("red cup", "a red cup", "cup")
    rows = [
        {
            "instruction": f"Name it {task}",
            "input": "",
            "response1": answers[first],
            "response2": answers[second],
            **dict.fromkeys(("annotator1", "annotator2", "annotator3"), vote),
        }
        for task in range(8)
        for first, second, vote in ((0, 1, 0), (1, 2, 1), (2, 0, 2))
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))

    found = judge(
        files=[str(file)],
        base_model="",
        settings=SFTSettings(epochs=2, learning_rate=3e-3, batch_tokens=2048),
        store=str(tmp_path / "runs"),
    )

    report = report_in(found.report.uri)
    assert (18, 6) == (report.training_pairs, report.held_out_pairs)
    assert 2 == report.groups + report.groups_without_verdict
    assert 12 == sum(sum(row.values()) for row in report.judge_confusion.values())
    assert (Path(found.report.uri) / PICTURE_FILE).is_file()
    settings = JudgeSettings(kind=JudgeKind.MODEL, address=found.judge.uri)
    (reply,) = open_judge(settings).ask([comparison_prompt("Name it 0", "cup", "red cup")])
    assert reply


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_default_learns_to_judge_beyond_any_one_label(tmp_path):
    found = judge(files=[], base_model="", settings=presets.JUDGE, store=str(tmp_path / "runs"))

    report = report_in(found.report.uri)
    assert report.above_majority.low > 0.2
    assert report.groups_without_verdict == 0
