"""The trainer's side of a weight sync to another process: tensors are written to a folder.

The folder is a model directory (config, tokenizer, safetensors): a restarted engine opens it, and
workers without packets are updated from its files once all tensors are written and checked. Only
one file of tensors is held in memory at a time.
"""

import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tasks.engines.expert_names import split_experts
from tasks.engines.rollout_vllm.broadcast import PacketSender
from tasks.engines.weight_sync import on_host
from tasks.errors import EngineError, SettingsError
from tasks.models.architectures import config_in, is_known, read_architecture

CHUNK_BYTES = 256 * 2**20
"""Size of a file, and so the memory of a weight sync."""
MEMORY_FOLDER = Path("/dev/shm")
WEIGHT_FILES = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt")

Shape = tuple[int, ...]


def expected_shapes(folder: Path) -> dict[str, Shape]:
    """Names and shapes of a model directory, one entry per expert.

    Raises:
        SettingsError: there are no safetensors files.
    """
    shapes: dict[str, Shape] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118, it is not a dictionary
                whole = torch.empty(file.get_slice(name).get_shape(), device="meta")
                parts = split_experts(name, whole)  # a file may hold a layer's experts together
                shapes |= {part: tuple(tensor.shape) for part, tensor in parts}
    if not shapes:
        raise SettingsError(
            f"{folder} holds no *.safetensors, the only format that vLLM is opened on"
        )
    if is_known(config_in(folder)):
        architecture = read_architecture(folder)  # what a trainer keeps and does not send
        shapes = {name: shape for name, shape in shapes.items() if not architecture.is_mtp(name)}
    if json.loads((folder / "config.json").read_text()).get("tie_word_embeddings"):
        shapes.pop("lm_head.weight", None)
    return shapes


def check_tensors(
    weights: Iterator[tuple[str, torch.Tensor]], expected: Mapping[str, Shape]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors after checking their names and shapes.

    Raises:
        EngineError: a tensor is unknown, duplicated, of the wrong shape or missing.
    """
    remaining = dict(expected)
    for name, tensor in weights:
        target = remaining.pop(name, None)
        if target is None:
            fault = "came twice" if name in expected else "is unknown"
            raise EngineError(f"weight sync: {name} {fault} to the rollout model")
        if target != (shape := tuple(tensor.shape)):
            raise EngineError(f"weight sync: {name} is {shape}, expected {target}")
        yield name, tensor
    if remaining:
        raise EngineError(
            f"weight sync: {len(remaining)} tensors are missing: {sorted(remaining)[:3]}"
        )


class Staging:
    """Model directories of synced weights, one per version; only the last is kept."""

    def __init__(self, origin: Path, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        """Read config, tokenizer and the expected names and shapes from `origin`."""
        self._origin = origin
        self.chunk_bytes = chunk_bytes
        """Size of a file, and of a packet."""
        self.expected = expected_shapes(origin)
        self._root: Path | None = None
        self._number = 0

    def write(
        self, weights: Iterator[tuple[str, torch.Tensor]], *, outbox: PacketSender | None = None
    ) -> Path:
        """Write a model directory of the tensors, which may come in any order.

        Args:
            outbox: also receives every checked tensor, and is flushed after the last.

        Raises:
            EngineError: they do not fit; the previous folder is kept.
        """
        root = self._root = self._root or self._make_root()
        self._number += 1
        folder = root / str(self._number)
        folder.mkdir()
        try:
            names = _write_files(self._passing(weights, outbox), folder, self.chunk_bytes)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        index = {"metadata": {}, "weight_map": names}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        for path in self._origin.iterdir():
            if path.is_file() and not path.name.endswith(WEIGHT_FILES):
                shutil.copyfile(path, folder / path.name)
        return folder

    def keep_only(self, folder: Path) -> None:
        """Remove the directories of other versions."""
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def close(self) -> None:
        """Remove everything."""
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)

    def _passing(
        self, weights: Iterator[tuple[str, torch.Tensor]], outbox: PacketSender | None
    ) -> Iterator[tuple[str, torch.Tensor]]:
        for name, tensor in check_tensors(weights, self.expected):
            if outbox is not None:
                outbox.add(name, tensor)
            yield name, tensor
        if outbox is not None:
            outbox.flush()

    def _make_root(self) -> Path:
        """A folder in memory if four fp32 copies fit, twice the two versions; else on disk."""
        numbers = sum(torch.Size(shape).numel() for shape in self.expected.values())
        parent = None
        if MEMORY_FOLDER.is_dir() and shutil.disk_usage(MEMORY_FOLDER).free > 4 * 4 * numbers:
            parent = MEMORY_FOLDER
        root = Path(tempfile.mkdtemp(prefix="rollout_weights_", dir=parent))
        # Files in shared memory would outlive a process that does not call close.
        weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        return root


def files_of(folder: Path) -> list[Path]:
    """The weight files of a model directory, in the order they were written."""
    return sorted(folder.glob("*.safetensors"))


def _write_files(
    weights: Iterator[tuple[str, torch.Tensor]], folder: Path, chunk_bytes: int
) -> dict[str, str]:
    """Write files of about `chunk_bytes`; return which file holds which tensor."""
    part: dict[str, torch.Tensor] = {}
    where: dict[str, str] = {}
    size = 0
    for name, tensor in weights:
        # A copy: the trainer may reuse the memory of a tensor it has yielded.
        host = on_host(tensor)
        part[name] = (host.clone() if host.data_ptr() == tensor.data_ptr() else host).contiguous()
        size += tensor.nbytes
        if size >= chunk_bytes:
            _write(part, folder, where)
            size = 0
    if part:
        _write(part, folder, where)
    return where


def _write(part: dict[str, torch.Tensor], folder: Path, where: dict[str, str]) -> None:
    file = f"model-{len(set(where.values())):05d}.safetensors"
    save_file(part, folder / file, metadata={"format": "pt"})
    where.update(dict.fromkeys(part, file))
    part.clear()
