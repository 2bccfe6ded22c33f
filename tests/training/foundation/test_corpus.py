"""The pretraining corpus is seeded and never contains a prompt that may be asked."""

from itertools import islice

from tasks.curation.marketplace.items import is_problem_prompt
from tasks.training.foundation.corpus import documents


def test_the_same_seed_gives_the_same_documents():
    first, second = (list(islice(documents(3), 200)) for _ in range(2))

    assert first == second
    assert first != list(islice(documents(4), 200))


def test_no_question_that_may_be_asked_is_taught():
    questions = [
        text.removeprefix("Q: ").split("\nWork: ")[0].split("\nA: ")[0]
        for text in islice(documents(0), 3000)
        if text.startswith("Q: ")
    ]

    assert len(questions) > 1000
    assert not any(is_problem_prompt(question) for question in questions)


def test_few_documents_are_chat_and_none_shows_the_think_format():
    texts = list(islice(documents(0), 3000))
    chat = sum(text.startswith("<|im_start|>") for text in texts) / len(texts)

    assert 0.05 < chat < 0.13
    assert not any("think>" in text for text in texts)
