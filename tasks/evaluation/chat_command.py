"""Talk to a model in the terminal, or serve it to programs, with the embedded engine.

eachprompt chat models:/eachprompt-tiny@released
"""

import importlib
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import SettingsError
from tasks.platform.command_line import command_parser, positive, run

EXAMPLES = """examples:
  eachprompt chat models:/eachprompt-tiny@released
  eachprompt chat path/to/model --temperature 0 --thinking off
  echo "What is 3 + 4?" | eachprompt chat ""     (the shipped base model)
  eachprompt chat path/to/model --prompt-file question.txt
  eachprompt chat models:/eachprompt-tiny@released --serve 8000
"""
CHAT = "tasks.evaluation.chat"
"""Loads torch and the engine: not before the arguments are known to be right."""


def main(arguments: Sequence[str]) -> None:
    """Open a model and answer message by message until the input ends; see --help."""
    parser = command_parser("eachprompt chat", (__doc__ or "").splitlines()[0], EXAMPLES)
    parser.add_argument("model", help="models:/NAME@released, models:/NAME/3, or a folder")
    parser.add_argument("--store", default="runs", help="of a registered model [default: runs]")
    parser.add_argument("--max_new_tokens", type=positive, default=128)
    parser.add_argument("--temperature", type=float, default=0.7, help="0 = the likeliest tokens")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--serve", type=int, metavar="PORT", help="answer programs at 127.0.0.1:PORT, not a person"
    )
    parser.add_argument("--prompt-file", metavar="FILE", help="answer this text alone")
    parser.add_argument(
        "--thinking", choices=("on", "off"), help="mode of a hybrid model [as its template has it]"
    )
    args = parser.parse_args(arguments)
    if args.serve is not None and args.prompt_file is not None:
        raise SettingsError("--serve answers programs; leave --prompt-file out")
    prompt = None if args.prompt_file is None else _prompt(Path(args.prompt_file))
    if args.temperature < 0:
        raise SettingsError(f"--temperature is {args.temperature}; give 0 or more")
    chat = importlib.import_module(CHAT)
    sampling = chat.Sampling(
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        seed=args.seed,
        record_routes=False,
    )
    thinking = None if args.thinking is None else args.thinking == "on"
    chat.talk(args.model, args.store, sampling, args.serve, prompt, thinking=thinking)


def _prompt(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--prompt-file {path} cannot be read as UTF-8: {error}") from error
    if not text:
        raise SettingsError(f"--prompt-file {path} is empty")
    return text


if __name__ == "__main__":
    run(main)
