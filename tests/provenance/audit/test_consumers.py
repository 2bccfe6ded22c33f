"""Whoever uses a release gets the one that trusted statements of the named store promote."""

import json
import shutil
from pathlib import Path

import pytest

from data_schemas.artifacts import CheckpointRef, Context, Execution, StoreRef
from data_schemas.settings import ReleaseSettings
from data_schemas.statements import Tombstone
from tasks.errors import SettingsError, TamperError
from tasks.provenance.audit.walk import audit
from tasks.provenance.lineage.base_model import find_base
from tasks.provenance.lineage.connection import connect
from tasks.provenance.lineage.lookup import Lookup
from tasks.provenance.lineage.mark import mark_problem, require_mark
from tasks.provenance.lineage.promotions import next_promotion, promotions
from tasks.provenance.lineage.signatures.keys import (
    KEY_VARIABLE,
    TRUSTED_VARIABLE,
    public_path,
    read_public_keys,
    trusted_keys,
)
from tasks.provenance.lineage.signatures.pages import write_page
from tasks.provenance.lineage.stage import stage
from tasks.provenance.lineage.statements import load_statement, save_statement
from tasks.provenance.lineage.tombstones import bury
from tasks.provenance.release.publish import publish_release
from tasks.stages.audit import audit as audit_command
from tasks.store.files import canonical_json
from tasks.store.interface import store_at
from tests.provenance.audit.conftest import Chain, Maker
from tests.slices import sliced

pytestmark = [
    pytest.mark.attack,
    pytest.mark.parametrize("original", ["sqlite"], indirect=True),
]
RELEASED = "models:/tiny@released"
BY_NUMBER = "models:/tiny/1"


def store_of(chain: Chain, place: Path | None = None) -> StoreRef:
    return StoreRef(uri=str(place or chain.store), id="x", tracking_uri=chain.tracking_uri)


def forge(place: Path, tracking_uri: str) -> tuple[str, str]:
    """Make a release of the same name in a store of somebody else; (statement, uri)."""
    store = StoreRef(uri=str(place), id=store_at(str(place)).open(), tracking_uri=tracking_uri)
    execution = Execution(id="evil", started=0.0)
    with stage("release", ReleaseSettings(name="tiny"), Context(store, execution), "c") as record:
        with record.output("model") as out:
            (out / "model.safetensors").write_bytes(b"weights of somebody else")
            (out / "config.json").write_text("{}")
            (out / "gate.json").write_text('{"released":true,"reasons":[],"comparisons":[]}')
        record.facts(next_promotion("tiny", store.uri, {}, record.digest_of("model")))
        record.facts({"released": 1, "manifest_sha256": "0" * 64})
        ref = record.ref("model", CheckpointRef)
        return ref.statement, ref.uri


def edit_tags(chain: Chain, statement: str, uri: str) -> None:
    """Let MLflow name another statement and another place for the released version."""
    client = connect(chain.tracking_uri)
    version = Lookup(chain.tracking_uri).version(RELEASED)
    assert version.model
    client.set_model_version_tag("tiny", version.number, "statement", statement)
    client.set_logged_model_tags(version.model.id, {"uri": uri})


@pytest.mark.parametrize("place", sliced(["store", "elsewhere"], lambda one: one == "elsewhere"))
def test_two_edited_tags_do_not_choose_what_is_published(
    chain, tmp_path, monkeypatch, migrated, place
):
    """The forged release is signed by a key of its author's, in this store or in another one."""
    shutil.copy(migrated, tmp_path / "evil.db")
    home = chain.store if place == "store" else tmp_path / place
    with monkeypatch.context() as attacker:
        attacker.setenv(KEY_VARIABLE, str(tmp_path / "attacker.pem"))
        edit_tags(chain, *forge(home, f"sqlite:///{tmp_path}/evil.db"))

    with pytest.raises(TamperError, match=r"not signed by a key .* trusts|cannot be read"):
        publish_release(BY_NUMBER, store_of(chain), tmp_path / "by_number")
    assert not (tmp_path / "by_number").exists()
    publish_release(RELEASED, store_of(chain), tmp_path / "out")
    expected = (chain.folder("release") / "model.safetensors").read_bytes()
    assert expected == (tmp_path / "out" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("model", [RELEASED, BY_NUMBER])
def test_a_statement_that_is_no_release_is_none_whatever_mlflow_says(chain, tmp_path, model):
    edit_tags(chain, chain.refs["policy"].statement, chain.refs["policy"].uri)
    if model == RELEASED:
        assert chain.folder("release") == find_base(model, store_of(chain)).folder
        return
    with pytest.raises(TamperError, match="is no release of tiny"):
        find_base(model, store_of(chain))


@pytest.mark.parametrize("model", [RELEASED, BY_NUMBER])
def test_a_copied_store_gives_its_own_files(chain, tmp_path, model):
    copy = tmp_path / "copy"
    shutil.copytree(chain.store, copy)
    shutil.rmtree(chain.store / "objects")

    origin = find_base(model, store_of(chain, copy))
    publish_release(model, store_of(chain, copy), tmp_path / "out")

    assert origin.folder.is_relative_to(copy)
    assert (tmp_path / "out" / "config.json").is_file()


def test_a_release_that_an_unknown_key_signed_is_used_when_its_key_is_named(
    chain, tmp_path, monkeypatch
):
    owner = public_path()
    monkeypatch.setenv(KEY_VARIABLE, str(tmp_path / "reader.pem"))
    with pytest.raises(SettingsError, match=f"signed by .*, and by no key .*{TRUSTED_VARIABLE}"):
        find_base(RELEASED, store_of(chain))
    with pytest.raises(TamperError, match="not signed by a key that this run trusts"):
        find_base(BY_NUMBER, store_of(chain))

    monkeypatch.setenv(TRUSTED_VARIABLE, str(owner))
    assert find_base(RELEASED, store_of(chain)).ref == find_base(BY_NUMBER, store_of(chain)).ref


def test_a_release_whose_chain_is_damaged_is_not_published(chain, tmp_path):
    (chain.folder("policy") / "config.json").write_text("[]")

    with pytest.raises(TamperError, match=r"is not published, its audit has 1 findings, first .*/"):
        publish_release(RELEASED, store_of(chain), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_deleted_promotion_leaves_nothing_released(chain):
    chain.statement("release").unlink()

    with pytest.raises(SettingsError, match="nothing was released as tiny"):
        find_base(RELEASED, store_of(chain))


def test_what_was_signed_for_another_store_counts_for_nothing_here(chain, tmp_path, migrated):
    """Staging and production have one key; somebody copies what staging signed into production."""
    place = tmp_path / "staging"
    shutil.copytree(chain.store, place)
    (place / "store.json").unlink()
    (place / "statements" / chain.statement("release").name).unlink()  # of the store before
    shutil.copy(migrated, tmp_path / "staging.db")
    identity = store_at(str(place)).open()
    uri = f"sqlite:///{tmp_path}/staging.db"
    staging = Maker(StoreRef(uri=str(place), id=identity, tracking_uri=uri), chain.outside)
    staging.refs = dict(chain.refs)
    staging.step("rl/one", "policy", CheckpointRef, ["merged", "curated", "raw"])
    staging.release()
    write_page(str(place), "reports/a.html", "promoted")
    victim = chain.folder("merged")
    note = Tombstone(
        digest=chain.refs["merged"].digest,
        uri=f"{place}/objects/{victim.name}",
        stage="merge",
        statement=chain.refs["merged"].statement,
        bytes=1,
        used=0.0,
        deleted=1.0,
        kept="released,9d",
        store=identity,
    )
    bury(str(place), note)
    for folder in ("statements", "objects", "signatures", "pages", "reports", "tombstones"):
        shutil.copytree(place / folder, chain.store / folder, dirs_exist_ok=True)
    assert chain.folder("release") == find_base(RELEASED, store_of(chain)).folder

    shutil.rmtree(victim)
    owner = trusted_keys()
    problems = [
        one.problem
        for one in audit(BY_NUMBER, chain.tracking_uri, str(chain.store), owner).findings
    ]

    assert any("is of another store" in one for one in problems), problems  # the tombstone
    assert any(f"is of the store {identity}" in one for one in problems), problems
    assert any("is not a page that was signed" in one for one in problems), problems
    edit_tags(chain, staging.refs["release"].statement, staging.refs["release"].uri)
    with pytest.raises(TamperError, match="is of another store"):
        find_base(BY_NUMBER, store_of(chain))


@pytest.fixture(scope="module")
def staging(tmp_path_factory, outside, migrated) -> StoreRef:
    """A store that released the same chain under the same key; read only."""
    folder = tmp_path_factory.mktemp("staging")
    shutil.copy(migrated, folder / "staging.db")
    place = str(folder / "staging")
    reference = StoreRef(
        uri=place, id=store_at(place).open(), tracking_uri=f"sqlite:///{folder}/staging.db"
    )
    other = folder / "raw of staging"
    shutil.copytree(outside, other)
    Maker(reference, other).run()
    return reference


def what_is_found(chain: Chain) -> list[str]:
    report = audit(RELEASED, chain.tracking_uri, str(chain.store), trusted_keys())
    return [f"{Path(one.object).name}: {one.problem}" for one in report.findings]


def mark_of(store: Path) -> dict[str, object]:
    return json.loads((store / "store.json").read_bytes())


def test_a_mark_that_was_changed_or_copied_is_named_and_nothing_goes_on(chain, staging):
    production = chain.store
    own, foreign = mark_of(production), mark_of(Path(staging.uri))
    assert [] == what_is_found(chain)
    assert {"id", "signatures", "statement"} == own.keys()
    forgeries = {
        "another id": (own | {"id": "0" * 32}, "is not as it was signed"),
        "no signature": (own | {"signatures": []}, "is signed by nobody"),
        "no mark": ({}, "is no mark of a store"),
        "the mark of staging": (foreign, "is of another store: it was signed with a statement"),
        "the id of staging": (own | {"id": foreign["id"]}, "is not as it was signed"),
        "the statement of staging": (
            own | {"statement": foreign["statement"]},
            "is not as it was signed",
        ),
        "a new mark": ({"id": "1" * 32}, "is signed by nobody"),
    }

    for name, (content, problem) in forgeries.items():
        (production / "store.json").write_bytes(canonical_json(content))
        assert any(problem in one for one in what_is_found(chain)), name
        if "signatures" not in content or content["id"] != own["id"]:
            with pytest.raises((SettingsError, TamperError)):
                find_base(RELEASED, store_of(chain))
            with pytest.raises(TamperError, match=r"store\.json .* Restore it"):
                require_mark(str(production))


def test_the_mark_of_staging_with_its_statement_is_named_by_what_lies_here(chain, staging):
    production, other = chain.store, Path(staging.uri)
    shutil.copy(other / "store.json", production / "store.json")
    statement = f"{mark_of(other)['statement']}.json"
    shutil.copy(other / "statements" / statement, production / "statements" / statement)

    assert any("and this one is" in one for one in what_is_found(chain))
    with pytest.raises(SettingsError, match="nothing was released as tiny"):
        find_base(RELEASED, store_of(chain))


def test_a_store_in_the_place_of_another_is_known_by_the_file_of_keys(
    chain, staging, tmp_path, monkeypatch
):
    production = chain.store
    keys = tmp_path / "keys.pem"
    keys.write_text(f"# store {mark_of(production)['id']}\n{public_path().read_text()}")
    monkeypatch.setenv(TRUSTED_VARIABLE, str(keys))
    here, there = (
        audit(RELEASED, uri, str(store), read_public_keys(keys))
        for store, uri in (
            (production, chain.tracking_uri),
            (staging.uri, staging.tracking_uri),
        )
    )

    assert here.proved
    assert "and the keys of --key vouch in" in there.findings[0].problem
    assert find_base(RELEASED, store_of(chain)).folder.is_relative_to(production)
    with pytest.raises(SettingsError, match=r"no key vouches in .*/staging"):
        find_base(RELEASED, store_of(chain, Path(staging.uri)))


def test_a_promotion_without_an_id_is_not_current_again_when_the_id_is_replaced(chain, tmp_path):
    """Promotion 1 is of an earlier version, which named no store; promotion 2 names its own."""
    statement = load_statement(str(chain.store), chain.refs["release"].statement)
    facts = {name: fact for name, fact in statement.facts.items() if name != "store"}
    old = save_statement(str(chain.store), statement.model_copy(update={"facts": facts}))
    later = statement.facts | {"promotion": 2, "promotion_before": old}
    new = save_statement(str(chain.store), statement.model_copy(update={"facts": later}))
    chain.statement("release").unlink()

    def current() -> list[str]:
        return [one.statement for one in promotions("tiny", str(chain.store), trusted_keys())]

    assert [old, new] == current()
    (chain.store / "store.json").write_bytes(canonical_json({"id": "0" * 32}))
    assert [] == current()


def test_a_mark_of_an_earlier_version_is_signed_by_the_next_run(chain):
    for path in (chain.store / "statements").iterdir():
        if path == chain.statement("release"):
            path.unlink()  # the only one that names an id
    mark = mark_of(chain.store)
    (chain.store / "store.json").write_bytes(canonical_json({"id": mark["id"]}))

    maker = Maker(store_of(chain), chain.outside)
    maker.refs = dict(chain.refs)
    maker.step("rl/one", "policy", CheckpointRef, ["merged", "curated", "raw"])

    assert mark["id"] == mark_of(chain.store)["id"]
    assert maker.refs["policy"].statement == mark_of(chain.store)["statement"]
    assert "" == mark_problem(str(chain.store), trusted_keys())


def test_records_and_pages_of_another_store_are_named(chain, staging, tmp_path):
    """Both have the same statements, so that only the store tells the records apart."""
    production, other = chain.store, shutil.copytree(staging.uri, tmp_path / "other")
    write_page(str(other), "reports/a.html", "solved")
    shutil.rmtree(production / "attestations" / "e1")
    for folder in ("attestations", "reports", "pages"):
        shutil.copytree(other / folder, production / folder, dirs_exist_ok=True)

    assert {
        "gone: no signed record says who ran this stage, and when",
        "no attestation of it is signed by --key",
        "is not a page that was signed; one of an earlier version may be moved out of the store",
    } == {one.partition(": ")[2] for one in what_is_found(chain)}


@pytest.mark.parametrize(
    "tags",
    sliced([["statement"], ["statement", "sha256", "manifest_sha256"]], lambda tags: len(tags) > 1),
)
def test_genuine_versions_that_were_swapped_are_named_and_stay_genuine(chain, tags):
    """Which release has a number is MLflow's word; that it was released is not."""
    maker = Maker(store_of(chain), chain.outside)
    maker.refs = dict(chain.refs)
    maker.step("rl/one", "policy", CheckpointRef, ["merged", "curated", "raw"])
    maker.release()
    later = Path(maker.refs["release"].uri)
    client = connect(chain.tracking_uri)
    first, second = (client.get_model_version("tiny", number).tags for number in ("1", "2"))
    for tag in tags:
        for number, other in (("1", second), ("2", first)):
            if tag in other:
                client.set_model_version_tag("tiny", number, tag, other[tag])

    assert later == find_base(BY_NUMBER, store_of(chain)).folder
    assert later == find_base(RELEASED, store_of(chain)).folder
    assert audit(BY_NUMBER, chain.tracking_uri, str(chain.store), trusted_keys()).findings
    assert audit("models:/tiny/2", chain.tracking_uri, str(chain.store), trusted_keys()).findings


@pytest.mark.parametrize(
    ("plant", "problem"),
    sliced(
        [
            ("reports/.hidden.html", "is not a page that was signed"),
            ("reports/deep/er/a.xhtml", "is not a page that was signed"),
            ("live/e1/page.mht", "is not a page that was signed"),
            ("live/no suffix", "is not a page that was signed"),
            ("leases/key", "is a private key"),
            ("signatures/other.pem", "is a private key"),
            ("executions/e9/merge.json", "no attestation of it is signed"),
        ],
        lambda plant, _: plant.startswith(("reports/.", "leases", "executions")),
    ),
)
def test_what_somebody_put_into_the_store_is_named(chain, plant, problem):
    path = chain.store / plant
    path.parent.mkdir(parents=True, exist_ok=True)
    if "key" in problem:
        path.write_text("-----BEGIN EC PRIVATE KEY-----\n")
    elif "attestation" in problem:
        path.write_bytes((chain.store / "executions" / "e1" / "merge.json").read_bytes())
    else:
        path.write_text("<h1>PROVED</h1>")

    (finding,) = what_is_found(chain)
    assert problem in finding


@pytest.mark.parametrize(
    "part",
    sliced(
        ["store.json", "tombstones", "timestamps", "pages", "live"],
        {"store.json", "live"}.__contains__,
    ),
)
def test_a_part_that_is_a_link_to_another_store_is_named(chain, tmp_path, part):
    other = tmp_path / "other"
    place = chain.store / part
    if place.exists():
        place.rename(other)
    else:
        other.mkdir()
    place.symlink_to(other)

    assert f"{part}: is a link; its content lies outside the store" in what_is_found(chain)


@pytest.mark.parametrize("way", ["file", "link"])
def test_keys_that_lie_in_the_store_vouch_for_nothing(chain, tmp_path, monkeypatch, way):
    """Whoever can write the store can replace them."""
    inside = chain.store / "audits" / "keys.pub"
    inside.parent.mkdir(exist_ok=True)
    shutil.copy(public_path(), inside)
    named = inside if way == "file" else tmp_path / "keys.pub"
    if way == "link":
        named.symlink_to(inside)
    where = "lies in the store that it is to vouch for"

    with pytest.raises(SettingsError, match=f"--key .* {where}"):
        audit_command(model=RELEASED, store=str(chain.store), key=str(named))
    monkeypatch.setenv(TRUSTED_VARIABLE, str(named))
    with pytest.raises(SettingsError, match=f"{TRUSTED_VARIABLE} .* {where}"):
        find_base(RELEASED, store_of(chain))
