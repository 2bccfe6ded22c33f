"""Talk to a model in the terminal, with the embedded engine.

eachprompt chat models:/eachprompt-tiny@released
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import click

from data_schemas.machine_settings import MachineSettings
from data_schemas.prompts import Message, Role
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.engines.select import open_rollout
from tasks.errors import SettingsError
from tasks.models.model_folder import check_model_folder, local_folder, read_config
from tasks.platform.command_line import positive, run
from tasks.provenance.lineage.base_model import find_base
from tasks.store.location import existing_store

THOUGHT_ENDS = "</think>"
EXAMPLES = """examples:
  eachprompt chat models:/eachprompt-tiny@released
  eachprompt chat path/to/model --temperature 0
  echo "What is 3 + 4?" | eachprompt chat ""     (the shipped base model)
"""


class Conversation:
    """The turns so far. The oldest are forgotten when the positions of the model are used up."""

    def __init__(self, folder: Path, engine: RolloutEngine, sampling: Sampling) -> None:
        self._tokenizer = load_tokenizer(folder)
        self._engine = engine
        self._sampling = sampling
        self._turns: list[Message] = []
        positions = read_config(folder).get("max_position_embeddings")
        self._room = positions - sampling.max_new_tokens if isinstance(positions, int) else None

    def answer(self, text: str) -> str:
        """Answer a user's turn; what the model thinks is shown, and is no part of later prompts.

        Raises:
            SettingsError: the turn alone is longer than the positions of the model.
        """
        self._turns.append(Message(role=Role.USER, content=text))
        prompt = render_prompt(self._tokenizer, self._turns)
        while self._room is not None and len(prompt) > self._room:
            if len(self._turns) == 1:
                self._turns.clear()
                raise SettingsError(
                    f"{len(prompt)} tokens are more than the {self._room} that the model has "
                    "positions for, before its answer; write less, or set --max_new_tokens lower"
                )
            del self._turns[:2]
            prompt = render_prompt(self._tokenizer, self._turns)
        request = Request(f"turn/{len(self._turns)}", prompt, 1)
        (rollout,) = self._engine.generate([request], self._sampling)
        response = str(
            self._tokenizer.decode(rollout.response_tokens.tolist(), skip_special_tokens=True)
        ).strip()
        said = response.rpartition(THOUGHT_ENDS)[2].strip()
        self._turns.append(Message(role=Role.ASSISTANT, content=said))
        return response


def main(arguments: Sequence[str]) -> None:
    """Open a model and answer line by line until the input ends; see --help."""
    parser = argparse.ArgumentParser(
        prog="eachprompt chat",
        description=(__doc__ or "").splitlines()[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", help="models:/NAME@released, models:/NAME/3, or a folder")
    parser.add_argument("--store", default="runs", help="of a registered model [default: runs]")
    parser.add_argument("--max_new_tokens", type=positive, default=128)
    parser.add_argument("--temperature", type=float, default=0.7, help="0 = the likeliest tokens")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.temperature < 0:
        raise SettingsError(f"--temperature is {given.temperature}; give 0 or more")
    folder = _folder(given.model, given.store)
    sampling = Sampling(
        max_new_tokens=given.max_new_tokens,
        temperature=given.temperature,
        seed=given.seed,
        record_routes=False,
    )
    with closing(open_rollout(MachineSettings(), folder)) as engine:
        conversation = Conversation(folder, engine, sampling)
        for line in _lines():
            click.echo(conversation.answer(line))


def _folder(model: str, store: str) -> Path:
    """Return the local folder of a model that was checked.

    Raises:
        SettingsError: there is none.
    """
    folder = local_folder(model)
    if folder is None:
        place = existing_store(store, os.environ.get("MLFLOW_TRACKING_URI", ""))
        return find_base(model, place).folder
    check_model_folder(folder)
    return folder


def _lines() -> Iterator[str]:
    """Yield what is typed until the input ends; a question mark asks on a terminal only."""
    is_typed = sys.stdin.isatty()
    if is_typed:
        click.echo("Ctrl-D ends the conversation.", err=True)
    while True:
        if is_typed:
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


if __name__ == "__main__":
    run(main)
