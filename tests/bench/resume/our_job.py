"""The job in this project: `python -m tests.bench.resume.our_job FOLDER`."""

from pathlib import Path

from data_schemas.rl_settings import NO_SKIPS, RLSettings, ZeroVarianceSettings
from data_schemas.rows import Domain
from tasks.durability import states
from tasks.models.model_folder import SHIPPED
from tasks.rl.phase import Phase, finish, train
from tests.bench.resume import progress
from tests.bench.rl_job import InlineScorer, problems


def train_phase(folder: Path, seen: progress.Progress) -> None:
    """Train, or go on."""
    settings = RLSettings(
        domains={Domain.MATHS: 1.0},
        steps=progress.STEPS,
        prompts_per_step=progress.PROMPTS,
        group_size=progress.SAMPLES,
        num_mini_batches=1,
        max_new_tokens=progress.TOKENS,
        zero_variance=ZeroVarianceSettings(skip=NO_SKIPS),
        seed=progress.SEED,
    )
    state = folder / progress.STATE
    phase = Phase(settings, SHIPPED, problems(progress.QUESTIONS), state, "bench")
    scorer = InlineScorer(SHIPPED, lambda *found: seen.note(states.newest(state), *found))
    for _ in train(phase, scorer):
        pass
    finish(phase, folder / "model", folder / "report")


if __name__ == "__main__":
    progress.run_job(train_phase)
