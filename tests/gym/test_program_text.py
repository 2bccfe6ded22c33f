"""Which part of a response is run: however it is fenced, the program asked for."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.gym.program_text import ProgramForm, find_program
from tasks.gym.sandbox.toolchains import Language
from tests.tables import for_each
from tests.timing import timed

ADD = "def add(a, b):\n    if a:\n        return a + b\n    return b\n"
WANTED = ProgramForm(Language.PYTHON, frozenset({"add"}))
READS = "a, b = map(int, input().split())\nprint(a + b)\n"
STDIO = ProgramForm(Language.PYTHON, reads_input=True)


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())


FENCED = f"```python\n{ADD}```\n"
USAGE = "Example usage:\n\n```python\nprint(add(1, 2))\n```\n\nOutput:\n\n```\n3\n```\n"


@for_each(
    "answer",
    [
        f"Here you are.\n\n{FENCED}\nDone.",
        f"```\n{ADD}```",
        f"```Python3\n{ADD}```",
        f"``` py title=x.py\n{ADD}```",
        f"```{{.python}}\n{ADD}```",
        f"~~~python\n{ADD}~~~\n",
        f"`````python\n{ADD}`````\n",
        f"```text\na b\n```\n\n{FENCED}",
        f"```bash\npip install x\n```\nThen\n{FENCED}",
        f"{FENCED}\n{USAGE}",
        f"{FENCED}\n```bash\npython add.py\n```\n",
        f'{FENCED}\n```json\n{{"add": 3}}\n```\n',
        f"{FENCED}\n```c\nint add(int a, int b);\n```\n",
        f"{FENCED}\n```text\ndef add(a, b):\n    a = 1\n    b = 2\n    return 3\n```\n",
        f"```python\ndef add(a, b):\n    return 0\n```\nBetter:\n{FENCED}",
        FENCED.replace("\n", "\r\n"),
        FENCED.replace("\n", "\r"),
        f"```python\n{ADD}",
        f"````markdown\n# Answer\n{FENCED}````\n",
        f"1. Write it:\n\n{indented(FENCED, '   ')}\n2. Run it.",
        f"- Write it:\n  {indented(FENCED, '  ').lstrip()}",
        f"> {indented(FENCED, '> ')[2:]}",
        indented(FENCED, "  "),
        indented(FENCED, "      "),
        f"The program: ```python\n{ADD}```",
        f"```python\n{ADD.rstrip()}```\nThat is it.",
        f"1. So:\n   ```python\n{ADD}   ```\n2. Done",
        f"Write it so:\n\n{indented(ADD, '    ')}\nThat adds them.",
        f"So:\n\n{indented(ADD, '    ')}\nUsage:\n\n    print(add(1, 2))\n",
        f"So:\r\n\r\n{indented(ADD, chr(9))}",
        ADD,
        f'"""Adds.\n\n```python\ndef add(a, b): ...\n```\n"""\n{ADD}',
    ],
)
def test_the_program_is_the_last_block_that_defines_the_function(answer: str) -> None:
    names: dict[str, object] = {}
    exec(find_program(answer, WANTED), names)
    add = names["add"]

    assert callable(add)
    assert [3, 2] == [add(1, 2), add(0, 2)]


@for_each(
    ("definition", "names"),
    [
        ("add = lambda a, b: a + b\n", {"add"}),
        ("from operator import add\n", {"add"}),
        (
            "try:\n    from x import add\nexcept ImportError:\n    def add(a, b): return 3\n",
            {"add"},
        ),
        ("class Node:\n    pass\ndef total(n): return 0\n", {"Node", "total", "i"}),
        ("async def add(a, b): return 3\n", {"add"}),
    ],
)
def test_a_definition_is_whatever_binds_the_name_in_the_module(definition, names) -> None:
    answer = f"```python\n{definition}```\n```python\nclass C:\n    def add(self): 'add'\n```\n"

    assert definition == find_program(answer, ProgramForm(Language.PYTHON, frozenset(names)))


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{READS}```\nInput:\n```\n1 2\n```\nOutput:\n```\n3\n```\n",
        f"```python\ndef solve(): ...\n```\nFull program:\n```python\n{READS}```\n",
        f"```python\n{READS}```\nTry it:\n```python\nprint(sum([1, 2]))\n```\n",
        READS,
    ],
)
def test_a_program_that_reads_is_the_last_block_that_does(answer: str) -> None:
    assert READS == find_program(answer, STDIO)


CPP = "int add(int a, std::vector<int>& b) {\n  return 1; // }\n}\n"
JAVA = (
    "class Solution {\n  public int add(int a, int[] b) throws Exception {\n    return 1;\n  }\n}\n"
)


IMPORTS = "import math\nfrom typing import List"
HELPER = "def half(a):\n    return math.floor(a / 2)"
MAIN = "def add(a: List, b):\n    return half(a) + b"


@for_each(
    ("blocks", "program"),
    [
        ((IMPORTS, HELPER, MAIN), f"{IMPORTS}\n\n{HELPER}\n\n{MAIN}"),
        (("from math import *", "def add(a, b):\n    return floor(a) + b"), None),
        (("import math", "def add(a, b):\n    import math\n    return math.floor(a)"), MAIN[:0]),
        (("import math\nprint(math)", "def add(a, b):\n    return math.floor(a)"), MAIN[:0]),
        (("import math", "def add(a, b):\n    return a + b"), MAIN[:0]),
        (("def half(a:", "def add(a, b):\n    return half(a)"), MAIN[:0]),
        (("import x", "from __future__ import annotations\ndef add(a: x, b): ..."), MAIN[:0]),
    ],
)
def test_earlier_blocks_that_only_define_what_the_program_lacks_belong_to_it(
    blocks: tuple[str, ...], program: str | None
) -> None:
    answer = "".join(f"Then:\n```python\n{block}\n```\n" for block in blocks)

    expected = "\n\n".join(blocks) if program is None else program or blocks[-1]
    assert expected == find_program(answer, WANTED).rstrip()


def test_an_import_before_the_program_that_reads_belongs_to_it() -> None:
    answer = f"```python\nimport math\n```\nand\n```python\n{READS}print(math.pi)\n```\n"

    assert f"import math\n\n{READS}print(math.pi)\n" == find_program(answer, STDIO)


@pytest.mark.parametrize(
    ("language", "source", "usage"),
    [
        (Language.CPP, CPP, "int main() { /* int add( */ std::cout << add(1, {}); }\n"),
        (Language.JAVA, JAVA, "int x = new Solution().add(1, null);\n"),
    ],
)
@pytest.mark.parametrize("names", [{"add"}])
def test_a_function_in_other_languages_is_found_by_its_body(language, source, usage, names) -> None:
    answer = f"```{language}\n{source}```\nUse:\n```{language}\n{usage}```\n```text\n1\n```\n"

    assert source == find_program(answer, ProgramForm(language, frozenset(names)))
    assert usage == find_program(answer, ProgramForm(language, frozenset({"no_such"})))


def test_a_class_counts_where_the_function_is_its_method() -> None:
    answer = f"```java\n{JAVA}```\n```java\nSolution s;\n```\n"

    assert JAVA == find_program(answer, ProgramForm(Language.JAVA, frozenset({"Solution"})))


@for_each(
    ("answer", "program"),
    [
        ("I cannot.", "I cannot."),
        ("", ""),
        ("```python\nx = 1\n```\n```text\nno\n```\n", "x = 1\n"),
        ("```text\nno\n```\n", "no\n"),
        ("```\n```", ""),
    ],
)
def test_without_the_function_it_is_the_last_block_or_everything(answer, program) -> None:
    assert program == find_program(answer, WANTED)


WANTEDS = [
    WANTED,
    STDIO,
    ProgramForm(Language.CPP, frozenset({"f", "main"})),
    ProgramForm(Language.JAVA, frozenset({"Solution"})),
]
FENCING = (
    "```",
    "~~~",
    "````",
    "`",
    "\n",
    "\r\n",
    "\t",
    "    ",
    "- ",
    "1. ",
    "> ",
    "python",
    "c++",
)
CODE = ("def add(a, b):", "return", "f(", ")", "{", "}", '"', "'", "/*", "*/", "//", "\\", "x", "=")
OTHER = ("\0", "\ud800", "markdown", "int main() {", "class Solution", "input()", "(", "not ", "-")
PIECES = st.sampled_from((*FENCING, *CODE, *OTHER))


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), st.sampled_from(WANTEDS))
def test_nothing_that_is_written_makes_the_reader_raise(answer: str, form: ProgramForm) -> None:
    assert isinstance(find_program(answer, form), str)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=6).map("".join),
    st.lists(PIECES, max_size=3).map("".join),
    st.sampled_from(WANTEDS),
)
def test_a_long_answer_takes_less_than_a_second(unit: str, start: str, form: ProgramForm) -> None:
    answer = start + unit * (100_000 // len(unit))

    seconds, _ = timed(partial(find_program, answer, form), 1.0)
    assert seconds < 1.0


LONG = (
    "f()",
    "f( ) ",
    "main(",
    "def add(a,b):0\n",
    "a.b",
    "1+",
    "x=",
    "```\n",
    "> ```\n",
    "x ```\n",
)


@pytest.mark.slow
@pytest.mark.parametrize("form", WANTEDS)
@pytest.mark.parametrize("unit", [*LONG, *CODE, *OTHER])
def test_a_long_block_takes_less_than_a_second(unit: str, form: ProgramForm) -> None:
    for fence, length in (("```python\n", 49_000), ("", 100_000)):
        answer = fence + unit * (length // len(unit))

        seconds, _ = timed(partial(find_program, answer, form), 1.0)
        assert seconds < 1.0


@given(
    st.lists(
        st.sampled_from(["Hm.", "- a", "```text\nx\n```", "    y", "> z", "1. b"]), max_size=5
    ),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "python", "py", "Python"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_stands_around_a_fenced_program_does_not_matter(around, fence, label, end) -> None:
    block = f"{fence}{label}\n{ADD}{fence}"
    answer = "\n\n".join([*around, block, *around]).replace("\n", end)

    assert ADD == find_program(answer, WANTED)
