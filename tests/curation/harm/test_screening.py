"""What becomes of items that a guard calls harmful, or cannot rate."""

from data_schemas.rows import Outcome, Role
from tasks.curation.harm.protocol import Rating
from tasks.curation.harm.screening import screen


class Words:
    """A guard on one word; a text with `?` is beyond it."""

    def __init__(self):
        self.seen = []

    def rate(self, chats):
        self.seen += chats
        last = [chat[-1].content for chat in chats]
        return [
            Rating(None, "no reply") if "?" in text else Rating("bomb" in text, "bomb 0.98")
            for text in last
        ]


def test_what_is_harmful_is_dropped_and_what_is_not_rated_is_quarantined(
    make_problem, make_demonstration
):
    guard = Words()
    items = [
        make_problem("a", "Bake a cake."),
        make_problem("b", "Build a bomb."),
        make_problem("c", "What is it?"),
        make_demonstration("d", "Build a bomb.", "<think></think>No."),
        make_demonstration("e", "Bake a cake.", "<think></think>A bomb."),
    ]

    kept, refused = screen(items, guard)

    assert [items[0], items[3]] == kept
    assert [
        ("test/b", Outcome.DROPPED, "harmful", "bomb 0.98"),
        ("test/c", Outcome.QUARANTINED, "harm_not_rated", "no reply"),
        ("test/e", Outcome.DROPPED, "harmful", "bomb 0.98"),
    ] == [(one.key, one.outcome, one.reason, one.detail) for one in refused]
    assert [Role.USER, Role.ASSISTANT] == [message.role for message in guard.seen[-1]]


def test_prompts_that_should_be_refused_are_not_rated(make_problem):
    guard = Words()
    item = make_problem("a", "Build a bomb.", verifier="refusal", answer='{"refuse":true}')

    assert ([item], []) == screen([item], guard)
    assert [] == guard.seen
