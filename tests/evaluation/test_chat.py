"""A conversation in the terminal with a real, tiny model."""

import io
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tasks.evaluation.chat import main


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_every_line_is_answered_until_the_input_ends(
    tiny_moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    options = ["--max_new_tokens", "4", "--temperature", "0"]
    typed(monkeypatch, "hello\n\nhello\n")
    main([str(tiny_moe), *options])
    twice = capsys.readouterr().out
    typed(monkeypatch, "hello\n")
    main([str(tiny_moe), *options])
    once = capsys.readouterr().out

    assert once
    assert twice.startswith(once)
    assert len(twice) > len(once)


def test_old_turns_are_forgotten_and_a_turn_that_is_too_long_is_refused(
    tiny_moe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    typed(monkeypatch, f"{'x' * 100}\n" * 4)
    main([str(tiny_moe), "--max_new_tokens", "4"])
    assert capsys.readouterr().out

    typed(monkeypatch, "x" * 400)
    with pytest.raises(SettingsError, match="more than the 252 that the model has positions for"):
        main([str(tiny_moe), "--max_new_tokens", "4"])


def test_a_model_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(SettingsError, match="nowhere"):
        main([str(tmp_path / "nowhere")])
    with pytest.raises(SettingsError, match=r"--store .* is no store"):
        main(["models:/mine@released", "--store", str(tmp_path)])
