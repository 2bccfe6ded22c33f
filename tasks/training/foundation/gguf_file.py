"""A quantised model in one GGUF file to the Hugging Face folder that the pipeline starts from.

    python -m tasks.training.foundation.gguf_file FOLDER_OR_FILE OUT

needs the package `gguf`, which no stage needs, so it is in no lock: `make real` has it in a folder
of its own. Weights are those that the quantised ones stand for, in fp32.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from tasks.errors import SettingsError
from tasks.models.model_folder import check_model_folder
from tasks.platform.command_line import command_parser, run


def find_gguf(path: Path) -> Path:
    """Return the only GGUF file below a folder, or the file itself.

    Raises:
        SettingsError: there is none, or there are several.
    """
    results = [path] if path.is_file() else sorted(path.rglob("*.gguf"))
    if len(results) != 1:
        names = ", ".join(one.name for one in results) or "none"
        raise SettingsError(f"{path} has to hold one *.gguf file, found {names}; name the file")
    return results[0]


def convert(source: Path, out: Path) -> None:
    """Write the model of a GGUF file as a model directory with its tokenizer.

    Raises:
        SettingsError: the pipeline cannot train a model of that family.
    """
    where = {"gguf_file": source.name}
    whole = GgufConfig(gguf_file=source.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, **where, quantization_config=whole, dtype=torch.float32
    )
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(source.parent, **where).save_pretrained(out)
    check_model_folder(out)


def main(arguments: Sequence[str]) -> None:
    """Convert one file; see --help."""
    parser = command_parser("python -m tasks.training.foundation.gguf_file", __doc__)
    parser.add_argument("source", type=Path, help="GGUF file, or a folder that holds one")
    parser.add_argument("out", type=Path, help="model directory to write")
    args = parser.parse_args(arguments)
    convert(find_gguf(args.source), args.out)


if __name__ == "__main__":
    run(main)
