"""Profile the experts of a model on calibration text, and protect those that it names.

Only pruning was tested by the paper (arXiv 2507.23279); that the same experts should be spared in
quantisation and merging is an inference. FP8 loses nothing to a single outlier, INT8 would.
"""

import hashlib
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from data_schemas.machine_settings import MachineSettings, Precision
from data_schemas.rows import Parent
from data_schemas.settings import PipelineSettings
from tasks.algorithms.expert_products import grouped
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.hf_model import are_experts, load_on_device, use_projections
from tasks.errors import DataError, SettingsError
from tasks.lab.recipes.super_experts.formulas import (
    massive_layers,
    read_algorithm,
    read_code,
    read_eq_6,
)
from tasks.lab.recipes.super_experts.readings import ExpertProfile, ExpertReading
from tasks.training.foundation.corpus import documents

ROWS, ROW_TOKENS = 32, 256
PROTECTING = Parent.REASONING
"""Parent of the merge whose copy of a named expert is kept: RL continues its format."""
_WITH_ROLLOUTS = ("grading", "rl_one", "rl_two", "evaluation")


def profile(folder: Path, texts: Iterable[str]) -> ExpertProfile:
    """Run calibration text through a model and compare the peaks of its experts.

    Raises:
        SettingsError: the model has no experts, or in a form that is not known here.
        DataError: the text is too short.
    """
    model = load_on_device(folder)
    rows_NT = calibration(load_tokenizer(folder), texts)
    layers = [
        (number, layer)
        for number, layer in enumerate(model.get_decoder().get_submodule("layers").children())
        if any(are_experts(module) for module in layer.modules())
    ]
    if not layers:
        raise SettingsError(
            f"{folder} is a {model.config.model_type} model without experts, "
            "which are what is profiled"
        )
    return _conclude(layers, _observe(model, layers, rows_NT), rows_NT)


def texts(path: str) -> Iterator[str]:
    """Yield the lines of a file, or documents of the marketplace for ''.

    Raises:
        SettingsError: the file cannot be read.
    """
    if not path:
        yield from documents(seed=0)
        return
    try:
        with Path(path).open(encoding="utf-8") as file:
            yield from file
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"text: {path} cannot be read as UTF-8 text: {error}") from error


def calibration(tokenizer: PreTrainedTokenizerBase, texts: Iterable[str]) -> NDArray[np.int32]:
    """Cut text into rows of tokens, whatever documents they are from."""
    num_tokens = ROWS * ROW_TOKENS
    tokens = itertools.chain.from_iterable(tokenizer.encode(text) for text in texts)
    result = np.array(list(itertools.islice(tokens, num_tokens)), dtype=np.int32)
    if len(result) < num_tokens:
        raise DataError(f"the calibration text has {len(result)} tokens; {num_tokens} are needed")
    return result.reshape(ROWS, ROW_TOKENS)


class Peaks:
    """Records the outputs of one layer's down projections, and its hidden states."""

    def __init__(self, layer: nn.Module, experts: nn.Module) -> None:
        self.gate_up = experts.get_parameter("gate_up_proj")
        self.down = experts.get_parameter("down_proj")
        self.peaks_E = torch.zeros(len(self.down))
        self.tokens_E = torch.zeros(len(self.down), dtype=torch.int64)
        self.largest = self.median = 0.0
        use_projections(experts, self._project_in, self._project_out)
        layer.register_forward_hook(self._see)

    def _project_in(self, rows_SI: torch.Tensor, ends_E: torch.Tensor) -> torch.Tensor:
        return grouped(rows_SI, self.gate_up, ends_E)

    def _project_out(self, rows_SI: torch.Tensor, ends_E: torch.Tensor) -> torch.Tensor:
        output_SH = grouped(rows_SI, self.down, ends_E)
        largest_S, ends = output_SH.abs().amax(dim=1).cpu(), [0, *ends_E.tolist()]
        for expert, (first, last) in enumerate(itertools.pairwise(ends)):
            if last > first:
                self.peaks_E[expert] = max(self.peaks_E[expert], largest_S[first:last].max())
                self.tokens_E[expert] += last - first
        return output_SH

    def _see(self, _layer: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        sizes = output.abs().flatten()
        self.largest, self.median = float(sizes.max()), float(sizes.median())


def _observe(
    model: PreTrainedModel,
    layers: list[tuple[int, nn.Module]],
    rows_NT: NDArray[np.int32],
) -> list[Peaks]:
    peaks = []
    for _, layer in layers:
        peaks.append(Peaks(layer, layer.get_submodule("mlp.experts")))
    with torch.inference_mode():
        tokens_NT = torch.from_numpy(rows_NT).long().to(model.device)
        model.get_decoder()(input_ids=tokens_NT, use_cache=False)
    return peaks


def _conclude(
    layers: list[tuple[int, nn.Module]],
    all_peaks: list[Peaks],
    rows_NT: NDArray[np.int32],
) -> ExpertProfile:
    numbers = [number for number, _ in layers]
    peaks_LE = torch.stack([one.peaks_E for one in all_peaks]).double().numpy()
    largest, median = [one.largest for one in all_peaks], [one.median for one in all_peaks]
    massive = massive_layers(largest, median)
    readings = {
        "eq_6": read_eq_6(peaks_LE, massive),
        "algorithm": read_algorithm(peaks_LE, massive),
        "code": read_code(peaks_LE),
    }

    def numbered(places: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((numbers[layer], expert) for layer, expert in places)

    super_experts = numbered(readings["eq_6"].named)
    least = sys.float_info.min  # a median may be 0
    ratio = max(high / max(middle, least) for high, middle in zip(largest, median, strict=True))
    reason = (
        f"the hidden state is at most {max(largest):.4g}, {ratio:.4g} times its median"
        f"; massive activations, above 100 and 1000 times the median, after "
        f"{len(massive)} of {len(layers)} layers"
    )
    return ExpertProfile(
        named=super_experts,
        reason=reason,
        readings=tuple(
            ExpertReading(
                reading=name,
                cut=reading.cut,
                percentile=reading.percentile,
                named=numbered(reading.named),
            )
            for name, reading in readings.items()
        ),
        layers=tuple(numbers),
        peaks=tuple(tuple(row) for row in peaks_LE.tolist()),
        tokens=tuple(tuple(one.tokens_E.tolist()) for one in all_peaks),
        largest_hidden=tuple(largest),
        median_hidden=tuple(median),
        massive_layers=tuple(numbers[layer] for layer in massive),
        calibration=hashlib.sha256(rows_NT.tobytes()).hexdigest(),
        calibration_tokens=rows_NT.size,
    )


def protect(settings: PipelineSettings, profile: ExpertProfile) -> PipelineSettings:
    """Keep the named experts of a profile from the merge and from FP8; without any, change nothing.

    The merge copies their matrices and their row of the router from one parent, unless the
    settings already say otherwise. Rollout engines in FP8 spare whole layers of experts.
    """
    copied = {
        pattern: PROTECTING
        for layer, expert in profile.named
        for pattern in (
            f"model.layers.{layer}.mlp.experts.{expert}.*",
            f"model.layers.{layer}.mlp.gate.weight[{expert}]",
        )
    }
    merge = settings.merge.model_copy(update={"copied": copied | settings.merge.copied})
    layers = [
        f"model.layers.{layer}.mlp.experts" for layer in sorted({one[0] for one in profile.named})
    ]
    changes: dict[str, object] = {"merge": merge}
    for name in _WITH_ROLLOUTS:
        group = getattr(settings, name)
        engines: MachineSettings = group.engines
        if engines.precision is Precision.FP8:
            ignored = tuple(dict.fromkeys((*engines.fp8_ignored_layers, *layers)))
            replacement = engines.model_copy(update={"fp8_ignored_layers": ignored})
            changes[name] = group.model_copy(update={"engines": replacement})
    return settings.model_copy(update=changes)


def facts(profile: ExpertProfile) -> dict[str, float | int | str]:
    """Return the facts for the statement of the stage."""
    readings = {
        f"reading/{one.reading}": ", ".join(f"L{layer}E{expert}" for layer, expert in one.named)
        or "none"
        for one in profile.readings
    }
    return {
        "super_experts": readings["reading/eq_6"],
        "reason": profile.reason,
        **readings,
        "calibration": profile.calibration,
        "calibration_tokens": profile.calibration_tokens,
    }
