"""Pretraining: packing by hand, the schedule by hand, and a run that repeats and learns."""

import pytest

from data_schemas.settings import PretrainSettings
from tasks.models.model_folder import check_model_folder
from tasks.training.foundation import pretraining
from tasks.training.foundation.pretraining import packed_rows, pretrain, rate_share
from tasks.training.foundation.tokenizer import PAD, token_id, train_tokenizer


def test_rows_hold_whole_documents_and_padding_at_the_end():
    tokenizer = train_tokenizer(["1"], 272, 64)
    pad = token_id(tokenizer, PAD)
    digits = [tokenizer.encode(digit)[0] for digit in "123"]
    rows = packed_rows(iter(["11", "222", "3", "333333"]), tokenizer, 4)

    one, two, three = digits
    assert [one, one, pad, pad] == next(rows)
    # The last document is longer than a row: it is left out, and the row before it stays open.
    assert [] == list(rows)
    rows = packed_rows(iter(["11", "222", "3", "1"]), tokenizer, 4)
    next(rows)
    assert [two, two, two, three] == next(rows)


def test_the_learning_rate_rises_then_falls_to_a_tenth():
    settings = PretrainSettings(steps=200)  # of which 6 warm up

    assert 1 / 6 == pytest.approx(rate_share(0, settings))
    assert 1.0 == pytest.approx(rate_share(6, settings))
    assert 0.55 == pytest.approx(rate_share(103, settings))
    assert 0.1 == pytest.approx(rate_share(200, settings))


@pytest.mark.slow
def test_a_short_run_repeats_bit_for_bit_and_learns(tmp_path, monkeypatch):
    monkeypatch.setattr(pretraining, "BATCH_ROWS", 4)
    monkeypatch.setattr(pretraining, "ROW_TOKENS", 64)
    settings = PretrainSettings(steps=12, vocabulary=300)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = pretrain(settings, tmp_path / "first")
    second = pretrain(settings, tmp_path / "second")

    assert first == second
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("first", "second")]
    assert weights[0] == weights[1]
    check_model_folder(tmp_path / "first")
    # ln 300 = 5.70 nats is what an untrained model scores; the mean over 12 steps lies below.
    assert float(first["final_loss_nats"]) < 5.7
