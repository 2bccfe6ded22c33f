"""Score responses from a file, or serve the verifiers over HTTP.

python -m tasks.gym score responses.jsonl --out verdicts.jsonl
python -m tasks.gym serve --port 8787

A row has the fields verifier, answer and response, and optionally id, prompt and language. The
docstring of each verifier describes its answer. An interrupted `score` resumes where it stopped.
A row names no code: verifiers of your own, and environments of other libraries, are listed with
--verifier my_file.py:name and --verifier environment.
If EACHPROMPT_REWARDS_TOKEN is set, `serve` requires it as a bearer token.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console

from data_schemas.rl_settings import RewardSettings
from tasks.errors import PipelineError, SettingsError
from tasks.gym import binding
from tasks.gym.scoring.service import ScoringService
from tasks.gym.serving.endpoint import RequestLimits, open_endpoint
from tasks.gym.serving.offline import score_file
from tasks.gym.table import listed_entries

TOKEN = "EACHPROMPT_REWARDS_TOKEN"


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.gym",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("score", "serve"))
    parser.add_argument("file", nargs="?", type=Path, help="score: JSON lines to read")
    parser.add_argument("--out", type=Path, help="score: JSON lines to write")
    parser.add_argument("--host", default="127.0.0.1", help="serve: default 127.0.0.1")
    parser.add_argument("--port", default=8787, type=int, help="serve: default 8787; 0 for any")
    parser.add_argument("--settings", default="{}", help="RewardSettings as JSON: a judge, ...")
    parser.add_argument(
        "--verifier", action="append", default=[], help="my_file.py:name, which rows may name"
    )
    parser.add_argument("--workers", default=0, type=int, help="default: all cores but one")
    args = parser.parse_args(arguments)
    if args.command == "score" and not (args.file and args.out):
        parser.error("score needs a file and --out")
    return args


def run(arguments: Sequence[str], console: Console) -> None:
    """Run the command that the arguments name.

    Raises:
        PipelineError: the command failed; the message states what to do.
    """
    options = parse_arguments(arguments)
    try:
        settings = RewardSettings.model_validate_json(options.settings)
    except ValidationError as error:
        raise SettingsError(f"--settings: {error.errors()[0]['msg']}") from error
    entries = listed_entries(binding.entries(settings), options.verifier)
    with ScoringService(None, settings, num_workers=options.workers, entries=entries) as scorer:
        scorer.check_canaries()
        if options.command == "score":
            for reason, count in score_file(options.file, options.out, scorer).items():
                console.print(f"{count:>8}  {reason}", markup=False, highlight=False)
            return
        limits = RequestLimits(token=os.environ.get(TOKEN, ""))
        with open_endpoint(scorer, sorted(entries), options.host, options.port, limits) as server:
            host, port = server.server_address[:2]
            console.print(f"serving on http://{host}:{port}", markup=False, highlight=False)
            signal.signal(signal.SIGTERM, _stop)
            with suppress(KeyboardInterrupt):
                server.serve_forever()


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Run the command line; an error the user can fix is printed as one line."""
    try:
        run(arguments, Console())
    except PipelineError as error:
        Console(stderr=True).print(f"error: {error}", markup=False, highlight=False)
        return 2 if isinstance(error, SettingsError) else 1  # as every command
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
