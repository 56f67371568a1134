"""Diagnosis: the assumption that is broken is named, and none where all hold.

Bar: of twelve kinds of samples that break one assumption each, five seeds each, the one that is broken is named in at
least nine of ten runs; on ten kinds of samples that break none, d from 8 to 64, with and without noise, none is.
Findings that are doubtful are shown, and not judged.
"""

import time

import numpy as np
from scipy.signal import lfilter

import quartic
from benchmarks import report
from quartic.datasets import nice_samples

LEAST = 0.9


def mixed(codes, rng):
    """Codes ``(m, d)`` of a Gaussian dictionary."""
    return codes @ rng.standard_normal((codes.shape[1], codes.shape[1]))


def nice(m, d, rng, **options):
    return nice_samples(m, d, random_state=rng, **options).samples


def few_samples(m, d, rng):
    """Four for each dimension."""
    return nice(4 * d, d, rng)


def gaussian(m, d, rng):
    """No structure at all."""
    return mixed(rng.standard_normal((m, d)), rng)


def heavy_tails(m, d, rng):
    """Student's t with three degrees of freedom in all directions."""
    return mixed(rng.standard_normal((m, d)) / np.sqrt(rng.chisquare(3, (m, 1)) / 3), rng)


def too_dense(m, d, rng):
    """Gaussian coefficients that are nearly always active: their excess kurtosis is 0.09."""
    return nice(m, d, rng, p=0.97, coefficients="gaussian")


def noisy(m, d, rng):
    """Noise of ten times the energy of the signal."""
    return nice(m, d, rng, snr=-10.0)


def gross_samples(m, d, rng):
    """Two in a hundred."""
    return nice(m, d, rng, outliers=0.02)


def ill_conditioned(m, d, rng):
    """A dictionary of condition number 1e9."""
    return nice(m, d, rng, condition=1e9)


def one_sided(m, d, rng):
    """Sparse coefficients that are never negative."""
    return mixed(np.abs(nice_samples(m, d, coefficients="gaussian", random_state=rng).codes), rng)


def always_together(m, d, rng):
    """Blocks of four Gaussian coefficients, all active or none."""
    active = np.repeat(rng.random((m, d // 4)) < 0.1, 4, axis=1)
    return mixed(active * rng.standard_normal((m, d)), rng)


def another_dictionary(m, d, rng):
    """From the middle on; both are orthonormal, so that the covariance is the same."""
    return np.concatenate([nice(m // 2, d, rng, dictionary="orthonormal") for _ in range(2)])


def serial(m, d, rng):
    """Autoregressive sources."""
    return mixed(lfilter([1.0], [1.0, -0.9], rng.laplace(size=(m, d)), axis=0), rng)


def missing(m, d, rng):
    """One value in all."""
    Y = nice(m, d, rng)
    Y[rng.integers(m), rng.integers(d)] = np.nan
    return Y


BROKEN = {  # the finding that is to be named
    few_samples: "samples",
    gaussian: "structure",
    heavy_tails: "structure",
    too_dense: "structure",
    noisy: "structure",
    gross_samples: "outliers",
    ill_conditioned: "condition",
    one_sided: "symmetry",
    always_together: "together",
    another_dictionary: "stationary",
    serial: "serial",
    missing: "finite",
}
GOOD = {  # dimension, and options of nice_samples
    "independent, sign": (16, {}),
    "independent, Gaussian": (64, {"coefficients": "gaussian", "dictionary": "orthonormal", "snr": 10.0}),
    "independent, Laplace": (8, {"coefficients": "laplace"}),
    "blocks, sign": (32, {"supports": "blocks"}),
    "blocks, Gaussian": (16, {"supports": "blocks", "coefficients": "gaussian", "snr": 10.0}),
    "markov, sign": (64, {"supports": "markov", "dictionary": "orthonormal", "snr": 10.0}),
    "markov, Laplace": (16, {"supports": "markov", "coefficients": "laplace"}),
    "hubs, sign": (8, {"supports": "hubs", "snr": 10.0}),
    "hubs, Gaussian": (32, {"supports": "hubs", "coefficients": "gaussian"}),
    "exclusive, sign": (16, {"supports": "exclusive", "snr": 10.0}),
}


def row_of(kind, expected, Y, seed):
    start = time.perf_counter()
    found = quartic.diagnose(Y)
    seconds = time.perf_counter() - start
    shape = {"m": Y.shape[0], "d": Y.shape[1]}
    named = {"expected": expected, "broken": found.broken, "doubtful": found.doubtful}
    return {"kind": kind, "seed": seed, **shape, **named, "seconds": seconds}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds of each kind (default 5)")
    args = parser.parse_args(argv)
    bars = report.Bars("check", args)
    m, d, seeds = (4000, 8, 1) if args.quick else (20_000, 16, args.seeds or 5)
    rows = []
    for draw, code in BROKEN.items():
        kind = draw.__name__.replace("_", " ")
        rows += [row_of(kind, code, draw(m, d, np.random.default_rng(seed)), seed) for seed in range(seeds)]
    for kind, (size, options) in GOOD.items():
        for seed in range(seeds):
            rows.append(row_of(kind, None, nice(m, d if args.quick else size, seed, **options), seed))
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        code = mine[0]["expected"]
        named = sum(code in row["broken"] for row in mine)
        also = sorted({name for row in mine for name in row["broken"]} - {code})
        doubtful = sorted({name for row in mine for name in row["doubtful"]})
        seconds = float(np.median([row["seconds"] for row in mine]))
        lines.append(
            [kind, code, named if code else None, ", ".join(also) or None, ", ".join(doubtful) or None, seconds]
        )
    print(f"{seeds} seeds each\n")
    print(report.table(["samples", "broken", "named", "named besides", "doubtful", "seconds"], lines))
    hits = [row["expected"] in row["broken"] for row in rows if row["expected"]]
    kinds = {row["kind"] for row in rows if row["expected"] and row["expected"] not in row["broken"]}
    missed = f", not always for {', '.join(sorted(kinds))}" if kinds else ""
    bars.judge(f"the broken one is named in {LEAST:.0%}", np.mean(hits) >= LEAST, f"{sum(hits)} of {len(hits)}{missed}")
    false = [row for row in rows if not row["expected"] and row["broken"]]
    good = sum(not row["expected"] for row in rows)
    bars.judge("none is named where all hold", not false, f"{len(false)} of {good}")
    return bars.close(rows=rows, seeds=seeds)


if __name__ == "__main__":
    raise SystemExit(main())
