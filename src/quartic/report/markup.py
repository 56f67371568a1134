"""HTML by function calls: whatever is not HTML already is escaped."""

from __future__ import annotations

import html
import unicodedata

VOID = ("meta", "img")  # elements that have no end


class Html(str):
    """A piece of HTML, not to be escaped again."""


def tag(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """An element; ``class_`` and ``aria_label`` are written as ``class`` and ``aria-label``.

    >>> tag("p", "1 < 2, ", tag("b", "surely"), class_="note")
    '<p class="note">1 &lt; 2, <b>surely</b></p>'
    """
    start = name
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        start += f' {key}="{escaped(str(value))}"' if value is not True else f" {key}"
    return Html(f"<{start}>" if name in VOID else f"<{start}>{joined(*content)}</{name}>")


def joined(*content: str) -> Html:
    """Pieces of HTML, and text that is escaped."""
    return Html("".join(piece if isinstance(piece, Html) else escaped(piece) for piece in content))


def escaped(text: str) -> str:
    r"""Text as HTML; control characters and halves of characters, which no page may hold, as ``\x..``."""
    plain = "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") else ascii(c)[1:-1] for c in text)
    return html.escape(plain)
