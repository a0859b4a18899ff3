"""Columns of a table, and an interval drawn within one."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_modelbench.stats import Interval

LONGEST_BAR = 31
SHORTEST_BAR = 9


def scale(size: int) -> str:
    """Return the heading over bars of a size."""
    if size < 15:
        return "0" + "100".rjust(size - 1)
    return f"0%{'50%'.center(size - 6)}100%"


def bar(rate: float | None, interval: Interval | None, size: int, *, utf8: bool = True) -> str:
    """Return an interval with its rate, and a mark at one half, over so many characters."""
    if rate is None or interval is None:
        return " " * size
    left, line, point, right, middle = "├─●┤:" if utf8 else "|-o|:"
    cells = [" "] * size
    cells[size // 2] = middle
    low, high = (_place(end, size) for end in (interval.low, interval.high))
    cells[low : high + 1] = line * (high - low + 1)
    cells[low], cells[high] = left, right
    cells[_place(rate, size)] = point
    return "".join(cells)


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns two spaces apart, the first to the left.

    tabulate pads each heading by two more, and there is no room for that at 80 columns.
    """
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for row in (heads, *rows):
        first, *rest = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(cell.rjust(size) for cell, size in rest)]
        lines.append("  ".join(cells))
    return lines


def _place(share: float, size: int) -> int:
    return round(share * (size - 1))
