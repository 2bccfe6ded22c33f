"""Counting and remembering what a judge is asked."""

from concurrent.futures import ThreadPoolExecutor

from data_schemas.rows import Message, Role
from tasks.gym.judging.calls import CachedJudge, CallCounter
from tasks.gym.judging.protocol import JudgeCalls
from tasks.gym.judging.scripted import ScriptedJudge


def prompt(text):
    return (Message(role=Role.USER, content=text),)


def test_counts_from_many_threads_are_all_counted():
    calls = CallCounter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: calls.add(asked=2, retried=1), range(500)))

    assert JudgeCalls(asked=1000, retried=500) == calls.snapshot


def test_a_ledger_charges_the_difference_of_two_snapshots():
    judge = ScriptedJudge(str.upper)
    before = judge.calls
    judge.ask([prompt("a"), prompt("b")])

    assert JudgeCalls(asked=2) == judge.calls.since(before)


def test_equal_prompts_are_asked_once_and_counted():
    judge = CachedJudge(ScriptedJudge(str.upper, name="loud"))

    assert ["A", "B", "A"] == judge.ask([prompt("a"), prompt("b"), prompt("a")])
    assert ["B", "C"] == judge.ask([prompt("b"), prompt("c")])
    assert JudgeCalls(asked=3, cached=2) == judge.calls
    assert "loud" == judge.name


def test_silence_is_not_remembered():
    replies = iter([None, "up again"])
    judge = CachedJudge(ScriptedJudge(lambda _: next(replies)))

    assert [None] == judge.ask([prompt("a")])
    assert ["up again"] == judge.ask([prompt("a")])
    assert JudgeCalls(asked=2, failed=1) == judge.calls


def test_memory_is_bounded_and_forgets_what_was_not_used():
    judge = CachedJudge(ScriptedJudge(str.upper), max_replies=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        judge.ask([prompt(text)])

    # `b` was forgotten when `c` came, because `a` had been used since.
    assert JudgeCalls(asked=4, cached=2) == judge.calls
