"""Raw files are found, hashed and listed; what cannot be found stops the run at once."""

import hashlib
import json
from pathlib import Path

import pytest

from data_schemas.settings import Source
from tasks.curation.ingest import (
    GENERATED,
    LISTS,
    RAW_FILES,
    check_raw_files,
    ingest,
    locate,
    raw_files,
)
from tasks.errors import DataError, SettingsError, TamperError
from tasks.formats.licences import ABOUT_ROWS, LICENCES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "set"
    source.mkdir()
    (source / "train.jsonl").write_bytes(b'{"a": 1}\n')
    (source / "test.jsonl").write_bytes(b'{"a": 2}\n')
    (source / "README.md").write_text("not data")
    return source


def listed(out: Path) -> list[dict[str, object]]:
    return json.loads((out / RAW_FILES).read_bytes())


def new(tmp_path: Path) -> Path:
    out = tmp_path / "out"
    out.mkdir(parents=True)
    return out


def test_a_folder_gives_its_data_files_in_order_with_their_hashes(tmp_path: Path, folder: Path):
    out = new(tmp_path)

    facts = ingest([Source(adapter="gsm8k", path=str(folder), limit=5)], 0, out)

    counts = {"sources": 1, "files": 2, "bytes": 18}
    assert counts | {"without_licence": 0, "without_responsible": 2} == facts
    assert [
        {
            "adapter": "gsm8k",
            "uri": str(folder / name),
            "sha256": hashlib.sha256(payload).hexdigest(),
            "bytes": 9,
            "limit": 5,
            "source": 0,
        }
        for name, payload in (("test.jsonl", b'{"a": 2}\n'), ("train.jsonl", b'{"a": 1}\n'))
    ] == listed(out)


@pytest.mark.slow
def test_the_sample_world_lies_beside_the_list_so_the_folder_can_move(tmp_path: Path, folder: Path):
    out = new(tmp_path)
    sources = [Source(adapter="sample_world"), Source(adapter="mbpp", path=str(folder))]

    ingest(sources, 3, out)
    moved = out.rename(tmp_path / "moved")

    files = check_raw_files(moved)
    expected = ["sample_world/problems.jsonl", "sample_world/demonstrations.jsonl"]
    assert expected == [file.uri for file in files[:2]]
    assert moved / expected[0] == locate(moved, files[0])
    assert [0, 0, 1, 1] == [file.source for file in files]


def test_raw_files_in_s3_are_copied_beside_the_list(bucket, tmp_path: Path):
    out = new(tmp_path)
    for name in ("test", "train"):
        bucket.put_object(Bucket="bucket", Key=f"gsm8k/{name}.jsonl", Body=b'{"a": 1}\n')

    whole = Source(adapter="gsm8k", path="s3://bucket/gsm8k")
    ingest([whole, Source(adapter="mbpp", path="s3://bucket/gsm8k/train.jsonl")], 0, out)
    bucket.delete_object(Bucket="bucket", Key="gsm8k/train.jsonl")

    files = check_raw_files(out.rename(tmp_path / "moved"))
    places = ["s3/bucket/gsm8k/test.jsonl", *["s3/bucket/gsm8k/train.jsonl"] * 2]
    assert places == [file.uri for file in files]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/none", r"sources\[0\].path: .* is no folder|has no file"),
        ("s3://bucket/none.jsonl", r"sources\[0\].path: s3://bucket/none.jsonl is gone"),
        ("hf://rows", r"sources\[0\].path: hf://rows is not the address of a data set"),
        ("gs://bucket/rows", r"sources\[0\].path: gs://bucket/rows is neither a path nor s3://"),
    ],
)
def test_a_source_that_is_not_in_s3_is_named(bucket, tmp_path: Path, path: str, message: str):
    with pytest.raises(SettingsError, match=message):
        ingest([Source(adapter="gsm8k", path=path)], 0, new(tmp_path))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"adapter": "gsm9k", "path": "x"},
            r"sources\[1\].adapter is 'gsm9k'. Did you mean `gsm8k`\? Use one of ae110k,",
        ),
        ({"adapter": "gsm8k"}, r"sources\[1\].path is empty; adapter 'gsm8k' reads a file or a"),
        ({"adapter": "gsm8k", "path": "/no/such"}, r"sources\[1\].path: /no/such is no folder or"),
        ({"adapter": "ae110k", "path": "."}, r"has no file that adapter 'ae110k' reads \(ae-110k"),
        (
            {"adapter": "gsm8k", "path": "set/README.md"},
            r"sources\[1\].path: .*README.md is not one",
        ),
    ],
)
def test_a_wrong_source_is_named_before_anything_is_read_or_written(
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: dict[str, str],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    out = new(tmp_path)

    with pytest.raises(SettingsError, match=message):
        ingest([Source(adapter="sample_world"), Source.model_validate(source)], 0, out)

    assert [] == list(out.iterdir())


def test_a_flipped_byte_and_a_missing_file_are_named(tmp_path: Path, folder: Path):
    out = new(tmp_path)
    ingest([Source(adapter="gsm8k", path=str(folder / "train.jsonl"))], 0, out)
    assert 1 == len(check_raw_files(out))

    (folder / "train.jsonl").write_bytes(b'{"a": 3}\n')
    with pytest.raises(TamperError, match=r"train.jsonl: sha256 is .*, recorded"):
        check_raw_files(out)
    (folder / "train.jsonl").unlink()
    with pytest.raises(TamperError, match=r"train.jsonl can no longer be read"):
        check_raw_files(out)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'[{"adapter": "gsm8k"}]', b"3"])
def test_a_folder_that_ingest_did_not_write_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / RAW_FILES).write_bytes(content)

    if content == b"{}":
        assert [] == raw_files(tmp_path)
        return
    with pytest.raises(DataError, match=r"raw_files.json is not a list of raw files"):
        raw_files(tmp_path)


def test_a_path_in_place_of_an_adapter_is_told_where_it_stands(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"A path stands behind the adapter: adapter=path\."):
        ingest([Source(adapter="hf://datasets/openai/gsm8k")], 0, new(tmp_path))


def test_a_folder_says_which_of_its_files_and_folders_are_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "set" / "train").mkdir(parents=True)
    for name in ("README.md", "a.json", ".hidden"):
        (tmp_path / "set" / name).write_text("[]")
    source = Source(adapter="gsm8k", path=str(tmp_path / "set"))

    with pytest.raises(SettingsError, match=r"in its folders are not read: train\. Correct the"):
        ingest([source], 0, new(tmp_path))

    (tmp_path / "set" / "b.jsonl").write_text('{"question": "1 + 1?", "answer": "2 #### 2"}')
    ingest([source], 0, new(tmp_path / "set" / "train"))
    assert [
        "curation.sources[0].path: adapter gsm8k does not read 1 files of the folder: a.json"
    ] == [record.getMessage() for record in caplog.records]


def banded(tmp_path: Path, *sources: Source, **change: object) -> list[Source]:
    """Sources with a solve rate of `small` and a band."""
    rate = {"problem": "gsm8k/1", "source": "gsm8k", "source_row": "0" * 64, "gold": "{}"}
    counts = {"model": "small", "samples": 2, "scored": 2, "solved": 1}
    band = {"source": "gsm8k", "model": "small", "highest": 0.9}
    (tmp_path / "rates").write_text(json.dumps(rate | counts))
    (tmp_path / "bands").write_text(json.dumps(band | change))
    lists = [("solve_rates", "rates"), ("bands", "bands")]
    return [*sources, *(Source(adapter=name, path=str(tmp_path / path)) for name, path in lists)]


def test_a_band_of_a_measured_or_a_published_rate_is_listed(tmp_path: Path, folder: Path):
    gsm8k = Source(adapter="gsm8k", path=str(folder))
    row = {"problem": "1 + 1?", "answer": "2", "source": "school", "llama8b_solve_rate": 0.5}
    (tmp_path / "big_math.jsonl").write_text(json.dumps(row))
    big_math = Source(adapter="big_math", path=str(tmp_path / "big_math.jsonl"))
    published = {"source": "big_math", "model": "llama8b"}

    ingest(banded(tmp_path, gsm8k), 0, new(tmp_path / "one"))
    ingest(banded(tmp_path, gsm8k, big_math, **published), 0, new(tmp_path / "two"))

    names = [file["uri"] for file in listed(tmp_path / "two" / "out")]
    assert ["solve_rates/2.jsonl", "bands/3.jsonl"] == names[-2:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "smal"}, r"names the model 'smal'. Did you mean `small`\?"),
        ({"source": "gsm8"}, r"names the source 'gsm8'. Did you mean `gsm8k`\?"),
        ({"source": "mgsm"}, "names the source 'mgsm'. .*trained on: gsm8k, sample_world."),
        ({"source": "sample_world"}, "with pass rates of sample_world: none. Add a source"),
        ({"highest": 2}, r"path: .*bands, line 1: highest: Input should be less than"),
    ],
)
def test_a_band_that_no_problem_could_meet_is_refused_before_anything_is_hashed(
    tmp_path: Path, folder: Path, change: dict[str, object], message: str
):
    sources = [
        Source(adapter="gsm8k", path=str(folder)),
        Source(adapter="mgsm", path=str(folder), evaluation=True),
        Source(adapter="sample_world"),
    ]

    with pytest.raises(SettingsError, match=message):
        ingest(banded(tmp_path, *sources, **change), 0, new(tmp_path))


def test_the_list_of_raw_files_says_whose_they_are_but_of_lists_about_rows(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "1 + 1?", "answer": "#### 2"}))
    (tmp_path / "list.jsonl").write_text(json.dumps({"source_row": "0" * 64}))
    rows = Source(
        adapter="gsm8k", path=str(tmp_path / "rows.jsonl"), licence="ODbL-1.0", responsible="ann"
    )
    left_out = Source(adapter="withdrawn", path=str(tmp_path / "list.jsonl"))
    (tmp_path / "raw").mkdir()

    facts = ingest([rows, left_out], 0, tmp_path / "raw")

    terms = {one.adapter: (one.licence, one.responsible) for one in raw_files(tmp_path / "raw")}
    assert {"gsm8k": ("ODbL-1.0", "ann"), "withdrawn": (None, None)} == terms
    assert (0, 0) == (facts["without_licence"], facts["without_responsible"])


def test_every_list_about_rows_needs_no_licence_and_every_generated_source_has_one():
    assert ABOUT_ROWS == LISTS.keys()
    assert set() == GENERATED.keys() - LICENCES.keys()
