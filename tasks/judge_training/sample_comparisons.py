"""Comparisons of the sample world: titles of three qualities, so that a tie has a meaning.

A task asks for a tidy title. An answer holds the title or not, and shouts or not: a tidy title
(quality 2), a title with shouting (1), nothing but shouting (0). Two answers of one quality in
other words are a tie. It is much easier than what people compare: a model of a million weights
learns it in minutes, so that the whole course from comparisons to a judge can be watched.
"""

import itertools
import random

from tasks.judge_training.pairs import ComparisonPair
from tasks.marketplace.words import BRANDS, LANGUAGES, Language
from tasks.rewards.judging.form import Label

TASKS = 180
ANSWERS = 4
"""Of every task; all their pairs are compared."""
QUALITIES = (0, 1, 2)


def sample_comparisons(seed: int) -> list[ComparisonPair]:
    """Draw every pair of the answers to every task; no task twice."""
    rng = random.Random(seed)
    tasks: dict[str, dict[str, int]] = {}
    while len(tasks) < TASKS:
        task, answers = _draw(rng)
        tasks.setdefault(task, answers)
    return [
        ComparisonPair(
            id=f"sample/{place}/{number}",
            task=task,
            answer_a=first,
            answer_b=second,
            label=_label(answers[first], answers[second]),
            annotators=(),
        )
        for place, (task, answers) in enumerate(tasks.items())
        for number, (first, second) in enumerate(itertools.combinations(answers, 2))
    ]


def _draw(rng: random.Random) -> tuple[str, dict[str, int]]:
    """One task, and its answers with their quality; not all of one quality."""
    language = rng.choice(LANGUAGES)
    good = rng.choice(rng.choice(language.goods))
    words = [rng.choice(BRANDS), rng.choice(language.colours), good]
    rng.shuffle(words)
    qualities = rng.choices(QUALITIES, k=ANSWERS)
    while len(set(qualities)) == 1:
        qualities = rng.choices(QUALITIES, k=ANSWERS)
    answers: dict[str, int] = {}
    for quality in qualities:
        # Another wording until it is new; every quality has more wordings than are asked for.
        while (answer := _answer(rng, language, words, quality)) in answers:
            pass
        answers[answer] = quality
    return f"{language.tidy} {' '.join(words)}", answers


def _answer(rng: random.Random, language: Language, words: list[str], quality: int) -> str:
    title = rng.sample(words, len(words)) if quality > 0 else []
    shouts = [f"{language.sale}!"] * (rng.randint(2, 5) if quality < 2 else 0)
    return " ".join([*title, *shouts])


def _label(first: int, second: int) -> Label:
    if first == second:
        return Label.TIE
    return Label.A if first > second else Label.B
