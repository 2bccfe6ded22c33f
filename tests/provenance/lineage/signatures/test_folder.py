"""A working folder is continued as far as this work signed it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.provenance.lineage.signatures.folder import continued
from tasks.provenance.lineage.signatures.keys import KEY_VARIABLE

pytestmark = pytest.mark.attack


def write(part: Path, text: str) -> None:
    part.mkdir(parents=True, exist_ok=True)
    (part / "items").write_text(text)
    (part / "done").write_text("")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Two parts of an attempt that ended."""
    folder = tmp_path / "work" / "shards"
    with continued(folder):
        write(folder / "000000", "honest")
        write(folder / "000001", "honest")
    return folder


def left(folder: Path) -> list[str]:
    """Parts that the next attempt finds."""
    with continued(folder):
        return sorted(path.name for path in folder.iterdir() if path.is_dir())


def test_what_an_attempt_left_is_continued(parts):
    assert ["000000", "000001"] == left(parts)


def plant(folder: Path) -> None:
    write(folder / "000002", "foreign rows")


def change(folder: Path) -> None:
    write(folder / "000002", "honest")
    (folder / "000001" / "items").write_text("foreign rows")
    shutil.rmtree(folder / "000002")


def add(folder: Path) -> None:
    (folder / "000001" / "replaced").write_text("foreign rows")


def link(folder: Path) -> None:
    shutil.copytree(folder / "000001", folder.parent / "elsewhere")
    (folder / "000002").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("forge", "kept"),
    [
        (plant, ["000000", "000001"]),
        (change, ["000000"]),
        (add, ["000000"]),
        (link, ["000000", "000001"]),
    ],
)
def test_a_part_that_the_work_did_not_sign_is_done_again(
    parts, forge: Callable[[Path], None], kept
):
    forge(parts)

    assert kept == left(parts)


def test_parts_that_another_work_or_key_signed_are_done_again(parts, tmp_path, monkeypatch):
    shutil.copytree(parts, tmp_path / "other" / "shards")
    assert [] == left(tmp_path / "other" / "shards")

    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "other.pem"))
    assert [] == left(parts)


def test_parts_are_signed_while_the_work_goes_on(tmp_path):
    folder = tmp_path / "work" / "shards"
    killed = tmp_path / "killed" / "work" / "shards"
    found: list[str] = []
    with continued(folder, every_s=0.01):
        write(folder / "000000", "honest")
        while not found:  # a copy of what is on the disk, as a killed process leaves it
            shutil.rmtree(killed, ignore_errors=True)
            shutil.copytree(folder / "000000", killed / "000000")
            if (folder / "SEALED.json").exists():
                shutil.copy(folder / "SEALED.json", killed)
            found = left(killed)

    assert ["000000"] == found
