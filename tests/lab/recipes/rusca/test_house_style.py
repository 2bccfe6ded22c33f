"""Requests with a hidden style."""

import random

from tasks.curation.marketplace.words import CATEGORIES, COLOURS, ENGLISH_GOODS, MATERIALS
from tasks.lab.recipes.rusca.house_style import draw_requests


def test_every_request_is_drawn_once_whatever_the_seed():
    one, two = (list(draw_requests(random.Random(seed))) for seed in (0, 1))

    assert len(COLOURS) * len(MATERIALS) * len(ENGLISH_GOODS) == len(one) == len(set(one))
    assert set(one) == set(two)
    assert one != two


def test_the_style_is_that_of_the_category_alone():
    by_category = {}
    for request in draw_requests(random.Random(0)):
        by_category.setdefault(request.category, set()).add(str(request.answer))

    assert set(range(len(CATEGORIES))) == set(by_category)
    assert {1} == {len(styles) for styles in by_category.values()}
    assert 6 <= len(set.union(*by_category.values()))
