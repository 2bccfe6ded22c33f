"""The drawing: parents above, nothing on top of anything else."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.provenance.audit.layout import NODE_HEIGHT, NODE_WIDTH, layered_layout


@st.composite
def graphs(draw) -> dict[str, list[str]]:
    """Any graph without cycles of up to 12 nodes."""
    count = draw(st.integers(1, 12))
    return {
        str(node): [str(parent) for parent in range(node) if draw(st.booleans())]
        for node in range(count)
    }


def test_a_chain_runs_straight_down():
    layout = layered_layout({"model": ["merge"], "merge": ["base"], "base": []})

    assert ["base", "merge", "model"] == sorted(layout.centres, key=lambda n: layout.centres[n][1])
    assert 1 == len({x for x, _ in layout.centres.values()})
    (first, last) = layout.edges["base", "merge"]
    assert (
        layout.centres["base"][1] + NODE_HEIGHT / 2,
        layout.centres["merge"][1] - NODE_HEIGHT / 2,
    ) == (
        first[1],
        last[1],
    )


def test_raw_files_stand_just_above_their_reader():
    parents = {"a": [], "b": ["a"], "c": ["b", "raw"], "raw": []}
    layout = layered_layout(parents)

    assert layout.centres["b"][1] == layout.centres["raw"][1]


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_parents_lie_above_and_nothing_overlaps(parents):
    layout = layered_layout(parents)
    centres = layout.centres

    assert parents.keys() == centres.keys()
    for node, names in parents.items():
        for parent in names:
            assert centres[parent][1] < centres[node][1]
            assert (parent, node) in layout.edges
    for node, (x, y) in centres.items():
        assert NODE_WIDTH / 2 <= x <= layout.width - NODE_WIDTH / 2
        assert NODE_HEIGHT / 2 <= y <= layout.height - NODE_HEIGHT / 2
        for other, (other_x, other_y) in centres.items():
            assert node == other or y != other_y or abs(x - other_x) >= NODE_WIDTH
