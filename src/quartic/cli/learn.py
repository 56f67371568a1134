"""``quartic learn FILE``: from samples in a file to a dictionary, with a certificate for every atom."""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from quartic import report
from quartic._files import atomic
from quartic._words import called, counted
from quartic.cli import text
from quartic.cli.common import (
    EXIT_CODES,
    MOST,
    PAGES,
    CommandError,
    Show,
    add_common,
    add_report,
    bad_input,
    check_output,
    complain,
    number,
    progress,
    say,
    to_json,
    verdict,
    whole,
    writing,
)
from quartic.cli.moments import load
from quartic.cli.scale import DATA, add_groups, add_scale, has_options, samples
from quartic.cli.terminal import present
from quartic.diagnosis import suspicious, symmetry, transposed
from quartic.estimators import SpectralDictionaryLearning, SpectralICA
from quartic.evidence.units import ROWS
from quartic.moments import FourthMoment
from quartic.report.findings import coarse, findings
from quartic.rows import LOOKED

Model = SpectralDictionaryLearning | SpectralICA

ROUNDING = 1e-12  # relative: a feature with no more than that in any direction does not vary
SOURCES = ("file", "key", "groups", "from_moments", "scheduler", "workers", "memory", "checkpoint", "skip_unreadable")
STAGES = {  # of a fit, in words
    "trim": "looking for gross samples",
    "covariance": "whitening the samples",
    "evidence": "drawing samples for the proof",
    "certify": "proving",
    "moment": "taking fourth moments",
    "search": "searching the spectrum",
    "untangle": "untangling correlated atoms, {} certified",
    "refine": "refining the atoms",
    "measure": "measuring what is left",
}


def add(commands: Any) -> None:
    """The command's arguments."""
    command = commands.add_parser(
        "learn",
        help="learn a dictionary from samples in a file, a folder, or moments",
        description="Learn a dictionary from samples y = sum_i x_i a_i: the atoms a_i, with a certificate for each.\n"
        "A .npy file is memory-mapped and read in chunks; more than one pass is made.  Features that are constant,\n"
        "count rows or repeat a value, and skewed sources, are warned of; quartic check looks for much more.",
        epilog="examples:\n"
        "  quartic learn samples.npy\n"
        "  quartic learn samples.csv --components 20 --out model.npz\n"
        "  quartic learn subjects.csv --groups subject\n"
        "  quartic learn recording.npz --key signals --ica --json | python3 -m json.tool\n"
        "  quartic learn huge.zarr --memory 4GB --checkpoint run.npz --out model.npz\n"
        "  quartic learn --from-moments all.npz\n"
        "  quartic learn samples.npy --report report.html\n"
        "  quartic learn samples.csv --out atoms.csv\n"
        "  cut -d, -f2- table.csv | quartic learn -\n\n"
        "quartic transform model.npz samples.npy computes the codes of samples.  In Python,\n"
        "quartic.SpectralDictionaryLearning.load('model.npz') reads the model back (SpectralICA after --ica).\n\n"
        + EXIT_CODES,
    )
    command.add_argument("file", metavar="DATA", nargs="?", help=f"{DATA} with samples as rows")
    command.add_argument("--key", metavar="NAME", help="which array, if the file holds more than one")
    command.add_argument(
        "--from-moments", metavar="ALL.npz", help="learn from a file of quartic moments instead, without refinement"
    )
    command.add_argument(
        "--components", type=whole, metavar="N", help="number of atoms (chosen from the data when not given)"
    )
    command.add_argument(
        "--temperature",
        type=number,
        metavar="B",
        help="weights of samples that fall with their norms; 0 for none (chosen from the data when not given)",
    )
    command.add_argument("--ica", action="store_true", help="independent components: sources of variance 1, unmixed")
    command.add_argument(
        "--no-refine", dest="refine", action="store_false", help="stop after the spectral stage, on all samples"
    )
    command.add_argument(
        "--out",
        metavar="MODEL.npz",
        help="save the model in this file; in a .csv file, the atoms alone, as unit rows (with --ica, what each "
        "source is in the features: columns of the mixing matrix)",
    )
    rows = command.add_argument_group("samples that depend on each other, and long ones")
    add_groups(rows)
    rows.add_argument(
        "--rows",
        choices=ROWS,
        default="auto",
        help="exchangeable: the order of samples means nothing (default: a test says whether neighbours depend on each "
        "other)",
    )
    rows.add_argument(
        "--no-trim", dest="trim", action="store_false", help="keep samples that are far longer than all others"
    )
    add_report(command)
    add_common(command)
    add_scale(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Learn, save what was asked for, print."""
    inputs = (arguments.file, arguments.from_moments, arguments.checkpoint)
    check_output("--out", arguments.out, *inputs, formats=(".npz", ".csv"))
    check_output("--report", arguments.report, *inputs, arguments.out, formats=PAGES)
    if (arguments.file is None) == (arguments.from_moments is None):
        raise CommandError("give either a file of samples or --from-moments; see quartic learn --help")
    reading = arguments.key is not None or arguments.groups is not None or not arguments.trim or has_options(arguments)
    if arguments.from_moments is not None and reading:
        raise CommandError(
            "--from-moments reads no samples: leave out --key, --groups, --no-trim and the options for large data"
        )
    kind = SpectralICA if arguments.ica else SpectralDictionaryLearning
    names = {"refine": "refine", "temperature": "temperature", "rows": "rows", "trim": "trim", "random_state": "seed"}
    model = kind(arguments.components, **{name: vars(arguments)[option] for name, option in names.items()})
    given = text.spoken(arguments.file or arguments.from_moments)
    said: list[str] = []
    written = _fit(model, arguments, given, said)
    _warn(said, coarse(model._noun, model.learned_))
    if arguments.out is not None:
        with writing("--out", arguments.out):
            written.append(f"{save(model, arguments.out):<11} {arguments.out}")
    if arguments.report is not None:
        settings = {name: vars(arguments)[name] for name in SOURCES if vars(arguments)[name]}
        title = os.path.basename(os.path.normpath(given))
        with writing("--report", arguments.report):
            report.write_report(model, arguments.report, title=title, settings=settings, warnings=said)
        written.append(f"report      {arguments.report}")
    if arguments.json:
        say(to_json({**as_json(model), "warnings": said}))
    else:
        present(model, summary(model), written, said)
    return verdict(model.status_)


def _fit(model: Model, arguments: argparse.Namespace, given: str, said: list[str]) -> list[str]:
    """Fit to what was ``given``, and look at it in passing; a line on the header of a text file, where there is one."""
    named = {name: f"--{name}" for name in ("temperature", "groups", "checkpoint")} | {"n_components": "--components"}
    with bad_input(given, **named), progress(STAGES, said) as show:
        if arguments.from_moments is not None:
            model.fit_moment(load(arguments.from_moments, FourthMoment))
            return []
        with samples(arguments) as (X, names, header, groups):
            if isinstance(X, np.ndarray):
                if X.shape[0] < 2:
                    raise CommandError(f"{given}: holds one sample; at least two are needed, and many more are better")
                _warn(said, [f"{given}: {what}" for what in (*transposed(*X.shape), *suspicious(X, names))])
                if show is not None:
                    model.set_callbacks(_Watch(show))
            model.fit(X, groups=groups)
            if isinstance(X, np.ndarray) and not model.learned_.overcomplete:
                _warn(said, [f"{given}: {what}" for what in _skewed(model, X)])
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
    return [] if header is None else [f"header      {header}"]


def _warn(said: list[str], warnings: list[str]) -> None:
    """Warn now, and keep it for the report."""
    for warning in warnings:
        complain("warning", warning)
    said += warnings


def _skewed(model: Model, X: np.ndarray) -> list[str]:
    """A warning where codes are skewed: what is certified rests on signs."""
    learned = model.learned_
    found = symmetry((X[:LOOKED] - learned.mean) @ learned.unmixing.T / learned.spread)
    return [] if found.holds else [f"{found.measured}. {found.remedy}"]


def save(model: Model, path: str) -> str:
    """Write a model, or its components alone as text; says which."""
    if not path.lower().endswith(".csv"):
        model.save(path)
        return "model"
    names = getattr(model, "feature_names_in_", text.numbered(model.n_features_in_))
    with atomic(path) as out:
        text.write(out, names, [model.learned_.components])  # that mix; components_ of ICA unmix
    return f"{model._noun}s"


def summary(model: Model, most: int = 20) -> str:
    """A table of the first ``most`` atoms, and what is to be said about all of them."""
    n, word, share = model.n_components_, model._noun, model.learned_.energy
    names = getattr(model, "feature_names_in_", [f"feature {j}" for j in range(model.n_features_in_)])
    largest = findings(model).columns()["Largest entries"]
    part = np.max(np.abs(model.learned_.frame.backward), axis=0)
    constant = [str(names[j]) for j in np.flatnonzero(part <= ROUNDING * np.max(part)).tolist()]
    listed = ", ".join(constant[:MOST]) + (", ..." if constant[MOST:] else "")
    figures = called(model.report_.summary(), word).replace("\nsources   ", "\nsources ")  # in line with the others
    lines = [
        f"{counted(n, word)} in dimension {model.report_.dim}, {int(np.sum(model.certified_))} certified",
        f"status      {model.status_}",
        figures,
        *([f"constant    {listed}: no {word} has a part in it"] if constant else []),
        "",
        f"  {word:>6}    energy  certificate  stability  uncertainty  kurtosis  largest entries",
    ]
    for i in findings(model).ranked[:most]:
        row = f"{100 * share[i]:7.2f} %  {model.certificates_[i]:11.4f}  {model.stability_[i]:9.2f}"
        row += f"  {model.uncertainty_[i]:11.1e}"
        mark = "" if model.certified_[i] else "  not certified"
        lines.append(f"  {i:6d}  {row}  {model.kurtosis_[i]:8.3g}  {largest[i]}{mark}")
    if n > most:
        lines.append(f"  ... and {n - most} more")
    return "\n".join(lines)


def as_json(model: Model) -> dict[str, Any]:
    """A model as numbers, arrays and strings."""
    names = ("components", "mean", "certificates", "certified", "uncertainty", "stability", "kurtosis", "eps")
    return {
        "kind": type(model).__name__,
        **{name: getattr(model, f"{name}_") for name in names},
        **({"mixing": model.mixing_} if isinstance(model, SpectralICA) else {"thresholds": model.thresholds_}),
        "energy": model.learned_.energy,
        "feature_names": getattr(model, "feature_names_in_", None),
        "status": dict(vars(model.status_)),
        "report": {**vars(model.report_), "plan": [vars(attempt) for attempt in model.report_.plan]},
    }


class _Watch:
    """Tells the stages of a fit, as scikit-learn's callbacks see them, to a line of progress."""

    def __init__(self, show: Show) -> None:
        self.show = show

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to do before the fit."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Show the stage that begins."""
        if context.task_name in STAGES:
            self.show(context.task_name, 0)

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Go on."""
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to do after the fit."""
