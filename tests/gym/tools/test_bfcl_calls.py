"""Calls in Python syntax against allowed values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.algorithms.tool_reward import ToolCall
from tasks.gym.tools.bfcl_calls import verify
from tasks.gym.tools.python_calls import parse_python_calls
from tests.tables import for_each

FUNCTIONS = [
    {
        "name": "shop.find",
        "parameters": {
            "type": "dict",
            "properties": {
                "q": {"type": "string"},
                "page": {"type": "integer"},
                "price": {"type": "float"},
                "new": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "where": {"type": "dict"},
            },
            "required": ["q"],
        },
    }
]


def gold(**parameters: list[object]) -> dict[str, object]:
    return {"calls": [{"name": "shop.find", "parameters": parameters}], "functions": FUNCTIONS}


FULL = gold(
    q=["Red Shoes", "shoes"],
    page=[1, 2, ""],
    price=[10.0, ""],
    new=[True, ""],
    tags=[["a", "b"], ""],
    where=[{"city": ["Bangkok", "BKK"], "zip": [10110, ""]}, ""],
)


@for_each(
    "response",
    [
        '[shop.find(q="shoes")]',
        'shop.find(q="red-shoes", page=2)',
        '```python\n[shop.find(q="shoes", price=10)]\n```',
        '[shop.find(q="shoes", new=True, tags=["A", "b"])]',
        '[shop.find(q="shoes", where={"city": "bkk"})]',
        '[shop.find(q="shoes", where={"city": "Bangkok", "zip": 10110})]',
        '{"name": "shop.find", "parameters": {"q": "shoes"}}',
        '<think>shop.find(q="bags")</think>[shop.find(q="shoes")]',
    ],
)
def test_every_allowed_form_scores_one(problem, response: str) -> None:
    assert "correct" == verify(problem("bfcl_calls", FULL), response).reason


@for_each(
    ("response", "detail"),
    [
        ('[shop.find(q="bags")]', "q is 'bags'"),
        ('[shop.find(q="shoes", page=3)]', "page is 3"),
        ('[shop.find(q="shoes", page=1.0)]', "not of type integer"),
        ('[shop.find(q="shoes", page="1")]', "not of type integer"),
        ('[shop.find(q="shoes", page=True)]', "not of type integer"),
        ('[shop.find(q="shoes", new=1)]', "not of type boolean"),
        ('[shop.find(q="shoes", tags=["b", "a"])]', "tags is"),
        ('[shop.find(q="shoes", tags=[1])]', "tags"),
        ('[shop.find(q="shoes", where={"city": "Hanoi"})]', "where is"),
        ('[shop.find(q="shoes", where={"zip": 10110})]', "where is"),
        ('[shop.find(q="shoes", color="red")]', "color is not expected"),
        ("[shop.find(page=1)]", "required q is missing"),
        ('[shop.buy(q="shoes")]', "called shop.buy"),
    ],
)
def test_every_departure_is_wrong_and_named(problem, response: str, detail: str) -> None:
    verdict = verify(problem("bfcl_calls", FULL), response)

    assert (0.0, "wrong") == (verdict.score, verdict.reason)
    assert detail in verdict.detail


def test_a_parameter_without_the_optional_mark_must_be_given(problem) -> None:
    verdict = verify(problem("bfcl_calls", gold(q=["shoes"], page=[1])), '[shop.find(q="shoes")]')

    assert "shop.find: page is missing" == verdict.detail


def test_parallel_calls_match_in_any_order_and_each_once(problem) -> None:
    two = {
        "calls": [
            {"name": "f", "parameters": {"a": [1, 2]}},
            {"name": "f", "parameters": {"a": [1]}},
        ]
    }

    # Greedy matching would give f(a=1) to the first and find nothing for the second.
    assert 1.0 == verify(problem("bfcl_calls", two), "[f(a=1), f(a=2)]").score
    assert 1.0 == verify(problem("bfcl_calls", two), "[f(a=2), f(a=1)]").score
    assert 0.0 == verify(problem("bfcl_calls", two), "[f(a=2), f(a=2)]").score
    assert "wrong_count" == verify(problem("bfcl_calls", two), "[f(a=1)]").reason


@for_each("response", ["f(1)", "f(a=b)", "f(**x)", "f(a=1", "1 + 1", "import os", "f(a=" * 2000])
def test_what_is_no_call_with_literals_is_unparsable(problem, response: str) -> None:
    one = {"calls": [{"name": "f", "parameters": {"a": [1]}}]}

    assert parse_python_calls(response) is None
    assert "unparsable_calls" == verify(problem("bfcl_calls", one), response).reason


@for_each(
    "response",
    [
        "f(a=4, a=5)",
        "f(a=5, a=5)",
        'f(a={"x": 4, "x": 5})',
        'f(a=[({"y": {"x": 4, "x": 5}},)])',
        '{"name": "f", "parameters": {"a": 4, "a": 5}}',
        '{"name": "f", "name": "f", "parameters": {"a": 5}}',
        '<tool_call>{"name": "f", "parameters": {"a": {"x": 1, "x": 1}}}</tool_call>',
    ],
)
def test_an_argument_or_a_key_that_stands_twice_is_unparsable(problem, response: str) -> None:
    gold = {"calls": [{"name": "f", "parameters": {"a": [5, {"x": [5, 1]}]}}]}

    assert "unparsable_calls" == verify(problem("bfcl_calls", gold), response).reason


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ('f(from="a", to="b")', ToolCall("f", {"from": "a", "to": "b"})),
        (
            '[Mail.import(class="x, from=1", in=[1])]',
            ToolCall("Mail.import", {"class": "x, from=1", "in": [1]}),
        ),
        ('f(\n  lambda="é",\n  is=True)', ToolCall("f", {"lambda": "é", "is": True})),
    ],
)
def test_an_argument_may_have_the_name_of_a_python_keyword(response, expected) -> None:
    assert [expected] == parse_python_calls(response)


@for_each("response", ["f(from)", "f(a=from)", "from(a=1", 'f(from="a', "f(from=lambda: 1)"])
def test_a_keyword_is_a_name_where_it_names_something_only(response) -> None:
    assert parse_python_calls(response) is None


def test_nothing_of_a_call_is_executed(tmp_path) -> None:
    touched = tmp_path / "touched"
    parse_python_calls(f"[f(a=open({str(touched)!r}, 'w'))]")

    assert not touched.exists()


NEEDLESS = {
    "json-prose": 'I will call it: {"name": "f", "parameters": {"a": 1}}',
    "json-arguments": '{"name": "f", "arguments": {"a": 1}}',
    "json-function": '{"function":"f","arguments":{}}',
    "json-key": 'Calling {"f": {"a": 1}}',
    "json-unclosed": '{"name": "f", "parameters": {"a": 1',
    "json-braces": "{" * 5000 + '{"name": "f", "parameters": {}}',
    "tag": "<function=f>",
    "list": "Sure: [f(a=1)]",
    "list-other": "I search: [web_search(q='x')]",
    "list-spaces": "So [ f( ) ] it is",
    "fence": "```python\nf( a = 1)\n```\nThis does it.",
    "position": "[f(1)]",
    "no-literal": "[f(a=x)]",
    "dots": "f.g(b='x') and then g(1)",
    "underscore": "Use f_g(b='x')",
    "space": "Now f (a=1)",
    "star": "Let me run f(**{'a': 1})",
    "keyword": "I run f(from='a')",
}


@for_each("response", NEEDLESS.values())
def test_where_nothing_is_to_be_called_a_call_that_cannot_be_read_is_wrong_too(problem, response):
    offered = [{"name": "f"}, {"name": "f.g"}, {"description": "no name"}]
    nothing = problem("bfcl_calls", {"calls": [], "functions": offered})

    assert "needless_call" == verify(nothing, response).reason


UNCALLED = {
    "names": "f() and g(a=1) do not help; f (of the shop) does not.",
    "signature": "f(base, height) needs two numbers, and f.g(x) one. If f(x) == 3, none helps.",
    "other": "In Python, sqrt(2) is 1.41 and half(x=3) is 1.5.",
    "list": "[1, 2] and [f] are lists.",
}


@pytest.mark.parametrize("response", UNCALLED.values(), ids=UNCALLED)
def test_where_nothing_is_to_be_called_the_name_of_a_function_is_no_call(problem, response):
    nothing = problem("bfcl_calls", {"calls": [], "functions": [{"name": "f"}, {"name": "f.g"}]})

    assert 1.0 == verify(nothing, response).score


def test_where_nothing_is_to_be_called_prose_is_right(problem) -> None:
    nothing = problem("bfcl_calls", {"calls": []})

    assert 1.0 == verify(nothing, "None of these functions helps.").score
    assert 1.0 == verify(nothing, "[]").score
    assert "needless_call" == verify(nothing, "[f(a=1)]").reason


def test_dotted_names_and_nested_literals_are_read() -> None:
    expected = [ToolCall("a.b", {"x": [{"y": (1, -2.5)}], "z": None})]

    assert expected == parse_python_calls('a.b(x=[{"y": (1, -2.5)}], z=None)')


def test_strings_keep_their_case_where_it_matters(problem) -> None:
    calls = [{"name": "f", "parameters": {"a": ["mapArea"], "b": [["x.Y"]], "c": [{"k": ["V"]}]}}]
    java = problem("bfcl_calls", {"calls": calls, "case_matters": True})
    python = problem("bfcl_calls", {"calls": calls})

    for verifier_gold, others in ((java, 0.0), (python, 1.0)):
        assert 1.0 == verify(verifier_gold, 'f(a="mapArea", b=["x. Y"], c={"k": "V"})').score
        assert others == verify(verifier_gold, 'f(a="MapArea", b=["x.Y"], c={"k": "V"})').score
        assert others == verify(verifier_gold, 'f(a="mapArea", b=["X.Y"], c={"k": "V"})').score
        assert others == verify(verifier_gold, 'f(a="mapArea", b=["x.Y"], c={"k": "v"})').score


ARGUMENTS = st.dictionaries(
    st.sampled_from("abc"), st.integers(0, 9) | st.text("xyz", min_size=1, max_size=3), max_size=3
)
MADE = st.lists(st.tuples(st.sampled_from(["f", "g.h"]), ARGUMENTS), min_size=1, max_size=4)


def written(calls) -> str:
    return ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls)


@given(made=MADE, data=st.data())
def test_order_case_and_space_do_not_matter_and_one_more_call_is_wrong(problem, made, data) -> None:
    allowed = [{"name": n, "parameters": {k: [v] for k, v in a.items()}} for n, a in made]
    one = problem("bfcl_calls", {"calls": allowed, "functions": []})
    text = written(data.draw(st.permutations(made)))
    shouted = written(
        [(n, {k: v.upper() if isinstance(v, str) else v for k, v in a.items()}) for n, a in made]
    )

    assert 1.0 == verify(one, f"[{text}]").score == verify(one, f" [ {shouted} ]\n").score
    assert 0.0 == verify(one, f"[{text}, f()]").score
    assert 0.0 == verify(one, f"[{text}] That is all.").score
