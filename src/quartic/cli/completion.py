"""``quartic completion SHELL``: a script that completes commands and options, made by shtab from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from quartic.cli.common import OK, CommandError, say

SHELLS = ("bash", "zsh", "tcsh")
FILES = ("FILE", "DATA", "MODEL", "CODES", "PNG")  # metavars of files, besides those that show a suffix


def add(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the command; ``parser`` makes the whole command line again."""
    command = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script for a shell, which then completes quartic's commands, options and files.",
        epilog="examples:\n"
        "  quartic completion bash > ~/.quartic.bash   # and in ~/.bashrc: source ~/.quartic.bash\n"
        "  quartic completion zsh > _quartic           # in a folder of $fpath\n\n"
        "There is none for other shells, such as fish: shtab, which writes these, has none.\n",
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=lambda arguments: run(arguments, parser()))


def run(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise CommandError("completion needs shtab: pip install shtab") from None
    _mark(parser, shtab.FILE, shtab.DIRECTORY)
    say(shtab.complete(parser, arguments.shell))
    return OK


def _mark(parser: argparse.ArgumentParser, file: Any, folder: Any) -> None:
    """Tell shtab which arguments are files, and which are folders."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _mark(command, file, folder)
        elif action.metavar in FILES or "." in str(action.metavar or ""):
            vars(action)["complete"] = file
        elif action.metavar == "FOLDER":
            vars(action)["complete"] = folder
