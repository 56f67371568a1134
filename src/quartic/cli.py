"""The command line: one thin function per command.

Standard output carries the result and nothing else; progress, warnings and errors go to standard error, one line
each.  Exit codes:

====  ========================================================================================
code  meaning
====  ========================================================================================
0     everything that was asked for is found and certified (``result.status.ok``)
2     bad usage, bad input, or an output that cannot be written; nothing was written
3     there is a result, printed and saved as asked, but its status is not ``complete``
130   interrupted (Ctrl-C); no partial file is left
141   whoever read the output stopped reading, as for any program in a pipe
====  ========================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

import quartic
from quartic import report
from quartic._arrays import to_numpy
from quartic.decomposition import decompose
from quartic.result import Decomposition, DecompositionWarning

OK, BAD, UNPROVED, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141

# The demo: weights of at least three times eps, as the method asks for, and an error made to catch power iteration.
DEMO: dict[str, Any] = {"d": 40, "n": 30, "eps": 0.4, "error": "trap"}
DEMO_WEIGHTS = (2.0, 1.2)  # the largest and the smallest, evenly spaced between

OUT_OF_MEMORY = "out of memory; use float32, or a machine with more memory"

STAGES = {  # of `decompose`, in words; what is counted in each
    "pack": "reading the tensor, {} slabs",
    "truncate": "truncating the spectrum, sweep {}",
    "recover": "recovering components, {} found",
    "postprocess": "polishing components",
    "certify": "certifying components",
    "measure": "measuring eps, step {}",
}

EXIT_CODES = """\
exit codes:
  0    everything that was asked for is found and certified
  2    bad usage or bad input; one line on standard error says what and how to mend it
  3    there is a result, printed and saved as asked, but not everything is found and certified:
       a warning on standard error says what is missing and what to try
  130  interrupted; no partial file is left
"""


class CommandError(Exception):
    """Bad input, said in one line that names the file or the option and the remedy."""


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
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
        return code
    except CommandError as error:
        _complain("error", str(error))
        return BAD
    except BrokenPipeError:
        _silence_stdout()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("quartic: interrupted", file=sys.stderr)
        return INTERRUPTED


def decompose_command(arguments: argparse.Namespace) -> int:
    """``quartic decompose FILE``: from a file to certified components."""
    _check_output("--out", arguments.out, arguments.file)
    _check_output("--plot", arguments.plot, arguments.file, arguments.out)
    if arguments.plot is not None:
        _check_picture(arguments.plot)
    T = _open_tensor(arguments.file)
    with _bad_input(arguments.file):
        result = _run(T, arguments.seed, rank=arguments.rank, eps=arguments.eps, find=arguments.find)
    written = []
    if arguments.out is not None:
        with _writing("--out", arguments.out):
            result.save(arguments.out)
        written.append(f"result   {arguments.out}")
    if arguments.plot is not None:
        with _writing("--plot", arguments.plot):
            report.plot(result, arguments.plot)
        written.append(f"picture  {arguments.plot}")
    if arguments.json:
        _say(json.dumps(_as_json(result), allow_nan=False))
    else:
        _say("\n".join([result.summary(), *([""] if written else []), *written]))
    return _verdict(result)


def demo_command(arguments: argparse.Namespace) -> int:
    """``quartic demo``: a planted, adversarially perturbed tensor, found against planted."""
    picture: str | None = os.path.join(arguments.out, "spectrum.png")
    try:
        report.require_matplotlib()
        _check_output("--out", picture, create=True)
    except ImportError as error:
        picture, missing = None, str(error)
    weights = np.linspace(*DEMO_WEIGHTS, DEMO["n"])
    start = time.perf_counter()
    planted = quartic.datasets.planted_tensor(**DEMO, weights=weights, random_state=arguments.seed)
    T = planted.tensor
    planting = time.perf_counter() - start
    result = _run(T, arguments.seed)
    if picture is not None:
        with _writing("--out", picture):
            os.makedirs(arguments.out or ".", exist_ok=True)
            report.plot(result, picture)
    if arguments.json:
        matched = quartic.metrics.match(planted.components, result.components)
        truth = {"components": planted.components, "weights": weights}
        pairs = {"planted": matched.rows, "found": matched.columns, "squared_correlation": matched.squared}
        found = {
            **_as_json(result),
            "planted": {**DEMO, "seed": arguments.seed, **{name: x.tolist() for name, x in truth.items()}},
            "matching": {name: x.tolist() for name, x in pairs.items()},
            "picture": picture,
        }
        _say(json.dumps(found, allow_nan=False))
    else:
        _say(
            f"{DEMO['n']} orthonormal components planted in a tensor of dimension {DEMO['d']} (seed {arguments.seed}), "
            f"weights {weights[0]:g} to {weights[-1]:g},\n"
            f"plus an adversarial error ({DEMO['error']}) of spectral norm {DEMO['eps']:g}; made in {planting:.2f} s.  "
            "Neither rank nor eps is given.\n\n"
            f"{report.compare(planted, result, DEMO['eps'])}\n"
            f"picture  {picture or f'none: {missing}'}"
        )
    return _verdict(result)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="quartic",
        description="Certified decomposition of 4-tensors by spectral methods.",
        epilog="examples:\n"
        "  quartic demo\n"
        "  quartic decompose tensor.npy --out result.npz\n"
        "  quartic decompose --help\n\n" + EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"quartic {quartic.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser(
        "decompose",
        help="decompose a tensor from a .npy file",
        description="Decompose T = sum_i w_i a_i^(x4) + E, with orthonormal a_i and an error E of bounded spectral\n"
        "norm.  The file is memory-mapped and read in slabs; memory for a quarter of it is needed.",
        epilog="examples:\n"
        "  quartic decompose tensor.npy\n"
        "  quartic decompose tensor.npy --rank 36 --out result.npz --plot spectrum.png\n"
        "  quartic decompose tensor.npy --json | python3 -m json.tool\n\n"
        "In Python, quartic.Decomposition.load('result.npz') reads the result back.\n\n" + EXIT_CODES,
    )
    command.add_argument(
        "file", metavar="FILE", help="a .npy file of shape (d, d, d, d), or (d*d, d*d) for its square flattening"
    )
    command.add_argument(
        "--rank", type=_whole, metavar="N", help="number of components (chosen by certificate when not given)"
    )
    command.add_argument(
        "--eps",
        type=_number,
        metavar="X",
        help="bound on the spectral norm of the error, in the units of the tensor (estimated when not given)",
    )
    command.add_argument("--find", type=_whole, metavar="K", help="stop when K components are certified")
    command.add_argument("--out", metavar="RESULT.npz", help="save the result in this file")
    command.add_argument(
        "--plot",
        metavar="PNG",
        help="draw the spectrum and the certificates; the suffix is the format (needs matplotlib)",
    )
    _common(command, decompose_command)

    command = commands.add_parser(
        "demo",
        help="decompose a planted, adversarially perturbed tensor",
        description="Plant components in a tensor, perturb it adversarially, decompose it without being told rank\n"
        "or eps, and print what was found against what was planted.  Draws the spectrum and its gap.",
        epilog="examples:\n  quartic demo\n  quartic demo --seed 7 --out pictures\n\n" + EXIT_CODES,
    )
    command.add_argument(
        "--out",
        metavar="FOLDER",
        default="out",
        help="folder for the picture, spectrum.png; made if missing (default: out)",
    )
    _common(command, demo_command)
    return parser


def _common(command: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    """What every command takes."""
    command.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="of the random numbers; one seed, one answer (default: 0)"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    command.set_defaults(run=run)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and whose help keeps its line breaks."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def _seed(text: str) -> int:
    value = _whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {value}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _open_tensor(path: str) -> np.ndarray:
    """The array in a ``.npy`` file as a memory map; whatever is wrong with the file is said before it is read."""
    mend = "write the tensor with numpy.save"
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISDIR(kind):
            raise CommandError(f"{path}: is a directory; give a .npy file")
        if not stat.S_ISREG(kind):
            raise CommandError(f"{path}: is not a regular file and cannot be memory-mapped; give a .npy file")
        with open(path, "rb") as file:
            magic = file.read(6)
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: cannot be read ({_why(error)}); check the path and its permissions") from None
    if not magic:
        raise CommandError(f"{path}: the file is empty; {mend}")
    if magic.startswith(b"PK"):
        raise CommandError(f"{path}: is an .npz archive, not a single array; {mend}")
    if magic != b"\x93NUMPY":
        raise CommandError(f"{path}: is not a .npy file (pickles are never loaded); {mend}")
    try:
        T: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a damaged header can make the parser raise nearly anything
        raise CommandError(f"{path}: {_damage(path) or _why(error)}; {mend} again") from None
    return T


def _damage(path: str) -> str | None:
    """What is wrong with a ``.npy`` file that cannot be mapped, or None where its header does not say."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in readers:
                return None
            shape, _, dtype = readers[version](file)
            held = os.fstat(file.fileno()).st_size - file.tell()
    except Exception:
        return "its .npy header is damaged or truncated"
    if dtype.hasobject:
        return "holds pickled Python objects, which are never loaded; convert it with numpy.asarray(T, dtype=float)"
    expected = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if held < expected:
        return f"the file is truncated, {held} of {expected} bytes of data are there"
    return None


def _check_output(option: str, path: str | None, *others: str | None, create: bool = False) -> None:
    """Refuse an output that could not be written, before the work starts and without leaving a file.

    Parameters
    ----------
    option : str
        Names the output in the message.
    path : str or None
    *others : str or None
        Files of the same command, which the output must not replace.
    create : bool
        Whether a missing folder will be made.
    """
    if path is None:
        return
    if not path or (os.path.exists(path) and not os.path.isfile(path)):
        # A device would be replaced by a file, not written to.
        raise CommandError(f"{option} {path!r}: is a directory or a device; give the name of a file")
    if any(other is not None and os.path.realpath(other) == os.path.realpath(path) for other in others):
        raise CommandError(f"{option} {path}: would replace another file of this command; give another name")
    folder = os.path.dirname(path) or "."
    while create and folder and not os.path.lexists(folder):
        folder = os.path.dirname(folder) or "."
    if not os.path.exists(folder):
        raise CommandError(f"{option} {path}: there is no folder {folder}; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CommandError(
            f"{option} {path}: cannot write in {folder} ({_why(error)}); give a folder you may write in"
        ) from None


def _check_picture(path: str) -> None:
    """Refuse a picture that could not be drawn, before the work starts."""
    try:
        report.require_matplotlib()
    except ImportError as error:
        raise CommandError(f"--plot {path}: {error}") from None
    from matplotlib.backend_bases import FigureCanvasBase

    suffix = os.path.splitext(path)[1][1:].lower()
    formats = FigureCanvasBase.get_supported_filetypes()
    if suffix and suffix not in formats:
        raise CommandError(f"--plot {path}: unknown format {suffix}; use .png, .pdf or .svg")


@contextlib.contextmanager
def _writing(option: str, path: str) -> Iterator[None]:
    """What goes wrong with an output file, as an error of the command."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{option} {path}: cannot be written ({_why(error)}); give another place") from None


@contextlib.contextmanager
def _bad_input(path: str) -> Iterator[None]:
    """What the library says about its arguments, in the words of the command line."""
    try:
        yield
    except MemoryError as error:
        raise CommandError(f"{path}: {str(error) or OUT_OF_MEMORY}") from None
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        where = f"--{name} " if name in ("rank", "eps", "find") else f"{path}: {name} "
        raise CommandError(f"{where}{rest}") from None


def _run(T: np.ndarray, seed: int, **options: Any) -> Decomposition:
    with _progress() as callback, warnings.catch_warnings():
        warnings.simplefilter("ignore", DecompositionWarning)  # the verdict says the same in one line
        return decompose(T, random_state=seed, callback=callback, **options)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int], None] | None]:
    """A callback that rewrites one line of a terminal, cleared at the end; none where nobody watches."""
    width = 0

    def show(stage: str, done: int) -> None:
        nonlocal width
        line = f"quartic: {STAGES.get(stage, stage + ' {}').format(done)}"
        print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)
        width = len(line)

    try:
        yield show if sys.stderr.isatty() else None
    finally:
        if width:
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)


def _verdict(result: Decomposition) -> int:
    """The exit code, and a warning where not everything is there and certified."""
    if result.status.ok:
        return OK
    _complain("warning", str(result.status))
    return UNPROVED


def _as_json(result: Decomposition) -> dict[str, Any]:
    """A result as plain numbers, lists and strings."""
    return {
        **{name: to_numpy(getattr(result, name)).tolist() for name in ("components", "weights", "certificates")},
        "certified": to_numpy(result.certified).tolist(),
        **{name: getattr(result, name) for name in ("eps", "eps_assumed", "rank", "reason")},
        "status": {"code": result.status.code, "message": result.status.message, "remedy": result.status.remedy},
        **{name: getattr(result, name) for name in ("timings", "asymmetry", "sweeps")},
    }


def _say(text: str) -> None:
    """Print the result, now: what is wrong with standard output has to show before the exit code is chosen."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _silence_stdout()
        raise CommandError(f"standard output: cannot be written ({_why(error)}); send it elsewhere") from None


def _complain(kind: str, message: str) -> None:
    print(f"quartic: {kind}: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)


def _why(error: Exception) -> str:
    """The reason of a failure, without the path, which the message names already."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _silence_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that the interpreter does not complain about it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
