"""Found against planted components, as text."""

from __future__ import annotations

import numpy as np

from quartic._arrays import to_numpy
from quartic._words import counted
from quartic.datasets import PlantedTensor
from quartic.metrics import match
from quartic.report.figures import FOUND
from quartic.result import Decomposition


def compare(planted: PlantedTensor, result: Decomposition, eps: float) -> str:
    """A table of what was planted against what was found, and the figures of the whole.

    Parameters
    ----------
    planted : PlantedTensor
    result : Decomposition
        Of ``planted.tensor``.
    eps : float
        Spectral norm of the planted error.

    Returns
    -------
    str
        Lines without a newline at the end.

    Examples
    --------
    >>> import quartic.report
    >>> planted = quartic.datasets.planted_tensor(6, 4, 0.1, random_state=0)
    >>> result = quartic.decompose(planted.tensor, random_state=0)
    >>> print(quartic.report.compare(planted, result, 0.1).splitlines()[7])
    found    4 of 4 planted components at squared correlation 0.99 or better
    """
    weights, bounds = (np.asarray(to_numpy(x), dtype=np.float64) for x in (result.weights, result.certificates))
    certified = to_numpy(result.certified)
    matched = match(result.components, planted.components)
    partner = dict(zip(matched.rows.tolist(), matched.columns.tolist(), strict=True))
    squared = dict(zip(matched.rows.tolist(), matched.squared.tolist(), strict=True))

    lines = [
        "             weight              squared",
        "         planted     found   correlation   certificate   certified",
    ]
    for i in range(weights.shape[0]):
        was = f"{planted.weights[partner[i]]:8.4f}" if i in partner else f"{'-':>8}"
        fit = f"{squared[i]:12.4f}" if i in squared else f"{'-':>12}"
        mark = "yes" if certified[i] else "no"
        lines.append(f"  {i:4d}{was:>10}{weights[i]:10.4f}{fit:>14}{bounds[i]:14.4f}{mark:>12}")
    for j in sorted(set(range(planted.weights.shape[0])) - set(partner.values())):
        lines.append(f"     -{planted.weights[j]:10.4f}   not found")

    n = planted.weights.shape[0]
    off = np.abs(weights[matched.rows] - planted.weights[matched.columns])
    stages = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in result.timings.items())
    lines += [
        "",
        f"found    {matched.found(FOUND)} of {n} planted components at squared correlation {FOUND} or better",
        f"weights  within {np.max(off, initial=0.0):.3g} of the planted ones; the error can shift them by eps",
        f"rank     {result.rank} found, {n} planted: {result.reason}",
        f"eps      {result.eps:.4g} measured, {eps:.4g} planted",
        f"status   {result.status}",
        f"time     {sum(result.timings.values()):.3f} s: {stages}; {counted(result.sweeps, 'sweep')}",
    ]
    return "\n".join(lines)
