"""Say yes to files that a night held: `eachprompt approve`."""

from collections.abc import Sequence

from data_schemas.intake import FileStatus
from tasks.platform.command_line import run
from tasks.retraining.ruling import command


def main(arguments: Sequence[str]) -> None:
    """Record it; see --help."""
    command(FileStatus.APPROVED, arguments)


if __name__ == "__main__":
    run(main)
