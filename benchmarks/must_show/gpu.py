"""The same code on a GPU (``make bench-gpu``): samples, dense and overcomplete tensors, next to the device's own rate.

Bars, on one H200:

1. Samples in blocks of 8 with tau 0.25, sign coefficients, float32: d = n = 256, m = 524,288 in at most 1.0 s, d = n =
   512, m = 1,048,576 in at most 8 s; every atom at squared correlation 0.99; the product with the fourth moment, packed
   features included, at half the rate of a large square product of the precision it is taken in.
2. A dense tensor, d = n = 300, a Gaussian error of norm 0.3, float32, the rank given: at most 0.4 s, and at most 12
   sweeps' time without the measured ``eps`` (see ``sweeps``); 300 of 300.  A sweep is the packed tensor times an N x n
   block in float32; in TF32, in which spans are looked for, it is shown as well.
3. d = 64, n = 512, an error of 0.3 of the smallest eigenvalue of the span: every component at 0.999.
4. Polished to a fixed point, answers equal those of NumPy in float64: to 1e-4 in float32, to 1e-10 in float64.
   What the rounding of products changes: the same with ``quartic.full_precision``, beside it.
5. d = n = 256 beside scikit-learn's ``FastICA`` on the processor (its defaults, at most 200 steps), and beside the same
   iteration written in PyTorch on the same device.

Times are medians of repeats after a first run, which compiles and loads libraries, and is shown too.
"""

import functools
import math
import os
import statistics
import time
import warnings

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn's array dispatch asks for it, before SciPy is loaded

import numpy as np
import sklearn
import torch

import quartic
from benchmarks import report
from benchmarks.problems import general_tensor
from quartic._arrays import from_numpy, pack_rank_one, packed_dim, reduced_precision, to_numpy
from quartic.algorithms import refine
from quartic.algorithms.postprocess import postprocess
from quartic.algorithms.recover import polar
from quartic.metrics import match
from quartic.tensors import PackedTensor, SampleTensor

GROUP, P, COOCCURRENCE = 8, 0.1, 0.25  # of sign coefficients: tau is the co-occurrence
PART = 0.5  # of the device's rate
SWEEPS = 12.0
POLISH = 400  # passes of Algorithm 4.8; it converges linearly
STEPS, TOLERANCE = 200, 1e-4  # of FastICA, scikit-learn's own


def seconds(work, repeats, device):
    """What a function returns, and its seconds: of a first call, and the median of some more."""
    times = []
    for _ in range(1 + repeats):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        out = work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return out, times[0], statistics.median(times[1:])


def blocks(n, m, seed, device):
    """Samples ``(m, n)`` and the dictionary, drawn where they are used."""
    rng = torch.Generator(device=device).manual_seed(seed)

    def uniform(k, width):
        return torch.rand(k, width, generator=rng, device=device)

    A = torch.randn(n, n, generator=rng, device=device) / math.sqrt(n)
    Y = torch.empty(m, n, device=device)
    for first in range(0, m, 1 << 17):
        k = min(1 << 17, m - first)
        on = (uniform(k, n // GROUP) < P / COOCCURRENCE).repeat_interleave(GROUP, dim=1)
        signs = torch.where(uniform(k, n) < 0.5, -1.0, 1.0)
        codes = torch.where(on & (uniform(k, n) < COOCCURRENCE), signs, torch.zeros(()).to(signs))
        Y[first : first + k] = (codes.double() @ A.double()).float()
    return Y, A.cpu().numpy()


def matrix_rates(device, size):
    """Multiplications and additions a second in a square product: float32, TF32 and bfloat16."""
    a, b = (torch.randn(size, size, device=device) for _ in range(2))
    rates = {"float32": 2 * size**3 / seconds(lambda: a @ b, 5, device)[2]}
    if device == "cuda":
        before = torch.backends.cuda.matmul.fp32_precision
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        rates["tf32"] = 2 * size**3 / seconds(lambda: a @ b, 5, device)[2]
        torch.backends.cuda.matmul.fp32_precision = before
        a, b = a.bfloat16(), b.bfloat16()
        rates["bfloat16"] = 2 * size**3 / seconds(lambda: a @ b, 5, device)[2]
    return rates


def samples(n, m, limit, repeats, device, rates):
    """Learn a dictionary; and what the moment's product reaches of the device's rate."""
    Y, A = blocks(n, m, 0, device)
    model, first, median = seconds(lambda: quartic.SpectralDictionaryLearning(n).fit(Y), repeats, device)
    pairs = match(A, model.to_numpy().components_)
    rows = model.report_.subsample
    tensor = SampleTensor(Y[:rows] / Y[:rows].std())
    X = torch.randn(packed_dim(n), n + 8, device=device)
    with reduced_precision(True):
        taken = seconds(lambda: tensor.apply(X), 3, device)[2]
    rate = 4 * rows * packed_dim(n) * (n + 8) / taken
    used = "bfloat16" if device == "cuda" else "float32"
    exact = {}
    if n < 512:
        with quartic.full_precision():
            full, _, taken = seconds(lambda: quartic.SpectralDictionaryLearning(n).fit(Y), 1, device)
        ours, theirs = (np.sort(x.to_numpy().certificates_) for x in (model, full))
        exact = {"full_s": taken, "certificates_differ": float(np.max(np.abs(ours - theirs)))}
    return {
        **exact,
        "n": n, "m": m, "limit": limit, "first_s": first, "seconds": median, "found": pairs.found(0.99),
        "worst": float(pairs.squared.min()), "certified": int(np.sum(model.to_numpy().certified_)),
        "status": model.status_.code, "subsample": rows, "form": model.report_.form, "sweeps": model.report_.sweeps,
        "moment_rate": rate, "moment_precision": used, "moment_part": rate / rates[used],
        "timings": dict(model.report_.timings), "refinement": model.report_.refinement,
    }  # fmt: skip


def dense_tensor(d, device, dtype=torch.float32, eps=0.3):
    """An orthonormal tensor of weights 1 with a Gaussian error, packed, and its components."""
    N = packed_dim(d)
    rng = torch.Generator(device=device).manual_seed(0)
    A = torch.linalg.qr(torch.randn(d, d, generator=rng, device=device, dtype=torch.float64))[0]
    matrix = torch.randn(N, N, generator=rng, device=device, dtype=dtype)
    matrix = (matrix + matrix.T) * (eps / (2 * math.sqrt(2 * N)))  # the norm of such a matrix is sqrt(2 N)
    features = pack_rank_one(A.to(dtype))
    return PackedTensor(matrix + features @ features.T), A.cpu().numpy()


def dense(d, repeats, device):
    """Decompose a packed tensor; in seconds, and in sweeps."""
    tensor, A = dense_tensor(d, device)
    block = torch.randn(tensor.pair_dim, d, device=device)
    sweep = seconds(lambda: tensor.matrix @ block, 5, device)[2]
    with reduced_precision(True):
        rounded = seconds(lambda: tensor.apply(block), 5, device)[2]
    walls, works, founds = [], [], []
    for seed in range(1 + repeats):
        result, wall, _ = seconds(lambda seed=seed: quartic.decompose(tensor, d, random_state=seed), 1, device)
        walls.append(wall)
        works.append(sum(result.timings.values()) - result.timings["measure"])
        founds.append(match(A, result.components).found(0.99))
    wall, work = statistics.median(walls[1:]), statistics.median(works[1:])
    return {
        "d": d, "first_s": walls[0], "seconds": wall, "sweep_s": sweep, "rounded_sweep_s": rounded,
        "without_measure_s": work, "sweeps": work / sweep, "rounded_sweeps": work / rounded,
        "found": min(founds), "status": result.status.code, "timings": dict(result.timings),
    }  # fmt: skip


def overcomplete(d, n, repeats, device):
    """More components than dimensions."""
    tensor, A = general_tensor(d, n, 0.3, 0)
    rows = []
    for dtype in (torch.float32, torch.float64):
        T = PackedTensor(torch.asarray(tensor.matrix, dtype=dtype, device=device))
        for rank in (n, None):
            work = functools.partial(quartic.decompose, T, rank, random_state=0)
            result, first, median = seconds(work, repeats, device)
            rows.append({
                "dtype": str(dtype).split(".")[-1], "rank": rank, "d": d, "n": n, "first_s": first, "seconds": median,
                "found": match(A, result.components).found(0.999), "certified": int(result.certified.sum()),
                "ranked": result.rank, "status": result.status.code,
            })  # fmt: skip
    return rows


def apart(A, B):
    """The largest difference of entries of two sets of unit rows, matched up to order and sign."""
    pairs = match(A, B)
    if pairs.rows.shape[0] != max(A.shape[0], B.shape[0]):
        return math.inf
    signs = pairs.signs[:, None]
    return float(np.max(np.abs(A[pairs.rows] - signs * np.asarray(B, dtype=np.float64)[pairs.columns])))


def equal(device, m):
    """How far answers are from those of NumPy in float64, at a fixed point."""
    rows = []
    for name, d, n in (("orthonormal", 20, 20), ("orthonormal", 24, 12), ("general", 12, 30)):
        if name == "general":
            tensor, _ = general_tensor(d, n, 0.3, 0)
        else:
            planted = quartic.datasets.planted_tensor(d=d, n=n, eps=0.2, random_state=0)
            tensor = PackedTensor(planted.packed)
        expected = polished(tensor, n)
        for dtype in (torch.float32, torch.float64):
            there = PackedTensor(torch.asarray(tensor.matrix, dtype=dtype, device=device))
            found = polished(there, n).cpu().numpy()
            problem = f"{name} tensor, d = {d}, n = {n}"
            rows.append({"problem": problem, "dtype": str(dtype), "apart": apart(expected, found)})
    for snr in (None, 10.0):
        # With noise an ill-conditioned dictionary would turn the order of a sum into more than is compared.
        dictionary = "gaussian" if snr is None else "orthonormal"
        data = quartic.datasets.nice_samples(
            m, 16, supports="blocks", group=4, dictionary=dictionary, snr=snr, random_state=0
        )
        problem = "samples, d = n = 16, " + ("exactly sparse" if snr is None else f"{snr:.0f} dB")
        expected = learned(data.samples, snr)
        for dtype in (torch.float32, torch.float64):
            found = learned(torch.asarray(data.samples, dtype=dtype, device=device), snr)
            rows.append({"problem": problem, "dtype": str(dtype), "apart": apart(expected, found)})
    return rows


def learned(Y, snr):
    """Atoms that are exact, or with noise the fixed point of the orthogonal stage of the refinement near to them."""
    model = quartic.SpectralDictionaryLearning(Y.shape[1]).fit(Y)
    if snr is None:
        return model.to_numpy().components_
    frame = model.frame_
    Z = frame.whiten(Y)
    chunks = [(0, Z, Z[:, 0] * 0 + 1)]
    W = from_numpy(polar(model.to_numpy().components_ @ frame.forward), Z)
    for _ in range(POLISH):
        (means,) = refine.statistics(chunks, (W.T, refine.tanh_score))
        W = refine.orthogonal_step(W, *means.of(None))
    atoms = to_numpy(W) @ frame.backward
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True)


def polished(tensor, n):
    """Components at the fixed point of Algorithm 4.8, or of subspace power, which ``decompose`` iterates to."""
    result = quartic.decompose(tensor, n, random_state=0)
    return result.components if n > tensor.dim else postprocess(tensor, result.components, POLISH)


def torch_fastica(Y, n, seed):
    """Symmetric FastICA with tanh, and its steps: whitened by eigenvectors, stopped by ``tol``, as scikit-learn's."""
    rng = torch.Generator(device=Y.device).manual_seed(seed)
    mean = Y.mean(dim=0)
    centred = (Y - mean).double()
    values, vectors = torch.linalg.eigh(centred.T @ centred / Y.shape[0])
    white = vectors / values.sqrt()
    del centred
    Z = (Y - mean) @ white.float()

    def orthogonal(W):
        values, vectors = torch.linalg.eigh(W @ W.T)
        return (vectors / values.clamp(min=1e-30).sqrt()) @ vectors.T @ W

    W = orthogonal(torch.randn(n, n, generator=rng, device=Y.device, dtype=torch.float64))
    for steps in range(1, STEPS + 1):  # noqa: B007
        psi = torch.tanh(Z @ W.T.float())
        slope = (1 - psi * psi).mean(dim=0, dtype=torch.float64)
        new = orthogonal((psi.T @ Z).double() / Z.shape[0] - slope[:, None] * W)
        moved = ((new * W).sum(dim=1).abs() - 1).abs().max()
        W = new
        if moved < TOLERANCE:
            break
    return torch.linalg.pinv(W @ white.T).T.cpu().numpy(), steps


def peers(n, m, repeats, device, ours):
    """FastICA on the processor, and on the device."""
    Y, A = blocks(n, m, 0, device)
    (found, steps), _, median = seconds(lambda: torch_fastica(Y, n, 0), repeats, device)
    pairs = match(A, found)
    rows = [
        {"solver": f"quartic on {device}", "seconds": ours["seconds"], "found": ours["found"], "worst": ours["worst"]},
        {
            "solver": f"FastICA in PyTorch on {device}", "seconds": median, "found": pairs.found(0.99),
            "worst": float(pairs.squared.min()), "steps": steps,
        },
    ]  # fmt: skip
    from sklearn.decomposition import FastICA

    host = Y.cpu().numpy()
    with sklearn.config_context(array_api_dispatch=False):
        model = FastICA(n, whiten="unit-variance", whiten_solver="eigh", random_state=0)
        start = time.perf_counter()
        model.fit(host)
        taken = time.perf_counter() - start
    pairs = match(A, model.mixing_.T)
    rows.append({
        "solver": f"scikit-learn FastICA, {os.cpu_count()} cores", "seconds": taken, "found": pairs.found(0.99),
        "worst": float(pairs.squared.min()), "steps": int(model.n_iter_),
    })  # fmt: skip
    return rows


def shown(rows):
    """A table of the columns of some rows that have a single value."""
    names = [k for k in dict.fromkeys(k for row in rows for k in row) if not isinstance(rows[0].get(k), dict | list)]
    print("\n" + report.table(names, [[row.get(name) for name in names] for row in rows]), flush=True)


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--repeats", type=int, help="runs that are timed, after a first one (default 3)")
    parser.add_argument("--part", type=int, action="append", help="one of the bars only, by its number")
    args = parser.parse_args(argv)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and not args.quick:
        parser.error("there is no CUDA device: the figures are for one; --quick runs on the processor")
    name = torch.cuda.get_device_name() if device == "cuda" else "the processor"
    print(f"PyTorch {torch.__version__} on {name}")
    bars = report.Bars("gpu", args)
    warnings.simplefilter("ignore", quartic.DecompositionWarning)  # what is lost shows in the tables
    warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
    repeats = args.repeats or (1 if args.quick else 3)
    parts = args.part or [1, 2, 3, 4, 5]
    content = {"device": name, "torch": torch.__version__}
    with sklearn.config_context(array_api_dispatch=True):
        rates = content["rates"] = matrix_rates(device, 256 if args.quick else 8192)
        shown([{precision: f"{rate / 1e12:.3g} TFLOP/s" for precision, rate in rates.items()}])
        if 1 in parts or 5 in parts:
            sizes = [(16, 8000, 60.0)] if args.quick else [(256, 1 << 19, 1.0), (512, 1 << 20, 8.0)]
            rows = content["samples"] = [
                samples(n, m, limit, repeats, device, rates) for n, m, limit in (sizes if 1 in parts else sizes[:1])
            ]
            shown(rows)
            for row in rows:
                size = f"d = n = {row['n']}, m = {row['m']:,}"
                stages = ", ".join(f"{stage} {value:.3f}" for stage, value in row["timings"].items())
                print(f"{size}: {stages}; {row['refinement']}")
                limit = row["limit"]
                bars.judge(f"{size}: at most {limit} s", row["seconds"] <= limit, f"{row['seconds']:.3f} s", True)
                bars.judge(f"{size}: every atom", row["found"] == row["n"], f"{row['found']}, worst {row['worst']:.4f}")
                part = f"{row['moment_part']:.0%} of {rates[row['moment_precision']] / 1e12:.0f} TFLOP/s, "
                bars.judge(
                    f"{size}: half of the rate", row["moment_part"] >= PART, part + row["moment_precision"], True
                )
        if 2 in parts:
            row = content["dense"] = dense(12 if args.quick else 300, repeats, device)
            shown([row])
            stages = ", ".join(f"{stage} {value:.3f}" for stage, value in row["timings"].items())
            print(f"d = n = {row['d']}: {stages}")
            bars.judge("dense: at most 0.4 s", row["seconds"] <= 0.4, f"{row['seconds']:.3f} s", True)
            taken = f"{row['sweeps']:.1f} in float32, {row['rounded_sweeps']:.1f} in TF32"
            bars.judge("dense: at most 12 sweeps", row["sweeps"] <= SWEEPS, taken, True)
            bars.judge("dense: every component", row["found"] == row["d"], f"{row['found']} of {row['d']}")
        if 3 in parts:
            rows = content["overcomplete"] = overcomplete(*((12, 30) if args.quick else (64, 512)), repeats, device)
            shown(rows)
            for row in rows:
                size = f"d = {row['d']}, n = {row['n']}, {row['dtype']}, rank {row['rank']}"
                found = f"{row['found']}, {row['seconds']:.2f} s"
                bars.judge(f"{size}: every component", row["found"] == row["n"], found)
        if 4 in parts:
            rows = content["equal"] = equal(device, 6000 if args.quick else 20_000)
            shown(rows)
            for dtype, most in (("torch.float32", 1e-4), ("torch.float64", 1e-10)):
                worst = max(row["apart"] for row in rows if row["dtype"] == dtype)
                bars.judge(f"{dtype[6:]}: NumPy's float64 answer to {most:.0e}", worst <= most, f"{worst:.1e}")
        if 5 in parts:
            n, m = (16, 8000) if args.quick else (256, 1 << 19)
            rows = content["peers"] = peers(n, m, repeats, device, content["samples"][0])
            shown(rows)
    return bars.close(**content)


if __name__ == "__main__":
    raise SystemExit(main())
