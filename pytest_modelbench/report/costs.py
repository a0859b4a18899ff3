"""What agent programs say that they cost, beside the list price of the tokens they used (FR04)."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_modelbench.report.numbers import dollars
from pytest_modelbench.store.entry import Spent

FACTOR = 2.0
"""A reported cost that is further from the list price than this factor is told as odd."""


def summed(
    attempts: Iterable[tuple[str, Spent | None]],
) -> dict[str, tuple[float, float]]:
    """Return (list price, reported cost) by candidate, summed where an attempt knows both.

    ``attempts`` are candidates with what they spent.
    """
    found: dict[str, tuple[float, float]] = {}
    for candidate, spent in attempts:
        if spent is None:
            continue
        listed, reported = spent.list_usd, spent.reported_usd
        if listed is not None and reported is not None:
            before = found.get(candidate, (0.0, 0.0))
            found[candidate] = (before[0] + listed, before[1] + reported)
    return found


def oddity(listed: float | None, reported: float | None) -> str:
    """Say how far a reported cost is from the list price; '' within ``FACTOR``, or unknown."""
    if listed is None or reported is None or listed == reported:
        return ""
    low, high = sorted((listed, reported))
    times = high / low if low > 0 else math.inf
    if times <= FACTOR:
        return ""
    way = "more" if reported > listed else "less"
    by = f"{times:,.3g} times {way}" if math.isfinite(times) else f"far {way}"
    return (
        f"it reports {dollars(reported)}, {by} than the {dollars(listed)} that its tokens come to "
        "at list price"
    )
