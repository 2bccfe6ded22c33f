"""The module behind the command `eachprompt`, which a wheel installs beside the packages.

It imports nothing of ours before it has checked that `workflows`, `tasks` and `data_schemas` are
this project's: other distributions install packages of these names, and whichever is installed
last overwrites the other's files.
"""

import importlib
import sys
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("workflows", "tasks", "data_schemas")
DISTRIBUTION = "eachprompt"
WRONG_INPUT = 2


def main() -> None:
    """Check whose packages are imported here, then run the command."""
    problem = foreign_package()
    if problem:
        sys.stderr.write(
            f"SettingsError: {problem}. EachPrompt is an application and needs an environment of "
            "its own: uv tool install, or pip install in a new venv.\n"
        )
        sys.exit(WRONG_INPUT)
    console = importlib.import_module("tasks.platform.console")
    sys.exit(console.main(sys.argv[1:]))


def foreign_package() -> str:
    """Say which package is not this project's; '' if all are."""
    places: dict[str, Path] = {}
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            return f"the package {name} is missing or has no __init__.py"
        places[name] = Path(spec.origin).parent
    if not (places["tasks"] / "platform" / "console.py").is_file():
        return f"{places['tasks']} is the package of another project"
    if len({place.parent for place in places.values()}) > 1:
        return "the packages lie in different folders: " + ", ".join(map(str, places.values()))
    owners = packages_distributions()
    others = [
        f"{owner} also installs the package {name}"
        for name in PACKAGES
        for owner in sorted({*owners.get(name, [])} - {DISTRIBUTION})
    ]
    return ", ".join(others)
