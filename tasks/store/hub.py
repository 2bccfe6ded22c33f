"""The Hugging Face hub: local copies of files of a data set at one commit, and uploads of models.

    hf://datasets/OWNER/NAME[@REVISION][/FOLDER or FILE or PATTERN]

is the address that huggingface_hub's file system uses. A revision is resolved to its commit,
which is part of every copied file's path: the list of raw files names it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import DataError, SettingsError
from tasks.store.files import copy_file
from tasks.store.manifest import leads_outside

if TYPE_CHECKING:
    from huggingface_hub import HfApi


HUB = "hf://"
_EXAMPLE = "hf://datasets/openai/gsm8k/main/train-*.parquet"
_COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class _Place:
    repository: str
    revision: str
    path: str


def copy_dataset(uri: str, out: Path, suffixes: Sequence[str]) -> Path:
    """Copy the files that an address names to `out`/hf/OWNER/NAME/COMMIT/... and return them.

    Args:
        uri: of a folder, whose own files are copied, of a file, or with `*` in its last part.
        out: a folder.
        suffixes: of the files that are copied.

    Returns:
        The folder, or the file if the address names one.

    Raises:
        SettingsError: the address has another form, or the hub has no such data set or file, or
            cannot be reached.
        DataError: it names what is no commit, or no file below the folder of one.
    """
    place = _parse(uri)
    with _hub(uri, "Download the data set where there is a network, and give the folder.") as hub:
        info = hub.dataset_info(place.repository, revision=place.revision)
        commit = info.sha or ""
        if not _COMMIT.fullmatch(commit):
            raise DataError(f"{uri}: the hub names no commit")
        names = [file.rfilename for file in info.siblings or ()]
        if strange := [name for name in names if leads_outside(name)]:
            raise DataError(
                f"{uri}: the hub names {strange[0]!r}, which is of no file of a data set"
            )
        files = _choose(uri, place, names, suffixes)
        root = out / "hf" / place.repository / commit
        for name in files:
            cached = hub.hf_hub_download(
                place.repository, name, repo_type="dataset", revision=commit
            )
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            copy_file(Path(cached), root / name)
    return root / files[0] if [place.path] == files else (root / files[0]).parent


def push_model(folder: Path, repository: str) -> str:
    """Upload a folder as a model of the hub, which is made unless it is there; return its address.

    Raises:
        SettingsError: the hub refuses it, or cannot be reached.
    """
    later = f"Where there is a network: hf upload {repository} {folder}"
    with _hub(repository, later) as hub:
        hub.create_repo(repository, exist_ok=True)
        hub.upload_folder(repo_id=repository, folder_path=folder)
        return f"{hub.endpoint}/{repository}"


@contextmanager
def _hub(what: str, instead: str) -> "Iterator[HfApi]":
    """Yield the hub; its errors become one line that names what was asked for.

    Raises:
        SettingsError: the hub refuses it, or cannot be reached; then do what `instead` says.
    """
    # huggingface_hub takes half a second to import and reads HF_ENDPOINT as it is imported.
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]  # of its HTTP library
        OfflineModeIsEnabled,
    )

    hub = HfApi()
    try:
        yield hub
    except OfflineModeIsEnabled as error:
        raise SettingsError(f"{what}: HF_HUB_OFFLINE is set. Unset it. {instead}") from error
    except HfHubHTTPError as error:
        raise SettingsError(f"{what}: {_first_line(error)}") from error
    except (HTTPError, OSError) as error:
        raise SettingsError(
            f"{what}: {hub.endpoint} cannot be reached ({_first_line(error)}). {instead}"
        ) from error


def _parse(uri: str) -> _Place:
    kind, _, rest = uri.removeprefix(HUB).rstrip("/").partition("/")
    parts = rest.split("/", 2)
    if kind != "datasets" or len(parts) < 2 or not all(parts):
        raise SettingsError(f"{uri} is not the address of a data set. Example: {_EXAMPLE}")
    name, _, revision = parts[1].partition("@")
    return _Place(f"{parts[0]}/{name}", revision or "main", parts[2] if len(parts) > 2 else "")


def _choose(uri: str, place: _Place, names: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return the files that an address names.

    Raises:
        SettingsError: there are none; the message names the folders that have some.
    """
    readable = sorted(name for name in names if name.lower().endswith(tuple(suffixes)))
    if "*" in place.path:
        files = [name for name in readable if _matches(name, place.path)]
    elif place.path in readable:
        files = [place.path]
    else:
        files = [name for name in readable if name.rpartition("/")[0] == place.path]
    if not files:
        folders = sorted({name.rpartition("/")[0] or "the top level" for name in readable})
        there = f"in {', '.join(folders)}" if folders else "nowhere in the data set"
        raise SettingsError(f"{uri}: no such file; files that can be read are {there}")
    return files


def _matches(name: str, pattern: str) -> bool:
    folder, _, last = pattern.rpartition("/")
    return name.rpartition("/")[0] == folder and fnmatchcase(name.rpartition("/")[2], last)


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
