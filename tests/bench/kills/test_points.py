"""Points lie in every stage, and their table counts what became of the chains."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.bench.kills.command import Chain, Ending, page
from tests.bench.kills.points import Extent, Harm, Point, Watch, draw, over

EXTENTS = {"curate": Extent(10, 1.0), "release": Extent(20, 2.0), "tiny": Extent(1, 0.1)}


def test_every_stage_is_stopped_and_then_killed_in_every_chain():
    points = draw(EXTENTS, 3, seed=0)

    assert ["curate", "curate", "release", "release"] == [point.stage for point in points]
    for stopped, killed in zip(points[::2], points[1::2], strict=True):
        assert Harm.STOP == stopped.harm != killed.harm
        assert stopped.share <= killed.share
    assert points == draw(EXTENTS, 3, seed=0) != draw(EXTENTS, 4, seed=0)


def test_a_process_is_killed_before_the_operation_of_its_point(tmp_path):
    """The third file that is written is not there, and the point is on record."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.bench.kills.points import BEFORE, Extent, Harm, Point, Watch\n"
        "point = Point(BEFORE, Harm.KILL, False, 0.5)\n"
        "folder = Path(sys.argv[1])\n"
        "Watch(folder / 'journal', {BEFORE: Extent(4, 1.0)}, [(7, point)])\n"
        "for number in range(4):\n"
        "    (folder / str(number)).write_text('x')\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )

    assert -signal.SIGKILL == done.returncode
    assert ["0", "1"] == sorted(path.name for path in tmp_path.glob("[0-9]"))
    (line,) = over(tmp_path / "journal")
    assert (7, "hit", "kill") == (line["number"], line["what"], line["harm"])


def test_a_point_whose_stage_ends_without_it_is_missed(tmp_path):
    seen = []
    watch = Watch(
        tmp_path / "journal",
        {"opening": Extent(100, 1.0)},
        [(0, Point("opening", Harm.KILL, False, 0.9))],
        listen=seen.append,
    )
    watch.close()

    assert ["missed"] == [line["what"] for line in over(tmp_path / "journal")]


def test_points_of_a_chain_that_ended_otherwise_are_not_the_same():
    whole = Ending("w", "r", proved=True)
    point = {"number": 0, "what": "hit", "where": "time", "stage": "curate", "harm": "kill"}
    point |= {"timed": True, "share": 0.5}
    other = Ending("w", "other", proved=True)
    chains = [Chain(0, 2, [point], whole), Chain(1, 2, [point, point], other)]

    text = page(chains, whole)

    assert "| curate | 3 | 0 | 0 | 0 | 3 | 3 | 1 |" in text
    assert "release object as undisturbed: 1 of 2" in text
