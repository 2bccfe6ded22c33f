"""Speed and memory of a TIES merge, beside plain disk speed and mergekit.

python -m tests.bench.merging --gib 4 --mergekit .venv-mergekit/bin/python

A dense Qwen3 checkpoint in bf16 is made up, and two parents that have moved from it. Plain disk
speed is that of reading all three and writing one of them. Every side starts from a cold cache and
ends when its output is on the disk. Memory is what a process allocates: pages of the files that it
maps belong to the operating system. CPU seconds are those of all threads.

Without --mergekit only this project's merge is measured: `make test-mergekit` creates an
environment with it.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file

from tasks.models.model_folder import SHIPPED
from tasks.models.weights import INDEX_FILE, Weights
from tasks.platform.command_line import positive, run

HIDDEN, MLP, HEADS, GROUPS, HEAD = 2048, 6144, 16, 8, 128
"""The shape of Qwen3-1.7B's layers: about 96 MiB each."""
LAYERS_PER_GIB = 11
SHARD_LAYERS = 8
DENSITY, SCALE = 0.5, 0.8
OURS = (
    "import sys; from pathlib import Path; from data_schemas.settings import MergeSettings; "
    "from tasks.training.merge.checkpoint import merge; a, b, c, out = map(Path, sys.argv[1:]); "
    f"merge(MergeSettings(density={DENSITY}, scale={SCALE}), a, (b, c), out)"
)
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Side:
    """What one way of merging took."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mib: float


def layer_shapes(layer: int) -> dict[str, tuple[int, ...]]:
    """Name the tensors of a layer with their shapes."""
    start = f"model.layers.{layer}"
    return {
        f"{start}.input_layernorm.weight": (HIDDEN,),
        f"{start}.post_attention_layernorm.weight": (HIDDEN,),
        f"{start}.self_attn.q_norm.weight": (HEAD,),
        f"{start}.self_attn.k_norm.weight": (HEAD,),
        f"{start}.self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
        f"{start}.self_attn.k_proj.weight": (GROUPS * HEAD, HIDDEN),
        f"{start}.self_attn.v_proj.weight": (GROUPS * HEAD, HIDDEN),
        f"{start}.self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
        f"{start}.mlp.gate_proj.weight": (MLP, HIDDEN),
        f"{start}.mlp.up_proj.weight": (MLP, HIDDEN),
        f"{start}.mlp.down_proj.weight": (HIDDEN, MLP),
    }


def shards(layers: int, vocabulary: int) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield the tensors of each file."""
    ends = {"embed_tokens.weight": (vocabulary, HIDDEN), "norm.weight": (HIDDEN,)}
    yield {f"model.{name}": shape for name, shape in ends.items()} | {
        "lm_head.weight": (vocabulary, HIDDEN)
    }
    for first in range(0, layers, SHARD_LAYERS):
        chosen = range(first, min(first + SHARD_LAYERS, layers))
        yield {name: shape for layer in chosen for name, shape in layer_shapes(layer).items()}


def write_model(folder: Path, layers: int, seed: int) -> None:
    """Write a model: the base for seed 0, otherwise a parent that has moved from it."""
    config = json.loads((SHIPPED / "config.json").read_bytes())
    shape = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": MLP,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS,
        "head_dim": HEAD,
        "vocab_size": config["vocab_size"],
        "tie_word_embeddings": False,
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(shape))
    for path in SHIPPED.glob("*token*"):
        shutil.copyfile(path, folder / path.name)
    files: dict[str, str] = {}
    for place, tensors in enumerate(shards(layers, config["vocab_size"])):
        file = f"model-{place:05}.safetensors"
        made = {name: _tensor(name, shape, seed) for name, shape in tensors.items()}
        save_file(made, folder / file, metadata={"format": "pt"})
        files |= dict.fromkeys(tensors, file)
    (folder / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": files}))


def _tensor(name: str, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Draw the base's tensor, and for another seed a movement of a tenth of its size."""
    generator = torch.Generator().manual_seed(len(name) * 1009 + sum(name.encode()))
    base = torch.randn(shape, generator=generator).mul_(0.02)
    if seed:
        base += torch.randn(shape, generator=generator.manual_seed(seed)).mul_(0.002)
    return base.bfloat16()


def plain(folders: Sequence[Path], out: Path) -> None:
    """Read all files and write as much as the first folder has, down to the disk."""
    buffer = bytearray(CHUNK)
    for place, folder in enumerate(folders):
        for path in sorted(folder.glob("*.safetensors")):
            with path.open("rb", buffering=0) as source, (out / path.name).open("ab") as target:
                while size := source.readinto(buffer):
                    if place == 0:
                        target.write(memoryview(buffer)[:size])
    os.sync()


def measure(name: str, work: Callable[[], subprocess.Popen[bytes]], cold: Sequence[Path]) -> Side:
    """Run a process from a cold cache until its output is on the disk."""
    for folder in cold:
        for path in folder.glob("*.safetensors"):
            handle = os.open(path, os.O_RDONLY)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)
    before, started, peak = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0.0
    process = work()
    while process.poll() is None:
        peak = max(peak, _allocated_mib(process.pid))
        time.sleep(0.02)
    os.sync()
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Side(name, seconds, cpu, peak)


def _allocated_mib(pid: int) -> float:
    """Anonymous memory of a process; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def difference(ours: Path, theirs: Path) -> tuple[float, float]:
    """Return the share of entries that are equal, and the largest difference."""
    equal = total = 0
    largest = 0.0
    with Weights(ours) as one, Weights(theirs) as two:
        for name in one.file_of:
            mine, other = one.read(name).float(), two.read(name).float()
            equal += int((mine == other).sum())
            total += mine.numel()
            largest = max(largest, float((mine - other).abs().max()))
    return equal / total, largest


def mergekit_config(folders: Sequence[Path]) -> str:
    """Return mergekit's configuration of the same merge, as JSON, which is YAML."""
    models = [
        {"model": str(folder), "parameters": {"weight": 1.0, "density": DENSITY}}
        for folder in folders[1:]
    ]
    return json.dumps(
        {
            "merge_method": "ties",
            "base_model": str(folders[0]),
            "models": models,
            "parameters": {"lambda": SCALE},
            "dtype": "float32",
            "out_dtype": "bfloat16",
        }
    )


def main(arguments: Sequence[str]) -> None:
    """Build, measure, print; see --help."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.merging",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--gib", type=positive, default=4, help="size of a model [4]")
    parser.add_argument("--mergekit", help="Python of an environment with mergekit")
    parser.add_argument("--folder", help="for five models, on the disk to be measured [/tmp]")
    given = parser.parse_args(arguments)
    with TemporaryDirectory(dir=given.folder) as made:
        root = Path(made)
        folders = [root / name for name in ("base", "one", "two")]
        for seed, folder in enumerate(folders):
            write_model(folder, given.gib * LAYERS_PER_GIB, seed)
        _report(root, folders, given.mergekit)


def _report(root: Path, folders: Sequence[Path], mergekit: str | None) -> None:
    console = Console(highlight=False)
    outs = {name: root / name for name in ("plain", "ours", "theirs")}
    for out in outs.values():
        out.mkdir()
    code = "import sys; from pathlib import Path; from tests.bench.merging import plain; "
    code += "*folders, out = map(Path, sys.argv[1:]); plain(folders, out)"
    paths = list(map(str, folders))
    python = [sys.executable, "-c"]
    commands = {
        "plain read and write": [*python, code, *paths, str(outs["plain"])],
        "this project": [*python, OURS, *paths, str(outs["ours"])],
    }
    if mergekit:
        (root / "ties.yml").write_text(mergekit_config(folders))
        script = str(Path(mergekit).parent / "mergekit-yaml")
        commands["mergekit"] = [script, str(root / "ties.yml"), str(outs["theirs"]), "--quiet"]
    sides = [
        measure(name, lambda command=command: subprocess.Popen(command), folders)
        for name, command in commands.items()
    ]
    size = sum(path.stat().st_size for path in folders[0].glob("*.safetensors")) / 2**30
    table = Table(title=f"TIES of two models of {size:.1f} GiB", title_justify="left", box=None)
    for head in ("", "seconds", "CPU seconds", "of plain disk speed", "peak MiB"):
        table.add_column(head, justify="right" if head else "left")
    for side in sides:
        share = f"{sides[0].seconds / side.seconds:.0%}"
        row = (side.name, f"{side.seconds:.1f}", f"{side.cpu_seconds:.1f}", share)
        table.add_row(*row, f"{side.peak_mib:,.0f}")
    console.print(table)
    if mergekit:
        equal, largest = difference(outs["ours"], outs["theirs"])
        console.print(f"equal to mergekit: {equal:.4%} of the entries, others up to {largest:.2g}")


if __name__ == "__main__":
    run(main)
