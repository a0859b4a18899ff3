"""Names short enough for a table, and still each its own."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_modelbench.report.escape import escape, shorten


def shown_names(
    names: Sequence[str], width: int, *, utf8: bool = True
) -> tuple[dict[str, str], dict[str, str]]:
    """Return how each name is shown, and the legend of those that were shortened.

    Where leaving out the middle would make two names alike, a number tells them apart. The
    legend, shown form to name, is in the order of ``names``.
    """
    shown: dict[str, str] = {}
    taken: set[str] = {escape(name, utf8=utf8) for name in names}
    legend: dict[str, str] = {}
    for name in names:
        whole = escape(name, utf8=utf8)
        if len(whole) <= width:
            shown[name] = whole
            continue
        short = shorten(name, width, utf8=utf8)
        number = 2
        while short in taken:
            tail = f"#{number}"
            short = shorten(name, width - len(tail), utf8=utf8) + tail
            number += 1
        taken.add(short)
        shown[name] = short
        legend[short] = name
    return shown, legend
