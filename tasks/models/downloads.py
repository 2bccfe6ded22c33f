"""What stands in place of a model's files where a download was not finished, or not copied whole.

An adapter, a folder of the hub's cache, links into it that lead nowhere, and the pointers of Git
LFS.
"""

from pathlib import Path

from tasks.errors import SettingsError
from tasks.models.config_file import CONFIG
from tasks.store.pointers import is_pointer

_ADAPTER = "adapter_config.json"
"""What peft writes beside the weights of an adapter."""


def check_downloaded(folder: Path) -> None:
    """Refuse a folder that stands for files which are elsewhere.

    Raises:
        SettingsError: says where they are, or how to get them.
    """
    snapshots = sorted(folder.glob("snapshots/*"))
    if snapshots and not (folder / CONFIG).exists():
        names = ", ".join(map(str, snapshots))
        raise SettingsError(f"{folder} is a repository in the hub's cache. Name its files: {names}")
    if (folder / _ADAPTER).exists() and not (folder / CONFIG).exists():
        raise SettingsError(
            f"{folder} is an adapter and no model. Merge it into its base, which {_ADAPTER} names "
            "(merge_and_unload of peft), and give the result."
        )
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not path.exists():
            raise SettingsError(
                f"{path} is a link to {path.readlink()}, and nothing is there. Copy the folder "
                "with its files where they are ('cp -rL'), or download it: hf download NAME "
                f"--local-dir {folder}"
            )
        if path.is_file() and is_pointer(path):
            raise SettingsError(
                f"{path} is a pointer of Git LFS and not the file. Fetch it: "
                f"git -C {folder} lfs pull"
            )
