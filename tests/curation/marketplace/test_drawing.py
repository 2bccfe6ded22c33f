"""Laws of every domain's items: answers agree with their verifiers, nothing repeats."""

import random
from itertools import islice

import pytest

from data_schemas.rows import Domain
from tasks.curation.marketplace.drawing import DRAWERS, LEVELS, SCHOOL, draw_items
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.curation.marketplace.words import LANGUAGES
from tasks.gym.table import VERIFIERS
from tasks.store.files import canonical_json
from tests.records import problem_of

DOMAINS = [*DRAWERS, *SCHOOL]
# Code answers run in a sandbox, about 50 ms each.
AMOUNT = {domain: 15 if domain is Domain.CODE else 200 for domain in DOMAINS}


def _drawn(domain, *, seed=0, problems=True):
    return list(islice(draw_items(random.Random(seed), domain, problems=problems), AMOUNT[domain]))


def _score(item, response):
    problem = problem_of(
        item.prompt,
        canonical_json(item.answer).decode(),
        id="p",
        domain=item.domain,
        language=item.language,
        verifier=item.verifier,
        level=item.level,
    )
    return VERIFIERS[item.verifier](problem, response).score


@pytest.mark.parametrize("domain", DOMAINS)
def test_careful_and_terse_responses_get_full_marks(domain):
    for item in _drawn(domain):
        assert 1.0 == _score(item, item.careful), item
    for item in _drawn(domain)[:15]:
        assert 1.0 == _score(item, item.terse), item


@pytest.mark.parametrize("domain", DOMAINS)
def test_hasty_responses_are_mostly_wrong(domain):
    scores = [_score(item, item.hasty) for item in _drawn(domain)]

    assert sum(score == 1.0 for score in scores) <= 0.1 * len(scores)


@pytest.mark.parametrize("domain", DOMAINS)
def test_prompts_never_repeat_and_all_levels_appear(domain):
    items = _drawn(domain)

    assert len(items) == len({item.prompt for item in items})
    assert set(LEVELS) == {item.level for item in items}


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_is_asked_and_what_is_taught_never_meet(domain):
    asked = {item.prompt for item in _drawn(domain, seed=1, problems=True)}
    taught = {item.prompt for item in _drawn(domain, seed=2, problems=False)}

    assert not asked & taught
    assert all(map(is_problem_prompt, asked))


def test_choice_speaks_all_eight_languages():
    languages = {item.language for item in _drawn(Domain.CHOICE)}

    assert {"en", "zh-TW", "id", "ms", "pt", "th", "vi", "fil"} == languages


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.tag)
def test_categories_and_goods_of_a_language_are_distinct(language):
    goods = [good for row in language.goods for good in row]

    assert len(goods) == len(set(goods)) == 24
    assert len(set(language.categories)) == 8
