"""Rows that depend on each other, features that were spoiled: nothing wrong is certified, and the status says why.

Cases are those of ``benchmarks/spoiled.py``.  Parts, each with its bar:

- ``spoiled``: 600 fits, walks, AR(0.999), slow sines, repeated rows, features that are rounded, filled in, clipped,
  squashed, signs alone, and one gross sensor; no wrong certificate, and the status names the cause in 95% of them.
- ``autoregressive``: AR(0.9) of sparse sources, d = 6, m = 20,000, ten seeds: at least 90% of the certificates that the
  same rows in random order give, declared exchangeable; none wrong.
- ``speech``: mixtures of 14 sources with formants and syllables, 100,000 rows, three seeds: all certified, none wrong.
- ``subjects``: 20 subjects, each with noise of its own: with ``groups`` no wrong certificate; without them the
  dependence is seen.
- ``waves``: sine, square, sawtooth and noise, and the problem of scikit-learn's ``test_fastica_simple``, 20 seeds, the
  number given and not: with rows declared exchangeable every source that is not Gaussian is certified; without, none
  is certified wrongly, and the status says serial.
- ``reasons``: twelve sets of samples that break one assumption each, three seeds: the status alone names the right one
  in eleven of twelve, and ``diagnose`` in all.
"""

import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy import signal
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report, spoiled, strangers
from benchmarks.must_show import check
from benchmarks.must_show.one_proof import judged
from quartic.datasets.tensors import random_orthonormal

PARTS = ("spoiled", "autoregressive", "speech", "subjects", "waves", "reasons")
WAVES = ("waves", "few waves", "simple")
RATE = 8000  # samples a second of what is like speech
REASONS = {  # of check.BROKEN: the codes of a status that name what is broken
    "few_samples": ("few-samples",),
    "gaussian": ("no-structure",),
    "heavy_tails": ("no-axes", "no-structure"),
    "too_dense": ("no-structure", "few-samples"),
    "noisy": ("no-structure", "few-samples"),
    "gross_samples": ("outliers",),
    "ill_conditioned": ("condition",),
    "one_sided": ("skewed", "complete"),  # independent sources are certified all the same
    "always_together": ("two-readings", "no-axes"),
    "another_dictionary": ("serial", "not-stationary"),
    "serial": ("serial",),
    "missing": ("refused",),
}


def fitted(Y, n=None, seed=0, groups=None, **options):
    """An estimator on samples; what is not certified shows in the row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return quartic.SpectralDictionaryLearning(n, random_state=seed, **options).fit(Y, groups=groups)


def spoiled_fit(job):
    kind, seed = job
    case = spoiled.draw(kind, seed)
    start = time.perf_counter()
    row = {"part": "spoiled", "seed": seed, "kind": kind}
    try:
        model = fitted(case.samples, case.sources if seed % 2 else None, seed)
    except ValueError as refused:  # a few rows, copied, may vary in fewer directions than are asked for
        row |= {"case": case.name, "certified": 0, "wrong": 0, "named": False, "status": str(refused)}
    else:
        row |= judged(case, model) | {"named": case.cause in (model.status_.code, *model.status_.causes)}
    return row | {"seconds": time.perf_counter() - start}


def sparse_noise(rng, m, d, p=0.1):
    return rng.standard_normal((m, d)) * (rng.random((m, d)) < p)


def autoregressive(seed):
    rng = np.random.default_rng([seed, 21])
    m, d = 20_000, 6
    S = signal.lfilter([1.0], [1.0, -0.9], sparse_noise(rng, m, d), axis=0)
    A = rng.standard_normal((d, d))
    case = strangers.Case("AR(0.9)", f"d={d}, m={m}", S / S.std(axis=0) @ A, A, d)
    mine = judged(case, fitted(case.samples, seed=seed))
    order = rng.permutation(m)
    free = judged(case, fitted(case.samples[order], seed=seed, rows="exchangeable"))
    return {"part": "autoregressive", "seed": seed, **mine, "exchangeable": free["certified"]}


def speech(rng, m):
    """Noise and pulses through two formants, in syllables of some tenths of a second with pauses between them."""
    t = np.arange(m) / RATE
    pulses = (
        np.diff(np.floor(np.cumsum(rng.uniform(80, 220) * (1 + 0.1 * np.sin(2 * np.pi * 3 * t)) / RATE)), prepend=0) > 0
    )
    x = rng.uniform(0.5, 1) * 30 * pulses + rng.standard_normal(m)
    for low, high in ((250, 900), (900, 2500)):
        f, width = rng.uniform(low, high), rng.uniform(60, 150)
        pole = np.exp(-np.pi * width / RATE)
        x = signal.lfilter([1.0], [1.0, -2 * pole * np.cos(2 * np.pi * f / RATE), pole * pole], x)
    b, a = signal.butter(2, rng.uniform(4, 8) / (RATE / 2))
    envelope = signal.lfilter(b, a, rng.standard_normal(m + RATE))[RATE:]
    envelope = np.maximum(envelope / envelope.std() + 0.3, 0.0) ** 1.5
    x = x * envelope
    return x / x.std()


def mixed_speech(seed):
    rng = np.random.default_rng([seed, 22])
    m, d = 100_000, 14
    S = np.stack([speech(rng, m) for _ in range(d)], axis=1)
    A = rng.standard_normal((d, d))
    case = strangers.Case("speech", f"d={d}, m={m}", S @ A, A, d)
    start = time.perf_counter()
    row = judged(case, fitted(case.samples, seed=seed))
    return {"part": "speech", "seed": seed, **row, "seconds": time.perf_counter() - start}


def subjects(seed):
    rng = np.random.default_rng([seed, 23])
    d, each, count = 6, 500, 20
    m, A = each * count, random_orthonormal(6, 6, rng)
    groups = np.repeat(np.arange(count), each)
    level = rng.standard_normal((count, d)) * 0.1  # an offset, and a gain, of its own
    Y = rng.laplace(size=(m, d)) / np.sqrt(2) @ A + np.repeat(level, each, axis=0)
    Y = Y * np.repeat(np.exp(0.05 * rng.standard_normal((count, 1))), each, axis=0)
    case = strangers.Case("subjects", f"d={d}, m={m}", Y, A, d)
    with_groups, without = fitted(Y, seed=seed, groups=groups), fitted(Y, seed=seed)
    seen = without.status_
    row = {"part": "subjects", "seed": seed, **judged(case, with_groups)}
    return row | {"seen": "serial" in (seen.code, *seen.causes), "without": judged(case, without)["wrong"]}


def waves(job):
    """Sources of period and noise, those of scikit-learn's example among them, and the problem of its own test."""
    kind, seed, given, declared = job
    rng = np.random.default_rng([seed, 24])
    if kind == "simple":  # two sources, m = 1,000: signs of a sine, and Student's t with one degree of freedom
        m = 1000
        S = np.stack(
            [(2 * np.sin(np.linspace(0, 100, m)) > 0) - 1.0, np.random.RandomState(seed).standard_t(1, m)], axis=1
        )
        S = (S - S.mean(axis=0)) / S.std(axis=0)
        phi, real = 0.6, np.array([True, True])
        A = np.array([[np.cos(phi), np.sin(phi)], [np.sin(phi), -np.cos(phi)]])
    else:  # a few periods as in scikit-learn's example, or some dozens, no two of which have a harmonic in common
        m, rates = 2000, 8 * np.array([2.0, 3.0, 2 * np.pi]) / (2 * np.pi)
        if kind == "waves":
            rates = rng.uniform(20, 30) * np.array([1.0, 1.3247, 1.7549])
        start = rng.random(3) if kind == "waves" else np.zeros(3)
        angle = 2 * np.pi * (np.linspace(0, 1, m)[:, None] * rates + start)
        S = np.stack([np.sin(angle[:, 0]), np.sign(np.sin(angle[:, 1])), signal.sawtooth(angle[:, 2])], axis=1)
        S = np.append(S, rng.standard_normal((m, 1)), axis=1)
        real = np.array([True, True, True, False])
        A = np.array([[1, 1, 0.5, 0.2], [1, 0.5, 2.0, 1.0], [1.5, 1.0, 1.0, 2.0], [0.3, 1.0, 1.5, 1.0]])
    S = S / S.std(axis=0)
    case = strangers.Case(kind, f"given {given}", S @ A, A[real], S.shape[1])
    count = S.shape[1] if given else None
    model = fitted(case.samples, count, seed, rows="exchangeable" if declared else "auto")
    status = model.status_
    row = {"part": "waves", "seed": seed, "kind": kind, "given": given, "declared": declared, **judged(case, model)}
    return row | {"serial": "serial" in (status.code, *status.causes), "real": int(np.sum(real))}


def reasons(job):
    name, seed = job
    draw = next(f for f in check.BROKEN if f.__name__ == name)
    Y = draw(20_000, 16, np.random.default_rng(seed))
    found = quartic.diagnose(Y)
    try:
        status = fitted(Y, seed=seed).status_
        said = (status.code, *status.causes) + (("outliers",) if "left out" in status.message else ())
    except ValueError as refused:
        said = ("refused",) if "NaN" in str(refused) else ()
    row = {"part": "reasons", "kind": name, "seed": seed, "said": list(said), "wrong": 0, "case": name}
    return row | {
        "named": any(x in said for x in REASONS[name]),
        "found": check.BROKEN[draw] in found.broken + found.doubtful,
    }


def several(function, jobs, workers):
    """Rows, one thread each."""
    with ProcessPoolExecutor(workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for row in pool.map(function, jobs):
            if row["wrong"]:
                print(f"wrong: {row['part']} seed {row['seed']} {row['case']}: {row['wrong']}", flush=True)
            yield row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--part", choices=PARTS, action="append", help="parts to run (default all)")
    parser.add_argument("--first", type=int, default=0, help="first seed: cases that nobody has seen (default 0)")
    args = parser.parse_args(argv)
    parts = args.part or PARTS
    quick, first = args.quick, args.first
    bars, kept = report.Bars("dependent_rows" if len(parts) > 1 else f"dependent_rows_{parts[0]}", args), []
    for part in parts:
        if part == "spoiled":
            jobs = [(kind, seed) for seed in range(first, first + (1 if quick else 60)) for kind in spoiled.KINDS]
            rows = list(several(spoiled_fit, jobs, args.jobs))
            table = []
            for kind in spoiled.KINDS:
                mine = [row for row in rows if row["kind"] == kind]
                table.append(
                    [kind, len(mine), *(sum(row[key] for row in mine) for key in ("certified", "wrong", "named"))]
                )
            print(report.table([part, "fits", "certified", "wrong", "cause named"], table))
            wrong, sure = (sum(row[key] for row in rows) for key in ("wrong", "certified"))
            bars.judge("spoiled: no wrong certificate", wrong == 0, f"{wrong} of {sure} in {len(rows)} fits")
            named = sum(row["named"] for row in rows)
            bars.judge(
                "spoiled: the status names the cause in 95%", named >= 0.95 * len(rows), f"{named} of {len(rows)}"
            )
        elif part == "autoregressive":
            rows = list(several(autoregressive, range(first, first + (1 if quick else 10)), args.jobs))
            sure, free, wrong = (sum(row[key] for row in rows) for key in ("certified", "exchangeable", "wrong"))
            bars.judge("AR(0.9): 90% of what exchangeable rows certify", sure >= 0.9 * free, f"{sure} of {free}")
            bars.judge("AR(0.9): none wrong", wrong == 0, f"{wrong} of {sure}")
        elif part == "speech":
            rows = list(several(mixed_speech, range(first, first + (1 if quick else 3)), args.jobs))
            sure, wrong = (sum(row[key] for row in rows) for key in ("certified", "wrong"))
            bars.judge("speech: all certified", sure == 14 * len(rows), f"{sure} of {14 * len(rows)}")
            bars.judge("speech: none wrong", wrong == 0, f"{wrong} of {sure}")
        elif part == "subjects":
            rows = list(several(subjects, range(first, first + (1 if quick else 10)), args.jobs))
            sure, wrong = (sum(row[key] for row in rows) for key in ("certified", "wrong"))
            bars.judge("subjects: certificates with groups are right", wrong == 0 < sure, f"{wrong} of {sure} wrong")
            seen = sum(row["seen"] for row in rows)
            bars.judge("subjects: seen without groups", seen == len(rows), f"{seen} of {len(rows)}")
        elif part == "waves":
            seeds = range(first, first + (1 if quick else 20))
            jobs = [(k, s, g, r) for k in WAVES for s in seeds for g in (False, True) for r in (True, False)]
            rows = list(several(waves, jobs, args.jobs))
            declared, other = ([row for row in rows if row["declared"] is way] for way in (True, False))
            for kind in WAVES:
                mine = [row for row in declared if row["kind"] == kind]
                full = sum(row["certified"] - row["wrong"] >= row["real"] for row in mine)
                bars.judge(
                    f"{kind}: declared exchangeable, all certified", full == len(mine), f"{full} of {len(mine)} fits"
                )
            wrong = sum(row["wrong"] for row in rows)
            bars.judge("waves: nothing wrong", wrong == 0, f"{wrong} wrong in {len(rows)} fits")
            serial = sum(row["serial"] for row in other)
            bars.judge("waves: without, the status says serial", serial == len(other), f"{serial} of {len(other)}")
        else:
            jobs = [(name, seed) for name in REASONS for seed in range(first, first + (1 if quick else 3))]
            rows = list(several(reasons, jobs, args.jobs))
            table = [[r["kind"], r["seed"], r["named"], r["found"], ", ".join(r["said"])] for r in rows]
            print(report.table(["broken", "seed", "status names it", "diagnose", "said"], table))
            kinds = [name for name in REASONS if all(r["named"] for r in rows if r["kind"] == name)]
            bars.judge("reasons: the status names eleven of twelve", len(kinds) >= 11, f"{len(kinds)} of 12: {kinds}")
            seen = sum(row["found"] for row in rows)
            bars.judge("reasons: diagnose names all", seen == len(rows), f"{seen} of {len(rows)}")
        kept += rows
    return bars.close(fits=len(kept), rows=[row for row in kept if row["wrong"] or row["part"] != "spoiled"])


if __name__ == "__main__":
    raise SystemExit(main())
