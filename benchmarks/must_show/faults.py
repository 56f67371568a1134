"""Faults while a dictionary is learned from a Dask collection, each on a real cluster of processes or a real file.

Bar: after every one of them the components are those of an undisturbed run, by the same kind of process and in the same
chunks, to 1e-12, and every sample was counted once.

- a worker is killed (SIGKILL) in the middle of a pass; a worker runs out of memory and is killed by its nanny;
- the scheduler is stopped between passes, and a new one goes on from the checkpoint;
- a chunk fails to read: it is named; and left out if asked for, as if its samples had no weight;
- the driver is killed (SIGKILL) at twenty random moments of its work, and another goes on from its checkpoint;
- the disk is full when checkpoints are written; a checkpoint is truncated.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import quartic
from benchmarks import report
from benchmarks.problems import SamplesProblem

CLOSE = 1e-12
KILLS = 20
FULL = 20_000  # bytes that a disk has left: the result fits, a checkpoint does not
CHUNK_MEMORY = 600 * 2**20  # what a chunk takes that a worker has no room for


def once(folder, name):
    """Whether this is the first time that somebody asks, over all processes."""
    try:
        os.close(os.open(Path(folder) / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def kill_me(block, folder, chunk, block_info=None):
    if block_info[0]["chunk-location"][0] == chunk and once(folder, "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def eat_memory(block, folder, chunk, block_info=None):
    if block_info[0]["chunk-location"][0] == chunk and once(folder, "eaten"):
        held = np.ones(CHUNK_MEMORY // 8)  # touched, so that it is there
        time.sleep(60)  # the nanny looks now and then
        return block + 0 * held[0]
    return block


def fail(block, chunk, block_info=None):
    if block_info[0]["chunk-location"][0] == chunk:
        raise OSError("the disk is on fire")
    return block


def disturbed(X, function, **options):
    return X.map_blocks(function, dtype=X.dtype, meta=np.empty((0, X.shape[1])), **options)


def model_of(n):
    return quartic.SpectralDictionaryLearning(n)


def cluster(memory="1GB"):
    return LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None)


def driver(folder, n, chunk):
    """A fit in a process of its own, which may be killed: data, checkpoint and result are files, and what it reads."""
    folder = Path(folder)
    Y = np.load(folder / "samples.npy", mmap_mode="r")
    X = da.from_array(Y, chunks=(chunk, Y.shape[1]), name=False)

    def note(number, done, total):
        with (folder / "read.txt").open("a") as file:
            file.write(f"{os.getpid()} {number} {done}\n")

    warnings.simplefilter("always")
    given = quartic.Collection(X, checkpoint=folder / "checkpoint.npz", every=0.0, callback=note)
    model = model_of(n).fit(given)
    np.savez(folder / "result.npz", components=model.components_, samples=model.n_samples_seen_)
    return 0


def resumed(folder):
    """Of the drivers that read something: how many there were, and how many began where another had stopped."""
    begun = {}
    for line in (Path(folder) / "read.txt").read_text().splitlines():
        pid, number, done = (int(word) for word in line.split())
        begun.setdefault(pid, (number, done))
    first = min(begun.values())
    return len(begun), sum(where > first for where in begun.values())


def start_driver(folder, n, chunk, limit=None):
    def limited():
        if limit is not None:  # a file that grows beyond fails, as on a full disk
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "benchmarks.must_show.faults", "--driver", json.dumps([str(folder), n, chunk])]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limited)


def main(argv=None):
    parser = report.options(__doc__)
    parser.add_argument("--driver", help="run one fit (used by the script itself)")
    parser.add_argument("--kills", type=int, help=f"of the driver (default {KILLS})")
    args = parser.parse_args(argv)
    if args.driver is not None:
        return driver(*json.loads(args.driver))
    warnings.simplefilter("ignore")
    bars = report.Bars("faults", args)
    n, m, chunk = (6, 36_000, 300) if args.quick else (32, 400_000, 1000)
    kills = args.kills or (2 if args.quick else KILLS)
    Y, _ = SamplesProblem(m, n, dictionary="orthonormal", snr=10.0).given(0)
    X = da.from_array(Y, chunks=(chunk, n))
    whole = model_of(n).fit(X)
    rows = []

    def came_out(fault, done, model, samples=m, expected=whole.components_):
        off = float(np.max(np.abs(model.components_ - expected)))
        rows.append({"fault": fault, "done": done, "off": off, "samples": int(model.n_samples_seen_)})
        bars.judge(
            fault, off <= CLOSE and model.n_samples_seen_ == samples, f"{off:.1e}, {model.n_samples_seen_} samples"
        )

    middle = len(X.chunks[0]) // 2
    with tempfile.TemporaryDirectory() as folder:
        for fault, function, memory in (
            ("a worker is killed in a pass", kill_me, "1GB"),
            ("a worker runs out of memory", eat_memory, "500MiB"),
        ):
            with cluster(memory) as one, Client(one) as client:
                before = set(client.run(os.getpid).values())
                model = model_of(n).fit(disturbed(X, function, folder=folder, chunk=middle))
                client.wait_for_workers(2)
                lost = len(before - set(client.run(os.getpid).values()))
            bars.judge(f"{fault}: it is gone", lost == 1, f"{lost} of 2 processes")
            came_out(fault, "Dask started another, and its chunks were read again", model)

        path = Path(folder) / "run.npz"

        def stop(number, done, total):
            if number == 1:
                raise KeyboardInterrupt

        with cluster() as one, Client(one), contextlib.suppress(KeyboardInterrupt):
            model_of(n).fit(quartic.Collection(X, checkpoint=path, every=0.0, callback=stop))
        with cluster() as one, Client(one):
            again = []
            callback = lambda number, done, total: again.append(number)  # noqa: E731
            model = model_of(n).fit(quartic.Collection(X, checkpoint=path, every=0.0, callback=callback))
        bars.judge(
            "the scheduler is restarted: the first pass is not made again", 0 not in again, f"{sorted(set(again))}"
        )
        came_out("the scheduler is restarted", "a new one went on after the last finished pass", model)

        bad = disturbed(X, fail, chunk=middle)
        try:
            model_of(n).fit(bad)
            message = "nothing was said"
        except RuntimeError as error:
            message = str(error)
        named = f"chunk {middle} of the samples, rows {middle * chunk} to {(middle + 1) * chunk - 1}" in message
        bars.judge("a chunk fails to read: it is named", named and "on fire" in message, message)
        weights = np.ones(m)
        weights[middle * chunk : (middle + 1) * chunk] = 0
        without = model_of(n).fit(X, sample_weight=weights)
        model = model_of(n).fit(quartic.Collection(bad, errors="skip"))
        came_out("a chunk fails to read, skipped", "left out, with a warning", model, m - chunk, without.components_)

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "samples.npy", Y)
        result, checkpoint, read = (Path(folder) / name for name in ("result.npz", "checkpoint.npz", "read.txt"))

        class Result:
            def __init__(self):
                with np.load(result) as held:
                    self.components_, self.n_samples_seen_ = held["components"], int(held["samples"])

        def reads():
            """A driver, when it has read something, or is done."""
            before = read.stat().st_size if read.exists() else 0
            process = start_driver(folder, n, chunk)
            while process.poll() is None and (read.stat().st_size if read.exists() else 0) == before:
                time.sleep(0.01)
            return process

        process, began = reads(), time.perf_counter()
        assert process.wait() == 0, process.stderr.read()
        work = time.perf_counter() - began
        alone = Result().components_
        off = float(np.max(np.abs(alone - whole.components_)))
        print(f"a driver by itself, next to the same fit in this process: {off:.1e} apart, by rounding")
        for file in (checkpoint, result, read):
            file.unlink()
        killed = 0
        while killed < kills:
            process = reads()
            time.sleep(rng.uniform(0.0, work))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
            if result.exists():  # it was done before, or nearly
                result.unlink()
                checkpoint.unlink()
        process = start_driver(folder, n, chunk)
        assert process.wait() == 0, process.stderr.read()
        came_out(f"the driver is killed {kills} times", "the next went on from its checkpoint", Result(), m, alone)
        drivers, later = resumed(folder)
        bars.judge("the driver is killed: others go on from where it was", later > 0, f"{later} of {drivers}")

        held = checkpoint.read_bytes()
        result.unlink()
        checkpoint.unlink()
        process = start_driver(folder, n, chunk, limit=FULL)
        errors = process.communicate()[1]
        full = "could not be written" in errors
        bars.judge("the disk is full: it is said", full, "a warning" if full else errors[-300:])
        assert process.returncode == 0, errors
        came_out("the disk is full", "the fit went on without a checkpoint", Result(), m, alone)

        result.unlink()
        checkpoint.write_bytes(held[: len(held) // 2])
        process = start_driver(folder, n, chunk)
        errors = process.communicate()[1]
        refused = process.returncode != 0 and "checkpoint can not be read" in errors
        said = errors.strip().splitlines()[-1].replace(f"{folder}/", "")
        bars.judge("a checkpoint is truncated: it is refused", refused, said)
        checkpoint.unlink()
        assert start_driver(folder, n, chunk).wait() == 0
        came_out("a checkpoint is truncated", "refused; removed, the fit began anew", Result(), m, alone)

    print(report.table(["fault", "what was done", "off", "samples"], [list(row.values()) for row in rows]))
    return bars.close(rows=rows)


if __name__ == "__main__":
    raise SystemExit(main())
