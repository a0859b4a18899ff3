"""Intervals for the difference of two candidates on the same cases, A minus B.

Differences are shares between -1 and 1; a report prints them as points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pytest_modelbench.stats.paired import case_differences, pair_counts
from pytest_modelbench.stats.proportion import Interval, confidence_label, normal_quantile
from pytest_modelbench.stats.repeats import CaseScores, case_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Difference(NamedTuple):
    """Hold a difference of two means over the same cases, with its interval."""

    value: float
    interval: Interval


def paired_difference(a: CaseScores, b: CaseScores, conf: float = 0.95) -> Difference | None:
    """Return the difference of two candidates; None without cases.

    Newcombe's method 10 where every score is 0 or 1, so that a copy of the same attempts changes
    nothing; else MOVER on the two case score intervals.
    """
    differences = case_differences(a, b)
    if not differences:
        return None
    common = math.lcm(a.denominator, b.denominator)
    value = sum(differences) / (common * len(differences))
    if a.binary and b.binary:
        counts = pair_counts(differences)
        b_passes = sum(numerator != 0 for numerator in b.numerators)
        both = b_passes - counts.b_more
        neither = counts.alike - both
        interval = newcombe_paired(both, counts.a_more, counts.b_more, neither, conf)
    else:
        interval = _mover(a, b, conf)
    assert interval is not None  # for mypy: there are cases
    return Difference(value, interval)


def newcombe_paired(
    both: int, a_only: int, b_only: int, neither: int, conf: float = 0.95
) -> Interval | None:
    """Return Newcombe's interval of a paired difference, his method 10 (Newcombe, 1998).

    The arguments count the cases that both passed, only A, only B, and neither. None without
    cases.
    """
    if min(both, a_only, b_only, neither) < 0:
        raise ValueError(f"{both}, {a_only}, {b_only}, {neither} are not four counts of cases")
    method = f"{confidence_label(conf)} Newcombe 10"
    if both + a_only + b_only + neither == 0:
        return None
    import numpy as np

    counts = np.array([both, a_only, b_only, neither], dtype=np.float64).reshape(4, 1)
    low, high = newcombe_ends(counts[0], counts[1], counts[2], counts[3], normal_quantile(conf))
    return Interval(float(low[0]), float(high[0]), method)


def newcombe_ends(
    both: NDArray[np.float64],
    a_only: NDArray[np.float64],
    b_only: NDArray[np.float64],
    neither: NDArray[np.float64],
    quantile: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve Newcombe's method 10 for many tables of counts at once."""
    import numpy as np

    cases = both + a_only + b_only + neither
    a_passes, b_passes = both + a_only, both + b_only
    excess = both * neither - a_only * b_only
    excess = np.where(excess > 0, np.maximum(excess - cases / 2, 0), excess)
    margins = a_passes * (cases - a_passes) * b_passes * (cases - b_passes)
    phi = np.where(margins > 0, excess / np.sqrt(np.where(margins > 0, margins, 1)), 0.0)

    square = quantile * quantile
    ends = []
    for passes in (a_passes, b_passes):
        centre = (passes + square / 2) / (cases + square)
        root = np.sqrt(passes * (cases - passes) / cases + square / 4)
        half = quantile / (cases + square) * root
        low = np.where(passes == 0, 0, np.maximum(centre - half, 0))
        high = np.where(passes == cases, 1, np.minimum(centre + half, 1))
        ends.append((passes / cases - low, high - passes / cases))
    (a_below, a_above), (b_below, b_above) = ends
    value = (a_only - b_only) / cases
    below = np.sqrt(_squared_half(a_below, b_above, phi))
    above = np.sqrt(_squared_half(a_above, b_below, phi))
    return value - below, value + above


def tango_paired(
    both: int, a_only: int, b_only: int, neither: int, conf: float = 0.95
) -> Interval | None:
    """Return Tango's score interval of a paired difference (Tango, 1998).

    The one to ask for where a margin must be tested at a strict size; it does with no
    disagreement at all. None without cases.
    """
    if min(both, a_only, b_only, neither) < 0:
        raise ValueError(f"{both}, {a_only}, {b_only}, {neither} are not four counts of cases")
    cases = both + a_only + b_only + neither
    method = f"{confidence_label(conf)} Tango"
    if cases == 0:
        return None
    quantile = normal_quantile(conf)
    # The low end for B minus A is the high end for A minus B.
    low = _tango_low(a_only, b_only, cases, quantile)
    high = -_tango_low(b_only, a_only, cases, quantile)
    return Interval(low, high, method)


def _tango_low(a_only: int, b_only: int, cases: int, quantile: float) -> float:
    """Find the difference below the observed one whose score statistic is the quantile."""
    from scipy.optimize import brentq

    def excess(assumed: float) -> float:
        linear = -a_only - b_only + (2 * cases - a_only + b_only) * assumed
        constant = -b_only * assumed * (1 - assumed)
        root = math.sqrt(max(linear * linear - 8 * cases * constant, 0.0))
        # One root of a quadratic, written in the way that takes no difference of near equals.
        stable = linear > 0
        nuisance = -2 * constant / (root + linear) if stable else (root - linear) / (4 * cases)
        variance = cases * max(2 * nuisance + assumed * (1 - assumed), 0.0)
        return a_only - b_only - cases * assumed - quantile * math.sqrt(variance)

    observed = (a_only - b_only) / cases
    if observed == -1 or excess(-1.0) <= 0:
        return -1.0
    # Without a variance at the observed difference it is a second root, and not the one wanted.
    nearest = observed if excess(observed) < 0 else observed - 1e-9
    return float(brentq(excess, -1.0, nearest, xtol=1e-15, rtol=1e-14, maxiter=500))


def _mover(a: CaseScores, b: CaseScores, conf: float) -> Interval | None:
    """Combine two case score intervals with the plain correlation of the scores.

    The method of variance estimates recovery (Zou and Donner, 2008), Newcombe's formula without
    its correction for counts.
    """
    a_score, b_score = case_score(a, conf), case_score(b, conf)
    if a_score is None or b_score is None:
        return None
    correlation = 0.0
    if a.variance > 0 and b.variance > 0:
        correlation = _correlation(a.numerators, b.numerators)
    a_low, a_high, _ = a_score.interval
    b_low, b_high, _ = b_score.interval
    a_below, a_above = a_score.mean - a_low, a_high - a_score.mean
    b_below, b_above = b_score.mean - b_low, b_high - b_score.mean
    value = a_score.mean - b_score.mean
    low = value - math.sqrt(_squared_half(a_below, b_above, correlation))
    high = value + math.sqrt(_squared_half(a_above, b_below, correlation))
    method = f"{confidence_label(conf)} MOVER on case scores"
    return Interval(max(low, -1.0), min(high, 1.0), method)


def _correlation(a: Sequence[int], b: Sequence[int]) -> float:
    """Return Pearson's correlation: exact integers until the last division."""
    cases, a_sum, b_sum = len(a), sum(a), sum(b)
    together = cases * sum([x * y for x, y in zip(a, b, strict=True)]) - a_sum * b_sum
    a_spread = cases * sum([x * x for x in a]) - a_sum * a_sum
    b_spread = cases * sum([y * y for y in b]) - b_sum * b_sum
    return min(max(together / math.sqrt(a_spread * b_spread), -1.0), 1.0)


_Number = TypeVar("_Number", "float", "NDArray[np.float64]")


def _squared_half(own: _Number, other: _Number, correlation: _Number) -> _Number:
    """Add two half widths under a correlation; never below 0 by rounding."""
    squared = own * own + other * other - 2 * correlation * own * other
    return (squared + abs(squared)) / 2
