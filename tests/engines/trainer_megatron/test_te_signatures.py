"""The stand-in of Transformer Engine takes what Transformer Engine takes.

The sources are read, not imported: they need neither its kernels nor a GPU, and an unpacked wheel
on PYTHONPATH is enough.
"""

import ast
import importlib.util
import inspect
import textwrap
from pathlib import Path

import pytest

from tests.engines.trainer_megatron import te_stand_in

pytestmark = pytest.mark.engines

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign


@pytest.fixture(scope="module")
def sources() -> Path:
    """The folder in which the package is."""
    spec = importlib.util.find_spec("transformer_engine")
    if spec is None or spec.origin is None:
        pytest.skip("Transformer Engine is not installed")
    return Path(spec.origin).parents[1]


def definition(sources: Path, module: str, name: str) -> Definition | None:
    """Where a name is defined, through the imports of its module; None if it is of C++."""
    path = sources.joinpath(*module.split("."))
    is_package = path.is_dir()
    path = path / "__init__.py" if is_package else path.with_suffix(".py")
    if not path.exists():
        assert module.startswith("transformer_engine_torch"), f"no module {module}"
        return None
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() if node.name == name:
                return node
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                return node
            case ast.ImportFrom():
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        up = node.level - is_package
                        package = module.split(".")[:-up] if up > 0 else module.split(".")
                        parts = [*package, node.module] if node.level else [node.module]
                        return definition(sources, ".".join(filter(None, parts)), alias.name)
    raise AssertionError(f"{module} has no {name}")


def real_parameters(function: ast.FunctionDef) -> list[str]:
    one = function.args
    return [
        *(each.arg for each in one.posonlyargs + one.args),
        *(["*"] if one.kwonlyargs and not one.vararg else []),
        *([f"*{one.vararg.arg}"] if one.vararg else []),
        *(each.arg for each in one.kwonlyargs),
        *([f"**{one.kwarg.arg}"] if one.kwarg else []),
    ]


def our_parameters(function) -> list[str]:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return real_parameters(node)


NAMES = [
    (f"transformer_engine.{module}".rstrip("."), name)
    for module, members in te_stand_in.MEMBERS.items()
    for name in members
    if name != "__version__"
]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_the_stand_in_has_the_names_and_parameters_of_the_sources(sources, module, name):
    ours = te_stand_in.MEMBERS[module.removeprefix("transformer_engine").lstrip(".")][name]
    real = definition(sources, module, name)

    if getattr(ours, "__name__", "") != name:
        return  # without fp8 nothing calls it
    if isinstance(real, ast.FunctionDef):
        assert real_parameters(real) == our_parameters(ours)
    if isinstance(real, ast.ClassDef):
        written = {node.name: node for node in real.body if isinstance(node, ast.FunctionDef)}
        both = {method: one for method, one in vars(ours).items() if method in written}
        found = {method: our_parameters(one) for method, one in both.items()}
        assert {method: real_parameters(written[method]) for method in found} == found


def test_the_version_is_that_of_the_sources(sources):
    (info,) = sources.glob("transformer_engine-*.dist-info")

    assert f"transformer_engine-{te_stand_in.VERSION}.dist-info" == info.name
