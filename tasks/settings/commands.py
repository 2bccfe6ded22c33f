"""The command `settings`: its options, before any library is loaded."""

import inspect
from collections.abc import Sequence

from tasks.platform.command_line import command_parser


def settings(arguments: Sequence[str]) -> None:
    """Print the settings of a preset: name, value, allowed values, unit and source.

    eachprompt settings full_scale --group rl_one --find rate
    """
    about = inspect.cleandoc(settings.__doc__ or "")
    parser = command_parser("eachprompt settings", about)
    parser.add_argument("preset", nargs="?", default="laptop", help="a preset, or a YAML file")
    parser.add_argument("--group", default="", help="only this group: rl_one, or rl_one.loss")
    parser.add_argument("--find", default="", help="only settings whose name or text contains this")
    options = parser.parse_args(arguments)
    # Imported here: it loads torch, with the tables of choices.
    from tasks.settings import listing

    listing.show(options.preset, options.group, options.find)
