"""More atoms than features, with supports that occur together: what weights on the samples bring.

Block supports of 4 atoms, p = 0.05, d = 16, n = 32, m = 200,000, Pr[j|i] from 0.1 to 0.5 with sign coefficients and to
0.8 with Gaussian ones, three seeds: the fraction of atoms at squared correlation 0.95, with plain moments
(``temperature=0``) and with candidates pooled over temperatures.  No bar but that weights lose nothing.
"""

import time
import warnings

import numpy as np

import quartic
from benchmarks import report
from benchmarks.certified import whitened, wrong
from benchmarks.problems import SamplesProblem
from quartic.metrics import match

RATES = {"sign": (0.1, 0.2, 0.3, 0.4, 0.5), "gaussian": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)}


def run(problem, temperature, seed):
    Y, A = problem.given(seed)
    start = time.perf_counter()
    model = quartic.SpectralDictionaryLearning(problem.n, temperature=temperature, random_state=seed).fit(Y)
    seconds = time.perf_counter() - start
    found = match(A, model.components_).found(0.95) / problem.n
    row = {"found": found, "certified": int(np.sum(model.certified_)), "seconds": seconds}
    return row | {"wrong": wrong(model.certificates_, whitened(Y, A, model.components_))}


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--seeds", type=int, help="seeds a row (default 3)")
    args = parser.parse_args(argv)
    bars = report.Bars("overcomplete_blocks", args)
    warnings.simplefilter("ignore")  # what is lost shows in the table
    d, n, m = (6, 8, 6000) if args.quick else (16, 32, 200_000)
    rows = []
    for coefficients, rates in RATES.items():
        for rate in rates[1:2] if args.quick else rates:
            options = {"supports": "blocks", "group": 4, "cooccurrence": rate, "coefficients": coefficients}
            problem = SamplesProblem(m, n, d, p=0.1 if args.quick else 0.05, dtype="float32", **options)
            for seed in range(args.seeds or (1 if args.quick else 3)):
                for name, temperature in (("plain", 0.0), ("pooled", None)):
                    row = {"coefficients": coefficients, "rate": rate, "moments": name, "seed": seed}
                    rows.append(row | run(problem, temperature, seed))
                    print(rows[-1], flush=True)
    lines = []
    for coefficients, rate in dict.fromkeys((row["coefficients"], row["rate"]) for row in rows):
        mine = [row for row in rows if (row["coefficients"], row["rate"]) == (coefficients, rate)]
        parts = [[row for row in mine if row["moments"] == name] for name in ("plain", "pooled")]
        found = [float(np.mean([row["found"] for row in part])) for part in parts]
        seconds = [float(np.median([row["seconds"] for row in part])) for part in parts]
        tau = rate if coefficients == "sign" else rate / 3
        lines.append([coefficients, rate, tau, *found, sum(row["certified"] for row in parts[1]), *seconds])
    print(report.table(["coefficients", "Pr[j|i]", "tau", "plain", "pooled", "certified", "s", "s"], lines))
    fewer = [line[:2] for line in lines if line[4] < line[3]]
    bars.judge("weights lose nothing", not fewer, f"fewer atoms in {len(fewer)} of {len(lines)} rows")
    above = sum(row["wrong"] for row in rows)
    bars.judge("no wrong certificate", above == 0, f"{above} of {sum(row['certified'] for row in rows)}")
    return bars.close(rows=rows, table=lines)


if __name__ == "__main__":
    raise SystemExit(main())
