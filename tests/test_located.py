"""Paths in a file of settings begin at its folder, wherever the command is typed."""

import json
from pathlib import Path

import pytest
import yaml

from data_schemas import presets
from data_schemas.located import located
from data_schemas.settings import PipelineSettings
from tasks.curation.init import write_drafts
from tasks.platform.console import settings_text

WRITTEN = {
    "parent": "base.yaml",
    "base_model": "models/qwen",
    "architecture": "my_family.py:Scaled",
    "curation": {
        "sources": [
            {"adapter": "my.yaml", "path": "rows.csv"},
            {"adapter": "my_rows.py:words", "path": "sub/words.jsonl"},
            {"adapter": "gsm8k", "path": "/mnt/data/gsm8k"},
            {"adapter": "mgsm", "path": "hub://org/mgsm", "evaluation": True},
            {"adapter": "ae110k", "path": "s3://bucket/ae110k"},
            {"adapter": "sample_world"},
        ],
        "guard": {"kind": "model", "address": "guards/small"},
    },
    "sft": {"parents": {"reasoning": "sft/reasoning", "commerce": "models:/mine@released"}},
    "rl_one": {
        "loss": {"kind": "my_loss.py:Sapo"},
        "advantage": "package.module:Estimator",
        "rewards": {"judge": {"kind": "http", "address": "http://host:8000/v1"}},
    },
    "release": {"name": "models"},
}


def test_only_relative_paths_are_moved():
    moved = located(WRITTEN, Path("conf"))

    assert moved == {
        "parent": "conf/base.yaml",
        "base_model": "conf/models/qwen",
        "architecture": "conf/my_family.py:Scaled",
        "curation": {
            "sources": [
                {"adapter": "conf/my.yaml", "path": "conf/rows.csv"},
                {"adapter": "conf/my_rows.py:words", "path": "conf/sub/words.jsonl"},
                *WRITTEN["curation"]["sources"][2:],
            ],
            "guard": {"kind": "model", "address": "conf/guards/small"},
        },
        "sft": {
            "parents": {"reasoning": "conf/sft/reasoning", "commerce": "models:/mine@released"}
        },
        "rl_one": {
            "loss": {"kind": "conf/my_loss.py:Sapo"},
            "advantage": "package.module:Estimator",
            "rewards": {"judge": {"kind": "http", "address": "http://host:8000/v1"}},
        },
        "release": {"name": "models"},
    }
    assert located(WRITTEN, Path()) == WRITTEN


def test_a_file_in_another_folder_reads_what_lies_beside_it(tmp_path: Path, monkeypatch):
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "base.yaml").write_text("base_model: mine\nrelease: {name: a}\n")
    own = {"parent": "base.yaml", "curation": {"sources": [{"adapter": "gsm8k", "path": "x.csv"}]}}
    (folder / "s.yaml").write_text(yaml.dump(own))
    monkeypatch.chdir(tmp_path)

    values = json.loads(settings_text("conf/s.yaml"))
    settings = presets.load("conf/s.yaml")

    assert "conf/base.yaml" == values["parent"]
    assert isinstance(settings, PipelineSettings)
    assert "conf/mine" == settings.base_model
    assert "conf/x.csv" == settings.curation.sources[0].path


@pytest.mark.parametrize("place", ["s.yaml", "conf/s.yaml", "data/s.yaml"])
def test_init_names_tables_from_the_folder_of_the_settings(tmp_path: Path, monkeypatch, place: str):
    monkeypatch.chdir(tmp_path)
    for name in ("conf", "data"):
        Path(name).mkdir()
    rows = (f"red shoe {number},{('toys', 'garden')[number % 2]}\n" for number in range(20))
    table = Path("data/goods.csv")
    table.write_text("title,category\n" + "".join(rows))
    write_drafts([table], Path(place))

    (source,) = json.loads(settings_text(place))["curation"]["sources"]
    assert table.samefile(source["path"])
    assert Path("data/goods.yaml").samefile(source["adapter"])
