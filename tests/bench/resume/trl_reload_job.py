"""As trl_job, with the checkpoint's model: `python -m tests.bench.resume.trl_reload_job`."""

from pathlib import Path

from tests.bench.resume import progress
from tests.bench.resume.trl_job import train_grpo


def train_reloaded(folder: Path, seen: progress.Progress) -> None:
    """Train, or go on."""
    train_grpo(folder, seen, reload=True)


if __name__ == "__main__":
    progress.run_job(train_reloaded)
