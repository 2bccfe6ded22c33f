"""Scripted shoppers, measured."""

from tests.bench.shoppers import measure


def test_only_who_asks_for_all_wishes_meets_them_and_calls_more_tools():
    found = measure(2, 20)

    assert 1.0 == found["careful"]["accuracy"]
    assert max(found["hasty"]["accuracy"], found["reader"]["accuracy"]) < 0.6
    assert [2.0, 7.0, 9.0] == [found[name]["mean_calls"] for name in ("hasty", "reader", "careful")]
