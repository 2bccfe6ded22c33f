"""Which demonstrations an epoch learns from."""

from collections import Counter

from data_schemas.presets import RING_LITE
from data_schemas.rows import Domain
from tasks.training.sft.dataset import mixed

SIZES = {
    Domain.MATHS: 400,
    Domain.CODE: 300,
    Domain.SCIENCE: 250,
    Domain.GENERAL: 50,
    Domain.CHOICE: 20,
}
DOMAINS = [domain for domain, size in SIZES.items() for _ in range(size)]
EVERY = range(len(DOMAINS))


def test_ring_lites_mixture_has_its_shares_in_every_epoch():
    for epoch in (1, 2, 3):
        rows = mixed(DOMAINS, EVERY, RING_LITE.sft.domains, seed=7, epoch=epoch)

        counts = Counter(DOMAINS[row] for row in rows)
        assert 1000 == len(rows)
        assert {
            Domain.MATHS: 645,
            Domain.CODE: 255,
            Domain.SCIENCE: 92,
            Domain.GENERAL: 8,
        } == counts


def test_a_domain_shows_all_its_rows_before_it_repeats_one():
    weights = {Domain.MATHS: 3.0, Domain.SCIENCE: 1.0}
    epochs = [mixed(DOMAINS, EVERY, weights, seed=0, epoch=epoch) for epoch in (1, 2, 3, 4)]
    taken = Counter(row for rows in epochs for row in rows)

    for domain in weights:
        times = [taken[row] for row in EVERY if DOMAINS[row] is domain]
        assert max(times) - min(times) <= 1
    assert epochs[0] != epochs[1]


def test_without_weights_every_row_comes_once():
    assert [3, 5, 900] == mixed(DOMAINS, [3, 5, 900], {}, seed=0, epoch=2)
