"""Whether samples are what the method assumes (``docs/samples.md``), measured before a fit or after it.

Each assumption is a :class:`Finding`: a figure, the limit that it is held against, and what to change.  All of them are
taken from some thousands of rows (``quartic.rows``).  What a figure must be, at least or at most, divides broken from
doubtful; what it should be, or is better, doubtful from ok.  Signals are those of an orthogonal solution, which has the
right subspaces where it has the wrong axes (see ``algorithms.together``); what was learned is held against the samples
only where that is the question.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quartic._arrays import (
    check_random_state,
    packed_dim,
)
from quartic._words import counted
from quartic.algorithms.assume import CHANGED, EPOCHS, drift, neighbours, often, skewness, tied
from quartic.algorithms.certify import is_certified
from quartic.algorithms.refine import LOG_COSH_SPREAD, from_gaussian
from quartic.algorithms.temper import CARRYING, SHARE, effective, tempering
from quartic.algorithms.together import DEVIATION, kurtosis
from quartic.certify import Reason
from quartic.evidence.lost import TENTH
from quartic.evidence.units import ROWS, STRETCHES, Kind
from quartic.learn.causes import Cause, of_features, say
from quartic.learn.plan import SUBSAMPLE
from quartic.learned import Learned
from quartic.overcomplete import FEW as FEW_MORE
from quartic.propose.span import Certified
from quartic.propose.untangle import untangle
from quartic.rows import COPY, FEWEST_ROWS, LOOKED, Rows, View, looked_at
from quartic.samples import SIGNIFICANT, check_columns

__all__ = ["Diagnosis", "Finding", "diagnose"]

LEVELS = ("ok", "doubtful", "broken")
SPOILED = 0.005  # share of gross rows from which on the 99.5% quantile that limits them is gross itself
NAMED = 8  # features that are named
STUCK, OFTEN, VALUES = 0.005, 5, 100  # share of a repeated value; times as often as others, of which there are so many
LOST = (1e-6, 1e-4)  # part of the variance in the least direction that rounding may be; arbitrary
FEWEST = 0.001  # share of the rows, the longest, whose part in the fourth moment is looked at
HELD_BY_FEW = 1 / 3  # of the fourth moment; Laplace coefficients have 0.2 in 8 dimensions, Student's t with 3 dof 0.6
SKEW, MANY_SKEW = 0.5, 0.25  # skewness of a source that matters, and share of such sources; an exponential has 2
TIED = 0.22  # mean correlation of energies in a group; measured: 0.17 at tau 1/4, 0.23 and more from 0.4, in any axes
QUIET = 5.0  # decibels of signal over noise; benchmarks/must_show/noise.py goes so far
CORRELATED = 0.5  # of neighbours: so many pairs can tell it from none
FEW_DIGITS = 0.01  # of a signal's variance: less that is lost is no doubt; arbitrary
OUTSIDE = (0.05, 0.2)  # of the energy, more than in the samples of the fit; arbitrary
STRETCHED = (1.5, 2.0)  # factor of a variance, beyond its sampling error; arbitrary
FADED = (1 / 2, 1 / 3)  # of the kurtosis in the samples of the fit; sums of two atoms have half


@dataclass(frozen=True)
class Finding:
    """What was looked at, and what it means.

    Attributes
    ----------
    code : str
        Name of the assumption; see ``docs/diagnosis.md``.
    level : str
        ``ok``; ``doubtful``: a fit may need more samples, or be less certain; ``broken``: it can not be relied upon.
    measured : str
        In plain words, with the figure and what it must be, at least or at most.
    remedy : str
        What to change; empty where nothing is wrong.
    value, limit : float
        The figure, and the limit from which on the assumption is broken, or doubtful where it can not be broken.

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(2000, 5, random_state=0)
    >>> finding = quartic.diagnose(abs(data.codes) @ data.dictionary)["symmetry"]
    >>> finding.level, finding.holds, finding.value > finding.limit
    ('broken', False, True)
    """

    code: str
    level: str
    measured: str
    remedy: str
    value: float
    limit: float

    @property
    def holds(self) -> bool:
        """Whether the assumption is not broken."""
        return self.level != "broken"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """All findings about some samples.

    Attributes
    ----------
    findings : tuple of Finding
    samples, looked, features : int
        Rows that there are, rows that most of it was measured on, and columns.

    Examples
    --------
    >>> import numpy as np, quartic
    >>> found = quartic.diagnose(np.random.default_rng(0).standard_normal((2000, 5)))
    >>> found.ok, found.broken
    (False, ['structure'])
    >>> found["structure"].remedy.split(":")[0]
    'No direction stands out'
    """

    findings: tuple[Finding, ...]
    samples: int
    looked: int
    features: int

    @property
    def ok(self) -> bool:
        """Whether no assumption is broken."""
        return not self.broken

    @property
    def broken(self) -> list[str]:
        """Codes of the assumptions that are broken."""
        return [finding.code for finding in self.findings if finding.level == "broken"]

    @property
    def doubtful(self) -> list[str]:
        """Codes of the assumptions that are doubtful."""
        return [finding.code for finding in self.findings if finding.level == "doubtful"]

    def __getitem__(self, code: str) -> Finding:
        for finding in self.findings:
            if finding.code == code:
                return finding
        raise KeyError(f"{code}: there are {', '.join(finding.code for finding in self.findings)}.")

    @property
    def verdict(self) -> str:
        """In one line."""
        if self.ok and not self.doubtful:
            return "Nothing speaks against the assumptions."
        said = [
            f"{len(x)} {word} ({', '.join(x)})"
            for x, word in ((self.broken, "broken"), (self.doubtful, "doubtful"))
            if x
        ]
        return f"Assumptions: {', '.join(said)}."

    def summary(self) -> str:
        """A line for each finding, what is broken first, with its remedy below it.

        Examples
        --------
        >>> import quartic
        >>> found = quartic.diagnose(quartic.datasets.nice_samples(2000, 5, random_state=0).samples)
        >>> found.summary().splitlines()[:2]
        ['2000 samples of 5 features, 2000 looked at', 'Nothing speaks against the assumptions.']
        """
        lines = [f"{self.samples} samples of {self.features} features, {self.looked} looked at", self.verdict, ""]
        width = max(len(finding.code) for finding in self.findings)
        for finding in sorted(self.findings, key=lambda finding: -LEVELS.index(finding.level)):
            lines.append(f"{finding.level:<8}  {finding.code:<{width}}  {finding.measured}")
            if finding.remedy:
                lines.append(f"{'':<{width + 10}}  -> {finding.remedy}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Numbers and strings, for a file.

        Examples
        --------
        >>> import json, quartic
        >>> found = quartic.diagnose(quartic.datasets.nice_samples(2000, 5, random_state=0).samples)
        >>> written = json.loads(json.dumps(found.as_dict()))
        >>> written["ok"], written["samples"], written["findings"][0]["code"]
        (True, 2000, 'finite')
        """
        return {
            "ok": self.ok,
            "broken": self.broken,
            "doubtful": self.doubtful,
            "samples": self.samples,
            "looked": self.looked,
            "features": self.features,
            "findings": [dict(vars(finding)) for finding in self.findings],
        }

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Diagnosis: {self.verdict}>"


def diagnose(
    Y: Any,
    *,
    n_components: int | None = None,
    learned: Learned | None = None,
    feature_names: Sequence[str] | None = None,
    rows: str = "auto",
    random_state: Any = 0,
) -> Diagnosis:
    """Say in plain words whether samples are what the method assumes.

    Parameters
    ----------
    Y : array-like of shape (m, d), Dask array or dataframe, or Collection
        Samples as rows.  One pass is made over all, the rest is measured on some thousands.
    n_components : int, optional
        Number of atoms that is meant, which says how many samples are needed.
    learned : Learned, optional
        What was learned from these samples, or from others that these are held against; ``learned_`` of an estimator.
    feature_names : sequence of str, optional
        Names of the columns, for the findings; those of a dataframe unless given, and numbers where there are none.
    rows : {"auto", "exchangeable"}, default="auto"
        Whether the order of the rows may mean something, as in a fit.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import quartic
    >>> data = quartic.datasets.nice_samples(5000, 10, random_state=0)
    >>> quartic.diagnose(data.samples)
    <Diagnosis: Nothing speaks against the assumptions.>
    >>> quartic.diagnose(abs(data.codes) @ data.dictionary).broken
    ['symmetry']
    """
    check_columns("Y", Y)
    names = _names(Y, feature_names)
    if rows not in ROWS:
        raise ValueError(f"rows must be one of {', '.join(ROWS)}; got {rows!r}.")
    looked = looked_at(Y)
    d = looked.Y.shape[1]
    n = None if n_components is None else _number_of_atoms(n_components, d)
    if learned is not None and learned.components.shape[1] != d:
        raise ValueError(f"Y has {d} features, but {learned.components.shape[1]} were learned from.")
    if names is not None and len(names) != d:
        raise ValueError(f"feature_names must hold {d} names, one for each feature; got {len(names)}.")
    first = [_finite(looked, names)] + ([] if looked.magnitude is None else [_magnitude(looked.magnitude)])
    if looked.Y.shape[0] < 2:
        remedy = " ".join([*transposed(looked.total, d), "More samples."])
        first.append(_finding("samples", "broken", "fewer than two samples can be used", remedy, 0, 2))
    if looked.Y.shape[0] < 2 or looked.magnitude is not None:
        return Diagnosis(tuple(first), looked.total, looked.Y.shape[0], d)
    if np.all(looked.variance == 0):
        first += [_features(looked, names), _outliers(looked)]
        return Diagnosis(tuple(first), looked.total, looked.Y.shape[0], d)
    counters = looked.counting if learned is None and looked.counting.shape[0] < d else looked.counting[:0]
    # Of all else what counts the rows would tell.
    seen = replace(looked, Y=np.delete(looked.Y, counters, axis=1)) if counters.shape[0] else looked
    view = View(seen, check_random_state(random_state), ordered=rows != "exchangeable")
    serial = _serial(view)
    stationary = _stationary(view, serial)
    findings = [
        *first, _features(looked, names), _repeated(looked, names), _outliers(looked), _samples(view, n),
        _condition(view), _structure(view), _directions(view), _axes(view, n), _tails(view), _symmetry(view),
        _together(view, n, stationary),
        _noise(view), _lost(view), _copies(view), serial, stationary,
    ]  # fmt: skip
    if learned is not None:
        findings += [_certificates(learned), _span(view, learned), _scale(view, learned)]
        findings += [] if learned.overcomplete else [_codes(view, learned)]
    return Diagnosis(tuple(findings), looked.total, looked.Y.shape[0], d)


def _names(Y: Any, given: Sequence[str] | None) -> list[str] | None:
    """Names of the features: those given, or those of a dataframe, if its columns have names and not numbers."""
    if given is not None:
        return [str(name) for name in given]
    columns = list(getattr(Y, "columns", ()))
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _number_of_atoms(n_components: Any, d: int) -> int:
    """As a fit takes it: ``n_components`` within its bounds."""
    n = operator.index(n_components)
    if not 1 <= n <= packed_dim(d):
        reach = f"so many squares of atoms with {d} features can be linearly independent"
        raise ValueError(f"n_components must lie between 1 and {packed_dim(d)}, {reach}; got {n}.")
    return n


def _above(value: float, limits: tuple[float, float]) -> str:
    """The level of a figure that should be small."""
    return LEVELS[int(value > limits[0]) + int(value > limits[1])]


def _finding(code: str, level: str, measured: str, remedy: str, value: float, limit: float) -> Finding:
    """A finding, with a remedy only where one is needed."""
    return Finding(code, level, measured, "" if level == "ok" else remedy, float(value), float(limit))


def _not_looked(code: str, why: str, limit: float) -> Finding:
    """A finding about what can not be measured on these samples."""
    return _finding(code, "ok", f"not looked at: {why}", "", np.nan, limit)


def _feature(names: list[str] | None, column: int) -> str:
    return str(column) if names is None else names[column]


def transposed(m: int, d: int) -> list[str]:
    """A question, where ``m`` rows are fewer than ``d`` columns."""
    shape = f"{counted(m, 'row')}, {counted(d, 'column')}"
    return [f"Are the samples in columns ({shape})? Then transpose them, with .T in NumPy or pandas."] if m < d else []


def _finite(rows: Rows, names: list[str] | None) -> Finding:
    bad = rows.infinite
    measured = f"{bad} of {counted(rows.total, 'sample')} {'holds' if bad == 1 else 'hold'} values that are not finite"
    if rows.places:
        shown = ", ".join(f"row {row} in feature {_feature(names, column)}" for row, column in rows.places)
        measured += f"; the first, counted from 0: {shown}"
    remedy = "Remove these samples, or fill in what is missing."
    return _finding("finite", "broken" if bad else "ok", measured, remedy, bad, 0)


def _magnitude(message: str) -> Finding:
    what, _, remedy = message.partition(": ")
    return _finding("magnitude", "broken", what, remedy.capitalize(), np.nan, np.nan)


def _features(rows: Rows, names: list[str] | None) -> Finding:
    constant = np.flatnonzero(rows.variance == 0)
    unit = np.sqrt(np.where(rows.variance > 0, rows.variance, 1.0))
    R = np.abs(rows.covariance.covariance / unit / unit[:, None])
    copies = np.flatnonzero(np.any(np.triu(R, 1) > 1 - COPY, axis=0))
    counting = rows.counting
    idle = np.union1d(np.union1d(constant, copies), counting)

    def listed(features: np.ndarray, one: str, many: str) -> str:
        shown = ", ".join(_feature(names, column) for column in features[:NAMED].tolist())
        more = ", ..." if features.shape[0] > NAMED else ""
        return (one if features.shape[0] == 1 else many) + (f" ({shown}{more})" if shown else "")

    measured = f"{counted(constant.shape[0], 'feature')} {listed(constant, 'is constant', 'are constant')}, "
    measured += f"{copies.shape[0]} {listed(copies, 'is a copy of another', 'are copies of others')}"
    if counting.shape[0]:
        measured += f", {counting.shape[0]} {listed(counting, 'counts the rows', 'count the rows')}"
    level = "ok" if idle.shape[0] == 0 else "doubtful" if constant.shape[0] < rows.Y.shape[1] else "broken"
    return _finding("features", level, measured, "Leave them out: they add nothing.", idle.shape[0], 0)


def _repeated(rows: Rows, names: list[str] | None) -> Finding:
    Y = rows.Y if rows.glanced is None else rows.glanced
    value, times, others, distinct = often(Y)
    share = times / Y.shape[0]
    stuck = np.flatnonzero((share > STUCK) & (times > OFTEN * others) & (distinct > VALUES))
    if not stuck.shape[0]:
        return _finding("repeated", "ok", "no feature repeats one value far more often than others", "", 0.0, STUCK)
    shown = [
        f"{'feature ' if names is None else ''}{_feature(names, j)} is {value[j]:.6g} in {share[j]:.1%}"
        for j in stuck[:NAMED].tolist()
    ]
    more = "; ..." if stuck.shape[0] > NAMED else ""
    measured = (
        f"{counted(stuck.shape[0], 'feature')} {'repeats' if stuck.shape[0] == 1 else 'repeat'} one value far more "
        f"often than others ({'; '.join(shown)}{more} of the samples): should be at most {STUCK:.1%}"
    )
    remedy = "A code for what is missing, a sensor that is stuck, or one that is clipped? Leave these samples out."
    return _finding("repeated", "doubtful", measured, remedy, np.max(share[stuck]), STUCK)


def suspicious(X: np.ndarray, names: list[str] | None) -> list[str]:
    """What speaks at a glance against the first rows of finite samples ``X (m, d)``: features that are none."""
    some = np.asarray(X[:LOOKED], dtype=np.float64)
    rows = Rows(some, np.arange(some.shape[0]), X.shape[0], 0, 0)
    word = "feature " if names is None else ""
    counting = rows.counting[:1].tolist()
    said = [f"{word}{_feature(names, j)} counts the rows: leave it out, it is no feature" for j in counting]
    repeated = _repeated(rows, names)
    return said if repeated.level == "ok" else [*said, f"{repeated.measured}. {repeated.remedy}"]


def _outliers(rows: Rows) -> Finding:
    share = rows.gross / max(rows.total, 1)
    verb = "is" if rows.gross == 1 else "are"
    measured = (
        f"{rows.gross} of {counted(rows.total, 'sample')} {verb} far longer than "
        f"all others: {share:.2%}, must be at most {SPOILED:.1%}, better none"
    )
    level = _above(share, (0.0, SPOILED))
    remedy = (
        "Remove them, and find where they come from: a fit leaves them out, but shorter ones may hide in the others."
        if level == "broken"
        else "A fit leaves them out; find where they come from, and how many shorter ones there are."
    )
    return _finding("outliers", level, measured, remedy, share, SPOILED)


def _samples(view: View, n: int | None) -> Finding:
    r, rows = view.frame.dim, view.rows
    weights = tempering(view.squares).weights(view.squares)
    weights = np.where(view.squares > CARRYING * np.mean(view.squares), weights, 0.0)  # others have no active atom
    count = effective(weights) * (rows.total - rows.infinite - rows.gross) / rows.Y.shape[0]
    more = n is not None and n > r
    need = 2 * FEW_MORE * packed_dim(r) if more else FEWEST_ROWS * r
    enough = max(SUBSAMPLE * SHARE * r * r, need)
    level = "ok" if count >= enough else "doubtful" if count >= need else "broken"
    atoms = f"{n} atoms in " if more else ""
    measured = (
        f"weighted, {counted(rows.total, 'sample')} count as {count:.0f} effective ones for {atoms}"
        f"{counted(r, 'dimension')}: must be at least {need}" + (f", better {enough:.0f}" if enough > need else "")
    )
    remedy = "More samples, or fewer features: leave some out, or project to the leading principal components."
    remedies = [*transposed(rows.total, rows.Y.shape[1]), remedy]
    return _finding("samples", level, measured, " ".join(remedies), count, need)


def _condition(view: View) -> Finding:
    unit = np.sqrt(np.where(view.rows.variance > 0, view.rows.variance, 1.0))
    inverse = np.linalg.norm(view.whole.forward * unit[:, None], axis=0)
    condition = float(np.max(inverse) / np.min(inverse))
    precision = max(float(np.finfo(np.float64).eps), view.rows.covariance.rounding**2)
    lost = precision * condition**2
    better, limit = (float(np.sqrt(part / precision)) for part in LOST)
    measured = (
        f"condition number {condition:.2g} in {view.whole.dim} of {counted(view.rows.Y.shape[1], 'direction')} that "
        f"vary: must be at most {limit:.1g}, better {better:.1g}"
    )
    remedy = "Leave out features that are nearly sums of others, or store the samples in float64."
    return _finding("condition", _above(lost, LOST), measured, remedy, condition, limit)


def _structure(view: View) -> Finding:
    if view.few:
        return _not_looked("structure", view.few, SIGNIFICANT)
    score = view.structure
    level = "broken" if score <= SIGNIFICANT else "ok"
    measured = (
        f"directions differ by {score:.1f} standard deviations from those of a cloud without atoms: must be at least "
        f"{SIGNIFICANT:.0f}"
    )
    remedy = (
        "No direction stands out: coefficients are Gaussian or too dense, or noise drowns them. Denoise or filter, "
        "look at increments or other features, or take far more samples."
    )
    return _finding("structure", level, measured, remedy, score, SIGNIFICANT)


def _directions(view: View) -> Finding:
    if view.few:
        return _not_looked("directions", view.few, 1)
    k, n = view.S.shape
    # Standard errors of Gaussian samples: of the kurtosis, and of E log cosh, which also sees what has none.
    plain = np.abs(view.kurtosis) <= SIGNIFICANT * np.sqrt(24 / k)
    plain &= np.abs(from_gaussian(view.S)) <= SIGNIFICANT * LOG_COSH_SPREAD / np.sqrt(k)
    count = int(np.sum(plain))
    median = float(np.median(view.kurtosis))
    verb = "looks" if count == 1 else "look"
    measured = (
        f"{count} of {counted(n, 'direction')} {verb} Gaussian: should be at most 1, since two are not told from each "
        f"other; median excess kurtosis {median:.2g}"
    )
    remedy = "What lies in them is noise or a mixture: ask for fewer components, or reduce the noise."
    return _finding("directions", "doubtful" if count > 1 else "ok", measured, remedy, count, 1)


def _axes(view: View, n: int | None) -> Finding:
    """Planes without axes, and groups with two readings, by the proof that certificates come from."""
    why = view.few or ("more atoms than dimensions" if n is not None and n > view.frame.dim else "")
    why = why or ("" if view.cloud.enough else Reason.FEW_SAMPLES.value)
    if why:
        return _not_looked("axes", why, 0)
    reasons = [(i, doubt) for i, doubt in enumerate(view.proof.doubts) if doubt is not None]
    alike = sum(doubt.reason is Reason.ALIKE for _, doubt in reasons)
    two = sum(
        doubt.reason is Reason.RIVAL and doubt.other is not None and bool(view.proof.together[i, doubt.other])
        for i, doubt in reasons
    )
    r = view.frame.dim
    measured = (
        f"{alike} of {counted(r, 'direction')} {'lies' if alike == 1 else 'lie'} in planes that are the same in all "
        f"directions, {two} in groups with two readings: should be at most 0"
    )
    remedy = (
        "In such a plane or group no method tells which axes are meant: take it as a subspace. Samples with few active "
        "atoms decide between two readings; more of them may."
    )
    return _finding("axes", "doubtful" if alike + two else "ok", measured, remedy, alike + two, 0)


def _tails(view: View) -> Finding:
    fourth = np.sort(view.squares**2)
    few = int(FEWEST * fourth.shape[0])
    if not few:
        return _not_looked("tails", f"fewer than {1 / FEWEST:.0f} samples", HELD_BY_FEW)
    share = float(np.sum(fourth[-few:]) / np.sum(fourth))
    measured = (
        f"the longest {FEWEST:.1%} of the samples make {share:.0%} of the fourth moment: should be at most "
        f"{HELD_BY_FEW:.0%}"
    )
    remedy = "Keep the weights of a fit (temperature=None), which bound long samples, or clip them; look for outliers."
    return _finding("tails", "doubtful" if share > HELD_BY_FEW else "ok", measured, remedy, share, HELD_BY_FEW)


def _symmetry(view: View) -> Finding:
    why = view.few or ("" if view.cloud.units.alone else "rows depend on each other")
    return _not_looked("symmetry", why, MANY_SKEW) if why else symmetry(view.S)


def symmetry(S: np.ndarray) -> Finding:
    """Whether signals ``S (k, n)`` are as likely with the other sign."""
    values, scores = skewness(S)
    skewed = (np.abs(values) > SKEW) & (np.abs(scores) > SIGNIFICANT)
    share, count = float(np.mean(skewed)), int(np.sum(skewed))
    largest = float(np.max(np.abs(values[skewed]), initial=0.0))
    measured = (
        f"{count} of {counted(values.shape[0], 'source')} {'is' if count == 1 else 'are'} skewed by more than {SKEW}: "
        f"must be at most {MANY_SKEW:.0%} of them, better none"
    )
    measured += f"; the most by {largest:.2g}" if largest else ""
    remedy = (
        "Signs are not independent of magnitudes. Independent sources are certified all the same; sources that occur "
        "together are not. For those take differences of samples that are independent of each other."
    )
    return _finding("symmetry", _above(share, (0.0, MANY_SKEW)), measured, remedy, share, MANY_SKEW)


def _together(view: View, n: int | None, stationary: Finding) -> Finding:
    why = view.few or ("more atoms than dimensions" if n is not None and n > view.frame.dim else "")
    why = why or ("" if view.structure > SIGNIFICANT else "no atoms to look at")
    why = why or ("" if stationary.holds else "stretches of rows differ, and so do energies")
    if why:
        return _not_looked("together", why, TIED)
    correlation, tau, count = tied(view.S)
    if not count:
        measured = "no group of three or more signals occurs together"
        return _finding("together", "ok", measured, "", correlation, TIED)
    level, apart = "ok", ""
    if correlation > TIED:
        # In a group, weights tell atoms apart where some samples have few active ones; what they can not, nothing can.
        r = view.frame.dim
        result = untangle(view.cloud, Certified(np.zeros((0, r)), np.zeros(0)), view.rng)
        level = "broken" if result.tangled else "doubtful"
        apart = f"; {result.certified.atoms.shape[0]} of {r} can be told apart, must be all"
    measured = (
        f"{counted(count, 'group')} of three or more signals {'occurs' if count == 1 else 'occur'} together, energies "
        f"correlate by {correlation:.2f}: should be at most {TIED}{apart}; tau {tau:.2f}"
    )
    remedy = (
        "More samples, above all such with few active atoms, or look for each group as a subspace. If there are more "
        "atoms than dimensions, say how many."
    )
    return _finding("together", level, measured, remedy, correlation, TIED)


def _noise(view: View) -> Finding:
    r, rank = view.frame.dim, view.whole.dim
    if r == rank:
        return _finding("noise", "ok", "no floor of equal eigenvalues shows it", "", np.nan, QUIET)
    spectrum = view.frame.spectrum
    floor = float(np.mean(spectrum[r:rank]))
    ratio = 10 * np.log10(float(np.mean(spectrum[:r])) / floor - 1)
    measured = (
        f"{ratio:.1f} dB of signal over noise in {counted(r, 'direction')} above the floor: should be at least "
        f"{QUIET:.0f} dB"
    )
    remedy = "Average or filter; atoms that are not orthogonal are biased by noise, whatever the number of samples."
    return _finding("noise", "doubtful" if ratio < QUIET else "ok", measured, remedy, ratio, QUIET)


def _serial(view: View) -> Finding:
    """Whether rows depend on the rows before them, by the test of a fit."""
    if not view.ordered:
        return _not_looked("serial", "the order of the rows means nothing, it is said", STRETCHES)
    value, pairs = neighbours(view.S, view.rows.index)
    enough = round((DEVIATION / CORRELATED) ** 2)
    if pairs < enough:
        why = f"{counted(pairs, 'pair')} of rows that follow each other, at least {enough} can tell"
        return _not_looked("serial", why, STRETCHES)
    units = view.cloud.units
    stretches = units.kind is Kind.STRETCHES
    parts = f"about {units.count} independent stretches of rows" if stretches else "each row is independent of others"
    measured = f"{parts}: must be at least {STRETCHES}; a row and the next one correlate by up to {value:.2f}"
    level = "broken" if not units.enough else "doubtful" if stretches else "ok"
    remedy = say(Cause.SERIAL, units=units).remedy
    return _finding("serial", level, measured, remedy, units.count, STRETCHES)


def _copies(view: View) -> Finding:
    """Rows that are there several times, by the test of a fit."""
    times = view.cloud.copies
    measured = f"rows are there {times:.3g} times each, but for what is alike by chance: should be at most 1"
    remedy = say(Cause.REPEATED_ROWS, copies=times).remedy
    return _finding("repeated-rows", "doubtful" if times > 1 else "ok", measured, remedy, times, 1)


def _lost(view: View) -> Finding:
    """What was lost on the way to the file, by the tests of a fit."""
    lost, said = view.cloud.lost, of_features(view.cloud, view.axes)
    share = float(np.max(lost.of_signals(view.axes), initial=0.0))
    measured = f"{min(share, 1.0):.2g} of a signal's variance was lost on the way to the file: must be at most {TENTH}"
    measured = " ".join([f"{measured}.", *(one.happened for one in said)]) if said else measured
    level = "broken" if any(one.grave and one.cause is not Cause.GROSS for one in said) else (
        "doubtful" if share > FEW_DIGITS or lost.gross is not None else "ok")  # fmt: skip
    return _finding("lost", level, measured, " ".join(one.remedy for one in said), share, TENTH)


def _stationary(view: View, serial: Finding) -> Finding:
    if view.Z.shape[0] < 2 * EPOCHS:
        return _not_looked("stationary", f"fewer than {2 * EPOCHS} samples", CHANGED[1])
    if not view.ordered:
        return _not_looked("stationary", "the order of the rows means nothing, it is said", CHANGED[1])
    score = drift(view.Z)
    level = _above(score, CHANGED)
    if level == "broken" and serial.level != "ok":
        level = "doubtful"  # neighbours are alike: so are stretches
    measured = (
        f"{EPOCHS} stretches of rows differ by {score:.1f} standard deviations: must be at most {CHANGED[1]:.0f}"
        f"{' unless neighbours are alike' if level != 'broken' and score > CHANGED[1] else ''}, better {CHANGED[0]:.0f}"
    )
    remedy = "Learn from each stretch by itself, or subtract what drifts."
    return _finding("stationary", level, measured, remedy, score, CHANGED[1])


def _certificates(learned: Learned) -> Finding:
    share = float(np.mean(is_certified(learned.certificates)))
    level = "ok" if share == 1 else "doubtful" if share >= 0.5 else "broken"
    n, count, tau = learned.certificates.shape[0], learned.report.effective, learned.report.tau
    measured = (
        f"{share:.0%} of {counted(n, 'atom')} certified: must be at least 50%, better all; {count:.0f} effective "
        f"samples, tau {tau:.2f}"
    )
    remedy = (
        "Mend what else is broken here. If nothing is, fit without a number of atoms, which are then counted; or noise "
        "is strong where the samples vary least: then more samples do not help, and fewer, cleaner features may."
    )
    return _finding("certificates", level, measured, remedy, share, 0.5)


def _span(view: View, learned: Learned) -> Finding:
    frame = learned.frame
    Y = view.rows.Y.astype(np.float64) - frame.mean
    rest = Y - Y @ frame.forward @ frame.backward
    total = float(np.sum(Y**2))
    before = max(0.0, 1 - float(np.sum(frame.backward**2) / np.sum(frame.spectrum)))
    outside = float(np.sum(rest**2)) / total if total > 0 else 0.0
    better, limit = (before + more for more in OUTSIDE)
    measured = (
        f"{outside:.1%} of the energy is outside of the atoms, {before:.1%} in the fit: must be at most {limit:.1%}, "
        f"better {better:.1%}"
    )
    remedy = "The samples have directions that the dictionary has not: learn it again."
    return _finding("span", _above(outside - before, OUTSIDE), measured, remedy, outside - before, OUTSIDE[1])


def _scale(view: View, learned: Learned) -> Finding:
    Z = learned.frame.whiten(view.rows.Y, np.float64)
    values = np.linalg.eigvalsh(Z.T @ Z / Z.shape[0])
    peak = max(float(np.max(learned.kurtosis)), 0.0) + 2
    error = 1 + SIGNIFICANT * np.sqrt(peak * Z.shape[1] / Z.shape[0])
    factor = float(max(values[-1], 1 / max(values[0], np.finfo(np.float64).tiny))) / error
    better, limit = (times * error for times in STRETCHED)
    measured = (
        f"variances changed by a factor of {factor * error:.2g}, {error:.2g} may be chance: must be at most "
        f"{limit:.2g}, better {better:.2g}"
    )
    remedy = "The samples come from another distribution: learn the dictionary again."
    return _finding("scale", _above(factor, STRETCHED), measured, remedy, factor, STRETCHED[1])


def _codes(view: View, learned: Learned) -> Finding:
    codes = (view.rows.Y.astype(np.float64) - np.mean(view.rows.Y, axis=0)) @ learned.unmixing.T
    new = kurtosis(codes, np.ones(codes.shape[0])) - 3
    now, before = (float(np.median(np.abs(x))) for x in (new, learned.kurtosis))
    ratio = now / before if before > 0 else 1.0
    level = LEVELS[int(ratio < FADED[0]) + int(ratio < FADED[1])]
    measured = (
        f"median kurtosis of the codes {now:.2g}, {before:.2g} in the fit, a ratio of {ratio:.2f}: must be at least "
        f"{FADED[1]:.2f}, better {FADED[0]:.2f}"
    )
    remedy = "The atoms do not make these samples sparse: learn the dictionary again."
    return _finding("codes", level, measured, remedy, ratio, FADED[1])
