"""The cost frontier: candidates that none other beats in both price and pass rate.

A place on it can be noise. A candidate is only worth more than a cheaper one where a pair says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_modelbench.report.pairs import Pair
from pytest_modelbench.report.rows import Row


class FrontierPoint(NamedTuple):
    """``usd`` is the list price of an attempt.

    ``alike`` names the cheapest candidate that it costs more than, and is not decided to be better
    than; empty where there is none. ``compared``: whether a pair of this report is of these two.
    """

    candidate: str
    usd: float
    rate: float
    alike: str
    compared: bool

    @property
    def relation(self) -> str:
        """Say how it stands to ``alike``."""
        return "not told apart from" if self.compared else "not compared with"


def cost_frontier(rows: Sequence[Row], pairs: Sequence[Pair]) -> tuple[FrontierPoint, ...]:
    """Return the candidates that are not dominated, cheapest first; those of unknown price not."""
    priced = sorted(
        (row.cost_per_attempt, -row.rate, row.candidate)
        for row in rows
        if row.cost_per_attempt is not None and row.rate is not None
    )
    better = {(pair.better, pair.b if pair.better == pair.a else pair.a) for pair in pairs}
    compared = {frozenset((pair.a, pair.b)) for pair in pairs}
    found: list[FrontierPoint] = []
    for usd, negative, name in priced:
        rate = -negative
        if found and rate <= found[-1].rate and (usd, rate) != (found[-1].usd, found[-1].rate):
            continue
        alike = next(
            (other for paid, _, other in priced if paid < usd and (name, other) not in better), ""
        )
        found.append(FrontierPoint(name, usd, rate, alike, {name, alike} in compared))
    return tuple(found)
