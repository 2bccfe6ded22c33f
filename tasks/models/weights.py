"""The weights of a model directory: safetensors files, read one tensor at a time.

A directory in Hugging Face format holds model.safetensors, or several files and an index that
names the file of every tensor. Engines differ in what they do with an incomplete directory
(transformers draws random values for a missing tensor), so that it is refused here.
"""

import json
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open

from tasks.errors import DataError, SettingsError
from tasks.models.architectures import (
    config_in,
    end_ids,
    is_known,
    read_architecture,
    register_architecture,
)
from tasks.models.config_file import CONFIG, GENERATION, TOKENIZER_BYTES, check_values, read_object

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
ADAPTER_FILE = "adapter_config.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
"""Suffixes of files that torch and joblib open with pickle."""
MTP_FILE = "model-mtp.safetensors"
DTYPES = ("F64", "F32", "F16", "BF16")
"""What trainers read; a quantised checkpoint has scales besides, which they do not."""
_SPARSE_BYTES = 2**30
_MTP_PROJECTION = ".eh_proj.weight"
"""Joins the embedding of a token and the hidden state before it (DeepSeek-V3, 2412.19437, section
2.2); DeepSeek-V3, GLM-4.5 and Ling 2.0 name it so."""
_LENGTH_BYTES = 8
"""Bytes of the length of a header (https://huggingface.co/docs/safetensors, Format)."""
GATE_UP, DOWN = ".experts.gate_up_proj", ".experts.down_proj"
FUSED = (GATE_UP, DOWN)
"""Ends of the names that transformers has in memory, and writes if it is asked to: all experts of a
layer, [E, 2F, H] and [E, H, F]."""
_FUSED_AXES = 3
_BAD_CONFIG = (
    *(OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, MemoryError),
    *(ArithmeticError, AssertionError, StrictDataclassError),
)
"""What transformers raises on a config.json that describes no model."""


@dataclass(frozen=True, slots=True)
class NamedTensor:
    """A tensor as engines name it, and where it is stored."""

    name: str
    stored: str
    """Name in its file."""
    shape: tuple[int, ...]
    expert: int | None = None
    """Its place in a stored tensor of all experts; None = it is stored by itself."""
    first: int = 0
    """Row of the expert with which it begins."""


def expert_parts(name: str, shape: tuple[int, ...]) -> list[NamedTensor]:
    """Name the matrices of every expert in a tensor of all experts, in the order of their bytes."""
    num_experts, rows, columns = shape
    stem = name.rpartition(".")[0]
    parts = ("gate_proj", "up_proj") if name.endswith(GATE_UP) else ("down_proj",)
    height = rows // len(parts)
    return [
        NamedTensor(
            f"{stem}.{expert}.{part}.weight", name, (height, columns), expert, place * height
        )
        for expert in range(num_experts)
        for place, part in enumerate(parts)
    ]


class Weights:
    """Tensors of one directory, read on demand. A context manager: it holds files open.

    Experts have a tensor each, whether or not the files hold those of a layer as one.

    Raises:
        DataError: a file cannot be read, is not listed, or lacks a listed tensor.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        with self._stack:
            self._files = {name: self._open(name) for name in _weight_files(folder)}
            stored = {
                tensor: name for name, file in self._files.items() for tensor in file.offset_keys()
            }
            self._check_index(stored)
            in_file = names_in_files(folder, stored)
            self._parts = {
                in_file(part.name): part
                for name, file in stored.items()
                for part in self._parts_of(name, file)
            }
            self.file_of = {name: stored[part.stored] for name, part in self._parts.items()}
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def shards(self) -> dict[str, list[str]]:
        """Group tensor names by the file that holds them, in the order of their bytes."""
        grouped: dict[str, list[str]] = {}
        for name, file in self.file_of.items():
            grouped.setdefault(file, []).append(name)
        return grouped

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, from the header of its file."""
        return self._parts[name].shape

    def dtype(self, name: str) -> str:
        """Return the dtype of a tensor in the words of safetensors: 'BF16'."""
        stored = self._parts[name].stored
        return str(self._files[self.file_of[name]].get_slice(stored).get_dtype())

    def read(self, name: str) -> "Tensor":
        """Read one tensor."""
        part, file = self._parts[name], self._files[self.file_of[name]]
        if part.expert is None:
            return file.get_tensor(part.stored)
        rows = file.get_slice(part.stored)[part.expert, part.first : part.first + part.shape[0]]
        return cast("Tensor", rows)

    @property
    def stored(self) -> list[str]:
        """Names of the tensors in the files."""
        return list(dict.fromkeys(part.stored for part in self._parts.values()))

    @property
    def fused(self) -> bool:
        """Whether files hold all experts of a layer as one tensor, which is read as one each."""
        return any(part.expert is not None for part in self._parts.values())

    def read_finite(self, name: str) -> "Tensor":
        """Read one tensor, and refuse it if a value is NaN or infinite.

        Raises:
            DataError: names the tensor and the number of such values.
        """
        tensor = self.read(name)
        if not is_finite(tensor):
            wrong = int((~tensor.isfinite()).sum())
            raise DataError(
                f"tensor {name} of {self.folder} has {wrong} of {tensor.numel()} "
                "values that are NaN or infinite. The checkpoint is damaged or its training "
                "diverged: use another one."
            )
        return tensor

    def check_tensors(self) -> None:
        """Refuse a directory whose tensors are not those of its config.json, from headers alone.

        Raises:
            DataError: names the tensor that is missing, unknown, or of another shape or dtype, or
                a file that hides others from some engines.
        """
        _check_sizes(self.folder, len(self.file_of))
        expected, tied = _tensors_of_config(self.folder)
        self._check_hidden()
        where = f"of {self.folder}"
        self._check_mtp()
        missing = expected.keys() - self.file_of.keys()
        other = self.file_of.keys() - expected.keys() - tied.keys() - self.mtp
        if missing and other:
            raise DataError(
                f"weights {where} have {len(other)} tensors of other names, such as {min(other)}, "
                f"and {len(missing)} are missing, such as {min(missing)}: another layout, or "
                "another model than that of config.json. Load it with transformers and save it "
                "with save_pretrained, which writes the names that are read here."
            )
        for wrong, names in (("missing", missing), ("not part of the model", other)):
            if names:
                raise DataError(
                    f"tensor {min(names)} {where} is {wrong}, as are {len(names) - 1} others. "
                    "config.json and weights must be of one checkpoint; complete the download."
                )
        for name, shape in expected.items():
            if self.shape(name) != shape:
                raise DataError(
                    f"tensor {name} {where} is {list(self.shape(name))}, but {list(shape)} by its "
                    "config.json. Both must be of one checkpoint."
                )
            if self.dtype(name) not in DTYPES:
                raise DataError(
                    f"tensor {name} {where} is {self.dtype(name)}; engines read "
                    f"{', '.join(DTYPES)}. Use the checkpoint before quantisation."
                )
        self._check_tied(tied)

    @cached_property
    def mtp(self) -> set[str]:
        """Names of the tensors of multi-token prediction, which are kept but not trained."""
        if not is_known(config_in(self.folder)):
            return set()
        architecture = read_architecture(self.folder)
        return {name for name in self.file_of if architecture.is_mtp(name)}

    def _check_mtp(self) -> None:
        """Refuse an ordinary layer behind the last one that config.json counts."""
        if self.mtp and not any(name.endswith(_MTP_PROJECTION) for name in self.mtp):
            raise DataError(
                f"{min(self.mtp)} of {self.folder} is behind the last of num_hidden_layers, and no "
                f"layer of multi-token prediction, which has {_MTP_PROJECTION[1:]}. config.json "
                "and weights must be of one checkpoint."
            )

    def _parts_of(self, name: str, file: str) -> "list[NamedTensor]":
        """Return the tensors that a stored one is read as, in the order of their bytes."""
        shape = tuple(self._files[file].get_slice(name).get_shape())
        if name.endswith(FUSED) and len(shape) == _FUSED_AXES:
            return expert_parts(name, shape)
        return [NamedTensor(name, name, shape)]

    def _check_tied(self, tied: Mapping[str, str]) -> None:
        """Refuse a tensor beside the one that it is tied to, if it has other values.

        transformers and vLLM read such a head, or leave it out, by version.
        """
        for name, source in sorted(tied.items()):
            if name not in self.file_of or source not in self.file_of:
                continue
            if self.shape(name) == self.shape(source) and (
                self.read(name).equal(self.read(source))
            ):
                continue
            raise DataError(
                f"config.json of {self.folder} ties {name} to {source} (tie_word_embeddings), but "
                "the files give it other values. Set tie_word_embeddings to false if the model "
                f"was trained so; else remove {name}."
            )

    def _check_hidden(self) -> None:
        """Refuse files that some engines read and others do not.

        transformers reads one file of this name and no index; servers read the index. It opens the
        model that an adapter names in place of the folder's.
        """
        others = {name for name, file in self.file_of.items() if file != SINGLE_FILE} - self.mtp
        if others and SINGLE_FILE in self.file_of.values():
            raise DataError(
                f"{self.folder / SINGLE_FILE} hides {INDEX_FILE} from some engines, which would "
                f"miss {min(others)}. Name the file otherwise, in the index as well."
            )
        if (self.folder / ADAPTER_FILE).exists():
            raise DataError(
                f"{self.folder / ADAPTER_FILE} lets some engines open the model that it names in "
                "place of this one. Merge the adapter into the weights, or delete the file."
            )

    def _open(self, name: str) -> safe_open:
        path = self.folder / name
        try:
            return self._stack.enter_context(safe_open(path, framework="pt"))
        except (OSError, SafetensorError) as error:
            raise DataError(
                f"{path} is not a complete safetensors file: {error}. Download it again."
            ) from error

    def _check_index(self, stored: Mapping[str, str]) -> None:
        index = _read_index(self.folder)
        for name in sorted(index.keys() | stored.keys()) if index else ():
            if index.get(name) != stored.get(name):
                raise DataError(
                    f"tensor {name} is in {stored.get(name, 'no file')}, but in "
                    f"{index.get(name, 'no file')} by {self.folder / INDEX_FILE}. Complete the "
                    "download."
                )


def is_finite(tensor: "Tensor") -> bool:
    """Return whether no value is NaN or infinite: both reach the extremes, which take no memory."""
    if not tensor.numel():
        return True
    return all(bool(extreme.isfinite()) for extreme in tensor.aminmax())


def write_shard(like: Path, tensors: "Iterable[Tensor]", out: Path) -> None:
    """Write a file with the header of another one, one tensor after another.

    Args:
        like: a safetensors file with tensors of the same names, shapes and dtypes.
        tensors: in the order of their bytes (`Weights.shards`).
        out: file to write.
    """
    from torch import uint8

    with like.open("rb") as source, out.open("wb") as target:
        length = source.read(8)
        target.write(length)
        target.write(source.read(int.from_bytes(length, "little")))
        for tensor in tensors:
            target.write(tensor.contiguous().flatten().view(dtype=uint8).numpy().data)
        assert target.tell() == like.stat().st_size


def write_config(source: Path, folder: Path, dtype: "torch.dtype") -> None:
    """Copy the config.json of a model, with the dtype of the new files."""
    config = json.loads((source / "config.json").read_bytes())
    config["dtype"] = str(dtype).removeprefix("torch.")
    config.pop("torch_dtype", None)  # the older name of the same
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_ends(source: Path, folder: Path, own: int) -> None:
    """Let `generate` and servers stop at every token that ends a response; else leave it as it is.

    Args:
        source: directory of the model that was trained.
        folder: with its generation_config.json, if there is one.
        own: end token of the tokenizer, with which training ended responses.
    """
    ends = list(end_ids(source, own))
    file = folder / GENERATION
    settings = json.loads(file.read_bytes()) if file.exists() else {}
    entry = settings.get("eos_token_id")
    if set(entry if isinstance(entry, list) else [entry]) != set(ends):
        settings["eos_token_id"] = ends if len(ends) > 1 else own
        file.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def copy_mtp(source: Path, folder: Path) -> None:
    """Copy the layers of multi-token prediction bit for bit; do nothing for a model without any.

    Args:
        source: model directory that has them.
        folder: model directory of the same architecture, complete but for them.
    """
    with Weights(source) as weights:
        tensors = {name: weights.read(name) for name in sorted(weights.mtp)}
    if not tensors:
        return
    with Weights(folder) as target:
        files = dict(target.file_of)
    from safetensors.torch import save_file

    save_file(tensors, folder / MTP_FILE, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": files | dict.fromkeys(tensors, MTP_FILE)}
    (folder / INDEX_FILE).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def remove_pickles(folder: Path) -> list[str]:
    """Delete what pickle opens, and so may execute code: weights beside the safetensors, states.

    Nothing here opens such files; a copy of them would travel to those who do.

    Returns:
        Names below the folder, in order.
    """
    files = [path for path in folder.rglob("*") if path.suffix.lower() in _PICKLED]
    for path in files:
        path.unlink()
    return sorted(path.relative_to(folder).as_posix() for path in files)


def separate_experts(folder: Path) -> bool:
    """Give every expert tensors of its own in the files of a directory, as all engines read them.

    The values stay where they are, bit for bit: only names are written anew. Return whether the
    files held experts as one.
    """
    with Weights(folder) as weights:
        if not weights.fused:
            return False
        files = dict(weights.file_of)
        in_file = names_in_files(folder, weights.stored)
    for file in dict.fromkeys(files.values()):
        _rewrite_header(folder / file, in_file)
    if (folder / INDEX_FILE).exists():
        index = {"metadata": {}, "weight_map": dict(sorted(files.items()))}
        (folder / INDEX_FILE).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    return True


def names_in_files(folder: Path, stored: Iterable[str]) -> Callable[[str], str]:
    """Return how files name what a directory has under the names of memory.

    Whoever writes experts as one tensor writes all names as in memory; others are left alone.

    Raises:
        DataError: in memory the family has more tensors than in files.
    """
    fused = sorted(name for name in stored if name.endswith(FUSED))
    config = config_in(folder)
    if not fused or not is_known(config):
        return str
    names = read_architecture(folder).names
    if names.fused_qkv:
        raise DataError(
            f"{folder} stores all experts of a layer in one tensor ({fused[0]}), and this family's "
            "query, key and value as three: no engine reads it. Convert it with transformers: "
            "old = AutoModelForCausalLM.from_pretrained(FOLDER, dtype='auto'); "
            "new = AutoModelForCausalLM.from_config(old.config, dtype=old.dtype); "
            "new.load_state_dict(old.state_dict()); new.save_pretrained(NEW); and copy the "
            "files of the tokenizer."
        )
    return names.in_file


def _rewrite_header(path: Path, in_file: Callable[[str], str]) -> None:
    """Name the tensors of a safetensors file as files do, and the parts of fused ones."""
    with path.open("rb") as source:
        length = int.from_bytes(source.read(_LENGTH_BYTES), "little")
        header: dict[str, Any] = json.loads(source.read(length))
        entries: dict[str, Any] = {}
        for name, entry in header.items():
            if not name.endswith(FUSED) or len(entry["shape"]) != _FUSED_AXES:
                entries[in_file(name)] = entry
                continue
            parts = expert_parts(name, tuple(entry["shape"]))
            start, end = entry["data_offsets"]
            size = (end - start) // len(parts)
            for place, part in enumerate(parts):
                begin = start + place * size
                entries[in_file(part.name)] = {
                    "dtype": entry["dtype"],
                    "shape": list(part.shape),
                    "data_offsets": [begin, begin + size],
                }
        written = json.dumps(entries, separators=(",", ":")).encode()
        written += b" " * (-len(written) % _LENGTH_BYTES)  # tensors begin at a multiple of 8
        new = path.with_name(f"{path.name}.new")
        with new.open("wb") as target:
            target.write(len(written).to_bytes(_LENGTH_BYTES, "little") + written)
            shutil.copyfileobj(source, target, 2**24)
    new.replace(path)


def check_tensors(folder: Path) -> None:
    """Refuse a model directory whose tensors are not those of its config.json.

    Raises:
        DataError: names the file or the tensor.
    """
    with Weights(folder) as weights:
        weights.check_tensors()


def _weight_files(folder: Path) -> list[str]:
    """Name the files of the weights; which one counts must not depend on the engine."""
    names = set(_read_index(folder).values()) or {SINGLE_FILE}
    present = {path.name for path in folder.glob("*.safetensors")}
    if not present:
        raise DataError(f"{folder} contains no *.safetensors weights. {_instead(folder)}")
    for name in sorted(names & present):
        _check_regular(folder / name)
    for name in sorted(names ^ present):
        if name in present:
            raise DataError(
                f"{folder / name} is not listed in {INDEX_FILE}, and some engines would read it. "
                f"A model directory has {SINGLE_FILE}, or an index with the files that it names."
            )
        raise DataError(f"{folder / name} is missing. Complete the download.")
    return sorted(names)


def _instead(folder: Path) -> str:
    """Say what to do about a folder that has weights in another form, or none."""
    for pattern, advice in _OTHER_FORMS.items():
        if path := next(iter(sorted(folder.glob(pattern))), None):
            return f"{path.name} {advice}"
    return "Complete the download."


_OTHER_FORMS = {
    "*.distcp": "is a part of a checkpoint of FSDP. Put its parts together: accelerate "
    "merge-weights FOLDER OUT",
    "global_step*": "is a checkpoint of DeepSpeed. Put its parts together: python zero_to_fp32.py "
    ". OUT --safe_serialization",
    "*.npz": "is in a form of MLX alone. Take the checkpoint that it was made from.",
    "onnx": "is exported for another program. Take the checkpoint that it was made from.",
    "*.onnx": "is exported for another program. Take the checkpoint that it was made from.",
    "*.gguf": "is quantised for another program. Take the checkpoint that it was made from.",
    "*.bin": "may hold code. Load it with transformers and save it with save_pretrained.",
    "*.pth": "may hold code. Load it with transformers and save it with save_pretrained.",
}


def _check_regular(path: Path) -> None:
    """Refuse what is no file, and a file whose disk blocks were never written: reading takes hours.

    Raises:
        DataError: names it.
    """
    result = path.stat()
    if not stat.S_ISREG(result.st_mode):
        raise DataError(f"{path} is no regular file. Complete the download.")
    if result.st_size > _SPARSE_BYTES and result.st_blocks * 512 < result.st_size // 100:
        raise DataError(
            f"{path} has {result.st_size} bytes, of which less than a hundredth was ever written. "
            "Download it again."
        )


def _check_sizes(folder: Path, tensors: int) -> None:
    """Refuse a config.json that describes more than its weights can hold, before it is built.

    Raises:
        DataError: names the key.
    """
    config = _config(folder)
    try:
        check_values(config)
    except SettingsError as error:
        raise DataError(f"{folder}: {error}") from error
    layers = config.get("num_hidden_layers")
    if isinstance(layers, int) and layers > tensors:
        raise DataError(
            f"{folder / CONFIG} has num_hidden_layers {layers}, but the weights are {tensors} "
            "tensors. Both must be of one checkpoint; complete the download."
        )


def _config(folder: Path) -> dict[str, Any]:
    try:
        return read_object(folder / CONFIG, "Download it again.")
    except SettingsError as error:
        raise DataError(str(error)) from error


def _read_index(folder: Path) -> dict[str, str]:
    """Read which file holds which tensor; empty if the directory has no index."""
    path = folder / INDEX_FILE
    if not path.exists():
        return {}
    try:
        content = read_object(path, "Download it again.", TOKENIZER_BYTES)
        files = {str(name): str(file) for name, file in content["weight_map"].items()}
    except SettingsError as error:
        raise DataError(str(error)) from error
    except (KeyError, AttributeError) as error:
        raise DataError(f"{path} cannot be read: {error!r}. Download it again.") from error
    if not files:
        raise DataError(f"{path} lists no tensor, and some engines would read none. Delete it.")
    if "metadata" not in content:
        raise DataError(
            f"{path} has no metadata, without which transformers opens no model. Add "
            '"metadata": {} to it.'
        )
    return files


def _tensors_of_config(folder: Path) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """Return name and shape of every tensor that a config describes, and what is tied to which.

    Nothing is allocated. Names are those of files: transformers fuses experts in memory only.
    """
    # Imported here: seconds that what only looks at a folder is spared.
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.core_model_loading import revert_weight_conversion

    register_architecture(folder)
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except _BAD_CONFIG as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{folder / 'config.json'} describes no model that transformers can build: {reason}"
        ) from error
    tied = dict(model.all_tied_weights_keys)
    state = revert_weight_conversion(model, model.state_dict())
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items() if name not in tied}
    return shapes, tied
