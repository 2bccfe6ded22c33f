"""DARE's random drop: laws of the counter-based draw."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.algorithms.merging.drops import drop, kept_entries, stream_key

KEY = stream_key(0, 1, "model.norm.weight")


def test_the_draw_is_that_of_today():
    # Recorded: a merge repeated after an upgrade of numpy has to give the same bits.
    kept = kept_entries(KEY, 0.5, 0, 24)

    assert "011000101110100111000111" == "".join(str(int(value)) for value in kept)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_shards_of_a_tensor_are_drawn_as_the_whole(count, data):
    cut = data.draw(st.integers(0, count))

    whole = kept_entries(KEY, 0.3, 0, count)

    parts = [kept_entries(KEY, 0.3, 0, cut), kept_entries(KEY, 0.3, cut, count)]
    assert torch.equal(whole, torch.cat(parts))


def test_seed_parent_and_name_give_independent_draws():
    keys = [stream_key(*parts) for parts in ((0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b"))]
    draws = [kept_entries(key, 0.5, 0, 40_000).float() for key in keys]

    for place, one in enumerate(draws):
        for other in draws[:place]:
            # Four standard deviations of a share of 40,000 fair coins.
            assert 0.5 == pytest.approx(float((one == other).float().mean()), abs=0.01)


@pytest.mark.parametrize("density", [0.05, 0.5, 0.9])
def test_the_share_kept_is_the_density_and_the_mean_stays(density):
    vector = torch.ones(40, 1000)

    dropped = drop(vector, KEY, density)

    share = float((dropped != 0).float().mean())
    assert density == pytest.approx(share, abs=0.01)
    torch.testing.assert_close(dropped[dropped != 0].unique(), torch.tensor([1.0 / density]))


def test_density_one_keeps_every_entry():
    vector = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))

    assert torch.equal(vector, drop(vector, KEY, 1.0))
    assert bool(kept_entries(KEY, 1.0, 0, 10_000).all())


def test_a_density_near_zero_keeps_nothing():
    assert not drop(torch.ones(100), KEY, 1e-12).any()
