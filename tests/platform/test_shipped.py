"""Files that come with the program: found by name, listed, and copied with their tables."""

from pathlib import Path

import pytest
import yaml

from data_schemas import presets
from data_schemas.settings import PipelineSettings
from data_schemas.shipped import FOLDERS, files, shipped
from tasks.errors import SettingsError
from tasks.platform import console, examples


def test_a_name_finds_its_file_and_other_texts_find_none():
    assert FOLDERS["example"] / "shop" / "shop.yaml" == shipped("example:shop")
    assert FOLDERS["preset"] / "laptop.yaml" == shipped("preset:laptop")
    for text in ("shop", "laptop", "models:/shop@released", "s3://example:shop", "example:", ""):
        assert shipped(text) is None


@pytest.mark.parametrize("kind", FOLDERS)
def test_no_two_files_of_a_kind_share_a_name(kind):
    paths = [path for path in FOLDERS[kind].rglob("*.yaml") if path in files(kind).values()]

    assert len(paths) == len(files(kind)) > 5
    assert all(name == path.stem for name, path in files(kind).items())


def test_mapping_files_beside_an_example_are_no_settings():
    assert {"products", "reviews", "dialogues"}.isdisjoint(files("example"))


def test_an_example_is_a_parent_whose_tables_are_found_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine.yaml"
    mine.write_text("parent: example:shop\nrl_one: {steps: 3}\n")

    settings = presets.preset(str(mine), PipelineSettings)
    assert ("shop", 3) == (settings.release.name, settings.rl_one.steps)
    assert all(Path(one.path).is_file() for one in settings.curation.sources)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "--settings", "example:shopp"],
            "there is no example 'shopp'; did you mean `shop`",
        ),
        (
            ["run", "--settings=preset:quantum"],
            "there is no preset 'quantum'; use one of compass_thinker, ",
        ),
        (["lab", "study", "--of=study:laddr"], "there is no study 'laddr'; did you mean `ladder`?"),
    ],
)
def test_a_name_of_nothing_is_refused_with_the_one_that_was_meant(words, message, capsys):
    assert 2 == console.main(words)
    assert message in capsys.readouterr().err


def test_an_option_takes_a_name_in_place_of_the_path_that_one_would_type(monkeypatch, tmp_path):
    path = FOLDERS["study"] / "ladder.yaml"
    monkeypatch.chdir(tmp_path)

    assert str(path) == console.with_place("study:ladder")
    assert f"--of={path}" == console.with_place("--of=study:ladder")
    assert "--settings={}" == console.with_place("--settings={}")
    monkeypatch.chdir(path.parents[3])
    assert "--of=workflows/lab/studies/ladder.yaml" == console.with_place("--of=study:ladder")


def test_the_list_has_a_line_for_every_name_within_the_screen():
    lines = examples.listing(80)

    heads = [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]
    assert heads == [name for kind in FOLDERS for name in files(kind)]
    assert all(len(line) <= 80 for line in lines)
    assert all(
        examples.about(path.read_text()) for kind in FOLDERS for path in files(kind).values()
    )


def test_a_copy_has_settings_that_name_the_tables_beside_them(tmp_path):
    said = examples.copy(tmp_path / "mine")

    assert f"--settings {tmp_path / 'mine' / 'quick_look.yaml'}" in said
    shop = tmp_path / "mine" / "shop"
    sources = yaml.safe_load((shop / "shop.yaml").read_text())["curation"]["sources"]
    assert 3 == len(sources)
    assert all((shop / one["path"]).is_file() for one in sources)
    assert not [*(tmp_path / "mine").rglob("*.md")]
    with pytest.raises(SettingsError, match="exists; name a new folder"):
        examples.copy(tmp_path / "mine")
