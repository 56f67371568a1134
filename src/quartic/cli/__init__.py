"""The command line: one file, one thin function per command.

Standard output carries the result and nothing else; progress, warnings and errors go to standard error, one line
each.  Exit codes:

====  ========================================================================================
code  meaning
====  ========================================================================================
0     everything that was asked for is found and certified (``status.ok``); of ``check``: no assumption is broken
2     bad usage, bad input, or an output that cannot be written; nothing was written
3     there is a result, printed and saved as asked, but its status is not ``complete``; of ``check``: one is broken
130   interrupted (Ctrl-C); no partial file is left
141   whoever read the output stopped reading, as for any program in a pipe
====  ========================================================================================
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import quartic
from quartic.cli.check import add as add_check
from quartic.cli.common import (
    BAD,
    BROKEN_PIPE,
    EXIT_CODES,
    INTERRUPTED,
    CommandError,
    Parser,
    complain,
    silence_stdout,
)
from quartic.cli.completion import add as add_completion
from quartic.cli.decompose import add as add_decompose
from quartic.cli.demo import add as add_demo
from quartic.cli.learn import add as add_learn
from quartic.cli.moments import add as add_moments
from quartic.cli.transform import add as add_transform

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process when not given.

    Returns
    -------
    int
    """
    try:
        arguments, others = _parser().parse_known_args(argv)
        if others:
            raise CommandError(f"unrecognized arguments: {' '.join(others)}; see quartic {arguments.command} --help")
        code: int = arguments.run(arguments)
        return code
    except CommandError as error:
        complain("error", str(error))
        return BAD
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("quartic: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="quartic",
        description="Certified decomposition of 4-tensors and dictionary learning by spectral methods.",
        epilog="examples:\n"
        "  quartic demo\n"
        "  quartic decompose tensor.npy --out result.npz\n"
        "  quartic check samples.npy\n"
        "  quartic learn samples.npy --out model.npz\n"
        "  quartic transform model.npz samples.npy --out codes.npy\n"
        "  quartic learn --help\n\n" + EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"quartic {quartic.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for add in (add_decompose, add_check, add_learn, add_transform, add_moments, add_demo):
        add(commands)
    add_completion(commands, _parser)
    return parser
