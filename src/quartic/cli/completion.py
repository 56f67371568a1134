"""``quartic completion SHELL``: a script that completes commands and options, made by shtab from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from quartic.cli.common import OK, CommandError, say

SHELLS = ("bash", "zsh", "tcsh")


def add(commands: Any, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the command; ``parser`` makes the whole command line again."""
    command = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script for a shell, which then completes quartic's commands, options and files.",
        epilog="examples:\n"
        "  quartic completion bash > ~/.local/share/bash-completion/completions/quartic\n"
        "  quartic completion zsh > ~/.zfunc/_quartic   # in a folder of $fpath\n",
    )
    command.add_argument("shell", choices=SHELLS)
    command.set_defaults(run=lambda arguments: run(arguments, parser()))


def run(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise CommandError("completion needs shtab: pip install 'quartic[cli]'") from None
    say(shtab.complete(parser, arguments.shell))
    return OK
