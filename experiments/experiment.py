"""What an experiment is: a file with a claim, a measurement, and what follows from its data.

A file of this folder whose name does not begin with ``_`` and that is not part of the frame is an experiment.  Its
docstring states the claim in its first paragraph; it has

====================  ============================================================================================
``TITLE``             a few words
``measure(run)``      the data, as JSON knows them; ``run`` is a :class:`Run`
``tables(data)``      what is printed, and shown on the page: a list of :class:`Table`
``verdicts(data)``    the claims with their numbers, next to what was measured: a list of :class:`Verdict`
``draw(data)``        a matplotlib figure
====================  ============================================================================================

Tables, verdicts and figures depend on the data alone, so that they can be made again from the data that are kept.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from threadpoolctl import threadpool_limits

import quartic
from benchmarks import report

FRAME = {"experiment", "figures", "page"}
RESULTS = Path(__file__).parent / "results"
VERDICTS = ("holds", "holds beyond what is proved", "does not hold at these sizes", "open")


@dataclass(frozen=True)
class Table:
    """A table: its title, the names of its columns, and its rows."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Verdict:
    """A claim next to what was measured.

    Attributes
    ----------
    claim : str
        Its number in the paper.
    states : str
        What it states, in a line.
    measured : str
        The figure that was measured.
    verdict : str
        One of :data:`VERDICTS`.
    """

    claim: str
    states: str
    measured: str
    verdict: str

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}; got {self.verdict!r}.")


@dataclass(frozen=True)
class Run:
    """How an experiment is run.

    Attributes
    ----------
    quick : bool
        A tiny version, a few seconds: for the tests.
    jobs : int
        Processes at a time, of one thread each.
    """

    quick: bool = False
    jobs: int = 1

    def each(self, function: Callable[..., Any], arguments: Iterable[Sequence[Any]]) -> list[Any]:
        """``function(*a)`` for each ``a`` of ``arguments``, in their order; the longest ones are best given first."""
        arguments = list(arguments)
        if self.jobs == 1:
            with threadpool_limits(1):
                return [function(*a) for a in arguments]
        with ProcessPoolExecutor(self.jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
            futures = [pool.submit(function, *a) for a in arguments]
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    future.result()  # raises what the function raised, now and not at the end
                    if done % max(1, len(futures) // 10) == 0:
                        print(f"{done} of {len(futures)} runs", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [future.result() for future in futures]


def names() -> list[str]:
    """All experiments, in the order of the alphabet."""
    import experiments

    found = (m.name for m in pkgutil.iter_modules(experiments.__path__))
    return sorted(name for name in found if not name.startswith("_") and name not in FRAME)


def load(name: str) -> ModuleType:
    """The module of an experiment."""
    return importlib.import_module(f"experiments.{name}")


def claim(module: ModuleType) -> str:
    """The statement of the claim: the docstring without its first line, to the first empty line after it."""
    _, rest = inspect.cleandoc(module.__doc__ or "").split("\n\n", 1)
    return " ".join(rest.split("\n\n")[0].split())


def source(name: str) -> str:
    """A digest of all that an experiment may use, itself included: data of another source are not those of this one."""
    here = Path(__file__).parent
    shared = [*here.glob("_*.py"), *(here.parent / "benchmarks").glob("[!m]*/*.py")]  # solvers and problems
    files = [*sorted([*Path(quartic.__file__).parent.rglob("*.py"), *shared]), here / f"{name}.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def keep(name: str, data: dict[str, Any], folder: Path, seconds: float) -> None:
    """Write the data of an experiment, with the machine and the time that it took."""
    report.save(folder / f"{name}.json", {"source": source(name), "seconds": seconds, "data": data})


def kept(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    """What was kept of an experiment: ``source``, ``seconds``, ``machine`` and ``data``; None if nothing was."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
