"""Files of one record per line that curation reads beside its rows."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from tasks.errors import DataError
from tasks.formats.yaml_file import ModelT


def read_lines(path: Path, model: type[ModelT]) -> Iterator[tuple[str, ModelT]]:
    """Yield the record of every line that is not blank, with the place of the line for messages.

    Raises:
        DataError: a line is no such record; the message has its place and what is wrong with it.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                yield where, model.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                field = ".".join(map(str, first["loc"]))
                fault = f"{field}: {first['msg']}" if field else first["msg"]
                raise DataError(f"{where}: {fault}. Correct it.") from error
