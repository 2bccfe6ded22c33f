"""Scores of a classifier, whatever the length of the text; and classifiers nobody can read."""

import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast

from data_schemas.rows import Message, Role
from tasks.curation.harm.text_classifier import TextClassifier, harmful_labels
from tasks.errors import SettingsError

FILLER = "how buy the red cake " * 20


def user(*texts: str) -> tuple[Message, ...]:
    return tuple(Message(role=Role.USER, content=text) for text in texts)


def test_a_harmful_word_is_found_in_any_window_of_any_turn(text_classifier):
    chats = [
        user("how bake the cake"),
        user("how bake the bomb"),
        user(FILLER),
        user(FILLER + "bomb"),
        user("bomb " + FILLER),
        user(FILLER + "bomb " + FILLER, "buy the cake"),
        user("buy the cake", "the bomb"),
    ]

    ratings = TextClassifier(text_classifier).rate(chats)

    assert [False, True, False, True, True, True, True] == [one.harmful for one in ratings]
    assert re.fullmatch(r"toxic (0\.\d\d|1\.00), bound 0\.50", ratings[1].detail)


def test_a_chat_is_rated_the_same_in_any_company(text_classifier):
    guard = TextClassifier(text_classifier)
    chats = [user(FILLER), user("the bomb"), user("shop")]

    assert guard.rate(chats) == [guard.rate([chat])[0] for chat in chats]
    assert [] == guard.rate([])


def test_a_chat_without_text_is_no_rating(text_classifier):
    silent, cake = TextClassifier(text_classifier).rate([user("", " "), user("", "the cake")])

    assert (None, "there is no text to rate") == (silent.harmful, silent.detail)
    assert cake.harmful is False


def test_a_tokenizer_that_does_not_return_what_it_cuts_off_is_refused(text_classifier, monkeypatch):
    monkeypatch.setattr(PreTrainedTokenizerFast, "is_fast", False)

    with pytest.raises(SettingsError, match=r"has no fast tokenizer.* Add its tokenizer\.json"):
        TextClassifier(text_classifier)


def test_a_label_of_several_is_enough(relabelled):
    several = relabelled(
        id2label={0: "insult", 1: "threat"}, problem_type="multi_label_classification"
    )

    (rating,) = TextClassifier(several).rate([user("the bomb")])

    assert rating.harmful
    assert rating.detail.startswith("threat ")


def test_a_score_that_is_no_number_is_no_rating(relabelled):
    broken = relabelled()
    weights = load_file(broken / "model.safetensors")
    weights["classifier.bias"] *= float("nan")
    save_file(weights, broken / "model.safetensors", metadata={"format": "pt"})

    (rating,) = TextClassifier(broken).rate([user("the cake")])

    assert rating.harmful is None


def test_a_head_that_the_folder_lacks_is_not_drawn_at_random(relabelled):
    headless = relabelled()
    weights = load_file(headless / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, headless / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(SettingsError, match=r"lacks the tensors \['classifier\.weight'\]"):
        TextClassifier(headless)


@pytest.mark.parametrize(
    ("labels", "harmful"),
    [
        (["non-toxic", "toxic"], [1]),
        (["hate", "nothate"], [0]),
        (["neutral", "toxic"], [1]),
        (["BENIGN", "INJECTION", "JAILBREAK"], [1, 2]),
        (["OK", "S", "V2"], [1, 2]),
    ],
)
def test_labels_of_published_classifiers_are_known(labels, harmful):
    assert harmful == harmful_labels(labels, Path("x"), is_multi=False)


@pytest.mark.parametrize("labels", [["LABEL_0", "LABEL_1"], ["safe", "benign"]])
def test_labels_that_do_not_say_what_is_harmful_are_refused(labels):
    with pytest.raises(SettingsError, match=rf"are {', '.join(labels)}\. Name the one"):
        harmful_labels(labels, Path("x"), is_multi=False)
