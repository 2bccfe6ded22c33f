"""A shop with two releases and a third of another line, made once and copied where it changes."""

import shutil

import pytest

from tasks.provenance.rows.index import Index, open_index
from tests.provenance.rows.shop import JUDGED, NEW, OLD, Shop


@pytest.fixture(scope="session")
def original(tmp_path_factory) -> Shop:
    """first: sft -> merge -> rl/one -> release; second: retrained on it; other: without either."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "outside").mkdir()
    shop = Shop(folder / "store", folder / "outside")
    shop.add_base()
    shop.add_rows("old", OLD)
    shop.tune("tuned", "old")
    shop.merge("merged", ["base", "tuned"])
    shop.reinforce("rl/one", "merged", "old")
    shop.release("shop", "rl/one of merged", "old", accuracy=0.5)
    shop.add_rows("new", NEW)
    shop.reinforce("rl/retrain", "rl/one of merged", "new", judge=JUDGED)
    shop.release("shop", "rl/retrain of rl/one of merged", "new", accuracy=0.6)
    shop.reinforce("rl/one", "base", "new")
    shop.release("other", "rl/one of base", "new")
    return shop


@pytest.fixture(scope="session")
def index(original, tmp_path_factory) -> Index:
    """An index of the original, and not in it."""
    return open_index(original.store, tmp_path_factory.mktemp("index"))


@pytest.fixture
def shop(original, tmp_path) -> Shop:
    """A copy to change."""
    shutil.copytree(original.place, tmp_path / "store")
    return Shop(tmp_path / "store", original.outside, dict(original.refs))
