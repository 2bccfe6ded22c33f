"""Merge two checkpoints onto their common base, tensor by tensor.

The three directories are in Hugging Face format. Only one tensor of each, and one shard of the
output, is in memory at a time. Arithmetic is fp32; the result is cast to the dtype of the
reasoning parent. All other files (config, tokenizer, chat template) are copied from the
reasoning parent.

Norms, embeddings and experts are merged the same way; routers follow MergeSettings.router.
"""

import json
import logging
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from data_schemas.settings import MergeSettings, RouterPolicy, TrimScope
from tasks.algorithms import ties
from tasks.errors import DataError
from tasks.platform.progress import progress
from tasks.store.manifest import MANIFEST

LOG = logging.getLogger(__name__)
SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"


def merge(
    settings: MergeSettings, base: Path, parents: tuple[Path, Path], out: Path
) -> dict[str, float | int | str]:
    """Write the TIES merge of two parents into the empty folder `out`.

    Args:
        settings: density, weights, scope and router policy.
        base: the common ancestor of both parents.
        parents: the reasoning parent, then the e-commerce parent.
        out: empty folder.

    Returns:
        Counts of merged tensors and entries, and the shares that were trimmed and in conflict.

    Raises:
        DataError: the three directories disagree; the message names the tensor or file.
        SettingsError: the density keeps no entry of some tensor.
    """
    _check_same_tokenizer(base, *parents)
    with ExitStack() as opened:
        ancestor = _Weights(base, opened)
        reasoning, commerce = (_Weights(parent, opened) for parent in parents)
        _check_same_tensors(ancestor, reasoning, commerce)
        merger = _Merger(settings, ancestor, (reasoning, commerce))
        for file, names in reasoning.shards().items():
            shard = {
                name: merger.merge_tensor(name)
                for name in progress(names, f"merge {file}", total=len(names))
            }
            save_file(shard, out / file, metadata={"format": "pt"})
    for path in sorted(parents[0].iterdir()):
        if path.is_file() and path.suffix != ".safetensors" and path.name != MANIFEST:
            shutil.copyfile(path, out / path.name)
    LOG.info("merged %s and %s onto %s: %s", *parents, base, merger.facts())
    return merger.facts()


def is_router(name: str) -> bool:
    """Return whether a tensor belongs to a router (not to an expert's gate projection)."""
    return ".mlp.gate." in name or ".mlp.router." in name


class _Weights:
    """Tensors of one checkpoint directory, read on demand."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.file_of = _weight_map(folder)
        try:
            self._files = {
                file: opened.enter_context(safe_open(folder / file, framework="pt"))
                for file in sorted(set(self.file_of.values()))
            }
        except (OSError, SafetensorError) as error:
            raise DataError(f"{folder}: a weight file cannot be read: {error}") from error

    def shards(self) -> dict[str, list[str]]:
        """Group tensor names by the file that holds them."""
        grouped: dict[str, list[str]] = {}
        for name, file in sorted(self.file_of.items()):
            grouped.setdefault(file, []).append(name)
        return grouped

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._files[self.file_of[name]].get_slice(name).get_shape())

    def is_float(self, name: str) -> bool:
        return "F" in self._files[self.file_of[name]].get_slice(name).get_dtype()

    def read(self, name: str) -> Tensor:
        return self._files[self.file_of[name]].get_tensor(name)


@dataclass(slots=True)
class _Merger:
    """Merges one tensor after another under one policy and counts the results."""

    settings: MergeSettings
    base: _Weights
    parents: tuple[_Weights, _Weights]
    counts: Counter[str] = field(default_factory=Counter)
    shared: list[ties.Threshold] = field(default_factory=list)
    """Remaining thresholds, one per parent, when the trim runs over the whole model."""

    def __post_init__(self) -> None:
        if self.settings.trim_scope is TrimScope.MODEL:
            self.shared = [self._model_threshold(parent) for parent in self.parents]

    def merge_tensor(self, name: str) -> Tensor:
        """Merge one tensor, or copy it from the reasoning parent if the policy requires it."""
        reasoning = self.parents[0].read(name)
        if self._is_copied(name):
            self.counts["copied"] += 1
            return reasoning
        base = self.base.read(name).float()
        vectors = [parent.read(name).float() - base for parent in self.parents]
        for parent, vector in zip(self.parents, vectors, strict=True):
            # Before the trim: NaN compares as small and would be dropped silently.
            if not bool(torch.isfinite(vector).all()):
                raise DataError(f"tensor {name} of {parent.folder} or its base is not finite")
        trimmed_M = torch.stack(
            [self._trim(index, vector, name) for index, vector in enumerate(vectors)]
        )
        weights_M = torch.tensor(self.settings.weights, dtype=torch.float32)
        result = ties.combine(base, trimmed_M, weights_M, self.settings.scale)
        self.counts.update(
            merged=1,
            entries=base.numel(),
            kept=int((trimmed_M != 0).sum()),
            conflicts=result.num_conflicts,
        )
        return result.tensor.to(reasoning.dtype)

    def facts(self) -> dict[str, float | int | str]:
        """Return the counts and shares of the merge; shares are 0 if nothing was merged."""
        entries = max(self.counts["entries"], 1)
        return {
            "merged_tensors": self.counts["merged"],
            "copied_tensors": self.counts["copied"],
            "merged_entries": self.counts["entries"],
            "trimmed_share": 1.0 - self.counts["kept"] / (entries * len(self.parents)),
            "sign_conflict_share": self.counts["conflicts"] / entries,
        }

    def _is_copied(self, name: str) -> bool:
        first_parent = self.settings.router is RouterPolicy.FIRST_PARENT
        return (first_parent and is_router(name)) or not self.base.is_float(name)

    def _trim(self, index: int, vector: Tensor, name: str) -> Tensor:
        if not self.shared:
            kept = ties.num_kept(self.settings.density, vector.numel(), name=name)
            return ties.trim(vector, ties.tensor_threshold(vector, kept))[0]
        threshold = self.shared[index]
        trimmed, used = ties.trim(vector, threshold)
        # Entries equal to the model-wide threshold are kept in order until they are used up.
        self.shared[index] = ties.Threshold(threshold.magnitude, threshold.num_equal - used)
        return trimmed

    def _model_threshold(self, parent: _Weights) -> ties.Threshold:
        """Find the exact k-th largest magnitude of a task vector in two passes over the files."""
        uppers = self._histogram(parent, None)
        kept = ties.num_kept(self.settings.density, int(uppers.sum()), name=str(parent.folder))
        upper, rank = ties.locate_bin(uppers, kept)
        lower, rank = ties.locate_bin(self._histogram(parent, upper), rank)
        return ties.threshold_from_bins(upper, lower, rank)

    def _histogram(self, parent: _Weights, upper: int | None) -> Tensor:
        counts = torch.zeros(ties.NUM_BINS, dtype=torch.int64)
        for name in parent.file_of:
            if not self._is_copied(name):
                vector = parent.read(name).float() - self.base.read(name).float()
                counts += ties.magnitude_histogram(vector, upper)
        return counts


def _weight_map(folder: Path) -> dict[str, str]:
    """Map tensor names to file names, from the index or from the single file's header."""
    index = folder / INDEX_FILE
    try:
        if index.exists():
            return dict(json.loads(index.read_bytes())["weight_map"])
        with safe_open(folder / SINGLE_FILE, framework="pt") as single:
            return dict.fromkeys(single.keys(), SINGLE_FILE)
    except (OSError, SafetensorError, ValueError, KeyError) as error:
        raise DataError(
            f"{folder} is not a model directory: neither {SINGLE_FILE} nor {INDEX_FILE} "
            f"can be read ({error})"
        ) from error


def _check_same_tensors(base: _Weights, *parents: _Weights) -> None:
    for parent in parents:
        for name in sorted(base.file_of.keys() ^ parent.file_of.keys()):
            missing = parent if name in base.file_of else base
            raise DataError(
                f"tensor {name} is missing in {missing.folder}. Base and parents must have one "
                "architecture and be saved by one version of transformers."
            )
        for name in sorted(base.file_of):
            if base.shape(name) != parent.shape(name):
                raise DataError(
                    f"tensor {name} is {base.shape(name)} in {base.folder} but "
                    f"{parent.shape(name)} in {parent.folder}"
                )


def _check_same_tokenizer(base: Path, *parents: Path) -> None:
    """Reject parents whose token ids differ from the base's."""
    expected = _vocabulary(base)
    for parent in parents:
        if _vocabulary(parent) != expected:
            raise DataError(
                f"{parent / 'tokenizer.json'} has a different vocabulary than {base}; "
                "both parents must be trained from that base"
            )


def _vocabulary(folder: Path) -> dict[str, int]:
    try:
        tokenizer = json.loads((folder / "tokenizer.json").read_bytes())
        added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
        return {**tokenizer["model"]["vocab"], **added}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / 'tokenizer.json'} cannot be read: {error!r}") from error
