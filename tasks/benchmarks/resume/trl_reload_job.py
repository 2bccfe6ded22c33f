"""As trl_job, with the checkpoint's model: `python -m tasks.benchmarks.resume.trl_reload_job`."""

from pathlib import Path

from tasks.benchmarks.resume import progress
from tasks.benchmarks.resume.trl_job import train_grpo


def train_reloaded(folder: Path, seen: progress.Progress) -> None:
    """Train, or go on."""
    train_grpo(folder, seen, reload=True)


if __name__ == "__main__":
    progress.run_job(train_reloaded)
