"""Select the part of a response that is the program.

Fences are parsed as CommonMark (markdown-it-py). Three forms that models write are parsed only if
fences yield no program: a fence at the end of a line, a list item whose code is not indented with
it, and a block that is indented without a fence. The last block that defines the requested names is
selected, or, where a whole program is requested, the last block that is one. A block marked as
another language is selected only if there is no other. Without such a block the last block is
selected, and without any block the whole answer. Earlier blocks in Python that only import or
define, and bind a name that the selected program uses and does not bind, are put before it: an
answer may import in its first block.

The result is a text for every response, in time linear in its length.
"""

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tasks.gym.sandbox.toolchains import Language

MAX_PROGRAM_CHARACTERS = 50_000
_LABELS = {
    **dict.fromkeys(("python", "python2", "python3", "py", "py3"), Language.PYTHON),
    **dict.fromkeys(("cpp", "cc", "cxx", "c++", "c++11", "c++14", "c++17", "c++20"), Language.CPP),
    "java": Language.JAVA,
}
_MARKDOWN = ("markdown", "md")
_MAX_DEPTH = 3
_MOST_EARLIER = 3
"""Blocks put before a program: each is looked at with it once more."""
_ALL = "*"
"""Name of an import of everything."""
_NESTED = MarkdownIt("zero").enable(["fence", "list", "blockquote"])
_FLAT = MarkdownIt("zero").enable(["fence"])
_INDENTED = MarkdownIt("zero").enable(["code"])
_LABEL = re.compile(r"[\w+#]+")
_BARE = re.compile(r"[\w+#.-]*")
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Errors of `ast` on text that is not a program or is nested too deeply to compile."""
_READS = re.compile(r"\binput\b|\bstdin\b|\bopen\s*\(\s*0|\bfileinput\b|\bos\.read\b")
_COMMENTS_AND_STRINGS = re.compile(
    r"//[^\n]*|/\*(?:.*?\*/|.*)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n]){1,4}'", re.DOTALL
)
# Bounded repetitions keep the time linear.
_TYPE = r"\b(?:class|struct|union|interface|enum|record)\s{{1,9}}{0}\b"
_FUNCTION = r"\b{0}\s{{0,9}}\([^;{{}}]{{0,500}}\)[^;{{}}()=]{{0,100}}\{{"


@dataclass(frozen=True, slots=True)
class ProgramForm:
    """How the requested program is recognised."""

    language: Language
    names: frozenset[str] = frozenset()
    """Names the program defines, all or most of them; empty for a program that runs by itself."""
    reads_input: bool = False


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    is_foreign: bool
    """Marked as another language, or as something other than a program."""


def find_program(answer: str, form: ProgramForm) -> str:
    """Return the program in an answer, by the rules in the module's docstring."""
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    if form.language is Language.PYTHON and _fit(text, form):
        return text  # any fences in it are inside string literals
    blocks = _blocks(text, _NESTED, form.language)
    for candidates in (
        lambda: blocks,
        lambda: _blocks(_on_own_lines(text), _FLAT, form.language),
        lambda: _indented(text),
    ):
        choices = candidates()
        place = _choose(choices, form)
        if place is not None:
            chosen = choices[place].text
            earlier = [one.text for one in choices[:place] if not one.is_foreign]
            is_python = form.language is Language.PYTHON
            return _with_earlier(earlier, chosen) if is_python else chosen
    own = [block for block in blocks if not block.is_foreign] or blocks
    return own[-1].text if own else text


def _choose(blocks: list[_Block], form: ProgramForm) -> int | None:
    """Return the place of the last block that fits best; None if none fits."""
    ranked = [(_fit(one.text, form), not one.is_foreign, at) for at, one in enumerate(blocks)]
    fit, _, at = max(ranked, default=(0, False, 0))
    return at if fit else None


def _with_earlier(earlier: list[str], program: str) -> str:
    """Put earlier blocks that define what a program lacks before it, the last of them first."""
    result, count = program, 0
    missing = _missing(program) if earlier else set[str]()
    for text in reversed(earlier):
        if not missing or count == _MOST_EARLIER:
            break
        if len(text) + len(result) <= MAX_PROGRAM_CHARACTERS and (
            _bound_only(text) & {*missing, _ALL}
        ):
            result, count = f"{text.rstrip()}\n\n{result}", count + 1
            missing = _missing(result)
    return result


def _bound_only(text: str) -> set[str]:
    """Return the names that a block of nothing but imports and definitions binds."""
    try:
        tree = ast.parse(text)
    except _UNREADABLE:
        return set()
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return set(_defined(tree)) if all(isinstance(one, kinds) for one in tree.body) else set()


def _missing(program: str) -> set[str]:
    """Return the global names that a program uses and does not bind.

    None if it imports from __future__, which must stay its first statement, or everything of a
    module, which may bind them; none of what cannot be compiled.
    """
    try:
        tree = ast.parse(program)
        scopes = [symtable.symtable(program, "<answer>", "exec")]
    except _UNREADABLE:
        return set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (
            node.module == "__future__" or any(alias.name == _ALL for alias in node.names)
        ):
            return set()
    used, bound = set[str](), set(dir(builtins))
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        for symbol in scope.get_symbols():
            if scope.get_type() != "module" and not symbol.is_global():
                continue
            if symbol.is_referenced():
                used.add(symbol.get_name())
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                bound.add(symbol.get_name())
    return used - bound


def _blocks(text: str, reader: MarkdownIt, language: Language, depth: int = 0) -> list[_Block]:
    if "```" not in text and "~~~" not in text:
        return []
    tokens: list[Token] = []
    reader.block.parse(text, reader, {}, tokens)
    results: list[_Block] = []
    for token in tokens:
        if token.type != "fence":
            continue
        label = _LABEL.match(token.info.lstrip(" \t{."))
        word = label[0].lower() if label else ""
        inner = word in _MARKDOWN and depth < _MAX_DEPTH
        nested = _blocks(token.content, reader, language, depth + 1) if inner else []
        is_foreign = bool(word) and _LABELS.get(word) is not language
        results += nested or [_Block(token.content, is_foreign)]
    return results


def _indented(text: str) -> list[_Block]:
    tokens: list[Token] = []
    _INDENTED.block.parse(text, _INDENTED, {}, tokens)
    return [_Block(token.content, False) for token in tokens if token.type == "code_block"]


def _on_own_lines(text: str) -> str:
    """Move a fence that follows other text on its line to a separate line."""
    lines: list[str] = []
    for line in text.split("\n"):
        head, fence, label = line.partition("```")
        if fence and head.strip() and _BARE.fullmatch(label.strip("` \t")):
            lines += [head, fence + label]
        else:
            lines.append(line)
    return "\n".join(lines)


def _fit(text: str, form: ProgramForm) -> int:
    """Count the requested names that a text defines; without names, 1 if it is a program."""
    signs = form.names or ("(",)
    if len(text) > MAX_PROGRAM_CHARACTERS or not any(sign in text for sign in signs):
        return 0
    if form.language is not Language.PYTHON:
        code = _COMMENTS_AND_STRINGS.sub(" ", text)
        return 0 if "```" in code else sum(_declares(code, name) for name in form.names)
    try:
        tree = ast.parse(text)
    except _UNREADABLE:
        return 0
    if form.names:
        return len(form.names.intersection(_defined(tree)))
    runs = any(isinstance(node, ast.Call) for node in ast.walk(tree))
    return int(runs and (not form.reads_input or bool(_READS.search(text))))


def _declares(code: str, name: str) -> bool:
    kinds = (kind.format(re.escape(name)) for kind in (_TYPE, _FUNCTION))
    return any(re.search(kind, code) for kind in kinds)


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module binds at its top level."""
    results: list[ast.AST] = [tree]
    while results:
        match results.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case node:
                results += ast.iter_child_nodes(node)
