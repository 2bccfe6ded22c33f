"""The benchmark's table: what it divides by what."""

from tests.bench.rl_step import PARTS, Turn, summary, table


def test_the_table_compares_turn_by_turn_and_says_where_our_time_goes():
    parts = dict.fromkeys(PARTS, 0.1)
    ours = [Turn(1000, 1.0, parts), Turn(1000, 1.0, parts), Turn(2000, 1.0, parts)]
    theirs = [Turn(500, 1.0), Turn(250, 1.0), Turn(1000, 1.0)]

    lines = table(summary(ours, theirs) | {"by_clock": False}).splitlines()

    assert lines[0] == "ours     1000 generated tokens per CPU s, 1.00 s a step"
    assert lines[2] == "ratio 2.00 (median of 3 turns, 2.00 to 4.00)"
    assert lines[-1].split() == ["the", "rest", "60.0%"]
