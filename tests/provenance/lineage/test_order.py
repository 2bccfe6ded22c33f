"""Spools in the order of what made what, whatever clocks and file names say."""

from hypothesis import given
from hypothesis import strategies as st

from data_schemas.events import ArtifactLinked, Event, StageStarted
from tasks.provenance.lineage.order import producers_first


def link(way: str, statement: str, time: float = 0.0) -> Event:
    return ArtifactLinked(
        time=time,
        kind=way,
        type="DatasetRef",
        name="n",
        parents=(),
        role="r",
        uri="u",
        digest="d",
        statement=statement,
    )


def spool(run: str, time: float, made: str, *read: str) -> tuple[str, list[Event]]:
    start = StageStarted(time=time, stage=run, params={}, tags={})
    return run, [start, *(link("input", one) for one in read), link("output", made)]


def test_a_producer_comes_before_its_reader_although_its_clock_is_late():
    spools = {
        "a": spool("release", 10.0, "s3", "s2"),
        "b": spool("rl", 30.0, "s2", "s1"),
        "c": spool("ingest", 20.0, "s1"),
    }

    assert ["c", "b", "a"] == producers_first(spools)


def test_what_nothing_connects_stays_in_the_order_of_time():
    spools = {"a": spool("x", 3.0, "s3"), "b": spool("y", 1.0, "s1"), "c": spool("z", 2.0, "s2")}

    assert ["b", "c", "a"] == producers_first(spools)


def test_attempts_at_a_stage_stay_in_the_order_of_time():
    spools = {
        "second": spool("rl", 2.0, "s2", "s1"),
        "first": ("rl", [StageStarted(time=1.0, stage="rl", params={}, tags={})]),
        "ingest": spool("ingest", 3.0, "s1"),
    }

    assert ["first", "ingest", "second"] == producers_first(spools)


def test_a_cycle_which_only_an_edited_spool_has_falls_back_to_time():
    spools = {"a": spool("x", 2.0, "s1", "s2"), "b": spool("y", 1.0, "s2", "s1")}

    assert ["b", "a"] == producers_first(spools)


@given(st.permutations(range(8)), st.lists(st.floats(0.0, 10.0), min_size=8, max_size=8))
def test_a_chain_is_sorted_from_any_order_and_any_clock(names, times):
    chain = {
        place: spool(f"run{place}", times[place], f"s{place}", f"s{place - 1}")
        for place in range(8)
    }

    assert list(range(8)) == producers_first({place: chain[place] for place in names})
