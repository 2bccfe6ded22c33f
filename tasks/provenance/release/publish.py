"""Copy a release into a folder as the Hugging Face hub lays models out, and push it if asked to.

eachprompt publish models:/eachprompt-tiny@released --out my-model
eachprompt publish models:/eachprompt-tiny@released --out my-model --push MY_NAME/my-model
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from data_schemas.reports import GateDecision
from tasks.errors import SettingsError
from tasks.platform.command_line import run
from tasks.provenance.lineage.base_model import find_base
from tasks.provenance.lineage.lookup import parse_model_uri
from tasks.provenance.lineage.registry import GATE_FILE
from tasks.store.files import copy_file
from tasks.store.hub import push_model
from tasks.store.location import existing_store
from tasks.store.manifest import MANIFEST

READABLE = 0o644


def publish(release: Path, out: Path) -> None:
    """Copy the files of a release, readable by everybody.

    The store's own list of files stays behind: beside `manifest.json` it is the same name to a
    disk that is blind to case.

    Raises:
        SettingsError: the folder holds no release, it did not pass its gate, or `out` has files.
    """
    gate = release / GATE_FILE
    if not gate.is_file():
        raise SettingsError(f"{release} is no release: it has no {GATE_FILE}")
    if not GateDecision.model_validate_json(gate.read_bytes()).released:
        raise SettingsError(
            f"{release} did not pass its gate, as its README.md says; publish a version that did"
        )
    if out.exists() and any(out.iterdir()):
        raise SettingsError(f"--out {out} has files; name a new folder")
    for file in sorted(path for path in release.rglob("*") if path.is_file()):
        name = file.relative_to(release)
        if str(name) == MANIFEST:
            continue
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        copy_file(file, out / name)
        (out / name).chmod(READABLE)


def main(arguments: Sequence[str]) -> None:
    """Copy and say how to push; see --help."""
    parser = argparse.ArgumentParser(
        prog="eachprompt publish",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="models:/NAME@released or models:/NAME/3")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--store", default="runs", help="folder or s3:// prefix [runs]")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload it there, with your token")
    given = parser.parse_args(arguments)
    name, _, _ = parse_model_uri(given.model)
    store = existing_store(given.store, os.environ.get("MLFLOW_TRACKING_URI", ""))
    publish(find_base(given.model, store).folder, given.out)
    console = Console(soft_wrap=True, highlight=False)
    if given.push:
        console.print(f"Wrote {given.out}, pushed to {push_model(given.out, given.push)}")
        return
    console.print(
        f"Wrote {given.out}. With a network and a token:\n\n"
        f"    hf upload YOUR_NAME/{name} {given.out}",
        markup=False,
    )


if __name__ == "__main__":
    run(main)
