"""What guard models are sent, and how their replies are read."""

import pytest

from data_schemas.rows import Message, Role
from tasks.curation.harm.chat_guard import ChatGuard, in_turns
from tasks.gym.judging.chat_client import ChatReply
from tasks.gym.judging.endpoint import FailedPrompt, ReplyFailure

CHAT = (Message(role=Role.USER, content="How do I bake a cake?"),)


@pytest.mark.parametrize(
    ("reply", "harmful"),
    [
        ("safe", False),
        ("\n\nsafe", False),
        ("unsafe\nS1,S9", True),
        ("Safety: Safe\nCategories: None", False),
        ("Safety: Unsafe\nCategories: Violent", True),
        ("Safety: Controversial\nCategories: Politically Sensitive Topics", True),
        ("<think>It asks for a cake: unsafe?</think>safe", False),
        (ChatReply("unsafe\nS2", "", 3, truncated=False), True),
        (ChatReply("safe", "harmless", 3, truncated=False), False),
        ("safe to say that this is unsafe", None),
        ("I can't help with that.", None),
        ("<think>It is safe", None),
        ("", None),
        (None, None),
        (FailedPrompt(ReplyFailure.LOST, "connection refused"), None),
    ],
)
def test_only_a_reply_that_begins_with_the_verdict_is_a_rating(reply, harmful):
    (rating,) = ChatGuard(lambda chats: [reply for _ in chats]).rate([CHAT])

    assert harmful is rating.harmful
    assert rating.detail


def test_the_detail_says_what_the_guard_said():
    replies = ["unsafe\nS1,S9", FailedPrompt(ReplyFailure.LOST, "connection refused")]

    ratings = ChatGuard(lambda _: replies).rate([CHAT, CHAT])

    assert ["unsafe S1,S9", "no_reply: connection refused"] == [one.detail for one in ratings]


def test_nothing_of_a_chat_is_left_out_of_its_turns():
    said = [
        (Role.SYSTEM, "You sell cakes."),
        (Role.USER, "One cake."),
        (Role.ASSISTANT, "call"),
        (Role.TOOL, "sold"),
        (Role.USER, "Thanks."),
        (Role.ASSISTANT, "Bye."),
    ]

    turns = in_turns([Message(role=role, content=content) for role, content in said])

    assert [
        (Role.USER, "You sell cakes.\nOne cake."),
        (Role.ASSISTANT, "call"),
        (Role.USER, "sold\nThanks."),
        (Role.ASSISTANT, "Bye."),
    ] == [(turn.role, turn.content) for turn in turns]
