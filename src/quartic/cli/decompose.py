"""``quartic decompose FILE``: from a tensor in a file to certified components."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from quartic import report
from quartic._arrays import to_numpy
from quartic._files import atomic
from quartic.cli import text
from quartic.cli.common import (
    EXIT_CODES,
    PAGES,
    CommandError,
    add_common,
    add_report,
    bad_input,
    check_output,
    number,
    progress,
    say,
    to_json,
    verdict,
    whole,
    writing,
)
from quartic.cli.files import open_tensor
from quartic.cli.terminal import present
from quartic.decomposition import decompose
from quartic.result import Decomposition

STAGES = {  # of `decompose`, in words; what is counted in each
    "pack": "reading the tensor, {} slabs",
    "truncate": "truncating the spectrum, sweep {}",
    "recover": "recovering components, {} found",
    "postprocess": "polishing components",
    "certify": "certifying components",
    "measure": "measuring eps, step {}",
}


def add(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "decompose",
        help="decompose a tensor from a .npy or .npz file",
        description="Decompose T = sum_i w_i a_i^(x4) + E, with orthonormal a_i and an error E of bounded spectral\n"
        "norm; or with a_i in general position, more of them than dimensions if need be.  A .npy file is\n"
        "memory-mapped and read in slabs; memory for a quarter of it is needed.",
        epilog="examples:\n"
        "  quartic decompose tensor.npy\n"
        "  quartic decompose tensor.npy --rank 36 --out result.npz --plot spectrum.png\n"
        "  quartic decompose tensor.npy --report report.html\n"
        "  quartic decompose tensor.npy --json | python3 -m json.tool\n\n"
        "In Python, quartic.Decomposition.load('result.npz') reads the result back.\n\n" + EXIT_CODES,
    )
    command.add_argument(
        "file",
        metavar="FILE",
        help="a .npy or .npz file of shape (d, d, d, d), or (d*d, d*d) for its square flattening",
    )
    command.add_argument("--key", metavar="NAME", help="which array of an .npz file, if it holds more than one")
    command.add_argument(
        "--rank", type=whole, metavar="N", help="number of components (chosen by certificate when not given)"
    )
    command.add_argument(
        "--eps",
        type=number,
        metavar="X",
        help="bound on the spectral norm of the error, in the units of the tensor (estimated when not given)",
    )
    command.add_argument(
        "--find", type=whole, metavar="K", help="stop when K components are certified, or all that there are"
    )
    command.add_argument(
        "--out", metavar="RESULT.npz", help="save the result in this file; in a .csv file, the components alone as rows"
    )
    command.add_argument(
        "--plot",
        metavar="PNG",
        help="draw the spectrum and the certificates; the suffix is the format (needs matplotlib)",
    )
    add_report(command)
    add_common(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Decompose, write what was asked for, print."""
    check_output("--out", arguments.out, arguments.file, formats=(".npz", ".csv"))
    check_output("--plot", arguments.plot, arguments.file, arguments.out)
    check_output("--report", arguments.report, arguments.file, arguments.out, arguments.plot, formats=PAGES)
    if arguments.plot is not None:
        _check_picture(arguments.plot)
    T = open_tensor(arguments.file, arguments.key)
    with bad_input(arguments.file, rank="--rank", eps="--eps", find="--find"):
        options = {"rank": arguments.rank, "eps": arguments.eps, "find": arguments.find}
        said: list[str] = []
        result = decomposed(T, arguments.seed, said, **options)
    written = []
    if arguments.out is not None:
        with writing("--out", arguments.out):
            written.append(f"{save(result, arguments.out):<8} {arguments.out}")
    if arguments.plot is not None:
        with writing("--plot", arguments.plot):
            report.plot(result, arguments.plot)
        written.append(f"picture  {arguments.plot}")
    if arguments.report is not None:
        settings = {"file": arguments.file, **options, "seed": arguments.seed}
        title = os.path.basename(arguments.file)
        with writing("--report", arguments.report):
            report.write_report(result, arguments.report, title=title, settings=settings, warnings=said)
        written.append(f"report   {arguments.report}")
    if arguments.json:
        say(to_json(as_json(result)))
    else:
        present(result, result.summary(), written)
    return verdict(result.status)


def decomposed(T: np.ndarray, seed: int, said: list[str] | None = None, **options: Any) -> Decomposition:
    """The decomposition of ``T``, with progress on a terminal; warnings are added to ``said``."""
    with progress(STAGES, said) as callback:
        return decompose(T, random_state=seed, callback=callback, **options)


def save(result: Decomposition, path: str) -> str:
    """Write a result, or its components alone as text; says which."""
    if not path.lower().endswith(".csv"):
        result.save(path)
        return "result"
    components = to_numpy(result.components)
    with atomic(path) as out:
        text.write(out, text.numbered(components.shape[1]), [components])
    return "components"


def as_json(result: Decomposition) -> dict[str, Any]:
    """A result as numbers, arrays and strings."""
    names = ("components", "weights", "certificates", "certified")
    return {
        **{name: to_numpy(getattr(result, name)) for name in names},
        **{name: getattr(result, name) for name in ("eps", "eps_assumed", "rank", "reason")},
        "status": {"code": result.status.code, "message": result.status.message, "remedy": result.status.remedy},
        **{name: getattr(result, name) for name in ("timings", "asymmetry", "sweeps")},
    }


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
