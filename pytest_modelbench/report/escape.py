"""Show text that a candidate, a server or a case wrote so that it can do nothing to a terminal.

Control characters, bidirectional overrides and invisible ones become visible marks; a terminal
escape is harmless text once its first character is a mark.
"""

from __future__ import annotations

import unicodedata


def escape(text: str, *, utf8: bool = True) -> str:
    r"""Return one line in which every character is visible and moves nothing.

    Without ``utf8`` the line is ASCII, other characters written as ``\u2026``.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = "".join(_mark(character, utf8) for character in text)
    return shown if utf8 else shown.encode("ascii", "backslashreplace").decode("ascii")


def escape_markdown(text: str) -> str:
    """Return ``escape``'s line, safe within a cell of a Markdown table.

    No pipe ends the cell, no HTML is built, no link, emphasis or mention is made.
    """
    line = escape(text)
    for character in "\\`*_[]|~#@!":
        line = line.replace(character, f"\\{character}")
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(text: str, width: int, *, utf8: bool = True) -> str:
    """Return an escaped line of at most ``width`` characters, its middle left out if need be."""
    line = escape(text, utf8=utf8)
    if len(line) <= width:
        return line
    gap = "…" if utf8 else ".."
    kept = max(width - len(gap), 0)
    return line[: kept - kept // 2] + gap + (line[-(kept // 2) :] if kept > 1 else "")


def _mark(character: str, utf8: bool) -> str:
    code = ord(character)
    if utf8 and code < 0x20:
        return chr(0x2400 + code)  # the control pictures: ␀ ␉ ␊ ␛
    if utf8 and code == 0x7F:
        return "␡"
    category = unicodedata.category(character)
    if category[0] == "C" or category in ("Zl", "Zp"):
        return f"<U+{code:04X}>"
    # A space that is not the space, and marks that would sit on what stands before them.
    if (category == "Zs" and character != " ") or category in ("Mn", "Me"):
        return f"<U+{code:04X}>"
    return character
