"""A judge in this process: a Hugging Face model on the embedded rollout engine, greedy decoding."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from data_schemas.rows import Message
from tasks.engines.chat import load_tokenizer, render_prompts, response_text
from tasks.engines.protocols import Request, Sampling
from tasks.errors import SettingsError
from tasks.gym.judging.calls import CallCounter
from tasks.gym.judging.http_judge import MAX_REPLY_TOKENS
from tasks.gym.judging.protocol import JudgeCalls
from tasks.models.model_folder import check_model_folder, read_config

_LOG = logging.getLogger(__name__)


REPLY_SHARE = 4
"""Share of the context reserved for the reply, equal for every prompt, so that a reply does not
depend on the other prompts."""


class ModelJudge:
    """A Judge on one model; threads take turns."""

    def __init__(self, folder: Path) -> None:
        context = _context(folder)
        self._reply_tokens = min(MAX_REPLY_TOKENS, context // REPLY_SHARE)
        self._prompt_tokens = context - self._reply_tokens
        self._tokenizer = load_tokenizer(folder)
        # Imported here: a judge behind an endpoint does not wait for transformers' model code.
        from tasks.engines.embedded.rollout import HFRolloutEngine

        self._engine = HFRolloutEngine(folder)
        self._name = f"{folder.name} in this process"
        self._lock = threading.Lock()
        self._calls = CallCounter()

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self._name

    @property
    def calls(self) -> JudgeCalls:
        """Return the calls so far; nothing is retried."""
        return self._calls.snapshot

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Answer every prompt that leaves room for a reply; None for the others."""
        tokens = render_prompts(self._tokenizer, prompts)
        requests = [
            Request(str(place), prompt, num_samples=1)
            for place, prompt in enumerate(tokens)
            if len(prompt) <= self._prompt_tokens
        ]
        sampling = Sampling(
            max_new_tokens=self._reply_tokens, temperature=0.0, seed=0, record_routes=False
        )
        with self._lock:
            rollouts = list(self._engine.generate(requests, sampling)) if requests else []
        replies = {
            rollout.problem_id: response_text(self._tokenizer, rollout.response_tokens.tolist())
            for rollout in rollouts
        }
        missing = len(prompts) - len(replies)
        self._calls.add(asked=len(prompts), failed=missing)
        if missing:
            _LOG.warning(
                "%s: %d of %d prompts are longer than %d tokens and were not judged",
                *(self._name, missing, len(prompts), self._prompt_tokens),
            )
        return [replies.get(str(place)) for place in range(len(prompts))]


def _context(folder: Path) -> int:
    """Return the number of positions the model supports.

    Raises:
        SettingsError: not a model directory, or a model that the embedded engine cannot run.
    """
    try:
        check_model_folder(folder)
        positions = read_config(folder).get("max_position_embeddings")
        if not isinstance(positions, int):
            raise SettingsError(f"{folder}/config.json has no max_position_embeddings.")
    except SettingsError as error:
        raise SettingsError(
            f"judge.address: {error} Any other model can be served with `vllm serve`; set "
            "judge.kind to http."
        ) from error
    return positions
