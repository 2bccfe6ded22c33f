import json
from collections import Counter

import pytest
import torch

from data_schemas.arrow import read_table, write_table
from data_schemas.machine_settings import LoRASettings, TrainingEngines
from data_schemas.rows import (
    TRAINED_TOKENS,
    USES_FILE,
    Demonstration,
    DemonstrationUse,
    Domain,
    Message,
    Parent,
    Role,
)
from data_schemas.settings import SFTSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.lora.factors import is_adapted
from tasks.errors import DataError, EngineError
from tasks.formats.readiness import fit_mixture
from tasks.store.manifest import folder_manifest
from tasks.training.sft.dataset import encode, plan, split_validation, token_batch
from tasks.training.sft.measures import validation_losses
from tasks.training.sft.train import CrossEntropy, finish, prepare, updates
from tests.part_cores import cores, pids
from tests.records import filled

SETTINGS = SFTSettings(epochs=3, learning_rate=3e-3, batch_tokens=256, entropy_prompts=8)


def demonstration(number, parent=Parent.REASONING):
    return filled(
        Demonstration,
        id=f"d/{parent.value}/{number}",
        parent=parent,
        messages=(Message(role=Role.USER, content=f"{number}+1"),),
        response=f"<think>{number}</think>{number + 1}",
        source="s",
    )


@pytest.fixture
def curated(tmp_path):
    rows = [demonstration(n) for n in range(40)] + [demonstration(0, Parent.COMMERCE)]
    folder = tmp_path / "curated"
    folder.mkdir()
    write_table(folder / "demonstrations.parquet", Demonstration, rows)
    return folder


def run(curated, tiny_moe, folder, settings=SETTINGS):
    model, report = folder / "model", folder / "report"
    model.mkdir(parents=True)
    report.mkdir()
    course = prepare(settings, Parent.REASONING, curated, tiny_moe, folder / "state", "code-a")
    epochs = [update.epoch for update in updates(course) if update.epoch]
    facts = finish(course, model, report)
    assert len(epochs) == facts["epochs"]
    seen = course.batches[: chosen_in(report)]
    tokens = [
        int(course.encoded[row][1].sum()) for epoch in seen for batch in epoch for row in batch
    ]
    assert 0 < sum(tokens) == facts[TRAINED_TOKENS]
    assert (settings.engines.lora.rank > 0) == ("lora" in facts)
    return epochs, model, report


def chosen_in(report):
    return json.loads((report / "report.json").read_text())["chosen_epoch"]


def test_loss_falls_and_the_chosen_epoch_is_what_is_written(curated, tiny_moe, tmp_path):
    epochs, model, report = run(curated, tiny_moe, tmp_path / "out")
    marked = json.loads((report / "epochs.json").read_text())
    losses = [epoch.train_loss for epoch in epochs]

    assert losses == sorted(losses, reverse=True)
    assert 1 == sum(epoch["chosen"] for epoch in marked)
    assert load_tokenizer(model).eos_token == "<|im_end|>"
    assert [chosen_in(report)] == [epoch["epoch"] for epoch in marked if epoch["chosen"]]


def test_the_report_shows_samples_and_losses_by_domain(curated, tiny_moe, tmp_path):
    epochs, _, report = run(curated, tiny_moe, tmp_path / "out")
    _, validation = split_validation(40, SETTINGS.seed)

    for epoch, written in zip(
        epochs, json.loads((report / "epochs.json").read_text()), strict=True
    ):
        assert {Domain.MATHS: pytest.approx(epoch.val_loss)} == epoch.val_losses
        assert epoch.metrics()["val_loss/maths"] == epoch.val_losses[Domain.MATHS]
        assert {Domain.MATHS: pytest.approx(epoch.train_loss)} == epoch.train_losses
        assert epoch.metrics()["train_loss/maths"] == epoch.train_losses[Domain.MATHS]
        assert 0.0 == epoch.padding_share  # the trainer packs rows
        assert 0 == epoch.metrics()["skipped_updates"]  # it does not train in fp16
        shown = [f"d/reasoning/{row}" for row in validation]
        assert shown == [sample["demonstration"] for sample in written["samples"]]
        assert all(sample["response"] for sample in written["samples"])
        for row, sample in zip(validation, written["samples"], strict=True):
            told = demonstration(row)
            assert (f"{row}+1", told.response) == (sample["prompt"], sample["reference"])


def test_the_report_says_how_often_every_row_was_trained(curated, tiny_moe, tmp_path):
    _, _, report = run(curated, tiny_moe, tmp_path / "out")

    uses = read_table(report / USES_FILE, DemonstrationUse)

    training, validation = split_validation(40, SETTINGS.seed)
    chosen = chosen_in(report)
    expected = dict.fromkeys(training, chosen) | dict.fromkeys(validation, 0)
    assert [(f"d/reasoning/{n}", expected[n]) for n in range(40)] == [
        (use.id, use.epochs) for use in uses
    ]


@pytest.mark.slow
def test_the_same_seed_writes_the_same_model(curated, tiny_moe, tmp_path):
    _, first, _ = run(curated, tiny_moe, tmp_path / "a")
    _, second, _ = run(curated, tiny_moe, tmp_path / "b")

    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def test_loss_falls_on_the_response_and_its_end_only(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)
    ((tokens, mask),) = encode(tokenizer, [demonstration(7)])

    assert "<think>7</think>8<|im_end|>" == tokenizer.decode(tokens[mask])


def test_every_row_is_trained_once_per_epoch():
    lengths = [5 + row % 7 for row in range(30)]
    training, validation = split_validation(30, seed=0)

    planned = plan(lengths, training, 32, seed=1)

    assert set(range(30)) == set(training) | set(validation)
    assert sorted(training) == sorted(row for batch in planned for row in batch)
    assert all(len(batch) * max(lengths[row] for row in batch) <= 32 for batch in planned)
    assert planned != plan(lengths, training, 32, seed=2)


def test_the_training_loss_of_a_domain_is_that_of_its_rows(tiny_moe):
    domains = [Domain.MATHS, Domain.CODE, Domain.MATHS]
    rows = [
        demonstration(number).model_copy(update={"domain": domain})
        for number, domain in enumerate(domains)
    ]
    encoded = encode(load_tokenizer(tiny_moe), rows)
    batch = token_batch(encoded, [2, 1, 0], domains)
    count = int(batch.response_NT.sum())
    logprobs_NT = -torch.arange(batch.tokens_NT.numel()).reshape(batch.tokens_NT.shape) / 7
    nats_N = -(logprobs_NT * batch.response_NT).sum(1)

    loss, parts = CrossEntropy(count)(logprobs_NT, batch)

    assert parts["loss/code"] == pytest.approx(float(nats_N[1]) / count)
    assert parts["loss/maths"] == pytest.approx(float(nats_N[0] + nats_N[2]) / count)
    assert sum(parts.values()) == pytest.approx(float(loss))
    assert CrossEntropy(count)(logprobs_NT, token_batch(encoded, [2, 1, 0])) == (loss, {})


def test_the_validation_loss_of_a_domain_is_that_of_its_rows(tiny_moe):
    rows = [
        demonstration(number).model_copy(update={"domain": domain})
        for number, domain in enumerate((Domain.MATHS, Domain.CODE, Domain.MATHS, Domain.CODE))
    ]
    encoded = encode(load_tokenizer(tiny_moe), rows)
    trainer = TorchTrainer(tiny_moe)

    together = validation_losses(trainer, encoded, rows, range(4), 64)

    alone = {
        domain: validation_losses(trainer, encoded, rows, places, 64)
        for domain, places in ((Domain.MATHS, [0, 2]), (Domain.CODE, [1, 3]))
    }
    for domain, part in alone.items():
        assert {domain} == set(part.sums)
        assert part.total / part.tokens == pytest.approx(together.by_domain()[domain], rel=1e-5)
    assert together.total == pytest.approx(sum(part.total for part in alone.values()), rel=1e-5)
    assert together.tokens == int(token_batch(encoded, range(4)).response_NT.sum())


def test_a_parent_without_demonstrations_is_refused(curated, tiny_moe, tmp_path):
    with pytest.raises(DataError, match="1 demonstrations for commerce fine-tuning"):
        prepare(SETTINGS, Parent.COMMERCE, curated, tiny_moe, tmp_path / "state", "code-a")


def test_a_fine_tuning_with_fewer_epochs_than_asked_is_not_committed(curated, tiny_moe, tmp_path):
    course = prepare(SETTINGS, Parent.REASONING, curated, tiny_moe, tmp_path / "state", "code-a")
    next(update for update in updates(course) if update.epoch)

    with pytest.raises(EngineError, match="state holds 1 of 3 epochs, so nothing is committed"):
        finish(course, tmp_path / "model", tmp_path / "report")
    assert not (tmp_path / "model").exists()


def test_adapters_learn_too_and_the_chosen_epoch_is_a_merged_model(curated, tiny_moe, tmp_path):
    lora = TrainingEngines(lora=LoRASettings(rank=8))
    settings = SETTINGS.model_copy(update={"engines": lora, "learning_rate": 1e-2})
    epochs, model, report = run(curated, tiny_moe, tmp_path / "out", settings)
    losses = [epoch.train_loss for epoch in epochs]
    before, after = (dict(TorchTrainer(one).weights()) for one in (tiny_moe, model))

    assert losses == sorted(losses, reverse=True)
    assert json.loads((report / "report.json").read_text())["lora"].startswith(
        "rank 8, alpha 32, of q_proj"
    )
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(map(is_adapted, changed))


def test_a_mixture_trains_its_shares_and_says_how_often_every_row_was_trained(tiny_moe, tmp_path):
    domains = [Domain.MATHS] * 30 + [Domain.CODE] * 20 + [Domain.CHOICE] * 10
    rows = [
        demonstration(number).model_copy(update={"domain": domain})
        for number, domain in enumerate(domains)
    ]
    write_table(tmp_path / "demonstrations.parquet", Demonstration, rows)
    weights = {Domain.MATHS: 1.0, Domain.CODE: 3.0, Domain.SCIENCE: 5.0}
    settings = SETTINGS.model_copy(update={"domains": weights, "epochs": 1})

    course = prepare(settings, Parent.REASONING, tmp_path, tiny_moe, tmp_path / "state", "code-a")
    list(updates(course))
    for name in ("model", "report"):
        (tmp_path / name).mkdir()
    finish(course, tmp_path / "model", tmp_path / "report")

    times = Counter()
    for use in read_table(tmp_path / "report" / USES_FILE, DemonstrationUse):
        times[domains[int(use.id.rpartition("/")[2])]] += use.epochs
    training, _ = split_validation(60, settings.seed)
    whole = sum(domains[row] is not Domain.CHOICE for row in training)
    assert whole == times.total()
    assert round(0.25 * whole) == pytest.approx(times[Domain.MATHS], abs=1)
    assert 0 == times[Domain.CHOICE]
    assert {domains[row] for row in course.validation} <= {Domain.MATHS, Domain.CODE}


def test_a_parent_without_a_domain_of_the_mixture_learns_from_all_its_rows(caplog):
    weights = {Domain.MATHS: 2.0, Domain.CODE: 1.0}

    assert {Domain.CODE: 1.0} == fit_mixture(weights, [Domain.CODE], Parent.REASONING)
    assert {} == fit_mixture(weights, [Domain.CHOICE], Parent.COMMERCE)
    assert "sft of reasoning: no demonstrations of maths; trained without" in caplog.text
    assert "sft of commerce: no demonstrations of code, maths; trained on all" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_fine_tuning_leaves_the_same_bytes_on_any_number_of_cores(
    curated, tiny_moe, tmp_path, count
):
    settings = SETTINGS.model_copy(update={"batch_tokens": 1024, "epochs": 2})
    with cores(1):
        alone = run(curated, tiny_moe, tmp_path / "one", settings)
    with cores(count) as workers:
        shared = run(curated, tiny_moe, tmp_path / "more", settings)

        assert count == len(pids(workers))
    assert alone[0] == shared[0]
    for folder in ("model", "report"):
        one, more = (folder_manifest(tmp_path / name / folder) for name in ("one", "more"))
        assert one == more
