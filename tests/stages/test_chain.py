"""Chains: what is wired, in which order, and what a chain without a link or a name says."""

from types import SimpleNamespace

import pytest

from tasks.stages.chain import leading_to, link, renamed, wire


def double(number, more=0):
    return SimpleNamespace(sum=2 * number + more)


def total(numbers):
    return sum(numbers)


NUMBERS = (
    link("two", double, number="one"),
    link("five", double, number="two.sum", constants={"more": 1}),
    link("unused", double, number="one"),
    link("all", total, numbers=["one", "two.sum", "five.sum"]),
)


def test_a_chain_hands_every_result_to_those_who_read_it():
    assert 1 + 2 + 5 == wire(NUMBERS, one=1)["all"]


def test_an_attribute_is_taken_anew_for_every_input():
    class Promise:
        taken = 0

        @property
        def sum(self):
            self.taken += 1
            return 1

    promise = Promise()
    wire((link("a", double, number="p.sum"), link("b", double, number="p.sum")), p=promise)

    assert 2 == promise.taken


def test_a_part_of_a_chain_has_what_its_results_need_and_nothing_else():
    assert ["two", "five"] == [one.result for one in leading_to(NUMBERS, "five")]
    assert ["two", "five", "all"] == [one.result for one in leading_to(NUMBERS, "all")]
    assert ["two", "unused"] == [one.result for one in leading_to(NUMBERS, "unused", "two")]


def test_a_chain_under_other_names_reads_a_value_or_an_attribute_of_one():
    inner = SimpleNamespace(first=3)

    assert 3 + 6 + 13 == wire(renamed(NUMBERS, one="lesson.first"), lesson=inner)["all"]


def test_an_input_that_no_link_makes_and_a_result_that_two_make_are_named():
    with pytest.raises(AssertionError, match="nothing before 'five' in its chain is called 'two'"):
        wire(NUMBERS[1:], one=1)
    with pytest.raises(AssertionError, match="two values of a chain are called 'two'"):
        wire((*NUMBERS, NUMBERS[0]), one=1)
