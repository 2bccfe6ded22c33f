"""The job with TRL's GRPOTrainer: `python -m tests.bench.resume.trl_job FOLDER`.

As its documentation says: a checkpoint after every step, full determinism, and a start from the
last checkpoint if there is one. A step has one update, so that every checkpoint lies between steps.
"""

from collections.abc import Sequence
from pathlib import Path

from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import load_model
from tasks.errors import SettingsError
from tasks.models.model_folder import SHIPPED
from tests.bench.resume import progress
from tests.bench.rl_job import problems, reward

PACKAGES = ["datasets", "transformers.trainer_utils", "trl.trainer.grpo_trainer"]
"""Imported by the job, so that it can be looked at without them."""


def train_grpo(folder: Path, seen: progress.Progress, *, reload: bool = False) -> None:
    """Train, or go on.

    Args:
        reload: give the trainer the model of the checkpoint. Its own loading leaves the experts of
            a mixture as they are: transformers 5 saves each alone and looks for them fused.

    Raises:
        SettingsError: trl is not installed.
    """
    try:
        from datasets import Dataset
        from transformers.trainer_utils import get_last_checkpoint
        from trl.trainer.grpo_config import GRPOConfig
        from trl.trainer.grpo_trainer import GRPOTrainer
    except ImportError as error:
        raise SettingsError("the benchmark needs trl: pip install trl==1.16.0") from error
    state = str(folder / progress.STATE)
    last = get_last_checkpoint(state)

    def score(
        completions: Sequence[Sequence[dict[str, str]]], name: Sequence[str], **_: object
    ) -> list[float | None]:
        texts = [one[0]["content"] for one in completions]
        seen.note(trainer.state.global_step, name, texts)
        return [reward(text) for text in texts]

    trainer = GRPOTrainer(
        model=load_model(Path(last) if reload and last else SHIPPED),
        reward_funcs=score,
        args=GRPOConfig(
            output_dir=state,
            per_device_train_batch_size=progress.PROMPTS * progress.SAMPLES,
            gradient_accumulation_steps=1,
            steps_per_generation=1,
            max_steps=progress.STEPS,
            num_generations=progress.SAMPLES,
            max_completion_length=progress.TOKENS,
            beta=0.0,
            router_aux_loss_coef=0.0,
            learning_rate=1e-4,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            seed=progress.SEED,
            full_determinism=True,
            logging_strategy="no",
            save_strategy="steps",
            save_steps=1,
            report_to=[],
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(
            [
                {"prompt": [{"role": "user", "content": one.messages[0].content}], "name": one.id}
                for one in problems(progress.QUESTIONS)
            ]
        ),
        processing_class=load_tokenizer(SHIPPED),
    )
    trainer.train(resume_from_checkpoint=last)
    trainer.save_model(str(folder / "model"))


if __name__ == "__main__":
    progress.run_job(train_grpo)
