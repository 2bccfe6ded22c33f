"""A table becomes a mapping that reads it, and settings that run it."""

import json
from pathlib import Path

import pytest
import yaml

from data_schemas.rows import Domain
from tasks.curation.commands import init
from tasks.curation.init import guess_mapping
from tasks.errors import DataError, SettingsError
from tasks.formats.yaml_file import mapping_of

SHOP = Path(__file__).parents[2] / "workflows" / "examples" / "shop"


def drafted(folder: Path, name: str) -> dict:
    return yaml.safe_load((folder / name).read_text())


def test_three_tables_become_three_mappings_and_settings_and_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    tables = ["products.csv", "reviews.csv", "dialogues.jsonl"]
    for name in tables:
        (tmp_path / name).write_bytes((SHOP / name).read_bytes())
    monkeypatch.chdir(tmp_path)

    init([*tables, "--settings", "shop.yaml"])

    shown = capsys.readouterr().out
    for text in (
        "Which category is this: garden, kitchen, shoes or toys?",
        'answer    {"correct":["toys"],"others":[["garden"],["kitchen"],["shoes"]]}',
        "review: El color es otro; huele mal.",
        "response  <think></think>Open Account, then Addresses.",
        "eachprompt run --settings shop.yaml",
    ):
        assert text in shown
    for name in ("products", "reviews", "dialogues"):
        mapping = mapping_of(f"{name}.yaml")
        assert mapping == mapping_of(str(SHOP / f"{name}.yaml"))
    settings = drafted(tmp_path, "shop.yaml")
    assert ["products.csv", "reviews.csv", "dialogues.jsonl"] == [
        source["path"] for source in settings["curation"]["sources"]
    ]
    assert {"choice": 1.0} == settings["rl_one"]["domains"] == settings["rl_two"]["domains"]


def test_a_first_run_on_a_long_table_is_short_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    lines = [f"shoe {n},{'ab'[n % 2]}" for n in range(4100)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,label", *lines]))
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    settings = drafted(tmp_path, "my_settings.yaml")
    assert 4000 == settings["curation"]["sources"][0]["limit"]
    assert "reads the first 4,000 rows" in (tmp_path / "my_settings.yaml").read_text()
    assert "reads 4,000 rows of a long table" in capsys.readouterr().out


def test_a_label_that_a_few_rows_lack_is_a_label_and_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    lines = [f"shoe {n},{'ab'[n % 2] if n else ''}" for n in range(100)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,label", *lines]))
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    assert ("a", "b") == mapping_of("rows.yaml").options
    assert "label is empty in 1 of 100 rows; they are left out" in capsys.readouterr().out


def test_what_is_written_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "reviews.csv").write_bytes((SHOP / "reviews.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    init(["reviews.csv"])

    with pytest.raises(SettingsError, match=r"reviews\.yaml is there already"):
        init(["reviews.csv"])


def test_a_question_with_a_number_is_a_problem_of_maths():
    rows = [
        {"question": f"What is 1 + {n} + {n * n}?", "answer": str(1 + n + n * n)} for n in range(9)
    ]

    mapping = guess_mapping("sums", rows)

    assert (Domain.MATHS, "final_answer", {"value": "{answer}"}) == (
        mapping.domain,
        mapping.verifier,
        mapping.answer,
    )


def test_a_chat_with_a_system_message_and_shares_names_is_read():
    turns = [("system", "You sell shoes."), ("human", "Size?"), ("gpt", "41")]
    chat = [{"from": who, "value": text} for who, text in turns]

    mapping = guess_mapping("chats", [{"conversations": chat}])

    assert ("{conversations.0.value}", "{conversations.1.value}", "{conversations.2.value}") == (
        mapping.system,
        mapping.prompt,
        mapping.response,
    )


@pytest.mark.parametrize("braces", ["a{b", "a.b", "a[0]"])
def test_a_column_that_no_template_can_name_is_not_used(braces: str):
    rows = [{"text": f"row {n}", braces: "x", "label": "ab"[n % 2]} for n in range(9)]

    assert ("text", "label") == tuple(sorted(guess_mapping("t", rows).columns, reverse=True))


def test_a_table_without_an_answer_is_refused_with_its_columns(tmp_path: Path):
    rows = [{"title": f"shoe {n}", "price": n} for n in range(99)]
    with pytest.raises(DataError, match="has the columns title, price, and none of them is an ans"):
        guess_mapping("t", rows)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(SettingsError, match="none of them is an answer"):
        init([str(tmp_path / "rows.jsonl")])
    with pytest.raises(SettingsError, match="there is no file"):
        init([str(tmp_path / "none.csv")])
