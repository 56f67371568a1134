"""``quartic demo``: a planted, adversarially perturbed tensor, found against planted."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

from quartic import datasets, metrics, report
from quartic.cli.common import EXIT_CODES, add_common, check_output, say, to_json, verdict, writing
from quartic.cli.decompose import as_json, decomposed

# Weights of at least three times eps, as the method asks for, and an error made to catch power iteration.
DEMO: dict[str, Any] = {"d": 40, "n": 30, "eps": 0.4, "error": "trap"}
WEIGHTS = (2.0, 1.2)  # the largest and the smallest, evenly spaced between


def add(commands: Any) -> None:
    """The command's arguments."""
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
    add_common(command)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plant, decompose, compare, draw."""
    picture: str | None = os.path.join(arguments.out, "spectrum.png")
    try:
        report.require_matplotlib()
        check_output("--out", picture, create=True)
    except ImportError as error:
        picture, missing = None, str(error)
    weights = np.linspace(*WEIGHTS, DEMO["n"])
    start = time.perf_counter()
    planted = datasets.planted_tensor(**DEMO, weights=weights, random_state=arguments.seed)
    T = planted.tensor
    planting = time.perf_counter() - start
    result = decomposed(T, arguments.seed)
    if picture is not None:
        with writing("--out", picture):
            os.makedirs(arguments.out or ".", exist_ok=True)
            report.plot(result, picture)
    if arguments.json:
        matched = metrics.match(planted.components, result.components)
        found = {
            **as_json(result),
            "planted": {**DEMO, "seed": arguments.seed, "components": planted.components, "weights": weights},
            "matching": {
                "planted": matched.rows,
                "found": matched.columns,
                "squared_correlation": matched.squared,
            },
            "picture": picture,
        }
        say(to_json(found))
    else:
        say(
            f"{DEMO['n']} orthonormal components planted in a tensor of dimension {DEMO['d']} (seed {arguments.seed}), "
            f"weights {weights[0]:g} to {weights[-1]:g},\n"
            f"plus an adversarial error ({DEMO['error']}) of spectral norm {DEMO['eps']:g}; made in {planting:.2f} s.  "
            "Neither rank nor eps is given.\n"
            "A certificate is a proven lower bound on the squared correlation with a true component, whatever the\n"
            "error: above 1/2 a component is certified.  Next: docs/guide.md, quartic decompose --help.\n\n"
            f"{report.compare(planted, result, DEMO['eps'])}\n"
            f"picture  {picture or f'none: {missing}'}"
        )
    return verdict(result.status)
