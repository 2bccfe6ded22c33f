"""From settings to a judge."""

import pytest

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Message, Role
from tasks.engines.scoring import open_judge
from tasks.errors import SettingsError
from tasks.gym.judging.http_judge import API_KEY
from tasks.gym.judging.no_judge import NoJudge
from tasks.gym.judging.protocol import JudgeCalls

PROMPT = (Message(role=Role.USER, content="?"),)


def test_settings_without_a_judge_are_refused_with_the_fix():
    with pytest.raises(SettingsError, match=r"rewards\.judge\.kind is none\. Set it to 'http'"):
        open_judge(JudgeSettings())


def test_where_no_judge_is_set_only_who_needs_one_is_refused():
    judge = NoJudge()

    assert ("none", JudgeCalls()) == (judge.name, judge.calls)
    with pytest.raises(SettingsError, match=r"rewards\.judge\.kind is none"):
        judge.ask([PROMPT])


def test_an_endpoint_is_opened_with_the_key_of_the_environment(monkeypatch):
    settings = JudgeSettings(kind=JudgeKind.HTTP, address="http://localhost:1/v1", model="genrm")

    assert "genrm at http://localhost:1/v1" == open_judge(settings).name
    monkeypatch.setenv(API_KEY, "broken\nkey")
    with pytest.raises(SettingsError, match=API_KEY):
        open_judge(settings)


def test_a_model_is_opened_and_remembers_its_replies(tiny_moe):
    judge = open_judge(JudgeSettings(kind=JudgeKind.MODEL, address=str(tiny_moe)))
    judge.ask([PROMPT])
    judge.ask([PROMPT])

    assert JudgeCalls(asked=1, cached=1) == judge.calls
