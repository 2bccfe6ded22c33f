"""Merge two checkpoints onto their common base, tensor by tensor."""

import json
import logging
import math
import re
import shutil
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Self, TypeVar

import torch
from torch import Tensor

from data_schemas.rows import MERGED, Parent
from data_schemas.settings import MergeMethod, MergeSettings
from tasks.algorithms import merging
from tasks.algorithms.merging import Merged, combine
from tasks.errors import DataError, SettingsError
from tasks.models.weights import Weights, is_finite, write_shard
from tasks.platform.progress import progress
from tasks.store.files import num_cores
from tasks.store.manifest import MANIFEST

# Work on several tensors at once: one thread per core that this process may use.
#
# numpy and torch release the interpreter's lock while they compute, and while they wait for pages
# of a file. torch's own threads are off in these, so that cores are counted once.

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Results per thread that are made or wait at a time; more would only take memory."""


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Yield the result of every item in the order of the items; none for none.

    The first failure in that order is raised here. When the iterator ends, fails or is closed, no
    thread of it is left: work that has begun is finished first, and the rest is not begun.
    """
    num_threads, rest = num_cores(), iter(items)
    waiting: deque[Future[Result]] = deque()
    torch_threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(num_threads, "merge", torch.set_num_threads, (1,))
    try:
        while True:
            free = AHEAD * num_threads - len(waiting)
            waiting.extend(pool.submit(work, item) for item in islice(rest, free))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        # Threads that start later take over the number that was set last in any thread.
        torch.set_num_threads(torch_threads)


# The trim of a tensor, and that of a whole model, from weights that are read in parts.

PART = 1 << 17
"""Entries that a core works on at a time: 512 KiB in fp32, which stay in its cache."""
SAMPLE = 1 << 17
"""Entries that a threshold is guessed from: 2 % of a tensor are then near enough to the guess."""


def tensor_trim(parent: Tensor, base: Tensor, num_kept: int) -> merging.Threshold:
    """Find the trim that keeps the `num_kept` largest magnitudes of a tensor's task vector.

    Exact in any case: where the guess from a sample fails, the whole vector is made in fp32.
    """
    # An odd step does not stay in the same columns of a matrix.
    step = base.numel() // SAMPLE | 1
    sample = parent.flatten()[::step].float() - base.flatten()[::step].float()
    guess = merging.bracket(sample, num_kept / base.numel())
    threshold = merging.threshold_within(_moved(parent, base), num_kept, guess)
    return threshold or merging.tensor_threshold(parent.float() - base.float(), num_kept)


def model_trim(
    parent: Weights, base: Weights, names: Sequence[str], density: float
) -> dict[str, merging.Threshold]:
    """Trim the task vector of a whole model and share the trim out among its tensors.

    The files are read three times, one tensor per core at a time.

    Args:
        parent: the fine-tuned model.
        base: the model before.
        names: tensors that the trim is over; of entries equal to the threshold, those of earlier
            tensors are kept.
        density: share of the entries that is kept.

    Raises:
        SettingsError: the density keeps nothing, or there are no tensors.
    """

    def histogram(upper: int | None) -> Tensor:
        def count(name: str) -> Tensor:
            vectors = _moved(parent.read(name), base.read(name))
            return _sum(merging.magnitude_histogram(vector, upper) for vector in vectors)

        return _sum(in_order(count, names))

    def count_equal(name: str) -> int:
        vectors = _moved(parent.read(name), base.read(name))
        return sum(merging.count_equal(vector, threshold.magnitude) for vector in vectors)

    num_entries = sum(math.prod(base.shape(name)) for name in names)
    num_kept = merging.num_kept(density, num_entries, name=str(parent.folder))
    threshold = merging.histogram_threshold(histogram, num_kept)
    remaining, trims = threshold.num_equal, {}
    for name, equal in zip(names, in_order(count_equal, names), strict=True):
        trims[name] = merging.Threshold(threshold.magnitude, min(remaining, equal))
        remaining -= trims[name].num_equal
    return trims


def part_of(tensor: Tensor, start: int, size: int) -> Tensor:
    """Return up to `size` entries of a tensor from number `start` on, in fp32."""
    return tensor.flatten()[start : start + size].float()


def _moved(parent: Tensor, base: Tensor) -> Iterator[Tensor]:
    """Yield the parts of a task vector."""
    for start in range(0, base.numel(), PART):
        yield part_of(parent, start, PART) - part_of(base, start, PART)


def _sum(histograms: Iterable[Tensor]) -> Tensor:
    counts = torch.zeros(merging.NUM_BINS, dtype=torch.int64)
    for histogram in histograms:
        counts += histogram
    return counts


# Tensors, and rows of tensors, that a merge copies from one parent.
#
# Routers may be kept from one parent, and so may Super Experts (arXiv 2507.23279), few experts
# whose down projection writes massive activations: their matrices, or their rows where a file has
# all experts of a layer in one tensor, and their row of the router.

_WITH_ROWS = re.compile(r"(.*)\[(\d+(?:,\d+)*)\]")


@dataclass(frozen=True, slots=True)
class Copy:
    """What one pattern of the settings copies."""

    pattern: str
    """Of the names of tensors; '*' is any text."""
    rows: tuple[int, ...]
    """Of the first axis; none for the whole tensor."""
    parent: int
    """Place of the parent in the merge."""


@dataclass(frozen=True, slots=True)
class Copies:
    """All of them; of several that copy a whole tensor, the first decides."""

    copies: tuple[Copy, ...]

    @classmethod
    def parse(cls, copied: Mapping[str, Parent], shapes: Mapping[str, Sequence[int]]) -> Self:
        """Parse the patterns of the settings.

        Args:
            copied: parent by pattern, which may end in rows: 'name[3,68]'.
            shapes: of the tensors that are merged.

        Raises:
            SettingsError: a pattern matches no tensor, or a tensor has no such row.
        """
        parsed = []
        for text, parent in copied.items():
            match = _WITH_ROWS.fullmatch(text)
            pattern, rows = (match[1], match[2].split(",")) if match else (text, [])
            copy = Copy(pattern, tuple(map(int, rows)), MERGED.index(parent))
            _check(text, copy, shapes)
            parsed.append(copy)
        return cls(tuple(parsed))

    def whole(self, name: str) -> int | None:
        """Return the parent that a tensor is copied from; None if it is merged."""
        matching = (copy for copy in self._of(name) if not copy.rows)
        return next((copy.parent for copy in matching), None)

    def rows(self, name: str) -> list[tuple[int, int]]:
        """List the rows of a tensor that are copied, and the parent of each."""
        return [(row, copy.parent) for copy in self._of(name) for row in copy.rows]

    def _of(self, name: str) -> list[Copy]:
        return [copy for copy in self.copies if fnmatchcase(name, copy.pattern)]


def _check(text: str, copy: Copy, shapes: Mapping[str, Sequence[int]]) -> None:
    matching = [name for name in shapes if fnmatchcase(name, copy.pattern)]
    if not matching:
        raise SettingsError(f"merge.copied names {text!r}, which matches no tensor of the models")
    for name in matching:
        if copy.rows and (not shapes[name] or max(copy.rows) >= shapes[name][0]):
            raise SettingsError(
                f"merge.copied names {text!r}, and {name} has shape {list(shapes[name])}: "
                "rows are counted from 0 on its first axis"
            )


# Merge two checkpoints onto their common base, tensor by tensor.
#
# The three directories are in Hugging Face format. Every core merges a tensor at a time, and the
# bytes of the result do not depend on the number of cores. Arithmetic is fp32; the result is cast
# to the dtype of the reasoning parent. Files of weights are written as they are laid out in the
# reasoning parent; all other files (config, tokenizer, chat template) are copied from it.
#
# In memory are, per core, at most two merged tensors (`AHEAD`) and fp32 copies of a part of a
# tensor (`PART`); copies of a whole tensor only where the guess of its threshold fails
# (`tensor_trim`), and for SLERP.
#
# Norms, embeddings, routers and experts are merged the same way, unless MergeSettings.copied names
# them.

LOG = logging.getLogger(__name__)
DARE_SEED = 0
"""One mask for all merges: what differs between two runs is their parents."""
_THINNED = (
    MergeMethod.TIES,
    MergeMethod.TIES_MODEL,
    MergeMethod.DARE_TIES,
    MergeMethod.DARE_LINEAR,
)
"""Methods that read the density."""


def merge(
    settings: MergeSettings, base: Path, parents: tuple[Path, Path], out: Path
) -> dict[str, float | int | str]:
    """Write the merge of two parents into the empty folder `out`.

    Args:
        settings: method, density, weights, scale and what is copied.
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
    density = settings.density
    if settings.method not in _THINNED and density != MergeSettings().density:
        LOG.warning(
            "merge.density %g has no effect: merge.method '%s' drops nothing",
            density,
            settings.method.value,
        )
    with ExitStack() as opened:
        ancestor, reasoning, commerce = (
            opened.enter_context(Weights(folder)) for folder in (base, *parents)
        )
        _check_same_tensors(ancestor, reasoning, commerce)
        shards = reasoning.shards()
        names = [name for group in shards.values() for name in group]
        merger = _Merger(settings, ancestor, (reasoning, commerce), names)
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
    base: Weights
    parents: tuple[Weights, Weights]
    names: Sequence[str]
    """Of all tensors, in the order in which a trim over the whole model keeps equal entries."""
    counts: Counter[str] = field(default_factory=Counter)
    copies: Copies = field(init=False)
    model_trims: dict[str, list[merging.Threshold]] = field(init=False)
    """The trim of both parents by tensor, if the whole model is trimmed at once."""

    def __post_init__(self) -> None:
        shapes = {name: self.base.shape(name) for name in self.base.file_of}
        self.copies = Copies.parse(self.settings.copied, shapes)
        self.model_trims = {}
        if self.settings.method is MergeMethod.TIES_MODEL:
            merged = [name for name in self.names if self._copied_from(name) is None]
            trims = [
                model_trim(parent, self.base, merged, self.settings.density)
                for parent in self.parents
            ]
            self.model_trims = {name: [trim[name] for trim in trims] for name in merged}

    def merge_tensor(self, name: str) -> tuple[Tensor, Counter[str]]:
        """Merge one tensor, or copy it from the parent that the settings name; also count."""
        source = self._copied_from(name)
        if source is not None:
            return self._copy(name, source), Counter(copied=1)
        # Finite before the trim: NaN compares as small and would be dropped silently.
        base = self.base.read_finite(name)
        parents = [parent.read_finite(name) for parent in self.parents]
        counts = Counter(merged=1, entries=base.numel())
        trims = self._trims(name, base, parents)
        merged = torch.empty_like(parents[0])
        part = max(1, base.numel()) if self.settings.method is MergeMethod.SLERP else PART
        for start in range(0, base.numel(), part):
            origin, *moved = (part_of(tensor, start, part) for tensor in (base, *parents))
            result = self._merge_part(name, start, origin, moved, trims)
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
        trims: list[merging.Threshold],
    ) -> Merged:
        """Merge entries of a tensor from number `start` on; parts come in order.

        `trims` has what is left of each parent's trim, before and after.
        """
        sparse = []
        for index, parent in enumerate(parents):
            vector = parent - base
            match self.settings.method:
                case MergeMethod.TIES | MergeMethod.TIES_MODEL:
                    vector, used = merging.trim(vector, trims[index])
                    # Entries equal to the threshold are kept in order until they are used up.
                    trims[index] = trims[index].less(used)
                case MergeMethod.DARE_TIES | MergeMethod.DARE_LINEAR:
                    key = merging.stream_key(DARE_SEED, index, name)
                    vector = merging.drop(vector, key, self.settings.density, start)
                case _:
                    pass
            sparse.append(vector)
        weights_M = torch.tensor(self.settings.weights, dtype=torch.float32)
        return combine(
            self.settings.method, base, torch.stack(sparse), weights_M, self.settings.scale
        )

    def _copied_from(self, name: str) -> int | None:
        # Layers of multi-token prediction are not trained: they are kept bit for bit.
        if "F" not in self.base.dtype(name) or name in self.base.mtp:
            return 0
        return self.copies.whole(name)

    def _trims(self, name: str, base: Tensor, parents: list[Tensor]) -> list[merging.Threshold]:
        """Return the trim of each parent's tensor; none if the method does not trim."""
        if self.settings.method is MergeMethod.TIES:
            num_kept = merging.num_kept(self.settings.density, base.numel(), name=name)
            return [tensor_trim(parent, base, num_kept) for parent in parents]
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
