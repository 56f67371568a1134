"""Nothing is certified where nothing is.

Bar: 1,000 runs, half of them on tensors and half on samples.

500 tensors without a low-rank part of components, d from 6 to 16, eps=None, the rank not given, given up to d and given
above it in turn: random symmetric ones on Sym2, ones that are symmetric in all modes, multiples of the identity,
pairings ``a Id + b id id'``, and spans of a few random matrices of full rank.

500 sets of samples without structure, d from 4 to 16, up to 20,000 of them, the number of atoms not given, given up to
d and given above it in turn: Gaussian ones, Gaussian scale mixtures, and Student's t with three degrees of freedom, all
in random coordinates.

No component is certified.
"""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report
from quartic._arrays import pack, packed_dim
from quartic.datasets import ERRORS


def gaussian(d, rng):
    """Pair-symmetric."""
    return ERRORS["gaussian"](np.zeros((1, d)), rng)


def symmetric(d, rng):
    """Symmetric under all permutations of the modes."""
    return ERRORS["gaussian-symmetric"](np.zeros((1, d)), rng)


def identity(d, rng):
    """A multiple of the identity of Sym2."""
    return rng.choice([-1, 1]) * rng.uniform(0.1, 10) * np.eye(packed_dim(d))


def pairings(d, rng):
    """What is the same in all directions: the identity of Sym2 and the direction of the identity matrix."""
    one = pack(np.eye(d)[None])
    a, b = rng.standard_normal(2)
    return a * np.eye(packed_dim(d)) + b * one @ one.T


def matrices(d, rng):
    """A span of random matrices, up to half of all dimensions, with weights of either sign."""
    k = int(rng.integers(1, packed_dim(d) // 2))
    U = np.linalg.qr(rng.standard_normal((packed_dim(d), k)))[0]
    return (U * rng.choice([-1, 1], k) * rng.uniform(0.5, 2, k)) @ U.T


def of_tensors(draw):
    """From a family of packed tensors, drawn from a dimension and a generator, to a run from a seed."""

    def run(seed):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(6, 17))
        T = quartic.PackedTensor(draw(d, rng))
        rank = (None, int(rng.integers(1, d + 1)), int(rng.integers(d + 1, T.pair_dim)))[seed % 3]
        result = quartic.decompose(T, rank, random_state=seed)
        certified = int(np.sum(result.certified))
        return {"d": d, "rank": rank, "found": len(result.components), "certified": certified}

    return run


def gaussian_samples(shape, rng):
    """Independent of each other, and the same in all directions."""
    return rng.standard_normal(shape)


def scale_mixture(shape, rng):
    """Each sample with a size of its own, from mild to wild."""
    spread = rng.uniform(0.2, 1.5)
    return rng.standard_normal(shape) * np.exp(spread * rng.standard_normal((shape[0], 1)))


def student(shape, rng):
    """Student's t with three degrees of freedom in all directions: no fourth moment."""
    return rng.standard_normal(shape) / np.sqrt(rng.chisquare(3, (shape[0], 1)) / 3)


def of_samples(draw):
    """From a family of samples, drawn from a shape and a generator, to a run from a seed."""

    def run(seed):
        rng = np.random.default_rng(seed)
        d, m = int(rng.integers(4, 17)), int(np.exp(rng.uniform(np.log(500), np.log(20_000))))
        Y = draw((m, d), rng) @ rng.standard_normal((d, d))
        n = (None, int(rng.integers(1, d + 1)), int(rng.integers(d + 1, 2 * d + 1)))[seed % 3]
        model = quartic.SpectralDictionaryLearning(n, random_state=seed).fit(Y)
        certified = int(np.sum(model.certified_))
        return {"d": d, "m": m, "rank": n, "found": model.n_components_, "certified": certified}

    return run


# From a seed to a row with what was found and certified.
TENSORS = {draw.__name__: of_tensors(draw) for draw in (gaussian, symmetric, identity, pairings, matrices)}
SAMPLES = {draw.__name__: of_samples(draw) for draw in (gaussian_samples, scale_mixture, student)}


def row_of(kind, seed):
    warnings.simplefilter("ignore")  # that nothing is found is what is expected
    return {"kind": kind, "seed": seed, **(TENSORS | SAMPLES)[kind](seed)}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--runs", type=int, help="runs on tensors, and as many on samples (default 500)")
    args = parser.parse_args(argv)
    bars = report.Bars("nothing_there", args)
    rows, lines = [], []
    jobs = [
        (kind, range(number, args.runs or (len(kinds) if args.quick else 500), len(kinds)))
        for kinds in (TENSORS, SAMPLES)
        for number, kind in enumerate(kinds)
    ]
    pool = ProcessPoolExecutor(args.jobs, initializer=threadpool_limits, initargs=(1,))
    for kind, seeds in jobs:
        start = time.perf_counter()
        mine = list(pool.map(row_of, [kind] * len(seeds), seeds))
        seconds = time.perf_counter() - start
        wrong = [row for row in mine if row["certified"]]
        found = sum(row["found"] for row in mine)
        lines.append([kind, len(mine), found, sum(row["certified"] for row in wrong), len(wrong), seconds])
        rows += mine
        held = f"{len(wrong)} of {len(mine)} runs"
        bars.judge(f"{kind}: nothing certified", not wrong, held + "".join(f", seed {row['seed']}" for row in wrong))
    pool.shutdown()
    print(report.table(["kind", "runs", "found", "certified", "runs with any", "seconds"], lines))
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
