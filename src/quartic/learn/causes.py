"""Why a fit certifies what it certifies: one enum of causes, each with what happened and what to do.

What is known comes from the proof (why each atom is not certified) and from the evidence (which rows are independent,
what features have lost).  What concerns the rows or the features is said in any case; of the reasons of atoms the one
that is met most often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from quartic._words import counted
from quartic.algorithms.assume import CHANGED, drift, skewness
from quartic.algorithms.certify import is_certified
from quartic.certify.doubts import Doubt, Reason
from quartic.evidence.lost import TENTH, Loss
from quartic.evidence.parts import FEW, Evidence
from quartic.evidence.units import Kind
from quartic.result import Status

MORE = "quartic check, or diagnose, says more."
NAMED = 8  # features and atoms that are named
MANY = 2.0  # times as many rows: a figure that more would still not settle is not for want of rows; by definition
AGAIN = 0.9  # squared correlation with what a half gives alone: the atom returns; see docs/samples.md for what it tells
SKEWED, SURELY = 0.5, 5.0  # skewness that matters, and standard errors
SEEN = 1e-3  # of a signal's variance: less that is lost is not worth a word; arbitrary


class Cause(Enum):
    """Why atoms are not certified, or what their certificates rest on.

    A code, a title, what happened, and what to do.
    """

    TRANSPOSED = (
        "transposed",
        "The samples may be in columns",
        "There are fewer rows than columns ({rows} and {features}).",
        "Are the samples in columns? Then transpose them, with .T in NumPy or pandas.",
    )
    SERIAL = (
        "serial",
        "Rows depend on each other",
        "Rows depend on the rows before them: {units}.",
        "Record for longer, take differences of slow signals, or name the rows that belong together with groups=. "
        "If the order of rows means nothing, and they are not sorted, say rows='exchangeable'.",
    )
    GROUPS = (
        "few-groups",
        "Too few groups of rows",
        "There are {units}.",
        "Take more groups: subjects, sessions or images.",
    )
    CHANGES = (
        "not-stationary",
        "Rows change on the way",
        "Stretches of rows differ by {score:.0f} standard deviations; no more than {chance:.0f} may be chance.",
        "Learn from each stretch by itself, or subtract what drifts.",
    )
    DIRECTIONS = (
        "condition",
        "Some features are sums of others",
        "Features vary in {dim} directions only, of {features}, as far as digits tell.",
        "Leave out features that are constant, copies, or sums of others; or store more digits.",
    )
    REPEATED_ROWS = (
        "repeated-rows",
        "Rows are repeated",
        "Rows are there {copies:.3g} times each, on average: copies count once.",
        "Leave the copies out.",
    )
    ROUNDED = (
        "rounded",
        "Too few digits",
        "{features} few digits: up to {share:.2%} of the variance of a signal is rounding, {needed:.0%} is allowed.",
        "Store more digits. Of large values subtract the mean before you store them.",
    )
    FILLED = (
        "filled",
        "Missing values were filled in",
        "{features} one value, the mean or the median, in place of missing ones: up to {share:.2%} of the variance of "
        "a signal is lost, {needed:.0%} is allowed.",
        "Leave out the rows, or the features, in which values are missing.",
    )
    CLIPPED = (
        "clipped",
        "Values are cut off",
        "{features} values cut off at an end of the range: about {share:.2%} of the variance of a signal is lost, "
        "{needed:.0%} is allowed.",
        "Record with a larger range, or leave out the rows at the limit.",
    )
    SQUASHED = (
        "squashed",
        "Values are squeezed",
        "{features} values squeezed against both ends of the range, as by a sigmoid: they are no sums of sources.",
        "Use the values from before they were squeezed, or undo it.",
    )
    GROSS = (
        "gross-sensor",
        "One feature has spikes",
        "Feature {feature} has spikes far larger than all others.",
        "Look at that sensor: leave it out, or the rows with spikes.",
    )
    NO_SAMPLES = (
        "no-samples",
        "No samples to prove anything with",
        "The moments come from a file without samples to prove anything with.",
        "Accumulate the moments again with this version.",
    )
    FEW_ROWS = (
        "few-samples",
        "Too few rows",
        "There are too few rows: {rows}; about {wanted} would do for {atoms}.",
        "Collect about {wanted} rows, or ask for fewer components.",
    )
    NO_STRUCTURE = (
        "no-structure",
        "No direction stands out",
        "No direction stands out: {count} of {atoms} may be Gaussian noise.",
        "Denoise or filter, look at increments or other features, or take far more samples.",
    )
    GAUSSIAN = (
        "gaussian",
        "Gaussian directions",
        "Gaussian noise would look the same as {atoms}.",
        "Ask for {others}. No method tells Gaussian directions apart.",
    )
    NO_AXES = (
        "no-axes",
        "Planes without axes",
        "In some planes the samples look the same in all directions: those of {atoms}.",
        "Take each plane as a whole: it has no axes.",
    )
    SKEWED = (
        "skewed",
        "Skewed sources that depend on each other",
        "Skewed signals that depend on each other are not told apart by their signs: those of {atoms}.",
        "Take differences of rows that are independent of each other.",
    )
    TWO_READINGS = (
        "two-readings",
        "Two readings",
        "Other axes explain the samples as well: there are two readings of {atoms}.",
        "Take the group as a whole. Rows in which few of its atoms are active would decide; more of them may.",
    )
    MORE_THAN_DIMENSIONS = (
        "more-than-dimensions",
        "More atoms than are certified",
        "As many atoms are certified as there are dimensions.",
        "The data may have no more: ask for {others}, or for no number.",
    )
    NOT_PROVEN = (
        "not-proven",
        "Found, but not everything is proven",
        "Not proven: {atoms}; {again} of these {return_} in both halves of the samples.",
        "More rows may prove them. Compare them with those of another recording.",
    )

    @property
    def code(self) -> str:
        """In a word."""
        return str(self.value[0])

    @property
    def title(self) -> str:
        """For a reader in a hurry."""
        return str(self.value[1])


OF_FEATURES = {
    Loss.ROUNDED: Cause.ROUNDED, Loss.FILLED: Cause.FILLED, Loss.CLIPPED: Cause.CLIPPED, Loss.SQUASHED: Cause.SQUASHED,
}  # fmt: skip
PLAIN = {
    Reason.NO_SAMPLES: Cause.NO_SAMPLES, Reason.FEW_SAMPLES: Cause.FEW_ROWS, Reason.ALIKE: Cause.NO_AXES,
    Reason.RIVAL: Cause.TWO_READINGS, Reason.GROUP: Cause.TWO_READINGS, Reason.CONTRADICTED: Cause.TWO_READINGS,
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A cause with its figures; ``grave`` where it alone keeps atoms from being certified."""

    cause: Cause
    happened: str
    remedy: str
    grave: bool = False


def status_of(
    U: np.ndarray,
    certificates: np.ndarray,
    doubts: Sequence[Doubt | None],
    stability: np.ndarray,
    evidence: Evidence,
    *,
    rows: int,
    features: int,
    dim: int,
    trimmed: int,
) -> Status:
    """What happened to atoms ``U (n, r)``, in whitened coordinates and in the order of the result.

    ``dim`` is the number of directions that vary beyond rounding.
    """
    n, certified = certificates.shape[0], int(np.sum(is_certified(certificates)))
    about = of_rows(evidence, rows, features) + of_features(evidence, U)
    if dim < min(features, rows - 1):
        about.append(say(Cause.DIRECTIONS, dim=dim, features=features))
    found = f"{counted(n, 'atom')} found and certified." if certified == n else f"{certified} of {n} atoms certified."
    if 2 * certified < n and evidence.units.enough:
        again = int(np.sum(stability > AGAIN))
        found += f" {again} of {n} return in both halves of the samples."
    # Where neighbours depend on each other, stretches differ in any case.
    if certified < n and evidence.units.alone and (score := drift(evidence.in_order)) > CHANGED[1]:
        about.append(say(Cause.CHANGES, grave=True, score=score, chance=CHANGED[1]))
    why = [] if certified == n else of_atoms(U, certificates, doubts, stability, evidence, rows)
    if trimmed:
        were = "was" if trimmed == 1 else "were"
        found += f" {counted(trimmed, 'sample')} {were} left out, far longer than all others."
    said = list({one.cause: one for one in [*about, *why]}.values())
    message = " ".join([found, *(one.happened for one in said)])
    if certified == n:
        return Status("complete", message, "", tuple(one.cause.code for one in said))
    # What concerns all rows comes first where nothing is certified.
    of_all = (Cause.TRANSPOSED, Cause.GROSS)
    grave = [one for one in about if one.grave or (certified == 0 and one.cause in of_all)]
    main = next(iter([*grave, *why, *about]))
    return Status(main.cause.code, message, f"{main.remedy} {MORE}", tuple(one.cause.code for one in said))


def say(cause: Cause, *, grave: bool = False, **figures: object) -> Said:
    """With its figures."""
    _, _, happened, remedy = cause.value
    return Said(cause, happened.format(**figures), remedy.format(**figures), grave)


def of_rows(evidence: Evidence, rows: int, features: int) -> list[Said]:
    """What is known of the rows."""
    said, units = [], evidence.units
    if rows < features:
        said.append(say(Cause.TRANSPOSED, rows=rows, features=features))
    if units.kind is Kind.STRETCHES:
        rest = f"independent parts are {units}" if units.enough else f"there are {units}"
        said.append(say(Cause.SERIAL, grave=not units.enough, units=rest))
    if units.kind is Kind.GROUPS and not units.enough:
        said.append(say(Cause.GROUPS, grave=True, units=units))
    if evidence.copies > 1:
        said.append(say(Cause.REPEATED_ROWS, copies=evidence.copies))
    return said


def of_features(evidence: Evidence, U: np.ndarray) -> list[Said]:
    """What is known of the features."""
    lost, said = evidence.lost, []
    shares = lost.of_signals(U) if evidence.dim else np.zeros(0)
    share = float(np.max(shares, initial=0.0))
    if share > SEEN:
        kinds = Counter(kind for kind, part in zip(lost.kinds, lost.shares, strict=True) if kind and part > 0)
        kind = lost.kinds[lost.worst(U[int(np.argmax(shares))])] or max(kinds, key=kinds.__getitem__)
        places = [f for f, one in enumerate(lost.kinds) if one is kind]
        named = ", ".join(map(str, places[:NAMED])) + (", ..." if len(places) > NAMED else "")
        which = f"All {len(places)} features have" if len(places) == len(lost.kinds) > 1 else (
            f"Feature {named} has" if len(places) == 1 else f"Features {named} have")  # fmt: skip
        said.append(say(OF_FEATURES[kind], grave=share > TENTH, features=which, share=min(share, 1.0), needed=TENTH))
    if lost.gross is not None:
        said.append(say(Cause.GROSS, feature=lost.gross))
    return said


def of_atoms(
    U: np.ndarray,
    certificates: np.ndarray,
    doubts: Sequence[Doubt | None],
    stability: np.ndarray,
    evidence: Evidence,
    rows: int,
) -> list[Said]:
    """Why atoms are not certified, the reason that is met most often first."""
    n, r = U.shape[0], evidence.dim
    certified = int(np.sum(is_certified(certificates)))
    if certified == r < n:
        return [say(Cause.MORE_THAN_DIMENSIONS, others=certified)]
    skewed = _skewed(U, evidence)
    atoms: dict[Cause, list[int]] = {}
    for i, doubt in enumerate(doubts):
        cause = None if doubt is None else cause_of(doubt, skewed=bool(skewed[i]))
        if cause is not None:
            atoms.setdefault(cause, []).append(i)
    said = []
    for cause, places in sorted(atoms.items(), key=lambda item: -len(item[1])):
        figures: dict[str, Any] = {"atoms": _named(places)}
        if cause is Cause.FEW_ROWS:
            factors = [doubt.times_as_many for doubt in (doubts[i] for i in places) if doubt is not None]
            finite = [factor for factor in factors if factor <= MANY]
            wanted = rows * float(np.median(finite)) if finite else max(2 * FEW * r, rows) * 2
            figures |= {"rows": f"{rows:,}", "wanted": f"{rounded(wanted):,}"}
            figures["atoms"] = _named(places) if len(places) == 1 else f"half of {_named(places)}"
        elif cause is Cause.GAUSSIAN and certified == 0 and 2 * len(places) > n:
            cause, figures = Cause.NO_STRUCTURE, {"count": len(places), "atoms": counted(n, "atom")}
        elif cause is Cause.GAUSSIAN:
            figures["others"] = counted(n - len(places), "component")
        elif cause is Cause.NOT_PROVEN:
            again = sum(bool(stability[i] > AGAIN) for i in places)
            figures |= {"again": again, "return_": "returns" if again == 1 else "return"}
        said.append(say(cause, **figures))
    return said


def cause_of(doubt: Doubt, *, skewed: bool) -> Cause | None:
    """What keeps one atom from being certified; none where that is said of all rows, or of the features, already."""
    if doubt.reason in (Reason.LOST, Reason.SERIAL):
        return None
    cause = PLAIN.get(doubt.reason)
    if cause is Cause.TWO_READINGS and skewed:
        return Cause.SKEWED
    if cause is not None:
        return cause
    if doubt.times_as_many <= MANY:
        return Cause.FEW_ROWS
    return Cause.GAUSSIAN if doubt.reason in (Reason.GAUSSIAN, Reason.NO_AXES) else Cause.NOT_PROVEN


def _skewed(U: np.ndarray, evidence: Evidence) -> np.ndarray:
    """Atoms ``(n,)`` whose signals are surely skewed; none of more than dimensions, which have no signals."""
    if not evidence.Z.shape[0] or U.shape[0] > evidence.dim:
        return np.zeros(U.shape[0], dtype=bool)
    S = evidence.Z @ U.T
    values, scores = skewness(S / np.sqrt(np.mean(S * S, axis=0)))
    return np.asarray((np.abs(values) > SKEWED) & (np.abs(scores) > SURELY))


def _named(places: Sequence[int]) -> str:
    """Some atoms by their places."""
    named = ", ".join(map(str, places[:NAMED])) + (", ..." if len(places) > NAMED else "")
    return f"atom {named}" if len(places) == 1 else f"atoms {named}"


def rounded(count: float) -> int:
    """To two digits."""
    return int(float(f"{count:.1e}"))
