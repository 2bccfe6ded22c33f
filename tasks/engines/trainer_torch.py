"""Training with plain torch on the machine at hand: the embedded default.

The loss comes in as a function. Logits are computed at response positions only, so
prompts cost no vocabulary matmul. Micro-batches are bucketed by length.

Letters: N sequences, T tokens, R response positions, H hidden, V vocabulary, L layers, K experts.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from transformers import PreTrainedModel

from tasks.algorithms.logprobs import scores_from_hidden, token_logprobs
from tasks.algorithms.packing import length_buckets
from tasks.engines.chat import load_tokenizer
from tasks.engines.hf_model import load_model
from tasks.engines.protocols import LossFn, TokenBatch, TokenScores
from tasks.engines.router_replay import recording, replaying
from tasks.errors import DataError, EngineError

MICRO_BATCH_TOKENS = 8192
"""Padded tokens per forward pass: what fits a laptop's cache and memory comfortably."""
ADAM_BETAS = (0.9, 0.95)
GRAD_CLIP = 1.0
STATE_FILE = "trainer.pt"


class TorchTrainer:
    """A Trainer on a transformers model in this process."""

    def __init__(self, folder: Path, *, weight_decay: float = 0.0) -> None:
        self._model: PreTrainedModel = load_model(folder)
        self._tokenizer = load_tokenizer(folder)
        self._optimizer = torch.optim.AdamW(
            _decay_groups(self._model, weight_decay), lr=0.0, betas=ADAM_BETAS, fused=True
        )

    def score(
        self, batch: TokenBatch, *, temperature: float, record_routes: bool = False
    ) -> TokenScores:
        """Log-probabilities, entropies and native routes without gradient."""
        logprobs_NT = torch.zeros(batch.tokens_NT.shape)
        entropy_NT = torch.zeros(batch.tokens_NT.shape)
        experts_NTLK: torch.Tensor | None = None
        for rows, micro in _micro_batches(batch):
            width = micro.tokens_NT.shape[1]
            with torch.inference_mode():
                if record_routes:
                    with recording(self._model) as record:
                        hidden_RH, tokens_R, at = self._response_hidden(micro)
                        native = record.take().unflatten(0, micro.tokens_NT.shape)
                    if experts_NTLK is None:
                        experts_NTLK = native.new_zeros((*batch.tokens_NT.shape, *native.shape[2:]))
                    experts_NTLK[rows, :width] = native
                else:
                    hidden_RH, tokens_R, at = self._response_hidden(micro)
                logprobs_R, entropy_R = scores_from_hidden(
                    hidden_RH, self._head(), tokens_R, temperature
                )
            logprobs_NT[rows[at[0]], at[1]] = logprobs_R
            entropy_NT[rows[at[0]], at[1]] = entropy_R
        return TokenScores(logprobs_NT, entropy_NT, experts_NTLK)

    def update(
        self, batch: TokenBatch, loss: LossFn, *, temperature: float, learning_rate: float
    ) -> dict[str, float]:
        """One optimizer step on the whole batch.

        Raises:
            EngineError: the loss or the gradient is not finite; no weight was changed.
        """
        self._optimizer.zero_grad(set_to_none=True)
        totals: dict[str, float] = {"loss": 0.0}
        for _, micro in _micro_batches(batch):
            hidden_RH, tokens_R, at = self._response_hidden(micro)
            logprobs_R = token_logprobs(hidden_RH @ self._head().T, tokens_R, temperature)
            logprobs_NT = torch.zeros(micro.tokens_NT.shape).index_put(at, logprobs_R)
            value, metrics = loss(logprobs_NT, micro)
            value.backward()
            totals["loss"] += float(value.detach())
            for name, amount in metrics.items():
                totals[name] = totals.get(name, 0.0) + amount
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), GRAD_CLIP)
        if not torch.isfinite(norm):
            self._optimizer.zero_grad(set_to_none=True)
            raise EngineError(f"gradient norm is {float(norm)}; the update was not applied")
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        return totals | {"grad_norm": float(norm)}

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The policy's tensors under Hugging Face names."""
        for name, parameter in self._model.named_parameters():
            yield name, parameter.detach()

    def save(self, folder: Path) -> None:
        """Write weights and optimizer state."""
        state = {
            "config": _geometry(self._model),
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }
        torch.save(state, folder / STATE_FILE)

    def restore(self, folder: Path) -> None:
        """Take up exactly where `save` left off."""
        state = torch.load(folder / STATE_FILE, weights_only=True)
        if state["config"] != _geometry(self._model):
            raise DataError(f"{folder} holds the state of another architecture: {state['config']}")
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])

    def export(self, folder: Path) -> None:
        """Write the policy as a Hugging Face directory with its tokenizer."""
        self._model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)

    def _head(self) -> torch.Tensor:
        return self._model.get_parameter("lm_head.weight")

    def _response_hidden(
        self, batch: TokenBatch
    ) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        """Hidden states that predict the response tokens, those tokens, and where they stand."""
        positions_T = torch.arange(batch.tokens_NT.shape[1])
        mask_NT = positions_T < batch.lengths_N[:, None]
        with self._replay(batch):
            output = self._model.get_decoder()(
                input_ids=batch.tokens_NT, attention_mask=mask_NT.long(), use_cache=False
            )
        at = batch.response_NT.nonzero(as_tuple=True)
        return output.last_hidden_state[at[0], at[1] - 1], batch.tokens_NT[at], (at[0], at[1])

    def _replay(self, batch: TokenBatch) -> AbstractContextManager[None]:
        if batch.experts_NTLK is None:
            return nullcontext()
        return replaying(self._model, batch.experts_NTLK.flatten(0, 1))


def _micro_batches(batch: TokenBatch) -> Iterator[tuple[torch.Tensor, TokenBatch]]:
    """Yield (row numbers, micro-batch cut to its longest sequence)."""
    for bucket in length_buckets(batch.lengths_N.tolist(), MICRO_BATCH_TOKENS):
        rows = torch.tensor(bucket)
        yield rows, batch.select(rows)


def _decay_groups(model: PreTrainedModel, weight_decay: float) -> list[dict[str, object]]:
    """Decay matrices, not norms or biases."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def _geometry(model: PreTrainedModel) -> str:
    """What two models must share so that one can take the other's state."""
    return json.dumps({name: list(p.shape) for name, p in model.named_parameters()})
