"""Order in which the events of several stages reach MLflow: producers before their readers.

Neither the time of a file nor its name says so: spools that were fetched from S3 have the time
of the download, and clocks of machines differ. The statements in the events do.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from data_schemas.events import ArtifactLinked, Event

Key = TypeVar("Key")


def producers_first(spools: Mapping[Key, tuple[str, Sequence[Event]]]) -> list[Key]:
    """Sort spools so that what one reads was made by an earlier one.

    Attempts at the same stage stay in the order of their time, and so does everything that
    nothing connects. A spool without events comes first.

    Args:
        spools: by any key, (run, events).
    """
    by_time = sorted(spools, key=lambda key: _started(spools[key][1]))
    makers: dict[str, list[Key]] = defaultdict(list)
    attempts: dict[str, list[Key]] = defaultdict(list)
    for key in by_time:
        run, events = spools[key]
        attempts[run].append(key)
        for statement in _statements(events, "output"):
            makers[statement].append(key)
    before: dict[Key, list[Key]] = {}
    for key in by_time:
        run, events = spools[key]
        mine = attempts[run]
        before[key] = mine[: mine.index(key)]
        for statement in _statements(events, "input"):
            before[key] += [maker for maker in makers[statement] if maker not in mine]
    sorter = TopologicalSorter(before)
    try:
        sorter.prepare()
    except CycleError:  # only edited spools can have one
        return by_time
    position = {key: place for place, key in enumerate(by_time)}
    ready: list[tuple[int, Key]] = []
    order: list[Key] = []
    while sorter.is_active():
        for key in sorter.get_ready():
            heapq.heappush(ready, (position[key], key))
        _, earliest = heapq.heappop(ready)
        sorter.done(earliest)
        order.append(earliest)
    return order


def _started(events: Sequence[Event]) -> float:
    return events[0].time if events else 0.0


def _statements(events: Sequence[Event], way: str) -> set[str]:
    return {
        event.statement
        for event in events
        if isinstance(event, ArtifactLinked) and event.kind == way and event.statement
    }
