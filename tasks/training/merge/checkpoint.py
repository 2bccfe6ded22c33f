"""Merge two checkpoints onto their common base, tensor by tensor.

The three directories are in Hugging Face format. Every core merges a tensor at a time, and the
bytes of the result do not depend on the number of cores. Arithmetic is fp32; the result is cast to
the dtype of the reasoning parent. Files of weights are written as they are laid out in the
reasoning parent; all other files (config, tokenizer, chat template) are copied from it.

In memory are, per core, at most two merged tensors (`threads.AHEAD`) and fp32 copies of a part of a
tensor (`trims.PART`); copies of a whole tensor only where the guess of its threshold fails
(`trims.tensor_trim`), and for a method that needs whole ones.

Norms, embeddings, routers and experts are merged the same way, unless MergeSettings.copied names
them.
"""

import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from data_schemas.settings import MergeSettings
from tasks.algorithms.merging import table
from tasks.algorithms.merging.drops import stream_key
from tasks.algorithms.merging.protocol import MergedTensor, MergeMethod, TrimScope, combine
from tasks.algorithms.merging.trims import Threshold, num_kept, trim
from tasks.errors import DataError, SettingsError
from tasks.models.weights import Weights, is_finite, write_shard
from tasks.platform.progress import progress
from tasks.store.manifest import MANIFEST
from tasks.training.merge import trims
from tasks.training.merge.copies import Copies
from tasks.training.merge.threads import in_order

LOG = logging.getLogger(__name__)
DRAW_SEED = 0
"""One mask for all merges: what differs between two runs is their parents."""


def merge(
    settings: MergeSettings, base: Path, parents: tuple[Path, Path], out: Path
) -> dict[str, float | int | str]:
    """Write the merge of two parents into the empty folder `out`.

    Args:
        settings: method with its own, weights, scale and what is copied.
        base: the common ancestor of both parents.
        parents: the reasoning parent, then the e-commerce parent.
        out: empty folder.

    Returns:
        Counts of merged tensors and entries, and the shares that were trimmed and in conflict.

    Raises:
        DataError: the three directories disagree, or a tensor has NaN or infinity; the message
            names the tensor or file.
        SettingsError: the density keeps no entry of some tensor, the scale makes one overflow, or
            a pattern of `copied` matches nothing.
    """
    _check_same_tokenizer(base, *parents)
    with ExitStack() as opened:
        ancestor, reasoning, commerce = (
            opened.enter_context(Weights(folder)) for folder in (base, *parents)
        )
        _check_same_tensors(ancestor, reasoning, commerce)
        shards = reasoning.shards()
        names = [name for group in shards.values() for name in group]
        merger = _Merger(settings, table.find(settings), ancestor, (reasoning, commerce), names)
        merged = opened.enter_context(closing(in_order(merger.merge_tensor, names)))
        for file, group in shards.items():
            tensors = merger.count(islice(merged, len(group)))
            batch = progress(tensors, f"merge {file}", total=len(group))
            write_shard(reasoning.folder / file, batch, out / file)
    for path in sorted(parents[0].iterdir()):
        if path.is_file() and path.suffix != ".safetensors" and path.name != MANIFEST:
            shutil.copyfile(path, out / path.name)
    LOG.info("merged %s and %s onto %s: %s", *parents, base, merger.facts())
    return merger.facts()


@dataclass(slots=True)
class _Merger:
    """Merges tensors, several at a time, and counts the results."""

    settings: MergeSettings
    method: MergeMethod
    base: Weights
    parents: tuple[Weights, Weights]
    names: Sequence[str]
    """Names of all tensors, in the order in which a trim over the whole model keeps equal
    entries."""
    counts: Counter[str] = field(default_factory=Counter)
    copies: Copies = field(init=False)
    model_trims: dict[str, list[Threshold]] = field(init=False)
    """The trim of both parents by tensor, if the whole model is trimmed at once."""

    def __post_init__(self) -> None:
        shapes = {name: self.base.shape(name) for name in self.base.file_of}
        self.copies = Copies.parse(self.settings.copied, shapes)
        self.model_trims = {}
        if self.method.trim_over is TrimScope.MODEL:
            merged = [name for name in self.names if self._copied_from(name) is None]
            by_parent = [
                trims.model_trim(parent, self.base, merged, self.method.kept_share)
                for parent in self.parents
            ]
            self.model_trims = {name: [one[name] for one in by_parent] for name in merged}

    def merge_tensor(self, name: str) -> tuple[Tensor, Counter[str]]:
        """Merge one tensor, or copy it from the parent that the settings name; also count."""
        source = self._copied_from(name)
        if source is not None:
            return self._copy(name, source), Counter(copied=1)
        # Finite before the trim: NaN compares as small and would be dropped silently.
        base = self.base.read_finite(name)
        parents = [parent.read_finite(name) for parent in self.parents]
        counts = Counter(merged=1, entries=base.numel())
        left = self._trims(name, base, parents)
        merged = torch.empty_like(parents[0])
        part = max(1, base.numel()) if self.method.needs_whole_tensors else trims.PART
        for start in range(0, base.numel(), part):
            origin, *moved = (trims.part_of(tensor, start, part) for tensor in (base, *parents))
            result = self._merge_part(name, start, origin, moved, left)
            merged.view(-1)[start : start + part] = result.tensor
            counts.update(kept=result.num_kept, conflicts=result.num_conflicts)
        for row, parent in self.copies.rows(name):
            merged[row] = parents[parent][row]
            counts["copied rows"] += 1
        if not is_finite(merged):
            raise SettingsError(
                f"merge.scale {self.settings.scale} makes tensor {name} overflow {merged.dtype}, "
                "and base and parents are finite. Lower merge.scale; 1 is the paper's."
            )
        return merged, counts

    def _copy(self, name: str, source: int) -> Tensor:
        """Read a tensor of a parent in the dtype of the reasoning parent."""
        tensor = self.parents[source].read_finite(name)
        if not source:
            return tensor
        copied = tensor.to(self.parents[0].read(name).dtype)
        if not is_finite(copied):
            raise DataError(
                f"tensor {name} of {self.parents[source].folder} overflows {copied.dtype}, the "
                f"dtype of {self.parents[0].folder}. Save both parents in one dtype."
            )
        return copied

    def count(self, merged: Iterable[tuple[Tensor, Counter[str]]]) -> Iterator[Tensor]:
        """Pass tensors through and add up what was counted."""
        for tensor, counts in merged:
            self.counts.update(counts)
            yield tensor

    def facts(self) -> dict[str, float | int | str]:
        """Return the counts and shares of the merge; shares are 0 if nothing was merged."""
        entries = max(self.counts["entries"], 1)
        return {
            "merged_tensors": self.counts["merged"],
            "copied_tensors": self.counts["copied"],
            "copied_rows": self.counts["copied rows"],
            "merged_entries": self.counts["entries"],
            "trimmed_share": 1.0 - self.counts["kept"] / (entries * len(self.parents)),
            "sign_conflict_share": self.counts["conflicts"] / entries,
        }

    def _merge_part(
        self,
        name: str,
        start: int,
        base: Tensor,
        parents: list[Tensor],
        left: list[Threshold],
    ) -> MergedTensor:
        """Merge entries of a tensor from number `start` on; parts come in order.

        `left` has what is left of each parent's trim, before and after; empty without a trim.
        """
        sparse = []
        for index, parent in enumerate(parents):
            vector = parent - base
            if left:
                vector, used = trim(vector, left[index])
                # Entries equal to the threshold are kept in order until they are used up.
                left[index] = left[index].less(used)
            key = stream_key(DRAW_SEED, index, name)
            vector = self.method.sparsify(vector, key, start)
            sparse.append(vector)
        weights_M = torch.tensor(self.settings.weights, dtype=torch.float32)
        return combine(self.method, base, torch.stack(sparse), weights_M, self.settings.scale)

    def _copied_from(self, name: str) -> int | None:
        # Layers of multi-token prediction are not trained: they are kept bit for bit.
        if "F" not in self.base.dtype(name) or name in self.base.mtp:
            return 0
        return self.copies.whole(name)

    def _trims(self, name: str, base: Tensor, parents: list[Tensor]) -> list[Threshold]:
        """Return the trim of each parent's tensor; none if the method does not trim."""
        if self.method.trim_over is TrimScope.TENSOR:
            count = num_kept(self.method.kept_share, base.numel(), name=name)
            return [trims.tensor_trim(parent, base, count) for parent in parents]
        return list(self.model_trims.get(name, ()))


def _check_same_tensors(base: Weights, *parents: Weights) -> None:
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
