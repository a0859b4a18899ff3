"""Intervals for one proportion: a pass rate with one attempt per case.

Every function takes counts and returns an :class:`Interval`, or None where there is nothing to
estimate (no cases). Ends are exactly 0 and 1 where they should be.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple


class Interval(NamedTuple):
    """Hold two ends and the name of the method that gave them, as a report prints it."""

    low: float
    high: float
    method: str


def wilson(passes: int, cases: int, conf: float = 0.95) -> Interval | None:
    """Return Wilson's score interval of a pass rate (Wilson, 1927); None without cases."""
    _check_counts(passes, cases)
    label = f"{confidence_label(conf)} Wilson"
    if cases == 0:
        return None
    low, high = score_ends(passes / cases, cases, normal_quantile(conf))
    return Interval(low, high, label)


def jeffreys(passes: int, cases: int, conf: float = 0.95) -> Interval | None:
    """Return Jeffreys' interval, with low end 0 at no passes and high end 1 at all passes.

    The ends are those of Brown, Cai and DasGupta (2001); their further "modified" interval, which
    also changes one pass and one failure, is another one.
    """
    raw = jeffreys_raw(passes, cases, conf)
    if raw is None:
        return None
    return Interval(
        0.0 if passes == 0 else raw.low,
        1.0 if passes == cases else raw.high,
        f"{confidence_label(conf)} Jeffreys",
    )


def jeffreys_raw(passes: int, cases: int, conf: float = 0.95) -> Interval | None:
    """Return the equal-tailed quantiles of the posterior under the prior Beta(1/2, 1/2)."""
    _check_counts(passes, cases)
    label = f"{confidence_label(conf)} Jeffreys, raw quantiles"
    if cases == 0:
        return None
    from scipy.special import betaincinv

    tail = (1 - conf) / 2
    shape_passes, shape_failures = passes + 0.5, cases - passes + 0.5
    # The high end as the mirror image of a low end keeps the symmetry of passes and failures.
    low = float(betaincinv(shape_passes, shape_failures, tail))
    high = 1 - float(betaincinv(shape_failures, shape_passes, tail))
    return Interval(low, high, label)


def clopper_pearson(passes: int, cases: int, conf: float = 0.95) -> Interval | None:
    """Return the exact interval of Clopper and Pearson (1934), the dual of an exact test."""
    _check_counts(passes, cases)
    label = f"{confidence_label(conf)} Clopper-Pearson"
    if cases == 0:
        return None
    from scipy.special import betaincinv

    tail = (1 - conf) / 2
    failures = cases - passes
    low = 0.0 if passes == 0 else float(betaincinv(passes, failures + 1, tail))
    high = 1.0 if failures == 0 else 1 - float(betaincinv(failures, passes + 1, tail))
    return Interval(low, high, label)


def score_ends(mean: float, size: float, quantile: float) -> tuple[float, float]:
    """Solve Wilson's formula at a mean in [0, 1] and a size that need not be a whole number."""
    if not 0 <= mean <= 1:
        raise ValueError(f"a mean of {mean!r} is not within 0 and 1")
    square = quantile * quantile / size
    centre = (mean + square / 2) / (1 + square)
    spread = mean * (1 - mean) / size + square / (4 * size)
    half = quantile / (1 + square) * math.sqrt(spread)
    low = 0.0 if mean == 0 else max(centre - half, 0.0)
    high = 1.0 if mean == 1 else min(centre + half, 1.0)
    return low, high


@lru_cache(maxsize=64)
def normal_quantile(conf: float) -> float:
    """Return the two-sided standard normal quantile, 1.96 for a confidence of 0.95."""
    check_confidence(conf)
    return -NormalDist().inv_cdf((1 - conf) / 2)


@lru_cache(maxsize=256)
def student_quantile(conf: float, freedom: int) -> float:
    """Return the two-sided quantile of Student's t with whole degrees of freedom.

    Newton's method on the closed form of the chance within it. scipy has this, too: see
    docs/design/replays.md for why a run's end does not import it.
    """
    check_confidence(conf)
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom are too few")
    # The normal quantile is below, and the chance is concave in the angle: each step stays below.
    angle = math.atan(normal_quantile(conf) / math.sqrt(freedom))
    slope = 2 * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / _ROOT_PI
    for _ in range(_STEPS):
        step = (conf - _chance_within(angle, freedom)) / (slope * math.cos(angle) ** (freedom - 1))
        angle += step
        if abs(step) <= _ULP * angle:
            break
    return math.sqrt(freedom) * math.tan(angle)


_ROOT_PI = math.sqrt(math.pi)
_ULP = 2**-52
_STEPS = 50


def _chance_within(angle: float, freedom: int) -> float:
    """Return the chance that abs(T) is at most ``sqrt(freedom) tan(angle)``.

    The finite sums of Abramowitz and Stegun (1964), 26.7.3 and 26.7.4.
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def check_confidence(conf: float) -> None:
    """Raise ValueError unless a confidence level is strictly between 0 and 1."""
    if not 0 < conf < 1:
        raise ValueError(f"a confidence level of {conf!r} is not between 0 and 1 (0.95 is usual)")


def confidence_label(conf: float) -> str:
    """Name a confidence level: "95%" for 0.95, "97.5%" for 0.975."""
    check_confidence(conf)
    return f"{conf * 100:.10g}%"


def _check_counts(passes: int, cases: int) -> None:
    if not 0 <= passes <= cases:
        raise ValueError(f"{passes} passes of {cases} cases is not a proportion")
