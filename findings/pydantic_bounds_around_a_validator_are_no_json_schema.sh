#!/usr/bin/env bash
# Expected: bounds that a model enforces are in its JSON schema, in whatever order they are written.
# Seen: around a validator, a pattern is enforced and not in the schema (pydantic issue 12417), and
# the bounds of an optional number become "ge" and "le", which no reader of JSON schemas knows.
# Inside of the validator, or with field_validator, both are there. Version: pydantic 2.14.3.
# Matters: who sends what an OpenAPI document allows is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check pydantic==2.14.3
cat > show.py <<'PYTHON'
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

Same = BeforeValidator(lambda value: value)


class Row(BaseModel):
    around: Annotated[str, Same, Field(pattern="^a$", max_length=3)] = "a"
    inside: Annotated[str, Field(pattern="^a$", max_length=3), Same] = "a"
    count: Annotated[int, Same] | None = Field(default=None, ge=1, le=5)


fields = Row.model_json_schema()["properties"]
for name, schema in fields.items():
    print(f"{name}: {schema}")
for wrong in ({"around": "b"}, {"inside": "b"}, {"count": 6}):
    try:
        Row(**wrong)
    except ValidationError as error:
        print(f"refused: {wrong}: {error.errors()[0]['msg']}")
    else:
        raise SystemExit(f"accepted: {wrong}")
assert "pattern" not in fields["around"]
assert 3 == fields["around"]["maxLength"]
assert "^a$" == fields["inside"]["pattern"]
assert {"ge": 1, "le": 5, "type": "integer"} == fields["count"]["anyOf"][0]
PYTHON
HOME=$folder venv/bin/python show.py
