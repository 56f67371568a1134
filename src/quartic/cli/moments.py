"""``quartic moments`` and ``quartic merge``: what is to be learned from, computed in parts; only moments travel."""

from __future__ import annotations

import argparse
import os
from typing import Any

from quartic._checkpoint import digest
from quartic.cli.common import DONE_CODES, OK, CommandError, bad_input, check_output, say, seed, to_json, whole, writing
from quartic.cli.scale import DATA, add_groups, add_scale, samples
from quartic.frame import Frame
from quartic.moments import Covariance, FourthMoment

WRITTEN = {
    Frame: "coordinates, written by quartic merge --frame",
    FourthMoment: "a second pass, written by quartic moments --frame",
}


def add(commands: Any) -> None:
    """The arguments of both commands."""
    command = commands.add_parser(
        "moments",
        help="sum the moments of samples into a file, to be merged with others and learned from",
        description="Sum the moments of samples, in two passes: mean and covariance first, then, in the coordinates\n"
        "that those of all samples give, the fourth moment.  Files of one pass can be merged in any order.",
        epilog="examples, for two places that do not show each other their data:\n"
        "  quartic moments a.npy --out a1.npz              # in each place: mean and covariance\n"
        "  quartic merge a1.npz b1.npz --frame frame.npz   # in one place: the coordinates for all\n"
        "  quartic moments a.npy --frame frame.npz --out a2.npz   # in each place: fourth moments\n"
        "  quartic merge a2.npz b2.npz --out all.npz\n"
        "  quartic learn --from-moments all.npz --out model.npz\n\n" + DONE_CODES,
    )
    command.add_argument("file", metavar="DATA", help=f"{DATA} with samples as rows")
    command.add_argument("--key", metavar="NAME", help="which array, if the file holds more than one")
    command.add_argument("--out", metavar="PART.npz", required=True, help="file for the sums")
    command.add_argument(
        "--frame", metavar="FRAME.npz", help="second pass, in the coordinates that quartic merge --frame wrote"
    )
    command.add_argument(
        "--first", type=seed, default=0, metavar="ROW", help="index of the first row in all of the data (default: 0)"
    )
    add_groups(command)
    command.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    add_scale(command)
    command.set_defaults(run=run_moments)

    command = commands.add_parser(
        "merge",
        help="merge files of quartic moments",
        description="Add the sums of several files of quartic moments, of the same pass.",
        epilog="examples, with files of both passes of quartic moments:\n"
        "  quartic merge a1.npz b1.npz --frame frame.npz\n"
        "  quartic merge a2.npz b2.npz --out all.npz\n\n" + DONE_CODES,
    )
    command.add_argument("files", metavar="PART.npz", nargs="+", help="files of quartic moments, all of one pass")
    command.add_argument("--out", metavar="ALL.npz", help="file for the sum")
    command.add_argument(
        "--frame", metavar="FRAME.npz", help="file for the coordinates that the first pass gives, for the second"
    )
    command.add_argument(
        "--components", type=whole, metavar="N", help="with --frame: keep so many directions (chosen when not given)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    command.set_defaults(run=run_merge)


def run_moments(arguments: argparse.Namespace) -> int:
    """Sum, save, say what was seen."""
    check_output("--out", arguments.out, arguments.file, arguments.frame, formats=(".npz",))
    start: Covariance | FourthMoment = Covariance()
    if arguments.frame is not None:
        start = FourthMoment(load(arguments.frame, Frame))
    with bad_input(arguments.file, groups="--groups"), samples(arguments) as table:
        moment = start.update(table.X, index=arguments.first, groups=table.groups)
    return _saved(moment, arguments)


def run_merge(arguments: argparse.Namespace) -> int:
    """Add, save, say what was seen."""
    check_output("--out", arguments.out, formats=(".npz",))
    check_output("--frame", arguments.frame, arguments.out, *arguments.files, formats=(".npz",))
    if arguments.out is None and arguments.frame is None:
        raise CommandError("give --out for the sum, or --frame for its coordinates")
    if arguments.components is not None and arguments.frame is None:
        raise CommandError("--components is the number of directions of a --frame; give both, or leave it out")
    seen: dict[str, str] = {}
    total: Any = None
    for path in arguments.files:
        part = load(path, Covariance, FourthMoment)
        if arguments.frame is not None and not isinstance(part, Covariance):
            raise CommandError(f"{path}: is of the second pass; a --frame comes from files of the first")
        name = digest(*(x for _, x in sorted(part._saved().items())))
        if name in seen:
            raise CommandError(f"{path}: holds what {seen[name]} holds, and would count twice; give it once")
        seen[name] = path
        with bad_input(path):
            try:
                total = part if total is None else total.merge(part)
            except TypeError:
                raise CommandError(f"{path}: is not of the pass of {arguments.files[0]}; merge files of one") from None
    if arguments.frame is not None:
        with bad_input(arguments.files[0], dim="--components"), writing("--frame", arguments.frame):
            total.frame(arguments.components).save(arguments.frame)
    return _saved(total, arguments)


def load(path: str, *kinds: Any) -> Any:
    """A file of one of several kinds."""
    for kind in kinds:
        try:
            return kind.load(path)
        except FileNotFoundError:
            raise CommandError(f"{path}: no such file; check the path") from None
        except OSError as error:
            raise CommandError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        except ValueError as error:
            reason = str(error)
    wanted = "moments, written by quartic moments" if len(kinds) > 1 else WRITTEN[kinds[0]]
    raise CommandError(f"{path}: does not hold {wanted} ({reason.rstrip('.').removeprefix(path).strip()})")


def _saved(moment: Any, arguments: argparse.Namespace) -> int:
    second = isinstance(moment, FourthMoment)
    found = {
        "kind": "fourth moment" if second else "mean and covariance",
        "samples": moment.count,
        "features": moment.frame.mean.shape[0] if second else moment.mean_.shape[1],
    }
    if arguments.out is not None:
        with writing("--out", arguments.out):
            moment.save(arguments.out)
        found |= {"out": arguments.out, "bytes": os.path.getsize(arguments.out)}
    if arguments.json:
        say(to_json(found))
        return OK
    lines = [f"{found['kind']} of {found['samples']:,} samples with {found['features']} features"]
    lines += [f"moments     {arguments.out}, {found['bytes'] / 1e6:.1f} MB"] if arguments.out is not None else []
    lines += [f"frame       {arguments.frame}"] if arguments.frame is not None and not second else []
    say("\n".join(lines))
    return OK
