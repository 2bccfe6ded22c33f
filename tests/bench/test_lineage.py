"""The synthetic store is what its benchmark says: every answer is checked as it is timed."""

from tasks.provenance.rows.index import open_index
from tests.bench.lineage import build_store, measure, source_row


def test_the_first_row_touches_every_release_and_the_last_rests_on_every_row(tmp_path):
    releases = build_store(tmp_path, rows=12, runs=3)

    timed = measure(tmp_path, releases, rows=12)

    assert "trace a row by digest" in [what for what, _, _ in timed]
    rows = open_index(str(tmp_path), tmp_path).read("rows")["source_row"].to_pylist()
    assert sorted(map(source_row, range(12))) == sorted(rows)
