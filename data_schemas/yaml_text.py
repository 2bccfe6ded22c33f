"""YAML as version 1.2 means it (yaml.org/spec/1.2.2, core schema), which JSON is a part of.

PyYAML reads version 1.1, in which `1:30` is 90, `010` is 8, `on` is true, `2026-01-02` is no text
and `1e-6` is no number; of a key that is given twice it takes the last.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import yaml

_TAG = "tag:yaml.org,2002:"
_SCALARS: Mapping[str, re.Pattern[str]] = {
    "null": re.compile(r"(?:~|null|Null|NULL|)\Z"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"),
    "int": re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
    "float": re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
"""Plain scalars that are no text, in the order of the specification (10.3.2)."""
_MERGE = "<<"
"""Key that merges, of yaml.org/type/merge.html; no part of 1.2, but most readers know it."""
_MOST_COPIES = 100
"""Values by aliases, times those that are written: ten lines of aliases can mean 10**9 values."""


def load_yaml(text: bytes | str) -> object:
    """Read one document of YAML or JSON.

    Raises:
        ValueError: it is neither, gives a key twice, is nested too deeply, or its aliases make too
            much of it. A predicate of one line, for the caller to say of which file.
    """
    try:
        loader = cast("Any", _Loader(text))
        node = loader.get_single_node()
        if node is None:
            return None
        _require_one_meaning(node)
        return loader.construct_document(node)
    except RecursionError as error:
        raise ValueError("is nested too deeply to be read") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from error


def is_text(plain: str) -> bool:
    """Whether a scalar without quotes is text: `1e3` and `0o17` are numbers, and text in 1.1."""
    return not any(pattern.match(plain) for pattern in _SCALARS.values())


def differs_in_1_1(text: bytes | str) -> str:
    """Name the first plain scalar that YAML 1.1 takes for another value; '' if there is none.

    What 1.1 takes for text (`1e-6`) does not count: whoever needs a number reads one in it.

    Raises:
        ValueError: as `load_yaml` does.
    """
    load_yaml(text)
    top = _Loader(text).get_single_node()
    waiting = [] if top is None else [top]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.value != _MERGE:
            try:
                old: object = yaml.safe_load(node.value)
            except (yaml.YAMLError, ValueError):
                return node.value
            # As text, because .nan is not equal to itself.
            if not isinstance(old, str) and repr(old) != repr(load_yaml(node.value)):
                return node.value
        waiting += _parts(node)[::-1]
    return ""


class _Loader(yaml.SafeLoader):
    """Knows the tags of the core schema, and no others (`!!timestamp`, `!!binary`)."""


def _require_one_meaning(top: yaml.Node) -> None:
    """Refuse keys that are given twice, and aliases inside of themselves or of very much.

    Raises:
        ValueError: names the line.
    """
    sizes: dict[int, int] = {}
    above: set[int] = set()

    def size(node: yaml.Node) -> int:
        key, line = id(node), node.start_mark.line + 1
        if key in above:
            raise ValueError(f"has an alias inside of itself, in line {line}")
        if key not in sizes:
            above.add(key)
            if isinstance(node, yaml.MappingNode):
                _require_single_keys(node)
            sizes[key] = 1 + sum(map(size, _parts(node)))
            above.remove(key)
        return sizes[key]

    if (values := size(top)) > _MOST_COPIES * len(sizes):
        raise ValueError(f"has aliases that make {values} values of {len(sizes)}; write them out")


def _require_single_keys(node: yaml.MappingNode) -> None:
    # As text: JSON, which settings become, has no other keys.
    keys: set[str] = set()
    for key, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
        text, line = str(key.value), key.start_mark.line + 1
        if text in keys:
            raise ValueError(f"has the key {text} twice, in line {line} again; give it once")
        keys.add(text)


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
        return [one for pair in pairs for one in pair]
    return cast("list[yaml.Node]", node.value) if isinstance(node, yaml.SequenceNode) else []


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    text = str(loader.construct_scalar(node))
    if not _SCALARS["bool"].match(text):  # `!!bool word`
        problem = f"{text[:20]!r} is neither true nor false"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return text.lower() == "true"


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    try:
        return int(text, base)
    except ValueError as error:  # more digits than Python reads
        problem = f"{text[:20]}... is no whole number that can be read"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node))
    try:
        return float(re.sub(r"\.(?=[inIN])", "", text))
    except ValueError as error:  # `!!float word`
        problem = f"{text[:20]!r} is no number"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


_CONSTRUCTORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "null": lambda _loader, _node: None,
    "bool": _boolean,
    "int": _integer,
    "float": _float,
    "str": lambda loader, node: loader.construct_scalar(node),
    "seq": lambda loader, node: loader.construct_sequence(node, deep=True),
    "map": lambda loader, node: loader.construct_mapping(node, deep=True),
}
_TABLES = cast("Any", _Loader)
_TABLES.yaml_implicit_resolvers, _TABLES.yaml_constructors = {}, {}
for _name, _pattern in _SCALARS.items():
    _TABLES.add_implicit_resolver(_TAG + _name, _pattern, None)
_TABLES.add_implicit_resolver(f"{_TAG}merge", re.compile(rf"{_MERGE}\Z"), None)
for _name, _construct in _CONSTRUCTORS.items():
    _TABLES.add_constructor(_TAG + _name, _construct)
_TABLES.add_constructor(None, _TABLES.construct_undefined)
