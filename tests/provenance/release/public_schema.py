"""What CycloneDX says about a bill of materials. Runs in the environment of the tools.

python public_schema.py BILL
"""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(bill: Path) -> None:
    """Validate against the strict schema of version 1.7."""
    problem = JsonStrictValidator(SchemaVersion.V1_7).validate_str(bill.read_text())
    sys.stdout.write(f"{problem or 'valid'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
