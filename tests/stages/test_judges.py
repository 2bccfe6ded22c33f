"""The workflow as a whole: in miniature, and the embedded default (slow)."""

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from data_schemas import presets
from data_schemas.arrow import read_table
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Demonstration
from data_schemas.settings import SFTSettings
from data_schemas.study import TrainingPairs
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import open_judge
from tasks.errors import SettingsError
from tasks.gym.judging.comparison_prompt import comparison_prompt
from tasks.models.model_folder import SHIPPED
from tasks.provenance.lineage.statements import load_statement
from tasks.stages.foundation import ingest_base
from tasks.stages.judges import collect_comparisons, vary_comparisons
from tasks.stages.opening import open_store
from tasks.training.judge.changes import changed_pairs
from tasks.training.judge.collection import (
    DEMONSTRATIONS,
    LEFT_OUT,
    both_orders,
    read_collection,
)
from tasks.training.judge.measurement import PICTURE_FILE, REPORT_FILE
from tasks.training.judge.report import JudgeReport
from workflows.judge import judge


def report_in(folder: str) -> JudgeReport:
    return JudgeReport.model_validate_json((Path(folder) / REPORT_FILE).read_bytes())


def train(base_model: str, folder: Path, num_tasks: int, epochs: int):
    """Train a judge; return it and the store of its run."""
    answers = ("red cup", "a red cup", "cup")
    rows = [
        {
            "instruction": f"Name it {task}",
            "input": "",
            "response1": answers[first],
            "response2": answers[second],
            **dict.fromkeys(("annotator1", "annotator2", "annotator3"), vote),
        }
        for task in range(num_tasks)
        for first, second, vote in ((0, 1, 0), (1, 2, 1), (2, 0, 2))
    ]
    file = folder / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    store = str(folder / "runs")
    settings = SFTSettings(epochs=epochs, learning_rate=3e-3, batch_tokens=2048)
    return judge(files=[str(file)], base_model=base_model, settings=settings, store=store), store


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_files_are_read_before_the_base_is_copied(tmp_path, content):
    file = tmp_path / "rows.jsonl"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match="--files"):
        judge(files=[str(file)], store=str(tmp_path / "runs"))
    assert [] == [*(tmp_path / "runs").glob("objects/*")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train("", tmp_path_factory.mktemp("judge"), num_tasks=8, epochs=1)


@pytest.fixture
def dense_base(tmp_path):
    """A random Qwen2 with the tokenizer of the shipped base."""
    folder = tmp_path / "base"
    tokenizer = load_tokenizer(SHIPPED)
    tokenizer.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The sample comparisons, and the store and execution of their run."""
    run, execution = open_store(store=str(tmp_path_factory.mktemp("runs")), workflow="study")
    base = ingest_base(path="", name="judge_base", store=run, execution=execution)
    comparisons = collect_comparisons(
        settings=presets.JUDGE, files=[], base=base, store=run, execution=execution
    ).comparisons
    return comparisons, run, execution


def test_comparisons_become_a_judge_and_a_report(trained):
    found, _ = trained

    report = report_in(found.report.uri)
    assert (18, 6) == (report.training_pairs, report.held_out_pairs)
    assert 2 == report.groups + report.groups_without_verdict
    assert 12 == sum(sum(row.values()) for row in report.judge_confusion.values())
    assert (Path(found.report.uri) / PICTURE_FILE).is_file()
    settings = JudgeSettings(kind=JudgeKind.MODEL, address=found.judge.uri)
    (reply,) = open_judge(settings).ask([comparison_prompt("Name it 0", "cup", "red cup")])
    assert reply


@pytest.mark.slow
def test_a_dense_base_becomes_a_judge(dense_base, tmp_path):
    found, store = train(str(dense_base), tmp_path, num_tasks=4, epochs=2)

    report = report_in(found.report.uri)
    assert (9, 3) == (report.training_pairs, report.held_out_pairs)
    assert 6 == sum(sum(row.values()) for row in report.judge_confusion.values())
    facts = load_statement(store, found.judge.statement).facts
    assert facts["val_loss"] < 6.0 < math.log(len(load_tokenizer(dense_base)))
    settings = JudgeSettings(kind=JudgeKind.MODEL, address=found.judge.uri)
    (reply,) = open_judge(settings).ask([comparison_prompt("Name it 0", "cup", "red cup")])
    assert reply


@pytest.mark.slow
@pytest.mark.parametrize("changes", [TrainingPairs(tie_share=0.6), TrainingPairs(noise=0.3)])
def test_changes_are_of_what_is_taught_and_keep_what_is_held_out(collected, changes):
    comparisons, run, execution = collected

    varied = vary_comparisons(
        settings=presets.JUDGE,
        training=changes,
        comparisons=comparisons,
        store=run,
        execution=execution,
    )

    before, held_out = read_collection(Path(comparisons.uri))
    after, still_held_out = read_collection(Path(varied.uri))
    assert held_out == still_held_out
    assert changed_pairs(before, changes, presets.JUDGE.seed) == after != before
    taught = read_table(Path(varied.uri) / DEMONSTRATIONS, Demonstration)
    assert [row for pair in after for row in both_orders(pair)] == taught
    left_out = json.loads((Path(varied.uri) / LEFT_OUT).read_bytes())
    assert len(before) - len(after) == left_out["changes"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_default_learns_to_judge_beyond_any_one_label_and_inverts_less_than_the_head(tmp_path):
    """Both by intervals over tasks."""
    found = judge(files=[], base_model="", settings=presets.JUDGE, store=str(tmp_path / "runs"))

    report = report_in(found.report.uri)
    inversion = next(one for one in report.measures if one.name == "advantage inversion")
    # Taught labels alone it reached 0.10, and 0.09 with a tenth of them wrong: lower ends of its
    # accuracy in docs/evidence/judge.json, above the third that one label has.
    assert report.above_majority.low > 0.12
    assert inversion.difference.high < 0
    # The tiny model repeats a word in one or two of a thousand replies, which are cut: wrong
    # verdicts above, and no verdict on a group. The rest it writes as it was taught.
    unread = sum(row["none"] for row in report.judge_confusion.values())
    assert unread / (2 * report.held_out_pairs) < 0.01
