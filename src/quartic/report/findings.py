"""What figures and reports say about: a decomposition or a fitted model, in one form and on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from quartic._arrays import packed_dim, to_numpy
from quartic._words import counted
from quartic.algorithms.certify import is_certified
from quartic.certify import Basis
from quartic.learn.causes import Cause
from quartic.learned import Learned
from quartic.metrics import Match, match
from quartic.result import Decomposition, Status

VERDICTS = {  # of each code of a status, for a reader in a hurry
    "complete": "Everything was found and certified",
    "uncertified": "Found, but not everything is certified",
    "incomplete": "Components are missing",
    "no-gap": "How many components there are is not clear",
    "contradiction": "The error bound that was given does not hold",
    "nothing": "Nothing was found",
} | {cause.code: cause.title for cause in Cause}
LARGEST = 3  # entries of a component that a table names
COARSE = 0.3  # sine of an angle: a certified atom that may be further off deserves a word; arbitrary
NAMED = 12  # components that a note names one by one; arbitrary
ASYMMETRIC = 1e-3  # of its norm: an input that is less symmetric than that may not be what was meant; arbitrary


@dataclass(frozen=True)
class Findings:
    """What was found, how sure it is, and how it went.

    Attributes
    ----------
    kind, noun : str
        The class of the subject, and what it calls a component.
    components : ndarray of shape (n, d)
        Unit rows.
    sizes : ndarray of shape (n,)
        Weights in the units of the tensor, or parts of the energy.
    certificates : ndarray of shape (n,)
    status : Status
    spectrum : ndarray
        Leading eigenvalues of the tensor, or of the cumulant.
    kept : ndarray
        Which of them were kept.
    skipped : int
        How many before the last of those were not.
    eigenvalues : int
        How many there are in all.
    eps : float
        Measured error.
    assumed : float or None
        The error the certificates rest on, where they rest on one.
    basis : str
        What the certificates rest on, in a sentence.
    facts, settings : dict of str to str
        How it was found, and with what.
    timings : dict
    notes : list of str
        What a reader should know before relying on it.
    uncertainty, stability, kurtosis : ndarray of shape (n,) or None
    correlations : ndarray of shape (n, n) or None
        Of energies.
    groups : list of list of int
    names : sequence of str or None
        Of the features.
    """

    kind: str
    noun: str
    components: np.ndarray
    sizes: np.ndarray
    certificates: np.ndarray
    status: Status
    spectrum: np.ndarray
    kept: np.ndarray
    eigenvalues: int
    eps: float
    assumed: float | None
    basis: str
    facts: dict[str, str]
    settings: dict[str, str]
    timings: dict[str, float]
    notes: list[str]
    skipped: int = 0
    uncertainty: np.ndarray | None = None
    stability: np.ndarray | None = None
    kurtosis: np.ndarray | None = None
    correlations: np.ndarray | None = None
    groups: list[list[int]] = field(default_factory=list)
    names: Sequence[str] | None = None

    @property
    def is_model(self) -> bool:
        """Whether it was learned from samples."""
        return self.uncertainty is not None

    @property
    def certified(self) -> np.ndarray:
        """Mask of the certified components, ``(n,)``."""
        return is_certified(self.certificates)

    @property
    def ranked(self) -> list[int]:
        """Components in their own order; where none is certified, first those that return in both halves."""
        if self.stability is None or np.any(self.certified):
            return list(range(self.components.shape[0]))
        return [int(i) for i in np.argsort(-self.stability, kind="stable")]

    @property
    def verdict(self) -> str:
        """The status in a few words."""
        words = VERDICTS.get(self.status.code, self.status.code)
        return f"{words}, with warnings: read them first" if self.tone == "fair" else words

    @property
    def tone(self) -> str:
        """``good``, ``bad``, or ``fair``: nothing failed, yet there are warnings."""
        return "bad" if not self.status.ok else "fair" if self.notes else "good"

    @property
    def headline(self) -> str:
        """How many, and how many of them certified."""
        return f"{self.counted(self.components.shape[0])}, {int(np.sum(self.certified))} certified"

    def counted(self, n: int) -> str:
        """So many components, as the subject calls them."""
        return f"{n} {self.noun}{'' if n == 1 else 's'}"

    def columns(self, truth: Any = None) -> dict[str, list[str]]:
        """A table of the components: heading and cells of each column after the index."""
        sizes = [f"{100 * x:.2f} %" if self.is_model else f"{x:#.4g}" for x in self.sizes]
        columns = {"Energy" if self.is_model else "Weight": sizes, "Certificate": _numbers(self.certificates, ".4f")}
        for name, values, form in (
            ("Uncertainty", self.uncertainty, ".1e"),
            ("Stability", self.stability, ".2f"),
            ("Kurtosis", self.kurtosis, ".2f"),
        ):
            if values is not None:
                columns[name] = _numbers(values, form)
        if truth is not None:
            matched = self.matched(truth)
            squared = dict(zip(matched.rows.tolist(), matched.squared.tolist(), strict=True))
            columns["With the truth"] = [f"{squared[i]:.4f}" if i in squared else "-" for i in range(len(sizes))]
        columns["Certified"] = ["yes" if good else "no" for good in self.certified]
        columns["Largest entries"] = [_largest(row, self.names) for row in self.components]
        return columns

    def matched(self, truth: Any) -> Match:
        """The components against true ones: an array of rows, or an object of ``quartic.datasets`` that has them."""
        return match(self.components, getattr(truth, "components", truth))


def findings(subject: Any, warnings: Sequence[str] = ()) -> Findings:
    """What there is to say about a ``Decomposition`` or a fitted estimator, after what was warned of on the way."""
    if isinstance(subject, Decomposition):
        found = _of_result(subject)
    else:
        if isinstance(subject, BaseEstimator):
            check_is_fitted(subject)
        if not hasattr(subject, "learned_"):
            got = type(subject).__name__
            raise TypeError(f"a Decomposition or a fitted estimator of quartic is expected; got {got}.")
        found = _of_model(subject)
    return replace(found, notes=list(dict.fromkeys((*found.notes, *warnings))))


def _of_result(result: Decomposition) -> Findings:
    components, weights, bounds = (
        np.asarray(to_numpy(x), dtype=np.float64) for x in (result.components, result.weights, result.certificates)
    )
    basis = (
        "Certificates are proven, if the true components are orthonormal and the spectral norm of the error is at most "
        f"{result.eps_assumed:.4g}."
    )
    if not result.orthogonal:
        basis = (
            "The components are in general position, not orthonormal: certificates rest on an error of spectral norm "
            f"at most {result.eps_assumed:.4g}, and on a span that holds nothing but components, as many as it has "
            "dimensions (docs/overcomplete.md)."
        )
    kept = np.arange(result.spectrum.shape[0]) < result.rank - result.known
    facts = {
        "Rank": f"{result.rank}: {result.reason}",
        "Error": f"eps {result.eps:.4g} measured, {result.eps_assumed:.4g} assumed by the certificates",
        "Work": f"{counted(result.sweeps, 'sweep')} of the tensor over a block of vectors",
    }
    if result.known:
        facts["Known components"] = str(result.known)
    if result.asymmetry:
        facts["Asymmetry"] = f"{result.asymmetry:.2e} of the norm of the input was not pair-symmetric: projected away"
    notes = _uncertified("component", bounds)
    if result.asymmetry > ASYMMETRIC:
        notes.append(
            f"The input is not symmetric: {result.asymmetry:.1%} of its norm was projected away. Check that it is the "
            "tensor that was meant."
        )
    return Findings(
        kind="Decomposition",
        noun="component",
        components=components,
        sizes=weights,
        certificates=bounds,
        status=result.status,
        spectrum=np.asarray(result.spectrum, dtype=np.float64),
        kept=kept,
        eigenvalues=packed_dim(components.shape[1]),
        eps=result.eps,
        assumed=result.eps_assumed,
        basis=basis,
        facts=facts,
        settings={},
        timings=dict(result.timings),
        notes=notes,
    )


def _of_model(model: Any) -> Findings:
    learned, how = model.learned_, model.learned_.report
    noun = model._noun
    a, b = how.window
    place = np.arange(how.spectrum.shape[0])
    # A window is one of eigenvalues with their signs; without one, they are kept by their magnitudes.
    spectrum = np.abs(how.spectrum) if a == b else how.spectrum
    kept = (place < a) | ((place >= b) & (place < b + how.kept - a))
    facts = {
        "Samples": f"{how.samples:,}" + (f", {how.trimmed:,} of them left out" if how.trimmed else ""),
        "Dimension": f"{how.dim}: {how.frame_reason}",
        "Number of " + noun + "s": how.rank_reason,
        "Spectral stage": f"{how.subsample:,} samples, {how.form} moment: {how.subsample_reason}",
        **{f"Try {i + 1}": str(attempt) for i, attempt in enumerate(how.plan)},
        "Weights": f"temperature {how.temperature:.3g}, {how.effective:,.0f} effective samples",
        "Supports": f"tau {how.tau:.2f}; {counted(len(how.groups), 'group')} of {noun}s that occur together; "
        f"{counted(how.local, noun)} found by local tempering",
        "Refinement": how.refinement,
        "Left over": f"eps {learned.eps:.4g}, the spectral norm of what the {noun}s do not explain of the cumulant",
    }
    notes = _uncertified(noun, learned.certificates) + coarse(noun, learned)
    if how.trimmed:
        notes.append(f"{how.trimmed:,} samples were left out: they are far longer than all others. Look at them.")
    if learned.status.ok:  # what certificates rest on deserves a word all the same
        notes += [f"{cause.title}: the status says how." for cause in Cause if cause.code in learned.status.causes]
    names = getattr(model, "feature_names_in_", None)
    return Findings(
        kind=type(model).__name__,
        noun=noun,
        components=learned.components,
        sizes=learned.energy,
        certificates=learned.certificates,
        status=learned.status,
        spectrum=spectrum,
        kept=kept,
        skipped=b - a,
        eigenvalues=packed_dim(how.dim),
        eps=learned.eps,
        assumed=None,
        basis="Certificates are estimated with two disjoint halves of the samples, each judging what the other found. "
        "They are about whitened coordinates: the squared correlation of the codes with the true coefficients. They "
        f"rest on {_assumed(learned)}, not on a proven bound.",
        facts=facts,
        settings={name: _words(value) for name, value in model.get_params(deep=False).items()},
        timings=dict(how.timings),
        notes=notes,
        uncertainty=learned.uncertainty,
        stability=learned.stability,
        kurtosis=learned.kurtosis,
        correlations=learned.correlations,
        groups=how.groups,
        names=None if names is None else [str(name) for name in names],
    )


def _uncertified(noun: str, bounds: np.ndarray) -> list[str]:
    """A note that names the components without a certificate."""
    rows = np.flatnonzero(~is_certified(bounds))
    if not rows.size:
        return []
    named = ", ".join(map(str, rows[:NAMED])) + (f" and {rows.size - NAMED} more" if rows.size > NAMED else "")
    what = f"{noun.capitalize()} {named} is" if rows.size == 1 else f"{noun.capitalize()}s {named} are"
    return [f"{what} not certified. That does not mean wrong: nothing is proven either way."]


def coarse(noun: str, learned: Learned) -> list[str]:
    """A note where certified components may yet be far off."""
    count = int(np.sum(learned.uncertainty[is_certified(learned.certificates)] > COARSE))
    if not count:
        return []
    return [
        f"{counted(count, f'certified {noun}')} may lie more than {np.degrees(np.arcsin(COARSE)):.0f} degrees from the "
        "truth: certificates are about whitened coordinates, uncertainties about those of the features. Take more "
        "samples, or bring the features to one scale."
    ]


def _assumed(learned: Learned) -> str:
    """What the certificates rest on; where there are none, what they would."""
    pairs = zip(learned.bases, learned.doubts, strict=True)
    bases = dict.fromkeys(basis for basis, doubt in pairs if doubt is None)
    return ", or ".join(basis.value for basis in bases or Basis)


def _words(value: Any) -> str:
    """A setting as it is written; of anything but numbers and words, what it is: not where in memory it lies."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float):
        return str(value)
    shape = value.shape if hasattr(value, "shape") else np.shape(value)
    return f"given, of shape {tuple(shape)}" if shape else f"given, a {type(value).__name__}"


def _numbers(values: np.ndarray, form: str) -> list[str]:
    return [format(x, form) for x in values.tolist()]


def _largest(row: np.ndarray, names: Sequence[str] | None) -> str:
    """The largest entries of a component, with the features they belong to."""
    features = np.argsort(-np.abs(row), kind="stable")[:LARGEST]
    return ", ".join(f"{row[i]:+.2f} {names[i] if names else f'feature {i}'}" for i in features.tolist())
