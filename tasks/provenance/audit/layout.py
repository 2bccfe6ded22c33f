"""Positions of the nodes of a layered graph: origins on top, the model at the bottom.

The usual three steps: every node one layer below its lowest parent; long edges bent
through the layers they cross; neighbours ordered by the mean place of what they hang on.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODE_WIDTH = 200.0
NODE_HEIGHT = 52.0
_GAP_X = 20.0
_GAP_Y = 46.0
_BEND_WIDTH = 6.0
_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Centres of the nodes, and the points every edge passes, in pixels."""

    width: float
    height: float
    centres: Mapping[str, tuple[float, float]]
    edges: Mapping[tuple[str, str], tuple[tuple[float, float], ...]]
    """(parent, child) -> points from the parent's lower edge to the child's upper edge."""


def layered_layout(parents: Mapping[str, Sequence[str]]) -> GraphLayout:
    """Lay out a graph without cycles, given every node's parents."""
    depth = _depths(parents)
    above: dict[str, list[str]] = defaultdict(list)
    routes: dict[tuple[str, str], list[str]] = {}
    layers: list[list[str]] = [[] for _ in range(max(depth.values(), default=0) + 1)]
    for node in parents:
        layers[depth[node]].append(node)
    for node, names in parents.items():
        for parent in names:
            route = [parent]
            for level in range(depth[parent] + 1, depth[node]):
                bend = f"{parent}>{node}@{level}"
                layers[level].append(bend)
                above[bend].append(route[-1])
                route.append(bend)
            above[node].append(route[-1])
            routes[parent, node] = route
    _order(layers, above)
    x = _columns(layers, above, set(parents))
    y = {
        name: level * (NODE_HEIGHT + _GAP_Y) + NODE_HEIGHT / 2
        for level, layer in enumerate(layers)
        for name in layer
    }
    half = NODE_HEIGHT / 2
    edges = {
        (parent, node): (
            (x[parent], y[parent] + half),
            *(point for bend in route[1:] for point in _through(x[bend], y[bend])),
            (x[node], y[node] - half),
        )
        for (parent, node), route in routes.items()
    }
    return GraphLayout(
        width=max(x.values(), default=0.0) + NODE_WIDTH / 2 + _GAP_X,
        height=len(layers) * (NODE_HEIGHT + _GAP_Y),
        centres={node: (x[node], y[node]) for node in parents},
        edges=edges,
    )


def _through(x: float, y: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Pass straight between the nodes of a layer."""
    return (x, y - NODE_HEIGHT / 2), (x, y + NODE_HEIGHT / 2)


def _depths(parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Length of the longest path from a node without parents."""
    depth: dict[str, int] = {}
    waiting = list(parents)
    while waiting:
        node = waiting[-1]
        unknown = [parent for parent in parents[node] if parent not in depth]
        if node not in depth and unknown:
            waiting += unknown
            continue
        waiting.pop()
        depth[node] = max((depth[parent] + 1 for parent in parents[node]), default=0)
    # A node without parents stands just above its first reader, not at the top of the page.
    readers = defaultdict(list)
    for node, names in parents.items():
        for parent in names:
            readers[parent].append(depth[node])
    for node, names in parents.items():
        if not names and readers[node]:
            depth[node] = min(readers[node]) - 1
    return depth


def _order(layers: list[list[str]], above: Mapping[str, Sequence[str]]) -> None:
    below: dict[str, list[str]] = defaultdict(list)
    for node, names in above.items():
        for name in names:
            below[name].append(node)
    for sweep in range(_SWEEPS):
        downward = sweep % 2 == 0
        linked = above if downward else below
        for layer in layers if downward else reversed(layers):
            place = {name: index for other in layers for index, name in enumerate(other)}
            means = {
                name: _mean([float(place[near]) for near in linked.get(name, ())], place[name])
                for name in layer
            }
            layer.sort(key=lambda name: means[name])


def _columns(
    layers: Sequence[Sequence[str]], above: Mapping[str, Sequence[str]], nodes: set[str]
) -> dict[str, float]:
    """Give every name an x: as near under its parents as its neighbours allow."""

    def space(name: str) -> float:
        return NODE_WIDTH if name in nodes else _BEND_WIDTH

    widths = [sum(space(name) + _GAP_X for name in layer) for layer in layers]
    widest = max(widths, default=0.0)
    x: dict[str, float] = {}
    for layer, width in zip(layers, widths, strict=True):
        left = 0.0
        free = widest - width
        for name in layer:
            half = space(name) / 2
            wish = _mean([x[parent] for parent in above.get(name, ())], left + free / 2 + half)
            shift = min(max(wish - half - left, 0.0), free)
            free -= shift
            left += shift
            x[name] = left + half + _GAP_X / 2
            left += space(name) + _GAP_X
    return x


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
