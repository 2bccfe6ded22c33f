"""Lists and objects that a cell writes as text, and texts that only begin like one."""

from tasks.curation.readers.written_values import MAX_CHARACTERS, written_value
from tests.tables import for_each


@for_each(
    ("cell", "value"),
    [
        ('["red", "blue"]', ["red", "blue"]),
        ("['red', \"Ann's\"]", ["red", "Ann's"]),
        (' {"a": [1, null]}', {"a": [1, None]}),
        ("{'a': None}", {"a": None}),
        ("[1] is a source", "[1] is a source"),
        ("[__import__('os').getcwd()]", "[__import__('os').getcwd()]"),
        ("{1, 2}", "{1, 2}"),
        ("[1, NaN]", "[1, NaN]"),
        (r"['\sqrt{2}']", r"['\sqrt{2}']"),
        (r"['\\sqrt{2}']", [r"\sqrt{2}"]),
        ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ("[{'a': 1, 'a': 2}]", "[{'a': 1, 'a': 2}]"),
        ("[{'a': 1}, {'a': 2}]", [{"a": 1}, {"a": 2}]),
        ("red", "red"),
        (7, 7),
        ("[" * 9000 + "]" * 9000, "[" * 9000 + "]" * 9000),
        ("[1" + ",1" * MAX_CHARACTERS + "]", "[1" + ",1" * MAX_CHARACTERS + "]"),
    ],
)
def test_a_list_or_object_is_read_and_everything_else_stays_text(cell, value):
    assert value == written_value(cell)
