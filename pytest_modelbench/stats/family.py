"""A family of comparisons: Holm's adjustment, what a pair comes to, and ranks as intervals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple


class Decision(StrEnum):
    """Name what a comparison of A and B comes to, in the words that a report prints."""

    A_BETTER = "A better"
    B_BETTER = "B better"
    UNDECIDED = "no detectable difference at these cases"
    AGREE = "the two agree on every case"


class RankInterval(NamedTuple):
    """Hold the best and the worst rank that the comparisons leave open; 1 is the best."""

    best: int
    worst: int


def holm(p_values: Sequence[float], comparisons: int | None = None) -> list[float]:
    """Adjust p-values of one declared family, in their own order (Holm, 1979).

    ``comparisons`` is the size of the declared family where it is larger than what is given
    (comparisons that are pending still count, as do those without a disagreement, whose p is 1).
    Valid under any dependence.
    """
    count = len(p_values) if comparisons is None else comparisons
    if count < len(p_values):
        raise ValueError(f"{len(p_values)} p-values in a family of {count} comparisons")
    for p in p_values:
        if not 0 <= p <= 1:  # not a number fails this too
            raise ValueError(f"{p!r} is not a p-value")
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(p_values[position] * (count - rank), 1.0))
        adjusted[position] = running
    return adjusted


def decide(adjusted_p: float, net: int, disagreements: int, alpha: float = 0.05) -> Decision:
    """Decide a comparison by its adjusted p, unrounded, and the sign of the sum A minus B."""
    if disagreements == 0:
        return Decision.AGREE
    if adjusted_p >= alpha or net == 0:
        return Decision.UNDECIDED
    return Decision.A_BETTER if net > 0 else Decision.B_BETTER


def min_disagreements(comparisons: int = 1, alpha: float = 0.05) -> int:
    """Return the least number of disagreements whose clean sweep is decided.

    With all D cases in favour of one candidate p is 2^(1 - D), and Holm's first step multiplies
    it by the number of comparisons. Below this number nothing can be decided, however one-sided.
    """
    if comparisons < 1 or not 0 < alpha < 1:
        raise ValueError(f"no family of {comparisons} comparisons at a level of {alpha!r}")
    # Below alpha, as `decide` asks; the float as it is written, so that 0.05 is 1/20.
    bound = Fraction(comparisons) / Fraction(repr(float(alpha)))
    return 1 + math.floor(bound).bit_length()


def rank_intervals(names: Sequence[str], better: Collection[tuple[str, str]]) -> list[RankInterval]:
    """Return each candidate's ranks: 1 + the number better than it, to k - the number worse.

    ``better`` holds the decided pairs, the better candidate first. "Better" is not transitive, and
    overlapping intervals of single candidates say nothing about a pair.
    """
    unknown = {name for pair in better for name in pair} - set(names)
    if unknown:
        raise ValueError(f"decided pairs name candidates that are not ranked: {sorted(unknown)}")
    pairs = set(better)
    above = {name: sum(loser == name for _, loser in pairs) for name in names}
    below = {name: sum(winner == name for winner, _ in pairs) for name in names}
    return [RankInterval(1 + above[name], len(names) - below[name]) for name in names]
