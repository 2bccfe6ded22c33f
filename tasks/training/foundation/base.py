"""The folder of the shipped base model, and the check of a base model's values."""

from pathlib import Path

from tasks.errors import DataError, SettingsError
from tasks.models.model_folder import SHIPPED
from tasks.models.weights import Weights
from tasks.platform.progress import progress


def shipped_base() -> Path:
    """Return the folder of the tiny mixture-of-experts model that comes with the project."""
    return SHIPPED


def check_finite(path: Path) -> None:
    """Refuse a model with NaN or infinite weights; reads all of it, one tensor at a time.

    Raises:
        SettingsError: names the tensor.
    """
    try:
        with Weights(path) as weights:
            for name in progress(weights.file_of, "check weights", total=len(weights.file_of)):
                weights.read_finite(name)
    except DataError as error:
        raise SettingsError(str(error)) from error
