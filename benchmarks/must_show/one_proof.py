"""What is certified is real, whatever the samples are: wrong certificates, power, and readings that exclude each other.

Cases are those of ``benchmarks/strangers.py``.  Parts, each with its bar:

- ``wrong``: 1,600 fits over all families, the number of components given and not; no wrong certificate, and a
  certificate in a group without axes in at most one fit of 200.
- ``paths``: 300 fits by ``partial_fit`` and ``refine=False``; no wrong certificate.
- ``pairs``: 500 pairs of calls on the same data (number given or not, seeds, row order, with and without refinement,
  ``partial_fit``, disjoint halves); no two certify axes that exclude each other, or complete sets that differ.
- ``power``: the certified share of independent sources, law by law, no lower than what is kept in
  ``benchmarks/results/before/one_proof.json`` (``--before`` measured that, on the version before); what
  is not certified because samples do not exclude another reading is shown apart, and counts as lost.
- ``two_laws``: uniform beside logistic, signs beside Cauchy, exponential beside Laplace, d = 8, m = 20,000, 20 seeds,
  number given and not; every source certified.
"""

import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report, strangers

SLACK = 1e-9  # rounding of a correlation
PARTS = ("wrong", "paths", "pairs", "power", "two_laws")
SKEWED = ("exponential", "gamma", "log-normal")
BEFORE = report.RESULTS / "before" / "one_proof.json"


def fit(case, seed, *, given=False, path="fit", rows=None, **options):
    """An estimator on a case, by one of several paths."""
    Y = case.samples if rows is None else case.samples[rows]
    model = quartic.SpectralDictionaryLearning(case.sources if given else None, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not certified shows in the row
        if path == "partial_fit":
            for batch in np.array_split(Y, 3):
                model.partial_fit(batch)
        else:
            model.set_params(refine=path != "moments").fit(Y)
    return model


def judged(case, model):
    """A row: atoms, certified ones, and wrong ones; ``made`` are certified axes that noise made, of no source."""
    truth, made = case.correlations(np.asarray(model.components_))
    certificates = np.asarray(model.certificates_)
    sure = certificates > 0.5
    no_source = sure & (certificates > truth + SLACK)
    return {
        "case": case.name, "family": case.family, "atoms": len(case.atoms), "found": int(np.sum(truth > 0.9)),
        "certified": int(np.sum(sure)), "wrong": int(np.sum(no_source & (certificates > made + SLACK))),
        "made": int(np.sum(no_source & (certificates <= made + SLACK))),
        "margin": float(np.min(np.where(sure, np.maximum(truth, made) - certificates, 1.0), initial=1.0)),
        "status": model.status_.code,
        "rival": sum("RIVAL" in str(getattr(x, "reason", "")) for x in getattr(model.learned_, "doubts", ())),
    }  # fmt: skip


def one(job):
    """One fit, by name."""
    part, family, seed, options = job
    start = time.perf_counter()
    drawing = {key: options[key] for key in ("law", "shape") if key in options}
    fitting = {key: value for key, value in options.items() if key not in drawing}
    case = strangers.draw(family, seed, **drawing)
    try:
        row = judged(case, fit(case, seed, **fitting))
    except ValueError as refused:  # trimming may leave fewer directions than are asked for: nothing is certified
        row = {"case": case.name, "family": case.family, "atoms": len(case.atoms), "status": str(refused)}
        row |= dict.fromkeys(("found", "certified", "wrong", "made", "rival"), 0)
    return {"part": part, "seed": seed, "options": options, **row, "seconds": time.perf_counter() - start}


def jobs_of(part, count, first=0):
    """The fits of a part, from a seed on."""
    if part == "power":
        return [
            ("power", "law", seed, {"law": law, "given": bool(seed % 2), **extra})
            for seed in range(first, first + count)
            for law in strangers.LAWS
            for extra in ([{}, {"temperature": 0.0}] if law in SKEWED else [{}])
        ]
    families = strangers.FAMILIES
    if part == "wrong":
        return [
            ("wrong", families[k % len(families)], k, {"given": bool((k // 8) % 2)})
            for k in range(first, first + count)
        ]
    paths = ("partial_fit", "moments")
    return [
        ("paths", families[k % len(families)], k, {"given": bool((k // 8) % 2), "path": paths[(k // 16) % 2]})
        for k in range(first, first + count)
    ]


def run(jobs, workers):
    """All rows, one thread each."""
    with ProcessPoolExecutor(workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for number, row in enumerate(pool.map(one, jobs)):
            if row["wrong"]:
                print(
                    f"wrong: {row['family']} seed {row['seed']} {row['case']}: {row['wrong']} of {row['certified']}",
                    flush=True,
                )
            if number % 100 == 99:
                print(f"{number + 1} of {len(jobs)}", flush=True)
            yield row


def shares(rows):
    """Certified share by law, with what is certified at a temperature of 0 apart."""
    out = {}
    for row in rows:
        key = row["options"]["law"] + (" at 0" if "temperature" in row["options"] else "")
        certified, atoms = out.get(key, (0, 0))
        out[key] = (certified + row["certified"] - row["wrong"], atoms + row["atoms"])
    return {key: certified / atoms for key, (certified, atoms) in out.items()}


def white(case, model):
    """Certified atoms as unit rows in coordinates whitened by all samples, and the angles that are claimed."""
    root = np.linalg.inv(np.linalg.cholesky(np.cov(case.samples, rowvar=False)))
    sure = np.asarray(model.certified_)
    U = np.asarray(model.components_)[sure] @ root.T
    return U / np.linalg.norm(U, axis=1, keepdims=True), np.arccos(np.sqrt(np.asarray(model.certificates_)[sure]))


def excluded(one, other):
    """How many claims of two models exclude each other: neither near one axis nor near two that are orthogonal."""
    (U, a), (V, b) = one, other
    angle = np.arccos(np.clip(np.abs(U @ V.T), 0.0, 1.0))
    room = a[:, None] + b + TILT
    return int(np.sum((angle > room) & (angle < np.pi / 2 - room)))


def pair(job):
    """Two calls on the same data."""
    number, family, kind = job
    start = time.perf_counter()
    case = strangers.draw(family, number)
    m = case.samples.shape[0]
    order = np.random.default_rng(number).permutation(m)
    calls = {
        "number": ({"given": False}, {"given": True}),
        "seed": ({}, {"seed": number + 1}),
        "rows": ({}, {"rows": order}),
        "refinement": ({}, {"path": "moments"}),
        "partial_fit": ({}, {"path": "partial_fit"}),
        "halves": ({"rows": order[: m // 2]}, {"rows": order[m // 2 :]}),
    }[kind]
    row = {"part": "pairs", "kind": kind, "case": case.name, "family": family, "seed": number}
    try:
        models = [fit(case, **{"seed": number, **call}) for call in calls]
    except ValueError as refused:  # as in ``one``
        return {**row, "status": str(refused), "complete": False, "certified": [0, 0], "wrong": 0, "seconds": 0.0}
    one, other = (white(case, model) for model in models)
    complete = all(model.status_.code == "complete" for model in models)
    apart = complete and len(one[0]) != len(other[0])
    row |= {"complete": complete, "certified": [len(one[0]), len(other[0])], "wrong": excluded(one, other) + int(apart)}
    return {**row, "seconds": time.perf_counter() - start}


def two_laws(job):
    """Two independent laws in one fit, four sources each."""
    laws, seed, given = job
    start = time.perf_counter()
    rng = np.random.default_rng([seed, 7])
    m, d = 20_000, 8
    S = np.stack([(TWO_LAWS | strangers.LAWS)[laws[k % 2]](rng, m) for k in range(d)], axis=1)
    scale = np.quantile(np.abs(S - np.median(S, axis=0)), 0.5, axis=0)
    A = rng.standard_normal((d, d))
    case = strangers.Case("two laws", " beside ".join(laws), S / np.where(scale > 0, scale, 1.0) @ A, A, d)
    row = judged(case, fit(case, seed, given=given))
    return {"part": "two_laws", "seed": seed, "given": given, **row, "seconds": time.perf_counter() - start}


TILT = 0.2  # radians that whitened atoms may be from orthogonal: as in the library
KINDS = ("number", "seed", "rows", "refinement", "partial_fit", "halves")
TWO_LAWS = {"cauchy": lambda rng, m: rng.standard_cauchy(m)}
BESIDE = (("uniform", "logistic"), ("signs", "cauchy"), ("exponential", "laplace"))


def several(function, jobs, workers):
    """Rows of another kind."""
    with ProcessPoolExecutor(workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        for row in pool.map(function, jobs):
            if row["wrong"]:
                print(f"wrong: {row['part']} seed {row['seed']} {row['case']}: {row['wrong']}", flush=True)
            yield row


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--part", choices=PARTS, action="append", help="parts to run (default all)")
    parser.add_argument("--runs", type=int, help="fits of each part, instead of its own number")
    parser.add_argument("--first", type=int, default=0, help="first seed: cases that nobody has seen (default 0)")
    parser.add_argument("--before", action="store_true", help="keep the power of this version as that to compare with")
    args = parser.parse_args(argv)
    if args.before:
        rows = list(run(jobs_of("power", args.runs or 12), args.jobs))
        report.save(BEFORE, {"shares": shares(rows), "rows": rows})
        return 0
    parts = args.part or PARTS
    quick = {"wrong": 8, "paths": 4, "pairs": 6, "power": 1, "two_laws": 1}
    whole = {"wrong": 1600, "paths": 300, "pairs": 500, "power": 12, "two_laws": 20}
    counts = {part: args.runs or (quick if args.quick else whole)[part] for part in PARTS}
    bars, rows = report.Bars("one_proof" if len(parts) > 1 else f"one_proof_{parts[0]}", args), []
    for part in parts:
        if part in ("wrong", "paths"):
            mine = list(run(jobs_of(part, counts[part], args.first), args.jobs))
            wrong, certified = sum(row["wrong"] for row in mine), sum(row["certified"] for row in mine)
            measured = f"{wrong} of {certified} certificates in {len(mine)} fits"
            bars.judge(f"{part}: no wrong certificate", wrong == 0, measured)
            spheres = [row for row in mine if row["family"] == "sphere"]
            bad = sum(row["wrong"] + row["made"] > 0 for row in spheres)
            if part == "wrong":
                bars.judge(
                    "no axes: one fit in 200 at most", bad * 200 <= len(spheres), f"{bad} of {len(spheres)} fits"
                )
            families = {f: [row for row in mine if row["family"] == f] for f in strangers.FAMILIES}
            table = [
                [f, len(some), *(sum(row[key] for row in some) for key in ("atoms", "found", "certified", "wrong"))]
                for f, some in families.items()
            ]
            print(report.table([part, "fits", "atoms", "found", "certified", "wrong"], table))
        elif part == "pairs":
            jobs = [
                (k, strangers.FAMILIES[k % 8], KINDS[(k // 8) % 6])
                for k in range(args.first, args.first + counts[part])
            ]
            mine = list(several(pair, jobs, args.jobs))
            wrong = sum(row["wrong"] > 0 for row in mine)
            bars.judge("calls on the same data never exclude each other", wrong == 0, f"{wrong} of {len(mine)} pairs")
        elif part == "power":
            mine = list(run(jobs_of(part, counts[part], args.first), args.jobs))
            before = json.loads(BEFORE.read_text(encoding="utf-8"))["shares"]
            now, lines = shares(mine), []
            rival = shares([{**row, "certified": row["certified"] + row["rival"]} for row in mine])
            for law in strangers.LAWS:
                bar = max(before[law], before.get(f"{law} at 0", 0.0))
                lines.append([law, before[law], before.get(f"{law} at 0"), now[law], rival[law] - now[law]])
                holds = now[law] >= bar
                bars.judge(f"{law}: no lower than before", holds, f"{now[law]:.3f}, before {bar:.3f}, "
                           f"rival not excluded {rival[law] - now[law]:.3f}", full_size=True)  # fmt: skip
            print(report.table(["law", "before", "before, plain", "now", "rival not excluded"], lines))
        else:
            jobs = [
                (laws, seed, given)
                for laws in BESIDE
                for seed in range(args.first, args.first + counts[part])
                for given in (False, True)
            ]
            mine = list(several(two_laws, jobs, args.jobs))
            for laws in BESIDE:
                some = [row for row in mine if row["case"] == " beside ".join(laws)]
                lost = [row for row in some if row["certified"] - row["wrong"] < 8]
                bars.judge(
                    f"{' beside '.join(laws)}: all certified", not lost, f"{len(some) - len(lost)} of {len(some)} fits"
                )
        rows += mine
    # Of thousands of fits only those that a bar hangs on are kept.
    few = [row for row in rows if row["part"] in ("power", "two_laws") or row["wrong"] or row.get("made")]
    return bars.close(fits=len(rows), rows=few)


if __name__ == "__main__":
    raise SystemExit(main())
