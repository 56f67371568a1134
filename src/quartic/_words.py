"""Words for people: numbers with nouns, and warnings that point to the line of the caller."""

from __future__ import annotations

import re
import sys
import warnings

OURS = ("quartic", "sklearn")  # what lies between the caller and us: estimators are called through scikit-learn


def counted(count: int, noun: str) -> str:
    """So many, in the singular or the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def called(text: str, noun: str) -> str:
    """What is said of atoms, where they are called otherwise."""
    text = re.sub(r"\batom(?=s?\b)", noun, text)
    return re.sub(r"\bAtom(?=s?\b)", noun.capitalize(), text)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, from the first line outside of this library and scikit-learn."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] in OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
