"""Whether a command of a page exists and takes its arguments, in any environment of the program.

As a program it reads a JSON list of commands, and prints those that do not resolve, with reasons:

    python -I tests/documented.py < commands.json
"""

import json
import re
import shlex
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO

from tasks.errors import SettingsError
from tasks.platform import console
from tasks.platform.command_line import run

YAML = re.compile(r"(?!workflows/|/)\S+\.yaml")
"""A settings file of the reader's own, which is not there."""


def resolve_eachprompt(command: str, *, in_full: bool = False) -> None:
    """Have a command `eachprompt ...` read its options, or run it.

    Raises:
        SettingsError: there is no such command, it has no such option, or it ends with an error.
    """
    words = shlex.split(command, comments=True)
    if words[:2] == ["eachprompt", "lab"]:
        words[1:3] = [" ".join(words[1:3])]
    modules = console.MODULES | console.LAB_MODULES
    if words[1] in modules:
        module, _, function = modules[words[1]][0].partition(":")
        function = getattr(import_module(module), function)
        try:
            run(function, [*words[2:], *([] if in_full else ["--help"])])
        except SystemExit as ended:
            if ended.code:
                raise SettingsError(f"{command} ends with {ended.code}") from ended
    else:
        known = console.read_command(words[1], console.command_places())
        places = map(console.with_place, words[2:])
        given = [word if not YAML.fullmatch(word) else "{}" for word in places]
        console.read_options(known, [word for word in given if word != "--help"])


if __name__ == "__main__":
    failed = {}
    for command in json.load(sys.stdin):
        try:
            with redirect_stdout(StringIO()):
                resolve_eachprompt(command)
        except SettingsError as error:
            failed[command] = str(error)
    json.dump(failed, sys.stdout)
