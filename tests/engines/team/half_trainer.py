"""A trainer that needs torch.distributed alone, and requests; for scenarios.py and faults.py."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist

from tasks.engines.embedded.hf_model import load_model
from tasks.engines.expert_names import named_tensors
from tasks.engines.protocols import Request, Sampling, TokenBatch, TokenScores
from tasks.engines.team.member import read_rank_info
from tasks.errors import DataError

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)
ALONE, PAIR = ((0,), (1,)), ((0, 1),)


class HalfTrainer:
    """Every rank sees every other sequence; the weights move by what all of them found."""

    def __init__(self, folder: Path, wrong_rank: int = -1) -> None:
        self.model = load_model(folder)
        self.wrong = read_rank_info().rank == wrong_rank
        self.saved = 0.0

    def score(self, batch: TokenBatch, *, temperature: float, record_routes: bool) -> TokenScores:
        assert temperature == 0.5
        assert record_routes
        total_NT = batch.tokens_NT.float()
        dist.all_reduce(total_NT)
        return TokenScores(total_NT, total_NT, None)

    def update(self, batch, loss, *, temperature, learning_rate, auxiliary) -> dict[str, float]:
        rows = torch.arange(read_rank_info().rank, len(batch.tokens_NT), read_rank_info().size)
        found = torch.zeros(1)
        for row in rows:
            part = batch.select(row[None])
            logprobs_NT = -part.tokens_NT.float().requires_grad_()
            value, _ = loss(logprobs_NT, part)
            found += value.detach()
        dist.all_reduce(found)
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.add_(learning_rate * found)
        return {"loss": float(found)}

    def weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in named_tensors(self.model):
            dist.barrier()
            yield name, tensor + self.wrong

    def save(self, folder: Path) -> None:
        (folder / f"part-{read_rank_info().rank}").write_text("saved")

    def restore(self, folder: Path) -> None:
        if (folder / f"part-{read_rank_info().rank}").read_text() != "saved":
            raise DataError("another state")

    def export(self, folder: Path) -> None:
        (folder / f"model-{read_rank_info().rank}").touch()

    def close(self) -> None:
        self.model = None


def token_sum(logprobs_NT: torch.Tensor, batch: TokenBatch) -> tuple[torch.Tensor, dict]:
    return logprobs_NT.sum(), {"tokens": float(batch.lengths_N.sum())}


def requests(count: int = 6) -> list[Request]:
    return [
        Request(f"p{number}", np.arange(1, 4 + number, dtype=np.int32), 2, expected_tokens=tokens)
        for number, tokens in zip(range(count), (10, 1, 1, 1, 6, 1), strict=False)
    ]
