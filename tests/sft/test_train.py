import json

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.demonstrations import USES_FILE, Demonstration, DemonstrationUse, Parent
from data_schemas.prompts import Domain, Message, Role
from data_schemas.settings import SFTSettings
from tasks.engines.chat import load_tokenizer
from tasks.errors import DataError
from tasks.sft.dataset import batches, encode, split_validation
from tasks.sft.train import facts, fine_tune

SETTINGS = SFTSettings(epochs=3, learning_rate=3e-3, batch_tokens=256, entropy_prompts=8)


def demonstration(number, parent=Parent.REASONING):
    return Demonstration(
        id=f"d/{parent.value}/{number}",
        parent=parent,
        domain=Domain.MATHS,
        language="en",
        messages=(Message(role=Role.USER, content=f"{number}+1"),),
        response=f"<think>{number}</think>{number + 1}",
        source="s",
        source_row="0" * 64,
    )


@pytest.fixture
def curated(tmp_path):
    rows = [demonstration(n) for n in range(40)] + [demonstration(0, Parent.COMMERCE)]
    folder = tmp_path / "curated"
    folder.mkdir()
    write_table(folder / "demonstrations.parquet", Demonstration, rows)
    return folder


def run(curated, tiny_moe, folder):
    model, report = folder / "model", folder / "report"
    model.mkdir(parents=True)
    report.mkdir()
    epochs = list(fine_tune(SETTINGS, Parent.REASONING, curated, tiny_moe, model, report))
    return epochs, model, report


def test_loss_falls_and_the_chosen_epoch_is_what_is_written(curated, tiny_moe, tmp_path):
    epochs, model, report = run(curated, tiny_moe, tmp_path / "out")
    marked = json.loads((report / "epochs.json").read_text())
    losses = [epoch.train_loss for epoch in epochs]

    assert losses == sorted(losses, reverse=True)
    assert 1 == sum(epoch["chosen"] for epoch in marked)
    assert load_tokenizer(model).eos_token == "<|im_end|>"
    assert (
        facts(report)["chosen_epoch"]
        == json.loads((report / "report.json").read_text())["chosen_epoch"]
    )


def test_the_report_says_how_often_every_row_was_trained(curated, tiny_moe, tmp_path):
    _, _, report = run(curated, tiny_moe, tmp_path / "out")

    uses = read_table(report / USES_FILE, DemonstrationUse)

    training, validation = split_validation(40, SETTINGS.seed)
    chosen = facts(report)["chosen_epoch"]
    expected = dict.fromkeys(training, chosen) | dict.fromkeys(validation, 0)
    assert [(f"d/reasoning/{n}", expected[n]) for n in range(40)] == [
        (use.id, use.epochs) for use in uses
    ]


def test_the_same_seed_writes_the_same_model(curated, tiny_moe, tmp_path):
    _, first, _ = run(curated, tiny_moe, tmp_path / "a")
    _, second, _ = run(curated, tiny_moe, tmp_path / "b")

    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def test_loss_falls_on_the_response_and_its_end_only(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)
    ((tokens, mask),) = encode(tokenizer, [demonstration(7)])

    assert "<think>7</think>8<|im_end|>" == tokenizer.decode(tokens[mask])


def test_every_row_is_trained_once_per_epoch(tiny_moe):
    encoded = encode(load_tokenizer(tiny_moe), [demonstration(n) for n in range(30)])
    training, validation = split_validation(30, seed=0)
    lengths = [
        length
        for batch in batches(encoded, training, 128, seed=1)
        for length in batch.lengths_N.tolist()
    ]

    assert set(range(30)) == set(training) | set(validation)
    assert sorted(len(encoded[row][0]) for row in training) == sorted(lengths)


def test_a_parent_without_demonstrations_is_refused(curated, tiny_moe, tmp_path):
    with pytest.raises(DataError, match="1 demonstrations for the commerce parent"):
        list(fine_tune(SETTINGS, Parent.COMMERCE, curated, tiny_moe, tmp_path, tmp_path))
