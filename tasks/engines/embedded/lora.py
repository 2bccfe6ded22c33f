"""LoRA in a transformers model: its weights are frozen, factors are trained beside them.

The factors of a layer's experts are stacked, as their weights are, and multiplied in the same
grouped products; no product B A is formed in training.

Letters: E experts, O outputs, I inputs, r rank, S rows sorted by expert.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

from tasks.algorithms.expert_products import grouped
from tasks.engines.embedded.hf_model import are_experts, use_projections
from tasks.engines.expert_names import split_experts
from tasks.engines.lora.factors import ALPHA, PROJECTIONS, factor_names, merge
from tasks.errors import SettingsError

PROBE_SHARE = 1.0
"""Standard deviation of a probe's B A, in those of the matrix it is added to."""


@dataclass(frozen=True, slots=True)
class _Target:
    """One adapted tensor of the model: a matrix, or those of all experts of a layer."""

    name: str
    weight: torch.Tensor
    a: nn.Parameter
    """[r, I], or [E, r, I]; with gate and up fused, [E, 2r, I]: each has factors of its own."""
    b: nn.Parameter
    """[O, r], or [E, O, r]."""

    def factors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the factors of every matrix under the names of files: views."""
        for side, stacked in enumerate((self.a.detach(), self.b.detach())):
            for name, factor in split_experts(self.name, stacked):
                yield factor_names(name)[side], factor


class LoRAAdapter:
    """The factors of one model, which is frozen and uses them from now on.

    Args:
        model: its parameters stop requiring gradients.
        rank: of the factors. A is drawn as PEFT draws it, with a fixed seed; B is 0.

    Raises:
        SettingsError: the model has experts in a form that has no adapters here.
    """

    def __init__(self, model: PreTrainedModel, rank: int) -> None:
        self._model, self._rank = model, rank
        model.requires_grad_(False)
        generator = torch.Generator().manual_seed(0)
        self._targets: list[_Target] = []
        for name, module in model.named_modules():
            if are_experts(module):
                self._adapt_experts(name, module, generator)
            elif isinstance(module, nn.Linear) and name.rpartition(".")[2] in PROJECTIONS:
                target = self._target(f"{name}.weight", module.weight, 1, generator)
                module.register_forward_hook(_adding(target, ALPHA / rank))
        stacked = sum(parameter.ndim > 2 for parameter in model.parameters())
        if stacked != sum(target.weight.ndim > 2 for target in self._targets):
            raise SettingsError(
                f"lora.rank is {rank}, but the experts of {model.config.model_type} have no "
                "adapters in trainer 'torch'; set lora.rank to 0"
            )

    @property
    def factors(self) -> dict[str, nn.Parameter]:
        """What is trained, by name; an expert's factors are a part of its layer's."""
        return {
            name: factor
            for target in self._targets
            for name, factor in zip(factor_names(target.name), (target.a, target.b), strict=True)
        }

    def named_factors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the factors of every matrix under the names of files, without gradients."""
        for target in self._targets:
            yield from target.factors()

    def merged_state(self) -> dict[str, torch.Tensor]:
        """Return the state dict of a model without adapters that computes the same."""
        state, factors = dict(self._model.state_dict()), dict(self.named_factors())
        for target in self._targets:
            weight = target.weight.detach().clone()
            for name, matrix in split_experts(target.name, weight):
                a_name, b_name = factor_names(name)
                matrix.copy_(merge(matrix, factors[a_name], factors[b_name]))
            state[target.name] = weight
        return state

    def state(self) -> dict[str, torch.Tensor]:
        """Return all that training changes, without gradients: views."""
        return {name: factor.detach() for name, factor in self.factors.items()}

    def load(self, factors: dict[str, torch.Tensor]) -> None:
        """Install what `state` returned."""
        with torch.no_grad():
            for name, factor in self.factors.items():
                factor.copy_(factors[name])

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Give all factors random values that change every matrix visibly, while the block runs."""
        initial = {name: factor.clone() for name, factor in self.state().items()}
        generator = torch.Generator().manual_seed(1)
        try:
            with torch.no_grad():
                for target in self._targets:
                    a = torch.randn(target.a.shape, generator=generator)
                    b = torch.randn(target.b.shape, generator=generator)
                    spread = PROBE_SHARE * float(target.weight.std()) * math.sqrt(self._rank)
                    target.a.copy_(a)
                    target.b.copy_(b * spread / ALPHA)
            yield
        finally:
            self.load(initial)

    def _target(
        self, name: str, weight: torch.Tensor, fused: int, generator: torch.Generator
    ) -> _Target:
        """Make the factors of a tensor in which every matrix is `fused` of them, end to end."""
        *experts, outputs, inputs = weight.shape
        a = torch.rand((*experts, fused * self._rank, inputs), generator=generator) * 2 - 1
        b = torch.zeros(*experts, outputs, self._rank)
        target = _Target(
            name,
            weight,
            nn.Parameter((a / math.sqrt(inputs)).to(weight)),
            nn.Parameter(b.to(weight)),
        )
        self._targets.append(target)
        return target

    def _adapt_experts(self, name: str, experts: nn.Module, generator: torch.Generator) -> None:
        gate_up = self._target(
            f"{name}.gate_up_proj", experts.get_parameter("gate_up_proj"), 2, generator
        )
        down = self._target(f"{name}.down_proj", experts.get_parameter("down_proj"), 1, generator)
        rank, scale = self._rank, ALPHA / self._rank

        def project_in(rows_SI: torch.Tensor, ends_E: torch.Tensor) -> torch.Tensor:
            low = grouped(rows_SI, gate_up.a, ends_E).split(rank, dim=1)
            added = [
                grouped(part, b, ends_E)
                for part, b in zip(low, gate_up.b.chunk(2, dim=1), strict=True)
            ]
            return grouped(rows_SI, gate_up.weight, ends_E) + scale * torch.cat(added, dim=1)

        def project_out(rows_SI: torch.Tensor, ends_E: torch.Tensor) -> torch.Tensor:
            low = grouped(rows_SI, down.a, ends_E)
            return grouped(rows_SI, down.weight, ends_E) + scale * grouped(low, down.b, ends_E)

        use_projections(experts, project_in, project_out)


def _adding(target: _Target, scale: float):
    def hook(_module: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        return output + scale * linear(linear(inputs[0], target.a), target.b)

    return hook
