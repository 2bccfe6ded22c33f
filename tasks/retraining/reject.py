"""Say no to files that a night held, for good: `eachprompt reject`."""

from collections.abc import Sequence

from data_schemas.intake import FileStatus
from tasks.platform.command_line import run
from tasks.retraining.ruling import command


def main(arguments: Sequence[str]) -> None:
    """Record it; see --help."""
    command(FileStatus.REJECTED, arguments)


if __name__ == "__main__":
    run(main)
