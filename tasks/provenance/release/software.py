"""Software as CycloneDX components, by the pins of a lock file.

    python -m tasks.provenance.release.software lock_cpu.txt > sbom.cdx.json

writes the bill of materials of the software in one environment. That of a release lists the lock
files that the statements of its chain name.
"""

import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from tasks.errors import SettingsError
from tasks.platform.command_line import command_parser, run
from tasks.store.files import sha256_bytes

Json = dict[str, Any]
SCHEMA: Json = {
    "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
    "bomFormat": "CycloneDX",
    "specVersion": "1.7",
}


def libraries(lock: bytes) -> list[Json]:
    """List the pinned packages of a lock file, in its order; there may be none.

    A package that only some platforms need is optional.

    Raises:
        ValueError: a line is no pin.
    """
    return list(_libraries(lock.decode()))


def _libraries(lock: str) -> Iterator[Json]:
    for line in lock.splitlines():
        text = line.partition("#")[0].removesuffix("\\").strip()
        if not text or text.startswith("--hash"):
            continue
        pin = Requirement(text)
        versions = [one.version for one in pin.specifier if one.operator == "=="]
        if len(versions) != 1:
            raise ValueError(f"{text!r} is no pin")
        name = canonicalize_name(pin.name)
        library = {"type": "library", "name": name, "version": versions[0]}
        library |= {"scope": "optional"} if pin.marker else {}
        yield library | {"purl": f"pkg:pypi/{name}@{versions[0].replace('+', '%2B')}"}


def file_component(name: str, digest: str, lock: bytes | None) -> Json:
    """Describe a lock file with what it pins.

    Args:
        name: of the file.
        digest: its sha256.
        lock: content; None if this version of the project does not have it.
    """
    results: Json = {
        "type": "file",
        "bom-ref": f"lock:{digest}",
        "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return results if lock is None else results | {"components": libraries(lock)}


def main(arguments: Sequence[str]) -> None:
    """Print the bill; see --help."""
    parser = command_parser("python -m tasks.provenance.release.software", __doc__)
    parser.add_argument("lock", type=Path, help="lock file: lock_cpu.txt")
    path = parser.parse_args(arguments).lock
    try:
        content = path.read_bytes()
        listed = libraries(content)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except (InvalidRequirement, ValueError) as error:
        raise SettingsError(f"{path} is no lock file: {str(error).splitlines()[0]}") from error
    digest = sha256_bytes(content)
    bill = SCHEMA | {
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {"component": file_component(path.name, digest, None)},
        "components": listed,
    }
    sys.stdout.write(json.dumps(bill, indent=2) + "\n")


if __name__ == "__main__":
    run(main)
