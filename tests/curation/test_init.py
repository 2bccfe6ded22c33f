"""A table becomes a mapping that reads it, and settings that run it."""

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from data_schemas.rows import Demonstration, Domain, Problem
from tasks.curation.adapters.general import compared
from tasks.curation.adapters.mapped import read_mapped
from tasks.curation.commands import init
from tasks.curation.guessing.mapping import guess_mapping
from tasks.curation.init import draft
from tasks.curation.rows import BadRow, RawRow
from tasks.errors import DataError, SettingsError
from tasks.formats.mapping_files import mapping_of

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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["reviews.csv", "--settings", "reviews.yaml"],
            r"reviews\.yaml would be the mapping of reviews\.csv and the settings; name another",
        ),
        (
            ["reviews.csv", "reviews.csv"],
            r"reviews\.yaml would be the mapping of reviews\.csv and the mapping of reviews\.csv",
        ),
        (
            ["reviews.csv", "Reviews.2026.csv"],
            r"reviews\.yaml would be the mapping of reviews\.csv and the mapping of Reviews\.2026",
        ),
    ],
)
def test_no_file_is_written_twice(words, message, tmp_path, monkeypatch):
    for name in ("reviews.csv", "Reviews.2026.csv"):
        (tmp_path / name).write_bytes((SHOP / "reviews.csv").read_bytes())
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsError, match=message):
        init(words)
    assert not [*tmp_path.glob("*.yaml")]


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

    mapping = guess_mapping("sums", rows).mapping

    assert (Domain.MATHS, "final_answer", {"value": "{answer}"}) == (
        mapping.domain,
        mapping.verifier,
        mapping.answer,
    )


def test_a_chat_with_a_system_message_and_shares_names_is_read_whole():
    turns = [("system", "You sell shoes."), ("human", "Size?"), ("gpt", "41")]
    chat = [{"from": who, "value": text} for who, text in turns]

    mapping = guess_mapping("chats", [{"conversations": chat}]).mapping

    assert ("{conversations}", "{conversations}") == (mapping.prompt, mapping.response)


def test_a_column_that_no_template_can_name_is_not_used():
    rows = [{"text": f"row {n}", "a{b": "x y"[n % 3], "label": "ab"[n % 2]} for n in range(9)]

    assert ("label", "text") == guess_mapping("t", rows).mapping.columns


def test_a_table_without_an_answer_is_refused_with_its_columns(tmp_path: Path):
    rows = [{"title": f"shoe {n}", "price": n} for n in range(99)]
    with pytest.raises(DataError, match="has the columns title, price, and none of them is an ans"):
        guess_mapping("t", rows)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(SettingsError, match="none of them is an answer"):
        init([str(tmp_path / "rows.jsonl")])
    with pytest.raises(SettingsError, match="there is no file"):
        init([str(tmp_path / "none.csv")])


def test_a_missing_value_is_no_label_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    missing = ["NULL", "N/A", "nan", "None", "", "#N/A", "NaT", "#REF!", "-1.#IND", "(blank)"]
    lines = [f"steel pan {n},{'kitchen' if n % 2 else 'garden'}" for n in range(60)]
    lines += [f"oak tray {n},{word}" for n, word in enumerate(missing)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,category", *lines]))
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    assert ("garden", "kitchen") == mapping_of("rows.yaml").options
    assert "category is empty in 10 of 70 rows; they are left out" in capsys.readouterr().out


def test_a_label_that_may_be_none_is_named(tmp_path: Path):
    lines = [f"steel pan {n},{('kitchen', 'garden', 'Unknown')[n % 3]}" for n in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,category", *lines]))

    remarks = draft(tmp_path / "rows.csv").remarks

    assert "Unknown (20 rows) may stand for no label" in " ".join(remarks)


@pytest.mark.parametrize("word", ["N/A", "NULL", "xx", "en, id"])
def test_a_row_whose_language_is_none_is_counted_as_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str
):
    tags = [word, *["en", "id"] * 30]
    lines = [
        f'steel pan {n},{"kitchen" if n % 3 else "garden"},"{tag}"' for n, tag in enumerate(tags)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["title,category,locale", *lines]))
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    assert "{locale}" == mapping_of("rows.yaml").language
    assert "they are left out" in capsys.readouterr().out


def test_answers_and_questions_without_a_value_are_counted(tmp_path: Path):
    words = ["", "NULL", "#N/A"]
    lines = [f"What does pan {n} cost?,It costs {n} dollars or more." for n in range(50)]
    lines += [f"What does tray {n} cost?,{word}" for n, word in enumerate(words)]
    (tmp_path / "rows.csv").write_text("\n".join(["question,answer", *lines, "nan,It is red."]))

    remarks = draft(tmp_path / "rows.csv").remarks

    assert "answer is empty in 3 of 54 rows; they are left out." in remarks
    assert "question is empty in 1 of 54 rows; they are left out." in remarks


def test_a_text_that_is_blank_in_some_rows_is_asked_about_where_there_is_no_other(tmp_path: Path):
    titles = [f"steel pan number {n}" if n % 6 else "" for n in range(60)]
    lines = [f"{title},{'kitchen' if n % 4 else 'garden'}" for n, title in enumerate(titles)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,category", *lines]))

    drafted = draft(tmp_path / "rows.csv")

    assert drafted.mapping is not None
    assert "title: {title}" in drafted.mapping.prompt
    assert "title is empty in 10 of 60 rows; they are left out." in drafted.remarks


def test_an_index_that_was_written_again_is_nothing_to_group_by(tmp_path: Path):
    lines = [f"{n},steel pan {n},{'kitchen' if n % 3 else 'garden'}" for n in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["Unnamed: 0, title ,category", *lines]))

    mapping = draft(tmp_path / "rows.csv").mapping

    assert mapping is not None
    assert {} == mapping.facets
    assert "Which category is this: garden or kitchen?\ntitle: { title }" == mapping.prompt


def test_a_label_is_found_by_evidence_and_the_runner_up_is_named():
    categories = ("Sepatu", "Tas", "Dapur")
    rows = [
        {
            "Nama": f"Sandal kulit pria nomor {n}",
            "Kategori": categories[n % 3],
            "Rating": str(round(3 + n % 21 / 10, 1)),
            "Merek": ("Ardi", "Buana")[n % 2],
        }
        for n in range(210)
    ]

    guess = guess_mapping("produk", rows)

    assert "Kategori" == guess.label
    assert "next comes" in guess.remarks[0]
    assert guess.mapping.prompt.startswith("Pilih satu Kategori: Dapur, Sepatu atau Tas.")
    assert "Merek" == guess_mapping("produk", rows, label="Merek").label
    with pytest.raises(DataError, match="has no column 'Merk'; it has Nama, Kategori"):
        guess_mapping("produk", rows, label="Merk")


def test_two_columns_of_sentences_are_a_dialogue_and_the_language_is_no_label():
    questions = ("Onde está o meu pedido {n}?", "Como faço para devolver o item {n}?")
    rows = [
        {
            "cliente": questions[n % 2].format(n=n),
            "atendente": f"O seu pedido {n} chega na segunda-feira.",
            "idioma": ("pt_BR", "es")[n % 9 == 0],
        }
        for n in range(60)
    ]

    mapping = guess_mapping("chat", rows).mapping

    assert ("{cliente}", "{atendente}", "{idioma}") == (
        mapping.prompt,
        mapping.response,
        mapping.language,
    )


def test_names_of_languages_become_tags_and_countries_do_not():
    rows = [
        {"review": f"It fits well {n}", "sentiment": "ab"[n % 2], "language": "Inggris"}
        for n in range(30)
    ]
    assert {"Inggris": "en"} == guess_mapping("t", rows).mapping.values["language"]

    abroad = [row | {"language": ("VN", "MX")[n % 2]} for n, row in enumerate(rows)]
    guess = guess_mapping("t", abroad)
    assert "en" == guess.mapping.language
    assert "language names no languages, and is not used as such." in guess.remarks


def test_decimals_that_the_language_does_not_write_are_asked_about():
    rows = [{"question": f"How much is box {n}?", "answer": f"{n}.{100 + n},50"} for n in range(9)]

    with pytest.raises(DataError, match="9 of 9 values of answer have a decimal comma, as"):
        guess_mapping("t", rows)
    assert "pt-BR" == guess_mapping("t", rows, language="pt_BR").mapping.language


def test_booleans_are_labels(tmp_path: Path):
    rows = [{"title": f"steel pan {n}", "label": n % 2 == 0} for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))

    one = draft(tmp_path / "rows.jsonl")

    assert one.mapping
    assert ("false", "true") == one.mapping.options
    assert 30 == len(list(one.items()))


def test_quotes_and_case_make_no_other_label():
    spellings = ("Shoes", '"Shoes"', "shoes", "Bags")
    rows = [{"title": f"red thing {n}", "category": spellings[n % 4]} for n in range(40)]

    mapping = guess_mapping("t", rows).mapping

    assert 2 == len(mapping.options)
    assert {"Bags"} < {*mapping.options}
    assert {*spellings} == {*mapping.values["category"]}


def test_letters_of_other_code_points_make_no_other_label():
    spellings = ("giày dép", "gia\u0300y de\u0301p", "giày dép\u200b", "\uff34úi", "túi")
    rows = [{"title": f"red thing {n}", "category": spellings[n % 5]} for n in range(50)]

    mapping = guess_mapping("t", rows).mapping

    assert 2 == len(mapping.options)
    assert {*spellings} == {*mapping.values["category"]}


@pytest.mark.parametrize("labels", [("1e3", "2e3"), ("0o17", "0x1F"), ("yes", "no"), ("1:30", "2")])
def test_a_label_that_yaml_takes_for_a_number_is_read_back_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: tuple[str, str]
):
    lines = [f"steel pan {n},{labels[n % 2]}" for n in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["title,category", *lines]))
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    assert {*labels} == {*mapping_of("rows.yaml").options}


def test_identifiers_are_texts_and_not_numbers():
    rows = [
        {"question": f"What is the SKU of box {n}?", "answer": f"{n:05d}"} for n in range(1, 30)
    ]

    mapping = guess_mapping("t", rows).mapping

    assert ("", "{answer}") == (mapping.verifier, mapping.response)


def test_a_question_within_a_list_is_found():
    rows = [
        {
            "prompts": [{"question": f"Where is my order number {n}?", "hint": None}],
            "replies": {"answer": f"It arrives on Monday, order {n}."},
        }
        for n in range(9)
    ]

    mapping = guess_mapping("t", rows).mapping

    assert ("{prompts.0.question}", "{replies.answer}") == (mapping.prompt, mapping.response)


def test_of_many_columns_the_best_are_asked_about_and_few_are_listed():
    many = {f"attribute {n}": f"value {n}" for n in range(300)}
    rows = [{"title": f"red boot {n}", "category": "ab"[n % 2]} | many for n in range(30)]
    rows = [row | {f"attribute {n % 300}": f"other {n}"} for n, row in enumerate(rows)]

    assert 8 >= len(guess_mapping("t", rows).mapping.columns)
    with pytest.raises(DataError) as refused:
        guess_mapping("t", [many | {"x": str(n)} for n in range(99)])
    assert "and 293 more" in str(refused.value)
    assert 400 > len(str(refused.value))


def test_a_column_that_gives_the_label_away_is_not_in_the_prompt():
    rows = [
        {"category_code": n % 3, "title": f"red boot {n}", "category": "abc"[n % 3]}
        for n in range(30)
    ]

    guess = guess_mapping("t", rows)

    assert "category_code" not in guess.mapping.columns
    assert "Not in the prompt, as it gives the label away: category_code." in guess.remarks


def test_a_layout_that_an_adapter_reads_is_read_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    rows = [{"question": f"Add {n} and 2.", "answer": f"{n} + 2\n#### {n + 2}"} for n in range(30)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.chdir(tmp_path)

    init(["train.jsonl", "--settings", "soal baru.yaml"])

    settings = drafted(tmp_path, "soal baru.yaml")
    assert [{"adapter": "gsm8k", "path": "train.jsonl"}] == settings["curation"]["sources"]
    assert {"maths": 1.0} == settings["rl_one"]["domains"]
    assert "soal-baru" == settings["release"]["name"]
    shown = capsys.readouterr().out
    assert "the layout of gsm8k, which is read without a mapping" in shown
    assert "eachprompt curate --settings 'soal baru.yaml'" in shown
    assert not (tmp_path / "train.yaml").exists()


def test_rows_that_cannot_be_read_are_not_said_to_be_absent(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text('{"a": 1}x\n{"a": 2}x\n')

    with pytest.raises(SettingsError, match=r"none of 2 rows of .*not_json"):
        draft(tmp_path / "rows.jsonl")


def test_whose_tables_they_are_is_written_where_their_rows_are_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = "".join(f"shoe {n},ann{n % 3},{'ab'[n % 2]}\n" for n in range(40))
    (tmp_path / "rows.csv").write_text(f"title,annotator,label\n{rows}")
    layout = {"question": "2 + 2?", "answer": "#### 4"}
    (tmp_path / "sums.jsonl").write_text(json.dumps(layout) + "\n")
    monkeypatch.chdir(tmp_path)

    init(["rows.csv", "sums.jsonl", "--licence", "CC-BY-4.0", "--responsible", "shop team"])

    mapping = mapping_of("rows.yaml")
    assert mapping is not None
    assert ("CC-BY-4.0", "shop team") == (mapping.licence, mapping.responsible)
    # Who labelled is kept, and neither asked about nor told to the model.
    assert {"annotator": "{annotator}"} == mapping.facets
    assert "annotator" not in mapping.prompt
    described, sums = drafted(tmp_path, "my_settings.yaml")["curation"]["sources"]
    assert {"adapter": "rows.yaml", "path": "rows.csv"} == described
    assert ("CC-BY-4.0", "shop team") == (sums["licence"], sums["responsible"])


def test_a_draft_without_a_licence_says_that_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = "".join(f"shoe {n},{'ab'[n % 2]}\n" for n in range(40))
    (tmp_path / "rows.csv").write_text(f"title,label\n{rows}")
    monkeypatch.chdir(tmp_path)

    init(["rows.csv"])

    assert (
        "# licence and responsible say whose rows these are" in (tmp_path / "rows.yaml").read_text()
    )


TITLES = [{"sku": f"{n:03d}", "title": f"shoe {n}", "category": "ab"[n % 2]} for n in range(40)]


def written(path: Path, header: Sequence[str], rows: Sequence[dict[str, str]]) -> Path:
    lines = [",".join(header), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("header", "before", "message"),
    [
        (["040", "shoe 40", "a"], [], "its first line is a row, as 'a' is a value below"),
        (["Mass upload", "v2", "notes"], [[*TITLES[0]]], "line 2 has names of columns, as 'sku'"),
    ],
)
def test_a_header_that_is_not_the_first_line_is_missed(tmp_path: Path, header, before, message):
    notes = [dict(zip(TITLES[0], names, strict=True)) for names in before]
    path = written(tmp_path / "feed.csv", header, [*notes, *TITLES])

    with pytest.raises(SettingsError, match=message):
        draft(path)


def test_two_answers_of_one_task_are_no_demonstrations(tmp_path: Path):
    rows = [{"prompt": f"Where is {n}?", "chosen": "Here.", "rejected": "No."} for n in range(9)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    with pytest.raises(SettingsError, match=r"chosen and rejected.*train a judge"):
        draft(path)


def test_what_an_instruction_is_about_is_asked_with_it_and_what_is_unused_is_named():
    rows = [
        {
            "instruction": f"Write a title of {n} words.",
            "input": "red shoe" if n % 2 else "",
            "output": f"A shoe of {n} colours",
            "explanation": f"as it was asked {n} times",
        }
        for n in range(40)
    ]

    guess = guess_mapping("tasks", rows)

    assert "{instruction}\n{input}" == guess.mapping.prompt
    assert "Not used: explanation." in guess.remarks


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Quanto custam {n} caixas com o frete?", "R$ 1.2{n:02d},50"),
        ("How much are {n} boxes with delivery?", "$ 1,2{n:02d}.50"),
        ("What share of the boxes are {n} of them?", "{n} %"),
        ("What share of the boxes is one of {n}?", "1/{n}"),
    ],
)
def test_amounts_and_shares_are_numbers(question: str, answer: str):
    rows = [{"question": question.format(n=n), "answer": answer.format(n=n)} for n in range(10, 50)]

    assert Domain.MATHS is guess_mapping("sums", rows).mapping.domain


def test_numbers_are_the_labels_that_a_parquet_file_says_they_are(tmp_path: Path):
    names = {"label": {"_type": "ClassLabel", "names": ["bad", "good"]}}
    about = json.dumps({"info": {"features": names | {"text": {"_type": "Value"}}}})
    rows = [{"text": f"It fits, number {n}", "label": n % 2} for n in range(40)]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": about})
    pq.write_table(table, tmp_path / "reviews.parquet")

    one = draft(tmp_path / "reviews.parquet")

    assert one.mapping is not None
    assert ("bad", "good") == one.mapping.options
    records = [items[0].record for items in islice(one.items(), 2)]
    assert ['"correct":["bad"]', '"correct":["good"]'] == [
        record.answer[1:].partition(",")[0] for record in records if isinstance(record, Problem)
    ]


def test_answers_that_are_numbers_with_words_are_not_checked_and_that_is_said():
    rows = [{"question": f"How heavy are {n} boxes?", "answer": f"{3 * n} kg"} for n in range(40)]

    guess = guess_mapping("weights", rows)

    assert Domain.GENERAL is guess.mapping.domain
    assert "Many values of answer are numbers" in " ".join(guess.remarks)


def test_a_system_prompt_stays_one_and_a_gold_by_its_short_names_is_the_answer():
    rows = [
        {
            "system_prompt": f"Answer briefly, in style {n % 3}.",
            "prompt": f"Which country makes brand {n}?",
            "gt": f"Country {n} of the north",
            "task": "ABC"[n % 3],
        }
        for n in range(60)
    ]

    mapping = guess_mapping("brands", rows).mapping

    assert ("{system_prompt}", "{prompt}", "{gt}") == (
        mapping.system, mapping.prompt, mapping.response,
    )  # fmt: skip


@pytest.mark.parametrize(
    "written", [lambda cells: json.dumps(cells), lambda cells: str(cells)], ids=["json", "python"]
)
def test_options_that_a_cell_writes_as_a_list_are_options(tmp_path: Path, written):
    rows = [
        (f"What goes with bag {n}?", written([f"Ann's strap {n}", "a lid", "rope"]), n % 3)
        for n in range(30)
    ]
    table = tmp_path / "rows.csv"
    lines = [f'"{ask}","{cell.replace(chr(34), chr(34) * 2)}",{key}' for ask, cell, key in rows]
    table.write_text("\n".join(["question,choices,answer", *lines]) + "\n")

    first, *_ = next(draft(table).items())

    assert "A: Ann's strap 0\nB: a lid\nC: rope" in first.record.prompt_text
    assert {"correct": ["A"], "others": [["B"], ["C"]]} == json.loads(first.record.answer)


def test_a_chat_of_parts_is_drafted_and_its_language_is_that_of_what_is_asked(tmp_path: Path):
    def turn(role: str, text: str) -> dict:
        return {"role": role, "content": [{"type": "text", "text": text, "image_url": None}]}

    rows = [
        {
            "messages": [
                turn("user", f"Onde está o meu pedido número {n}?"),
                turn("assistant", "Ali."),
            ]
        }
        for n in range(40)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "chats.parquet")

    one = draft(tmp_path / "chats.parquet")

    assert one.mapping is not None
    assert ("{messages}", "pt") == (one.mapping.response, one.mapping.language)
    assert 40 == len(list(one.items()))


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"reward_model": {"style": "rule", "ground_truth": "{n}"}}, "reward_model.ground_truth"),
        ({"solution": "{n}"}, "solution"),
        ({"reference_answer": {"value": "{n}"}}, "reference_answer.value"),
    ],
)
def test_a_chat_that_ends_before_the_response_is_a_question(fields, answer):
    turns = [
        {"role": "system", "content": "Think."},
        {"role": "user", "content": "How many pens are there in {n} boxes of one?"},
    ]
    texts = [json.dumps({"prompt": turns} | fields).replace("{n}", str(n)) for n in range(10, 40)]
    rows = [json.loads(text) for text in texts]

    mapping = guess_mapping("sums", rows).mapping

    assert ("{prompt}", "en", "final_answer") == (
        mapping.prompt,
        mapping.language,
        mapping.verifier,
    )
    assert {"value": f"{{{answer}}}"} == mapping.answer
    problem = read_mapped(mapping, RawRow("s-1", "0" * 64, rows[0]))[0].record
    assert ["system", "user"] == [turn.role.value for turn in problem.messages]
    assert '{"value":"10"}' == problem.answer


def test_a_completion_of_turns_is_the_response_to_a_prompt_of_turns():
    rows = [
        {
            "prompt": [{"role": "user", "content": f"What is in box {n} of the shop?"}],
            "completion": [{"role": "assistant", "content": f"There are {n} pens in it."}],
        }
        for n in range(30)
    ]

    mapping = guess_mapping("pairs", rows).mapping

    assert ("{prompt}", "{completion.0.content}") == (mapping.prompt, mapping.response)
    shown = read_mapped(mapping, RawRow("p-1", "0" * 64, rows[7]))[0].record
    assert "<think></think>There are 7 pens in it." == shown.response


def test_what_verifies_an_answer_is_its_gold_and_what_works_it_out_the_response():
    golds = ["-{n}", "\\frac{{{n}}}{{2}}", "{n}\\pi"]
    rows = [
        {
            "problem": f"Which number is at place {n} of the list that we have made?",
            "solution": f"We look at place {n} of the list. It says ${golds[n % 3].format(n=n)}$.",
            "answer": golds[n % 3].format(n=n),
        }
        for n in range(60)
    ]

    mapping = guess_mapping("maths", rows).mapping

    assert ("final_answer", "{solution}") == (mapping.verifier, mapping.response)
    assert {"value": "{answer}"} == mapping.answer
    spans = [
        {"question": f"What is in box {n}?", "answers": {"answer_start": [n], "text": [f"pen {n}"]}}
        for n in range(60)
    ]
    assert "{answers.text.0}" == guess_mapping("spans", spans).mapping.response


def test_a_number_of_no_class_is_no_label():
    rows = [{"text": f"The shoe number {n} is red.", "label": n % 3 - 1} for n in range(60)]

    guess = guess_mapping("views", rows, classes={"label": ["bad", "good"]})

    assert ("bad", "good") == guess.mapping.options
    assert {"label": {"0": "bad", "1": "good"}} == guess.mapping.values
    assert "-1 (20 rows) is no class; they are left out." in guess.remarks
    unsaid = guess_mapping("views", [row | {"label": row["label"] * 2} for row in rows[1:]])
    assert not any("may stand for no label" in one for one in unsaid.remarks)
    counted = [row | {"label": n % 4 - 1} for n, row in enumerate(rows)]
    assert "-1 (15 rows) may stand for no label" in guess_mapping("views", counted).remarks[1]


def test_rows_that_become_nothing_are_counted_with_their_reason(tmp_path: Path):
    path = tmp_path / "answers.jsonl"
    rows = [
        {"question": f"Where is box {n}?", "answers": [f"Here, {n}."] * (n % 3)} for n in range(9)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    assert "3 of the first 9 rows are left out: missing_column, 'answers.0' is" in str(
        draft(path, language="en").remarks
    )


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", (True, False)),
        ("kto_tag", ("true", "false")),
        ("is_correct", (1, 0)),
        ("ruling", ("accept", "reject")),
    ],
)
def test_answers_of_which_a_column_says_that_some_are_wrong_are_not_learned(name, values):
    turns = [{"role": "user", "content": "Is it dry?"}, {"role": "assistant", "content": "It is."}]
    pairs = [
        {"prompt": f"How do I clean shoe {n}?", "completion": f"With soap, {n} times."}
        | {name: values[n % 2]}
        for n in range(30)
    ]
    chats = [{"messages": turns, name: values[n % 2]} for n in range(30)]

    for rows in (pairs, chats):
        with pytest.raises(DataError, match=f"{name} says of each row whether its answer is right"):
            guess_mapping("answers", rows)
    kept = [row for row in pairs if row[name] == values[0]]
    assert "{completion}" == guess_mapping("answers", kept).mapping.response
    assert name == guess_mapping("answers", pairs, label=name).label


def test_a_chat_is_known_although_its_first_row_is_null():
    chat = [{"from": "human", "value": "Size?"}, {"from": "gpt", "value": "41"}]
    rows = [{"conversations": chat if n else None} for n in range(9)]

    assert "{conversations}" == guess_mapping("chats", rows).mapping.response


def test_turns_that_nothing_reads_are_named(tmp_path: Path):
    turns = [{"role": "user", "lines": ["Size?"]}, {"role": "model", "lines": ["41"]}]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"contents": turns}) + "\n")

    with pytest.raises(SettingsError, match=r"unread_key, contents\.0\.lines is not read"):
        draft(tmp_path / "rows.jsonl")


def test_a_system_column_frames_a_chat_and_one_that_only_sounds_so_does_not():
    chat = [{"from": "human", "value": "Size?"}, {"from": "gpt", "value": "41"}]
    rows = [{"system": "You sell shoes." if n % 2 else "", "conversations": chat} for n in range(9)]
    other = [
        {
            "question": f"Why is phone {n} slow?",
            "answer": f"It is {n} years old.",
            "operating_system": "v",
        }
        for n in range(9)
    ]
    mapping = guess_mapping("chats", rows).mapping

    assert "{system}" == mapping.system
    assert "" == guess_mapping("phones", other).mapping.system
    (blank,), (framed,) = (
        read_mapped(mapping, RawRow(str(n), "0" * 64, row)) for n, row in enumerate(rows[:2])
    )
    assert ["user"] == [turn.role.value for turn in blank.record.messages]
    assert ["system", "user"] == [turn.role.value for turn in framed.record.messages]
    both = {
        "system": "Be brief.",
        "conversations": [{"from": "system", "value": "Be long."}, *chat],
    }
    with pytest.raises(BadRow, match="two_system_messages"):
        read_mapped(mapping, RawRow("2", "0" * 64, both))


@pytest.mark.parametrize("name", ["reasoning", "Reasoning Content", "thinking", "rationale"])
def test_a_thought_beside_an_answer_is_in_front_of_it_and_never_asked_about(name: str):
    rows = [
        {"title": f"red shoe {n}", name: f"It is worn on feet, {n}.", "category": "ab"[n % 2]}
        for n in range(40)
    ]
    guess = guess_mapping("t", rows)

    assert f"<think>{{{name}}}</think>{{category}}" == guess.mapping.response
    assert name not in guess.mapping.prompt


def test_parts_of_lists_that_nothing_reads_are_counted():
    rows = [
        {
            "question": f"Where is box {n}?",
            "answers": {"text": [f"on shelf {n}", "up"][: 1 + n % 2]},
        }
        for n in range(40)
    ]

    assert "answers.text has more than 1 parts in 20 of 40 rows, which nothing reads." in (
        guess_mapping("t", rows).remarks
    )


@pytest.mark.parametrize(
    "names",
    [("response_a", "response_b"), ("answer1", "answer2"), ("completion_j", "completion_k")],
)
def test_two_answers_are_known_by_what_tells_them_apart(tmp_path: Path, names: tuple[str, str]):
    rows = [{"prompt": f"Where is {n}?"} | dict.fromkeys(names, f"Here {n}.") for n in range(9)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    with pytest.raises(SettingsError, match=f"{names[0]} and {names[1]}.*train a judge"):
        draft(path)
    assert "" == compared(["question", "answer_a", "answer_b", "answer_c"])


def test_points_that_are_decimals_in_some_values_are_not_read_as_thousands_in_others():
    values = [f"{n / 8}" for n in range(9, 49)]  # 1.125, 1.25, 1.375, 1.5: as pandas writes them
    rows = [{"pergunta": f"Quanto pesam {n} caixas?", "resposta": v} for n, v in enumerate(values)]

    with pytest.raises(
        DataError, match=r"have a decimal point, as 1.25, and pt reads 1.125 as tho"
    ):
        guess_mapping("pesos", rows, language="pt")
    typed = [row | {"resposta": float(row["resposta"])} for row in rows]
    assert "final_answer" == guess_mapping("pesos", typed, language="pt").mapping.verifier


@pytest.mark.parametrize(
    ("question", "answer", "message"),
    [
        ("How much are {n} boxes?", "{n}.500", "reads '.' as the sign of decimals.*--language en"),
        ("Quanto custam {n} caixas com o frete?", "{n},500", "reads ',' as the sign of decimals"),
        (
            "Quanto custam {n} caixas com o frete?",
            "US$ {n},500",
            "US. 10,500, in which pt reads ','",
        ),
        ("How much are {n} boxes?", "{n}.500 USD", "10.500 USD, in which en reads '.'"),
        ("How much are {n} boxes?", "1,{n},456.50", "which is not read as one number in en"),
        ("How much are {n} boxes?", "RD$1,{n}0", "RD.1,100, which is not read as one number in en"),
    ],
)
def test_separators_that_could_be_of_another_language_are_asked_about(question, answer, message):
    rows = [{"question": question.format(n=n), "answer": answer.format(n=n)} for n in range(10, 50)]

    with pytest.raises(DataError, match=message):
        guess_mapping("sums", rows)
    if "500" in answer:
        assert "en" == guess_mapping("sums", rows, language="en").mapping.language


def test_numbers_are_not_read_by_the_language_of_each_prompt():
    rows = [{"question": f"How much are {n} boxes?", "answer": f"{n}.500"} for n in range(10, 50)]

    with pytest.raises(DataError, match=r"10\.500, which languages read differently.*--language"):
        guess_mapping("sums", rows, language="text")


def test_a_feed_with_a_row_a_variant_asks_about_the_rows_that_have_a_label():
    rows = [
        {"Title": f"red shoe of kind {n}", "Type": ("shoes", "bags")[n % 2], "Size": "S", "SKU": n}
        if is_first
        else {"Title": "", "Type": "", "Size": "ML"[n % 2], "SKU": n}
        for n in range(60)
        for is_first in (True, False, False)
    ]

    guess = guess_mapping("feed", rows, label="Type")

    assert "Title: {Title}" in guess.mapping.prompt
    assert ("bags", "shoes") == guess.mapping.options


def test_a_label_that_pandas_wrote_as_a_list_of_one_is_its_text():
    rows = [{"title": f"red shoe {n}", "kind": str([("shoes", "bags")[n % 2]])} for n in range(60)]

    mapping = guess_mapping("feed", rows, label="kind").mapping

    assert ("bags", "shoes") == mapping.options
    assert {"['bags']": "bags", "['shoes']": "shoes"} == mapping.values["kind"]


def test_a_folder_in_place_of_a_table_names_its_tables(tmp_path: Path):
    (tmp_path / "part-0.parquet").write_bytes(b"")
    (tmp_path / "_SUCCESS").write_bytes(b"")

    with pytest.raises(SettingsError, match="is a folder; name the tables in it, such as part-0"):
        draft(tmp_path)


def test_a_second_header_among_the_labels_is_pointed_at():
    rows = [
        {"ps_name": f"red shoe {n}", "ps_category": ("shoes", "bags")[n % 2]} for n in range(60)
    ]
    header = {"ps_name": "Nama Produk", "ps_category": "Kategori"}

    remarks = guess_mapping("feed", [header, *rows]).remarks

    assert any(one.startswith("Labels of a single row: Kategori.") for one in remarks)
    assert not any("single row" in one for one in guess_mapping("feed", rows).remarks)


def test_a_table_in_one_row_says_so(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"title": {"0": "red", "1": "blue"}, "kind": {"0": "a", "1": "b"}}))

    with pytest.raises(SettingsError, match="The file is one row: write an object a line"):
        draft(path)


def test_a_table_that_is_mostly_unread_says_so_before_its_columns_are_judged(tmp_path: Path):
    lines = [json.dumps({"title": f"shoe {n}", "category": "ab"[n % 2]}) for n in range(30)]
    (tmp_path / "rows.jsonl").write_text("}\n".join(lines))

    with pytest.raises(SettingsError, match="29 of 30 rows cannot be read: not_json"):
        draft(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("question", "form", "language"),
    [
        ("Berapa harga barang {} dengan ongkos kirim ke kota saya?", "Rp12.{},-", "id"),
        ("Berapa harga barang {} dengan ongkos kirim ke kota saya?", "{} ribu", "id"),
        ("第{}件商品含运费多少钱?", "{}元", ""),
        ("第{}件商品含运费多少钱?", "\uffe51,{}", ""),
        ("สินค้าชิ้นที่ {} รวมค่าส่งราคาเท่าไร", "1,{} บาท", ""),
        ("Món hàng {} kể cả phí vận chuyển giá bao nhiêu vậy?", "{}k", ""),
        ("Món hàng {} kể cả phí vận chuyển giá bao nhiêu vậy?", "1.{} đồng", ""),
        ("Combien coûte l'article {} avec la livraison dans ma ville ?", "1 {},50 €", ""),
        ("How much is item {} with shipping to my city?", "Rs. 1,{}/-", ""),
    ],
)
def test_prices_as_markets_write_them_are_verified(question: str, form: str, language: str):
    rows = [
        {"question": question.format(number), "answer": form.format(200 + number)}
        for number in range(60)
    ]

    mapping = guess_mapping("prices", rows, language=language).mapping

    assert ("final_answer", {"value": "{answer}"}) == (mapping.verifier, mapping.answer)


@pytest.mark.parametrize("form", ["pen {}", "P{}", "{} apples", "${} off"])
def test_what_has_a_number_is_no_price(form: str):
    rows = [
        {"question": f"What is in box {number} of the shelf?", "answer": form.format(number)}
        for number in range(60)
    ]

    assert not guess_mapping("boxes", rows).mapping.verifier


def test_a_price_that_its_language_does_not_read_is_refused():
    rows = [{"question": f"How much is item {n} here?", "answer": f"{200 + n}k"} for n in range(60)]

    with pytest.raises(DataError, match="200k, which is not read as one number in en"):
        guess_mapping("prices", rows)


def test_a_name_with_braces_is_said_to_have_them():
    rows = [
        {"title": f"red pen {n}", "category": ("a", "b")[n % 2], "x{0}": n, "\u200b": n % 3}
        for n in range(60)
    ]

    guess = guess_mapping("pens", rows)

    assert "category" == guess.label
    assert "Not used, as no template can name what has braces: x{0}." in guess.remarks
    assert not any("\u200b" in one for one in guess.remarks)
    with pytest.raises(DataError, match=r"'x\{0\}', as it has braces\. Rename it"):
        guess_mapping("pens", rows, label="x{0}")


def test_a_code_for_no_language_voids_no_column():
    rows = [
        {"title": f"red pen {n}", "category": "ab"[n % 2], "lang": ("en", "id", "und", "?")[n % 4]}
        for n in range(60)
    ]

    assert "{lang}" == guess_mapping("pens", rows).mapping.language


PENS = "title,category\n" + "".join(f"red pen {n},{'ab'[n % 2]}\n" for n in range(12))


@pytest.mark.parametrize(
    ("table", "settings", "source", "release"),
    [
        ("gsm8k.csv", "s.yaml", "table_gsm8k", "s"),
        ("sản phẩm.csv", "cà phê.yaml", "san_pham", "ca-phe"),
        (f"{'x' * 90}.csv", "new/s.yaml", "x" * 58, "s"),
    ],
)
def test_names_of_files_become_names_that_settings_take(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    settings: str,
    source: str,
    release: str,
):
    monkeypatch.chdir(tmp_path)
    Path(table).write_text(PENS)

    init([table, "--settings", settings])

    assert release == drafted(tmp_path, settings)["release"]["name"]
    assert source == drafted(tmp_path, f"{source}.yaml")["name"]


def test_two_tables_of_names_in_another_script_are_two_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("产品.csv", "商品.csv"):
        Path(name).write_text(PENS)

    init(["产品.csv", "商品.csv", "--settings", "s.yaml"])

    assert 2 == len(list(tmp_path.glob("table_*.yaml")))


def test_labels_that_pandas_made_decimals_are_the_integers_that_they_were():
    rows = [{"title": f"red pen {n}", "label": ("0.0", "1.0", "")[n % 3]} for n in range(60)]

    mapping = guess_mapping("pens", rows).mapping

    assert ("0", "1") == mapping.options
    assert {"label": {"0.0": "0", "1.0": "1"}} == mapping.values


def test_merged_cells_of_a_workbook_are_named(tmp_path: Path):
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.append(["title", "category"])
    for number in range(40):
        sheet.append([f"red pen {number}", "ab"[number // 4 % 2] if number % 4 == 0 else None])
    for row in range(2, 42, 4):
        sheet.merge_cells(f"B{row}:B{row + 3}")
    book.save(tmp_path / "pens.xlsx")

    with pytest.raises(SettingsError, match=r"Cells are merged.* unmerge and fill them"):
        draft(tmp_path / "pens.xlsx")


def test_instructions_with_inputs_are_no_calls_of_functions(tmp_path: Path):
    path = tmp_path / "alpaca.jsonl"
    rows = [
        {
            "instruction": f"Translate line {n} into Indonesian, please",
            "input": f"the red pen number {n}",
            "output": f"pena merah nomor {n}",
        }
        for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    mapping = draft(path).mapping

    assert mapping is not None
    assert ("{instruction}\n{input}", "{output}") == (mapping.prompt, mapping.response)
    thinking = [row | {"output": f"<think>easy</think>{row['output']}"} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in thinking))
    assert "toolrl_rlla" == draft(path).adapter


def test_a_full_stop_and_a_formula_of_excel_make_no_other_label():
    labels = ("Kitchen", "kitchen.", '="Kitchen"', "Garden")
    rows = [{"title": f"red pen {n}", "category": labels[n % 4]} for n in range(60)]

    mapping = guess_mapping("pens", rows).mapping

    assert ("Garden", "Kitchen") == mapping.options
    assert "Kitchen" == mapping.values["category"]['="Kitchen"']


def test_an_object_that_a_cell_writes_as_text_has_fields():
    rows = [
        {
            "question": f"What colour is the pen in box {n}?",
            "answers": str({"text": [f"a shade of red {n}"], "answer_start": [4]}),
        }
        for n in range(40)
    ]

    assert "{answers.text.0}" == guess_mapping("squad", rows).mapping.response


def test_the_header_below_a_line_that_names_the_template_is_pointed_at(tmp_path: Path):
    lines = ["TemplateType=x,Version=1,", "item_type,product_name,product_category"]
    lines += [f"x,red pen {n},{'ab'[n % 2]}" for n in range(40)]
    (tmp_path / "feed.csv").write_text("\n".join(lines))

    with pytest.raises(SettingsError, match=r"line 2 has names of columns.*remove the lines above"):
        draft(tmp_path / "feed.csv")


@pytest.mark.parametrize("form", ["{}", "({})"])
def test_an_examination_of_ones_own_is_no_benchmark_of_clips(tmp_path: Path, form: str):
    path = tmp_path / "exam.jsonl"
    rows = [
        {
            "question": f"What is in box {n}?",
            "choices": ["pen", "cup", "bag", "hat"],
            "answer": form.format("ABCD"[n % 4]),
        }
        for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    mapping = draft(path).mapping

    assert mapping is not None
    assert ("A", "B", "C", "D") == mapping.options
    assert "choices.3" in mapping.prompt


def test_what_an_annotator_says_of_a_label_is_no_answer():
    rows = [
        {"text": f"a red pen of kind {n}", "label": "ab"[n % 2], "answer": "accept"}
        for n in range(40)
    ]

    assert "label" == guess_mapping("pens", rows).label
    with pytest.raises(DataError, match="answer says of each row whether its answer is right"):
        guess_mapping("pens", [row | {"answer": "reject"} for row in rows])


def test_numbers_with_an_exponent_are_numbers():
    rows = [
        {"question": f"How many atoms are in {n} mol?", "answer": f"{n}.5e23"} for n in range(60)
    ]

    assert "final_answer" == guess_mapping("atoms", rows).mapping.verifier


def test_a_table_with_the_columns_of_a_public_layout_and_other_cells_is_read(tmp_path: Path):
    path = tmp_path / "support.jsonl"
    rows = [
        {
            "system": "Be short.",
            "user": f"Where is order {n} now?",
            "answer": f"It is on its way, {n}",
        }
        for n in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    mapping = draft(path).mapping

    assert mapping is not None
    assert "{answer}" == mapping.response


SHELLS = [(f"Ana has {n} shells and finds 4. How many shells has she?", n + 4) for n in range(9)]


def test_what_is_the_same_in_all_rows_of_an_export_is_no_answer():
    body = {"object": "chat.completion", "usage": {"prompt_tokens": 20, "total_tokens": 31}}
    rows = [
        {"response": {"status_code": 200, "body": body | {"choices": [{"text": f"It is {n}."}]}}}
        for n in range(9)
    ]

    with pytest.raises(DataError, match="none of them is an answer"):
        guess_mapping("batch", rows)


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (
            {
                "fields": {"text": "giày đẹp số {}"},
                "suggestions": {"label": {"value": "{model}", "agent": "m"}},
                "responses": {"label": [{"value": "{label}", "user_id": "u"}]},
            },
            "responses.label.0.value",
        ),
        (
            {
                "data": {"text": "giày đẹp số {}"},
                "annotations": [
                    {
                        "ground_truth": False,
                        "result": [{"type": "choices", "value": {"choices": ["{label}"]}}],
                    }
                ],
            },
            "annotations.0.result.0.value.choices.0",
        ),
    ],
    ids=["Argilla", "Label Studio"],
)
def test_the_label_in_an_export_is_that_of_a_person(row: dict[str, object], label: str):
    text = json.dumps(row, ensure_ascii=False)
    rows = [
        json.loads(
            text.replace("{}", str(n))
            .replace("{model}", "ab"[(n + 1) % 2])
            .replace("{label}", "ab"[n % 2])
        )
        for n in range(24)
    ]

    mapping = guess_mapping("export", rows).mapping

    assert {"correct": [f"{{{label}}}"]} == mapping.answer
    assert ".choices" not in mapping.prompt


@pytest.mark.parametrize(
    "beside",
    ["response_length", "response_tokens", "answer_count", "answerScore", "prompt_tokens"],
)
def test_a_measure_of_an_answer_is_neither_the_answer_nor_the_question(beside: str):
    rows = [
        {beside: 10 + n, "prompt": f"Where is shop {n}?", "response": f"It is in street {n}."}
        for n in range(9)
    ]

    mapping = guess_mapping("t", rows).mapping

    assert ("{prompt}", "{response}", "") == (mapping.prompt, mapping.response, mapping.verifier)


def test_the_number_of_a_problem_is_not_what_is_asked():
    rows = [
        {"Problem Number": str(n), "Question": text, "Answer": str(gold)}
        for n, (text, gold) in enumerate(SHELLS)
    ]

    mapping = guess_mapping("aime", rows).mapping

    assert ("{Question}", {"value": "{Answer}"}) == (mapping.prompt, mapping.answer)


def test_names_of_customers_and_agents_are_neither_questions_nor_answers():
    rows = [
        {
            "customer": f"Budi {n}",
            "agent": "Ani",
            "question": f"Where is {n}?",
            "reply": f"Here {n}.",
        }
        for n in range(9)
    ]

    mapping = guess_mapping("tickets", rows).mapping

    assert ("{question}", "{reply}") == (mapping.prompt, mapping.response)


def test_the_stars_of_a_review_are_its_label_and_its_text_answers_no_summary():
    rows = [
        {
            "UserId": f"U{n}",
            "Score": 1 + n % 5,
            "Summary": f"Good food {n} here",
            "Text": f"I like {n} of it.",
        }
        for n in range(30)
    ]

    mapping = guess_mapping("reviews", rows).mapping

    assert ({"correct": ["{Score}"]}, False) == (mapping.answer, "{UserId}" in mapping.prompt)


@pytest.mark.parametrize(
    ("row", "prompt", "response"),
    [
        (
            {
                "input": {"messages": ["{turn}"]},
                "output": {"role": "assistant", "content": "{answer}"},
            },
            "{input.messages}",
            "{output.content}",
        ),
        (
            {
                "request": {"model": "m", "messages": ["{turn}"]},
                "response": {
                    "choices": [{"message": {"role": "assistant", "content": "{answer}"}}]
                },
            },
            "{request.messages}",
            "{response.choices.0.message.content}",
        ),
    ],
    ids=["Langfuse", "a log of requests"],
)
def test_a_chat_within_an_object_is_asked_whole(row: dict[str, object], prompt: str, response: str):
    turn = {"role": "user", "content": "What is shoe {n} made of?"}
    text = json.dumps(row).replace('"{turn}"', json.dumps(turn))
    rows = [
        json.loads(text.replace("{n}", str(n)).replace("{answer}", f"Shoe {n} is of leather."))
        for n in range(9)
    ]

    mapping = guess_mapping("log", rows).mapping

    assert (prompt, response) == (mapping.prompt, mapping.response)


def test_a_chat_beside_its_gold_is_a_problem_and_a_demonstration():
    rows = [
        {
            "problem": text,
            "answer": str(gold),
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "content": f"<think>Count.</think>It is {gold}."},
            ],
        }
        for text, gold in SHELLS
    ]

    mapping = guess_mapping("openr1", rows).mapping

    assert {"value": "{answer}"} == mapping.answer
    problem, shown = read_mapped(mapping, RawRow("t-1", "0" * 64, rows[3]))
    assert (SHELLS[3][0], '{"value":"7"}') == (problem.content, problem.record.answer)
    assert "<think>Count.</think>It is 7." == shown.record.response


@pytest.mark.parametrize("form", ["It is {}.\n#### {}", "$x=\\boxed{{{}}}$ {}"])
def test_a_whole_solution_is_no_gold_and_that_is_said(form: str):
    rows = [{"problem": text, "solution": form.format(gold, gold)} for text, gold in SHELLS]

    guess = guess_mapping("t", rows)
    beside = guess_mapping("t", [row | {"answer": str(n)} for n, row in enumerate(rows)]).mapping

    assert ("", "{solution}") == (guess.mapping.verifier, guess.mapping.response)
    assert any("solution ends in a result" in one for one in guess.remarks)
    assert {"value": "{answer}"} == beside.answer


@pytest.mark.parametrize("verdict", ["success", "passed", "gradingResult.pass"])
def test_answers_of_models_that_failed_are_not_learned(verdict: str):
    rows = [
        {"prompt": text, "response": {"output": f"It is {gold}."}, verdict: bool(n % 2)}
        for n, (text, gold) in enumerate(SHELLS)
    ]

    with pytest.raises(DataError, match=f"{verdict} says of each row"):
        guess_mapping("t", rows)


def test_tests_of_a_program_are_no_answer():
    rows = [
        {
            "statement": f"Read a and print a + {n}.",
            "tests": json.dumps([{"in": "1 2 3", "out": n}]),
        }
        for n in range(9)
    ]

    with pytest.raises(DataError, match="none of them is an answer"):
        guess_mapping("t", rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [
                {
                    "question": {str(n): text for n, (text, _) in enumerate(SHELLS)},
                    "answer": {str(n): gold for n, (_, gold) in enumerate(SHELLS)},
                }
            ],
            "pandas: orient='records', lines=True",
        ),
        (
            [{str(n): {"question": text, "answer": gold} for n, (text, gold) in enumerate(SHELLS)}],
            "pandas: orient='records', lines=True",
        ),
        (
            [
                {"data": [{"question": text, "answer": gold} for text, gold in SHELLS[n : n + 3]]}
                for n in (0, 3, 6)
            ],
            r"several rows in a line, the parts of data: jq -c '\.data\[\]'",
        ),
    ],
    ids=["columns", "index", "lists"],
)
def test_several_rows_in_a_line_are_not_lost(tmp_path: Path, rows: list[object], message: str):
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(SettingsError, match=message):
        draft(path)


def test_what_people_said_is_the_label_where_its_column_has_a_point_in_its_name():
    rows = [
        {
            "text": f"giày đẹp số {n}",
            "label.responses": ["ab"[n % 2]],
            "label.suggestion": "ab"[n % 2],
        }
        for n in range(24)
    ]

    guess = guess_mapping("t", rows)

    assert {"correct": ["{label.responses.0}"]} == guess.mapping.answer
    problem = read_mapped(guess.mapping, RawRow("t-1", "0" * 64, rows[1]))[0].record
    assert isinstance(problem, Problem)
    assert '{"correct":["b"],"others":[["a"]]}' == problem.answer


@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        (
            {"premise": "Tubuh saya menghasilkan bayangan {}.", "question": "cause"}
            | {"choice1": "Matahari terbit.", "choice2": "Rumput dipotong.", "label": 0},
            "{premise}\n{question}\nA: {choice1}\nB: {choice2}\n",
        ),
        (
            {"prompts": [{"premise": "Dia jatuh {}.", "choice1": "Ya.", "choice2": "Tidak."}]}
            | {"label": 0},
            "{prompts.0.premise}\nA: {prompts.0.choice1}\nB: {prompts.0.choice2}\n",
        ),
        (
            {"question_number": 1, "passage": "Jalan {} ke pasar.", "question": "Ke mana?"}
            | {"mc_answer1": "Pasar", "mc_answer2": "Laut", "label": 0},
            "{passage}\n{question}\nA: {mc_answer1}\nB: {mc_answer2}\n",
        ),
        (
            {"ctx_a": "A man is in kitchen {}.", "ctx": "A man is in kitchen {}. he"}
            | {"endings": ["eats.", "flies."], "label": 0},
            "{ctx}\nA: {endings.0}\nB: {endings.1}\n",
        ),
    ],
    ids=["XCOPA", "SEA-HELM", "Belebele", "HellaSwag"],
)
def test_an_examination_is_asked_with_its_text_once(row: dict[str, object], prompt: str):
    text = json.dumps(row)
    rows = [json.loads(text.replace("{}", str(n))) | {"label": n % 2} for n in range(12)]

    mapping = guess_mapping("exam", rows).mapping

    assert prompt in mapping.prompt
    assert ("A", "B") == mapping.options


@pytest.mark.parametrize(
    ("others", "gold"),
    [
        (["actual_output"], "expected_output"),
        (["answer"], "ground_truth"),
        (["answer_type"], "answer"),
        (["output_format"], "ideal"),
    ],
)
def test_what_is_expected_is_the_answer_and_not_what_a_model_said(others: list[str], gold: str):
    rows = [
        {"question": f"Who opened shop {n}?"}
        | dict.fromkeys(others, f"It was Bob {n % 5}.")
        | {gold: f"It was Ann {n}."}
        for n in range(12)
    ]

    assert f"{{{gold}}}" == guess_mapping("t", rows).mapping.response


def test_a_turn_in_each_row_is_no_table_of_roles():
    rows = [
        {
            "conversation": n // 2,
            "role": ["user", "assistant"][n % 2],
            "content": f"Is {n} here now?",
        }
        for n in range(24)
    ]

    for form in ("Is {} here now?", "Box {} is here."):
        log = [row | {"content": form.format(n)} for n, row in enumerate(rows)]
        with pytest.raises(DataError, match="role says who speaks, so that a row is a turn"):
            guess_mapping("log", log)


def test_names_of_rows_are_no_tags_of_languages():
    rows = [
        {
            "id": f"id-{n}",
            "key": f"th-{n:03}",
            "question": f"Where is shop {n}?",
            "answer": f"Here, {n}.",
        }
        for n in range(40)
    ]

    assert "en" == guess_mapping("t", rows).mapping.language


@pytest.mark.parametrize(("yes", "no"), [(True, False), ("ya", "tidak")])
def test_an_answer_of_few_is_a_choice_that_is_asked_with_its_question(yes: object, no: object):
    rows = [
        {
            "question": f"Would fish {n} drown in water?",
            "answer": yes if n % 2 else no,
            "facts": f"Fish {n} breathe water.",
            "category": "xy"[n % 3 == 0],
        }
        for n in range(24)
    ]

    mapping = guess_mapping("t", rows).mapping

    assert ("choice", {"correct": ["{answer}"]}) == (mapping.verifier, mapping.answer)
    assert "facts" not in mapping.prompt


def test_what_a_question_is_about_is_asked_with_it_by_any_of_its_names():
    for name in ("Body", "premise", "scenario"):
        rows = [
            {name: f"Ana has {n} pens.", "Question": f"How many have {n}?", "Answer": n}
            for n in range(9)
        ]

        assert f"{{Question}}\n{{{name}}}" == guess_mapping("svamp", rows).mapping.prompt


def test_sentences_that_are_compared_answer_each_other_not():
    rows = [
        {"sentence1": f"Ann met Bob in {n}.", "sentence2": f"Bob met Ann in {n}.", "score": n / 7}
        for n in range(24)
    ]

    for columns in (
        rows,
        [{name: row[name] for name in ("sentence1", "sentence2")} for row in rows],
    ):
        with pytest.raises(DataError, match="none of them is an answer"):
            guess_mapping("sts", columns)


@pytest.mark.parametrize(
    ("cell", "gold"),
    [
        ({"aliases": ["Ana L. {n}"], "value": "Ana {n}"}, "{answer.value}"),
        ({"ground_truth": '["{n}"]', "style": "rule"}, "{answer.ground_truth.0}"),
    ],
    ids=["TriviaQA", "Skywork"],
)
def test_the_gold_of_an_object_is_its_value(cell: dict[str, object], gold: str):
    text = json.dumps(cell)
    rows = [
        {"question": f"Who opened {n}?", "answer": json.loads(text.replace("{n}", str(n)))}
        for n in range(9)
    ]

    mapping = guess_mapping("t", rows).mapping

    assert gold in (mapping.response, mapping.answer.get("value"))


def test_a_letter_of_an_option_is_the_answer_where_one_text_has_the_options():
    rows = [
        {
            "Problem": f"Ann drives {n} km in 2 hours. Speed?",
            "Rationale": f"The speed is {n}/2.",
            "options": f"a ) {n / 2} , b ) {n} , c ) {n + 1}",
            "correct": "abc"[n % 3],
            "category": "xy"[n % 2],
        }
        for n in range(24)
    ]

    mapping = guess_mapping("mathqa", rows).mapping

    assert {"correct": ["{correct}"]} == mapping.answer
    assert {"{Problem}", "{options}"} <= {*mapping.prompt.split()}


def test_one_cell_of_a_column_makes_no_path_that_the_others_lack():
    odd = {"input": "{11: 2}", "metadata": {"messages": [{"role": "user", "content": "Hi"}]}}
    odd |= {"spec": {"a.txt": "x", "language": "en"}}
    rows = [
        {"input": f"What is f of {n}?", "output": f"It is {n} here.", "metadata": {}, "spec": {}}
        for n in range(24)
    ]

    guess = guess_mapping("t", [*rows, rows[0] | odd])

    assert ("{input}", "{output}") == (guess.mapping.prompt, guess.mapping.response)
    assert "spec.language is blank in most rows, and is not used as the language." in guess.remarks


def test_answers_that_repeat_because_their_questions_do_are_no_options():
    rows = [
        {"question": SHELLS[n % 8][0], "answer": "pqrstuvw"[n % 8] * 3, "other": f"Note {n} on it."}
        for n in range(40)
    ]

    assert "" == guess_mapping("graded", rows).mapping.verifier


def test_any_label_of_a_row_with_several_is_right():
    rows = [
        {"text": f"what a comment {n} on this page", "labels": [["x"], ["y"], ["x", "z"]][n % 3]}
        for n in range(30)
    ]

    guess = guess_mapping("t", rows)

    assert "labels has more than 1 parts in 10 of 30 rows, any of which is right." in guess.remarks
    golds = []
    for row in rows[:3]:
        problem, _ = read_mapped(guess.mapping, RawRow("t-1", "0" * 64, row))
        golds.append(json.loads(problem.record.answer))
    assert [["x"], ["y"], ["x", "z"]] == [one["correct"] for one in golds]
    assert [[["y"], ["z"]], [["x"], ["z"]], [["y"]]] == [one["others"] for one in golds]


@pytest.mark.parametrize("layout", ["list", "columns"])
@pytest.mark.parametrize("form", ["cat {}", "{}"])
def test_a_question_whose_answer_repeats_an_option_is_asked_with_its_options(
    layout: str, form: str
):
    rows: list[dict[str, object]] = []
    for n in range(24):
        options = [form.format(10 * n + k) for k in range(3)]
        named = {f"option{k}": text for k, text in enumerate(options, start=1)}
        shown = {"choices": options} if layout == "list" else named
        rows.append({"question": f"Which is largest in set {n}?", "answer": options[n % 3]} | shown)

    mapping = guess_mapping("t", rows).mapping

    names = [f"choices.{k}" if layout == "list" else f"option{k + 1}" for k in range(3)]
    lines = [f"{letter}: {{{name}}}" for letter, name in zip("ABC", names, strict=True)]
    assert "\n".join(["{question}", *lines, "Answer A, B or C."]) == mapping.prompt
    for row, letter in zip(rows, "ABC", strict=False):
        problem, shown = read_mapped(mapping, RawRow("t-1", "0" * 64, row))
        assert isinstance(problem.record, Problem)
        assert [letter] == json.loads(problem.record.answer)["correct"]
        assert isinstance(shown.record, Demonstration)
        assert f"<think></think>{letter}" == shown.record.response


def test_an_answer_that_only_a_model_gave_is_named():
    rows = [
        {
            "definition": "Answer in a word.",
            "input": f"Who opened {n}?",
            "model_response": f"Ann {n}.",
        }
        for n in range(9)
    ]

    guess = guess_mapping("details", rows)

    assert "{input}\n{definition}" == guess.mapping.prompt
    assert any("model_response is what a model answered" in one for one in guess.remarks)
    verl = [row | {"reward_model": {"ground_truth": row.pop("model_response")}} for row in rows]
    assert not any("what a model" in one for one in guess_mapping("verl", verl).remarks)


def passage(n: int) -> str:
    return f"Ann was born in {1800 + n}. She sold every lamp and moved to town {n}."


NO_ANSWER = {
    "a test split of PIQA": (
        lambda n: {"goal": f"How to clean {n}?", "sol1": f"Wash {n}.", "sol2": "Rub.", "label": -1},
        "label is -1 in all rows: a test split without its answers?",
    ),
    "a test split of BoolQ": (
        lambda n: {"question": f"Is {n} old or new?", "passage": passage(n), "label": -1},
        "label is -1 in all rows: a test split without its answers?",
    ),
    "a test split of WinoGrande": (
        lambda n: {"sentence": f"Ann saw _ {n}.", "option1": "a", "option2": "b", "answer": ""},
        "answer is blank in all rows: a test split without its answers?",
    ),
    "numbers of many classes": (
        lambda n: {"text": f"Why is my card {n} not working?", "label": n},
        "none of them is an answer",
    ),
    "numbers of few classes": (
        lambda n: {"text": passage(n), "target": 4 * (n % 2)},
        "none of them is an answer",
    ),
    "questions of a story": (
        lambda n: {"story": passage(n), "questions": [f"Who is {n}?", "Why?"], "ids": [[1], [2]]},
        "none of them is an answer",
    ),
    "ranked answers": (
        lambda n: {
            "prompt": f"Say {n}.",
            "answers": [
                {"answer": f"It is {n}, as you say.", "rank": 1.0},
                {"answer": "No, it is not.", "rank": 2.0},
            ],
        },
        "answers has several answers of a task, of which answers.0.answer is the first",
    ),
    "summaries of which one is preferred": (
        lambda n: {
            "info": {"post": f"I met {n} people in the city and ran."},
            "summaries": [{"text": f"Met {n} people."}, {"text": f"Ran from {n} people."}],
            "choice": n % 2,
        },
        "summaries has several answers of a task, of which choice names one",
    ),
    "a tree of turns": (
        lambda n: {
            "message_tree_id": f"t{n}",
            "prompt": {"text": f"Who is {n}?", "replies": [{"text": "Ann.", "replies": []}]},
        },
        "prompt.replies has the turns of a tree. Write its best branch as a chat a row",
    ),
    "several letters": (
        lambda n: {
            "question": f"Which of these are {n}?",
            **{letter: f"{letter.lower()} {n} of these" for letter in "ABCD"},
            "answer": ("AC", "B", "A and D")[n % 3],
        },
        "answer names several of 4 options, A and the others, in 32 of 48 rows",
    ),
}


@pytest.mark.parametrize(("row", "message"), NO_ANSWER.values(), ids=[*NO_ANSWER])
def test_what_is_no_answer_is_not_imitated(row, message: str):
    with pytest.raises(DataError, match=re.escape(message)):
        guess_mapping("t", [row(n) for n in range(48)])


def test_letters_and_numbers_of_one_thing_are_labels_as_before():
    letters = [
        {"question": f"Which is {n}?", "A": f"a {n}", "B": f"b {n}", "answer": "AB"[n % 2]}
        for n in range(48)
    ]
    assert {"A", "B"} == {*guess_mapping("t", letters).mapping.options}

    blood = [
        {"text": f"Patient {n} was bled.", "group": ("A", "B", "AB")[n % 3]} for n in range(48)
    ]
    assert {"A", "B", "AB"} == {*guess_mapping("t", blood).mapping.options}

    one = [
        {"text": passage(n), "notes": [{"text": f"Note {n}."}], "choice": n % 2} for n in range(48)
    ]
    assert {"0", "1"} == {*guess_mapping("t", one).mapping.options}


def test_columns_that_mark_one_of_them_are_named_and_labels_of_which_several_hold_are_not():
    names = ("billing", "shipping", "product")
    rows = [
        {"text": passage(n)} | {name: int(n % 3 == place) for place, name in enumerate(names)}
        for n in range(48)
    ]
    remark = "Of billing, shipping, product every row has one with 1"

    assert any(one.startswith(remark) for one in guess_mapping("t", rows).remarks)
    both = [row | {"product": 1} for row in rows[:1]] + rows[1:]
    assert not any(one.startswith(remark) for one in guess_mapping("t", both).remarks)


def test_passages_in_a_list_are_named_as_what_a_question_may_be_about():
    def remarks(name: str, cell: object) -> str:
        rows = [{"question": f"Who is {n}?", "answer": f"Ann {n}.", name: cell} for n in range(9)]
        return " ".join(guess_mapping("t", rows).remarks)

    texts = ["Ann is six.", "Bob is seven."]
    assert "contexts has texts in a list" in remarks("contexts", texts)
    assert "contexts has texts in a list" in remarks("contexts", json.dumps(texts))
    assert "in a list" not in remarks("contexts", [1, 2])
    assert "in a list" not in remarks("tags", texts)


def test_ratings_and_wrong_answers_beside_what_is_imitated_are_named():
    rows = [{"prompt": f"Who is {n}?", "response": f"She is the Ann of {n}."} for n in range(48)]

    def remarks(**beside: object) -> str:
        cells = [
            row | {k: f(n) if callable(f) else f for k, f in beside.items()}
            for n, row in enumerate(rows)
        ]
        return " ".join(guess_mapping("t", cells).remarks)

    assert "helpfulness rates the answers" in remarks(helpfulness=lambda n: n % 5)
    assert "distractor1 has a wrong answer" in remarks(distractor1=lambda n: f"Bob {n}")
    assert "rates the answers" not in remarks(helpfulness=4)
    assert "a wrong answer" not in remarks(notes=lambda n: f"Seen on day {n} of these")


GOLDS = {
    "a reference beside a response": (
        lambda n: {
            "user_input": f"Who is {n}?",
            "response": f"Bob {n} it is.",
            "reference": f"Ann {n} it is.",
        },
        ("{user_input}", "{reference}"),
    ),
    "a source beside an answer": (
        lambda n: {"question": f"Who is {n}?", "answer": f"Ann {n}.", "reference": f"Page {n}."},
        ("{question}", "{answer}"),
    ),
    "where an answer starts": (
        lambda n: {
            "question": f"Who is {n}?",
            "context": passage(n),
            "answers": {"answer_start": [n], "text": [f"Ann {n}"]},
        },
        ("{question}\n{context}", "{answers.text.0}"),
    ),
    "whether it is a question": (
        lambda n: {
            "is_control_question": False,
            "question": {"problem": f"What is {n} + 1?", "ground_truth": f"{n + 1}"},
        },
        ("{question.problem}", "Answer: {question.ground_truth}"),
    ),
    "the tests of a program": (
        lambda n: {
            "problem_description": f"Add {n} to x, please.",
            "completion": f"def add(x): return x + {n}",
            "input_output": [{"input": "x = 1", "output": str(n + 1)}],
        },
        ("{problem_description}", "{completion}"),
    ),
}


@pytest.mark.parametrize(("row", "templates"), GOLDS.values(), ids=[*GOLDS])
def test_the_answer_is_what_is_right_and_not_what_stands_beside_it(row, templates: tuple[str, str]):
    mapping = guess_mapping("t", [row(n) for n in range(48)]).mapping

    assert templates == (mapping.prompt, mapping.response)


def test_numbers_of_classes_without_names_are_said_to_have_none():
    rows = [
        {"premise": passage(n), "hypothesis": f"She left {n}.", "label": n % 3} for n in range(30)
    ]

    remarks = guess_mapping("nli", rows).remarks

    assert any("label has numbers, and nothing says" in one for one in remarks)


def test_the_numbers_in_lists_have_the_names_that_the_file_says():
    rows = [{"text": passage(n), "labels": [[1], [2], [1, 2]][n % 3]} for n in range(30)]

    guess = guess_mapping("t", rows, classes={"labels.0": ["no", "joy", "anger"]})

    golds = []
    for row in rows[:3]:
        problem, shown = read_mapped(guess.mapping, RawRow("t-1", "0" * 64, row))
        assert isinstance(problem.record, Problem)
        golds.append(json.loads(problem.record.answer)["correct"])
        assert isinstance(shown.record, Demonstration)
        assert f"<think></think>{golds[-1][0]}" == shown.record.response
    assert [["joy"], ["anger"], ["joy", "anger"]] == golds


def test_what_a_model_suggests_is_not_asked_beside_the_label_of_a_person():
    rows = [
        {
            "text": passage(n),
            "label.responses": ["ab"[n % 2]],
            "label.responses.users": [f"user {n % 3}"],
            "label.suggestion": "ab"[n % 3 % 2],
        }
        for n in range(30)
    ]

    prompt = guess_mapping("t", rows).mapping.prompt

    assert ["{text}"] == re.findall(r"\{.*?\}", prompt)
    assert "Which label is this: a or b?" in prompt


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("systemInstruction", {"parts": [{"text": "Be brief."}]}),
        ("system", [{"text": "Be brief."}]),
    ],
)
def test_a_system_message_within_an_object_frames_a_chat(name: str, system: object):
    turns = [{"role": "user", "content": "Size?"}, {"role": "assistant", "content": "41"}]
    rows = [{name: system, "messages": turns} for _ in range(9)]

    (item,) = read_mapped(guess_mapping("t", rows).mapping, RawRow("t-1", "0" * 64, rows[0]))

    assert ["Be brief.", "Size?"] == [one.content for one in item.record.messages]


@pytest.mark.parametrize(
    ("folder", "name", "columns", "remark"),
    [
        ("a", "test.jsonl", {}, "test.jsonl is a test split by its name"),
        ("a", "xnli_val_id.jsonl", {}, "xnli_val_id.jsonl is a val split by its name"),
        ("dev", "th.jsonl", {}, "th.jsonl is a dev split by its name"),
        ("a", "rows.jsonl", {"split": ["train", "test"]}, "15 of 30 rows are of the test split"),
        ("latest", "contest.jsonl", {"split": ["train", "train"]}, ""),
    ],
)
def test_a_test_split_that_would_be_trained_on_is_named(
    tmp_path: Path, folder: str, name: str, columns: dict[str, list[str]], remark: str
):
    path = tmp_path / folder / name
    path.parent.mkdir()
    rows = [
        {"question": f"Who is {n}?", "answer": f"Ann {n}."}
        | {key: values[n % 2] for key, values in columns.items()}
        for n in range(30)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    remarks = " ".join(draft(path, language="en").remarks)

    assert remark in remarks
    assert bool(remark) == ("evaluation: true" in remarks)


def test_the_sum_below_a_table_and_a_word_for_no_value_are_named(tmp_path: Path):
    path = tmp_path / "rows.csv"
    lines = [f"How many in shop {n}?,{n or 'None'}" for n in range(30)]
    path.write_text("\n".join(["question,answer", *lines, "Total,435"]))

    remarks = " ".join(draft(path, language="en").remarks)

    assert "The last row says 'Total': remove it, if it is a sum." in remarks
    assert "answer is None in 1 of 31 rows, which is read as it stands" in remarks
    assert "answer is empty" not in remarks


def test_rows_by_their_names_are_not_lost(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    row = {"question": "Who is it?", "answer": "Ann."}
    path.write_text(json.dumps({f"id{n}": row for n in range(9)}))

    with pytest.raises(SettingsError, match=r"rows in a line, by their names: jq -c '\.\[\]'"):
        draft(path)


def test_several_roots_are_no_gold_of_which_the_first_is_right():
    rows = [{"problem": f"Solve x * x = {n * n}.", "answer": [str(n), str(-n)]} for n in range(24)]

    with pytest.raises(DataError, match="answer has several golds in 24 of 24 rows"):
        guess_mapping("roots", rows)
