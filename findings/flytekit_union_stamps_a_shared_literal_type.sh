#!/usr/bin/env bash
# Expected: asking flytekit for the literal type of Optional[T] leaves the literal type of T as it
# was. Seen: UnionTransformer writes `structure.tag` into the object that the transformer of T
# returned. A transformer that keeps one LiteralType (a constant, a cache) hands out a stamped
# type from then on, and the field types of a data class that stood in `structure` are gone.
# Registration then fails with "MismatchingTypes" for tasks that have nothing to do with the
# union. Version: flytekit 1.16.31. Matters: the error names a node, not the transformer; return a
# copy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check flytekit==1.16.31
cat > show.py <<'PYTHON'
from typing import Optional

from flytekit.core.type_engine import TypeEngine, TypeTransformer
from flytekit.models.literals import Literal, Primitive, Scalar
from flytekit.models.types import LiteralType, SimpleType


class Price:
    def __init__(self, cents):
        self.cents = cents


class PriceTransformer(TypeTransformer[Price]):
    shared = LiteralType(simple=SimpleType.INTEGER)

    def __init__(self):
        super().__init__("price", Price)

    def get_literal_type(self, t):
        return self.shared

    def to_literal(self, ctx, python_val, python_type, expected):
        return Literal(scalar=Scalar(primitive=Primitive(integer=python_val.cents)))

    def to_python_value(self, ctx, lv, expected_python_type):
        return Price(lv.scalar.primitive.integer)


TypeEngine.register(PriceTransformer())
before = TypeEngine.to_literal_type(Price).structure
TypeEngine.to_literal_type(Optional[Price])
after = TypeEngine.to_literal_type(Price).structure
print("structure of the plain type before the union was asked for:", before)
print("and after it:", after)
assert before is None
assert after is not None and after.tag == "price"
PYTHON
HOME=$folder venv/bin/python show.py
