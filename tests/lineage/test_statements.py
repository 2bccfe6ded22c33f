"""The chain on disk: named by content, write-once, walked from the end."""

import pytest

from data_schemas.settings import MergeSettings
from data_schemas.statements import ExecutionRecord, Input, Output, Statement
from tasks.errors import DataError, TamperError
from tasks.lineage.statements import (
    chain,
    environment_digest,
    flat_settings,
    load_executions,
    load_statement,
    save_execution,
    save_statement,
    statement_digest,
)
from tasks.store.files import canonical_json, sha256_bytes


def statement(stage: str, *parents: str, **facts: float | int | str) -> Statement:
    return Statement(
        stage=stage,
        settings="{}",
        code=("c",),
        environment="e",
        inputs=tuple(Input(role="in", uri="u", digest="d", statement=name) for name in parents),
        outputs=(Output(role="out", uri="u", digest="d"),),
        facts=dict(facts),
    )


def test_a_statement_is_named_by_its_canonical_json(tmp_path):
    digest = save_statement(str(tmp_path), statement("curate", rows=3))

    # printf of the bytes below | sha256sum
    payload = (
        b'{"code":["c"],"environment":"e","facts":{"rows":3},"inputs":[],'
        b'"outputs":[{"digest":"d","role":"out","uri":"u"}],"settings":"{}","stage":"curate"}'
    )
    assert payload == (tmp_path / "statements" / f"{digest}.json").read_bytes()
    assert statement_digest(statement("curate", rows=3)) == digest
    assert statement("curate", rows=3) == load_statement(str(tmp_path), digest)


def test_the_same_work_twice_is_one_statement(tmp_path):
    first = save_statement(str(tmp_path), statement("curate"))

    assert first == save_statement(str(tmp_path), statement("curate"))
    assert 1 == len(list((tmp_path / "statements").iterdir()))


def test_a_changed_statement_is_named_and_never_overwritten(tmp_path):
    digest = save_statement(str(tmp_path), statement("curate", rows=3))
    path = tmp_path / "statements" / f"{digest}.json"
    path.write_bytes(path.read_bytes().replace(b'"rows":3', b'"rows":4'))

    with pytest.raises(TamperError, match=digest):
        load_statement(str(tmp_path), digest)
    with pytest.raises(TamperError, match="not the statement it is named after"):
        save_statement(str(tmp_path), statement("curate", rows=3))


def test_a_statement_that_is_gone_is_named(tmp_path):
    with pytest.raises(DataError, match=r"statements/abc\.json"):
        load_statement(str(tmp_path), "abc")


def test_the_chain_lists_producers_before_their_readers_once(tmp_path):
    store = str(tmp_path)
    base = save_statement(store, statement("base"))
    left = save_statement(store, statement("sft/reasoning", base))
    right = save_statement(store, statement("sft/commerce", base))
    merged = save_statement(store, statement("merge", left, right))
    report = save_statement(store, statement("evaluate", merged, base))
    found = chain(store, [merged, report, ""])
    order = [made.stage for made in found.values()]

    assert {base, left, right, merged, report} == found.keys()
    assert "base" == order[0]
    assert ["merge", "evaluate"] == order[-2:]


def test_a_chain_may_be_longer_than_the_stack(tmp_path):
    digest = ""
    (tmp_path / "statements").mkdir()
    for step in range(1200):
        payload = canonical_json(statement("rl", *([digest] if digest else []), n=step))
        digest = sha256_bytes(payload)
        (tmp_path / "statements" / f"{digest}.json").write_bytes(payload)

    assert 1200 == len(chain(str(tmp_path), [digest]))


def test_executions_come_back_oldest_first(tmp_path):
    for stage, started in (("rl/one", 20.0), ("curate", 10.0)):
        record = ExecutionRecord(
            execution="e1",
            stage=stage,
            statement="s",
            started=started,
            seconds=1.0,
            cpu_seconds=1.0,
            rows_in=0,
            rows_out=0,
            run_id="",
        )
        save_execution(str(tmp_path), record)

    assert ["curate", "rl/one"] == [record.stage for record in load_executions(str(tmp_path), "e1")]
    assert (tmp_path / "executions" / "e1" / "rl.one.json").exists()
    assert [] == load_executions(str(tmp_path), "e2")


def test_settings_become_dotted_names():
    assert {
        "density": "0.6",
        "scale": "1.0",
        "weights": "[1.0, 1.0]",
        "trim_scope": "tensor",
        "router": "merge",
    } == flat_settings(MergeSettings())


def test_the_environment_is_the_same_as_long_as_nothing_is_installed():
    first = environment_digest()
    environment_digest.cache_clear()

    assert first == environment_digest()
    assert 64 == len(first)
