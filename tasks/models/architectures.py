"""Architectures that transformers does not have: registered when a folder needs one."""

import json
from pathlib import Path

GROVE_MOE = "grove_moe"
"""Model type with adjugate experts (grove_moe.py)."""


def architecture(folder: Path) -> str:
    """Return the model type of a folder, '' if it has none."""
    try:
        return str(json.loads((folder / "config.json").read_bytes()).get("model_type", ""))
    except (OSError, ValueError, AttributeError):
        return ""  # whoever opens the folder says what is wrong with it


def register_architecture(folder: Path) -> None:
    """Let the Auto classes of transformers open this folder, if its architecture is ours."""
    if architecture(folder) == GROVE_MOE:
        # Imported here: 2 s that stages without models are spared.
        from tasks.models.grove_moe import register

        register()
