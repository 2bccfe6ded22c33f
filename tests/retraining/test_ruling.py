"""What people decide about held files: said once, signed, and about the content."""

import json
import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import StoreRef
from data_schemas.intake import FileStatus
from tasks.errors import SettingsError, TamperError
from tasks.provenance.lineage.signatures.working import unseal
from tasks.provenance.lineage.statements import load_statement
from tasks.retraining import approve
from tasks.retraining.inbox import list_files
from tasks.retraining.intake import approvals, take_in
from tasks.retraining.processed import load, rulings, select, settle
from tasks.store import location
from tasks.store.interface import store_at

WHY = ["--by", "ann", "--because", "the shop renamed its columns"]


@pytest.fixture
def night(tmp_path, migrated, monkeypatch):
    """A night that held `drop.csv`; the next one takes what this returns."""
    folder = tmp_path / "store"
    identity = store_at(str(folder)).open()
    shutil.copy(migrated, folder / "mlflow.db")
    tracking = f"sqlite:///{folder / 'mlflow.db'}"
    store = StoreRef(uri=str(folder), id=identity, tracking_uri=tracking)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.tracking_uri)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    (inbox / "drop.csv").write_text("rows")
    (inbox / "_mapping.yaml").write_text(
        "{name: shop, domain: choice, language: en, prompt: '{q}', verifier: choice, "
        "answer: {others: '{wrong}', correct: '{right}'}}"
    )
    nights = iter(range(99))

    def take():
        out = tmp_path / f"out{next(nights)}"
        out.mkdir()
        done = load(store.uri, str(inbox))
        listing = list_files(str(inbox))
        return take_in(str(inbox), select(done, listing.files), {}, out, rulings(done))

    _, taken, _ = take()
    settle(store.uri, str(inbox), taken, FileStatus.HELD, "first")
    return store, inbox, take


def place(store, inbox):
    return ["--store", store.uri, "--inbox", str(inbox)]


def names(files):
    return [file.key for file in files]


def test_an_approved_file_is_read_again_and_its_approval_is_part_of_the_chain(night, capsys):
    store, inbox, take = night
    assert [] == take()[1]

    approve.approve(["drop.csv", *place(store, inbox), *WHY])

    assert "Approved by ann: drop.csv; read again in the next night." in capsys.readouterr().out
    _, taken, rejected = take()
    assert (["drop.csv"], []) == (names(taken), rejected)
    assert ["ann"] == [file.approved_by for file in taken]
    (record,) = approvals(taken, rulings(load(store.uri, str(inbox))))
    statement = load_statement(store.uri, record.statement)
    said = {"by": "ann", "because": "the shop renamed its columns", "files": 1}
    assert ("approve", said) == (statement.stage, statement.facts)
    assert ["drop.csv"] == list(json.loads(statement.settings)["files"])


def test_a_held_file_that_was_renamed_keeps_its_approval(night):
    store, inbox, take = night
    approve.approve(["drop.csv", *place(store, inbox), *WHY])
    (inbox / "drop.csv").rename(inbox / "renamed.csv")

    (taken,) = take()[1]

    assert ("renamed.csv", "ann") == (taken.key, taken.approved_by)


def test_what_a_corrected_mapping_reads_is_not_what_was_approved(night):
    store, inbox, take = night
    approve.approve(["drop.csv", *place(store, inbox), *WHY])
    text = (inbox / "_mapping.yaml").read_text()
    (inbox / "_mapping.yaml").write_text(text.replace("{right}", "{other}"))

    assert [""] == [file.approved_by for file in take()[1]]


def test_a_rejected_file_is_never_read_under_any_name(night, capsys):
    store, inbox, take = night
    approve.reject(["drop.csv", *place(store, inbox), *WHY])
    assert "Rejected by ann: drop.csv; never read again." in capsys.readouterr().out
    assert ([], []) == take()[1:]
    (inbox / "drop.csv").rename(inbox / "again.csv")

    _, taken, rejected = take()

    assert ([], ["again.csv"]) == (taken, names(rejected))


def test_the_last_word_counts(night):
    store, inbox, take = night
    approve.reject(["drop.csv", *place(store, inbox), *WHY])
    approve.approve(["drop.csv", *place(store, inbox), *WHY])
    assert ["drop.csv"] == names(take()[1])

    approve.reject(["drop.csv", *place(store, inbox), *WHY])
    assert [] == take()[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["other.csv", *WHY], r"other\.csv is not held in .*; held files: drop\.csv"),
        (["drop.csv", "--by", " ", "--because", "x"], "--by is empty; who decides and why"),
        (["drop.csv", "--by", "ann", "--because", ""], "--because is empty"),
    ],
)
def test_only_a_held_file_is_decided_about_by_somebody_and_for_a_reason(night, arguments, message):
    store, inbox, take = night

    with pytest.raises(SettingsError, match=message):
        approve.approve([*arguments, *place(store, inbox)])

    assert [] == take()[1]


@pytest.mark.attack
def test_an_approval_that_somebody_planted_is_not_believed(night):
    store, inbox, _ = night
    (path,) = Path(store.uri, "inboxes").glob("*.json")
    payload = unseal(
        "inbox", f"{location.identity(str(path.parents[1]))}/{path.name}", path.read_bytes(), ""
    )
    path.write_bytes(payload.replace(b'"held"', b'"approved"'))

    with pytest.raises(TamperError, match="is not signed"):
        load(store.uri, str(inbox))
