"""Cost per pass and time: ratios of means over cases, and order statistics.

Money and time are in whatever unit the caller has; results are in the same. An unknown price is
None and makes the result None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import NamedTuple

from pytest_modelbench.stats.proportion import (
    Interval,
    check_confidence,
    confidence_label,
    student_quantile,
)
from pytest_modelbench.stats.repeats import CaseScores, case_score_interval


class CostPerPass(NamedTuple):
    """Hold a cost per pass; without a pass ``value`` is None and ``at_least`` bounds it below.

    ``interval`` is None where the cases do not give one (fewer than two).
    """

    value: float | None
    interval: Interval | None
    at_least: float | None
    spent: float


class CostRatio(NamedTuple):
    """Hold the cost per pass of A over that of B, with its interval."""

    value: float
    interval: Interval


class TimeQuantile(NamedTuple):
    """Hold a quantile over cases; its interval is found when it is asked for, which few do.

    ``times`` are in ascending order. ``value_censored`` and ``high_censored`` say that the number
    (or the high end of what is shown) is only a lower bound: the time of an attempt that was
    stopped at its limit, as ``censored`` marks it.
    """

    value: float
    times: tuple[float, ...]
    share: float
    conf: float
    value_censored: bool = False
    censored: tuple[bool, ...] = ()

    @property
    def interval(self) -> Interval | None:
        """Return the interval by order statistics; None where the cases are too few for one."""
        ends = order_statistics(len(self.times), self.share, self.conf)
        if ends is None:
            return None
        method = f"{confidence_label(self.conf)} order statistics"
        return Interval(self.times[ends[0]], self.times[ends[1]], method)

    @property
    def range(self) -> tuple[float, float]:
        """Return the shortest and the longest."""
        return self.times[0], self.times[-1]

    @property
    def high_censored(self) -> bool:
        """Tell whether the high end of the interval, or else of the range, is a lower bound."""
        ends = order_statistics(len(self.times), self.share, self.conf)
        return bool(self.censored) and self.censored[-1 if ends is None else ends[1]]


def cost_per_pass(
    costs: Sequence[float | None],
    passes: Sequence[int],
    attempts: Sequence[int],
    conf: float = 0.95,
) -> CostPerPass | None:
    """Return total cost over total passes, one total of each per case, failed attempts included.

    The interval is log-delta over cases with Student's quantile. Without a pass, the cost of an
    attempt over the high end of the pass rate bounds it below. None where any cost is unknown or
    there is no case.
    """
    known = _known(costs)
    if known is None or not known:
        return None
    scores = CaseScores.of_passes(passes, attempts)
    if len(known) != len(scores):
        raise ValueError(f"{len(known)} costs for {len(scores)} cases")
    spent, passed = math.fsum(known), sum(passes)
    if passed == 0:
        rate = case_score_interval(scores, conf)
        assert rate is not None  # for mypy: there are cases
        return CostPerPass(None, None, spent / sum(attempts) / rate.high, spent)
    value = spent / passed
    influence = _log_ratio_influence(known, passes)
    if influence is None:
        return CostPerPass(value, None, None, spent)
    low, high = _log_ends(value, influence, conf)
    interval = Interval(low, high, f"{confidence_label(conf)} log-delta over cases")
    return CostPerPass(value, interval, None, spent)


def cost_ratio(
    a_costs: Sequence[float | None],
    a_passes: Sequence[int],
    b_costs: Sequence[float | None],
    b_passes: Sequence[int],
    conf: float = 0.95,
) -> CostRatio | None:
    """Return A's cost per pass over B's on the same cases, with the paired log-delta interval.

    None where any cost is unknown or nothing was spent, where either has no pass, and below two
    cases.
    """
    a_known, b_known = _known(a_costs), _known(b_costs)
    if a_known is None or b_known is None:
        return None
    a, b = _log_ratio_influence(a_known, a_passes), _log_ratio_influence(b_known, b_passes)
    if a is None or b is None:
        return None
    value = math.fsum(a_known) / sum(a_passes) / (math.fsum(b_known) / sum(b_passes))
    low, high = _log_ends(value, [x - y for x, y in zip(a, b, strict=True)], conf)
    return CostRatio(value, Interval(low, high, f"{confidence_label(conf)} paired log-delta"))


def time_quantile(
    times: Sequence[float],
    share: float = 0.5,
    conf: float = 0.95,
    *,
    censored: Sequence[bool] | None = None,
) -> TimeQuantile | None:
    """Return a quantile of one time per case with its interval by order statistics.

    0.5 is the median, 0.9 the p90. Distribution-free: the ends are observed times, and no interval
    exists below 6 cases for the median at 95%. ``censored`` marks times of attempts that were
    stopped at their limit, which count as at least that. None without cases.
    """
    if not 0 < share < 1:
        raise ValueError(f"a share of {share!r} is not between 0 and 1 (0.5 is the median)")
    check_confidence(conf)
    if not times:
        return None
    marks = [False] * len(times) if censored is None else censored
    # A stopped attempt was longer than a finished one of the same time.
    ordered = sorted(zip(times, marks, strict=True))
    if any(not (math.isfinite(time) and time >= 0) for time, _ in ordered):
        raise ValueError("a time is negative or not a number")
    values = tuple([time for time, _ in ordered])
    stopped = tuple([mark for _, mark in ordered])
    position = max(math.ceil(len(values) * share - 1e-9), 1) - 1
    value, value_stopped = values[position], stopped[position]
    if share == 0.5:
        value, value_stopped = median(values), stopped[len(values) // 2]
    return TimeQuantile(value, values, share, conf, value_stopped, stopped)


def time_ratio(
    a_times: Sequence[float], b_times: Sequence[float], conf: float = 0.95
) -> TimeQuantile | None:
    """Return the median over cases of A's time over B's, with its interval by order statistics.

    The median of the paired log ratios, as a factor. None without cases.
    """
    pairs = list(zip(a_times, b_times, strict=True))
    if any(a <= 0 or b <= 0 for a, b in pairs):
        raise ValueError("a ratio needs times above 0")
    logs = sorted(math.log(a / b) for a, b in pairs)
    if not logs:
        return None
    check_confidence(conf)
    return TimeQuantile(math.exp(median(logs)), tuple(map(math.exp, logs)), 0.5, conf)


@lru_cache(maxsize=256)
def order_statistics(cases: int, share: float, conf: float = 0.95) -> tuple[int, int] | None:
    """Return the positions, from 0 in ascending order, that bound a quantile; None if too few.

    The tails of Binomial(cases, share) beyond each are at most (1 - conf) / 2.
    """
    check_confidence(conf)
    import numpy as np
    from scipy.special import bdtr

    at_most = bdtr(np.arange(cases, dtype=np.float64), cases, share)
    tail = (1 - conf) / 2
    low = int(np.searchsorted(at_most, tail, side="right")) - 1
    high = int(np.searchsorted(at_most, 1 - tail, side="left"))
    # Position `high` in a sample from 0 is the (high + 1)th: it needs P(X <= high) >= 1 - tail.
    if low < 0 or high > cases - 1:
        return None
    return low, high


def _known(costs: Sequence[float | None]) -> list[float] | None:
    known = [cost for cost in costs if cost is not None]
    if any(not (math.isfinite(cost) and cost >= 0) for cost in known):
        raise ValueError("a cost is negative or not a number")
    return known if len(known) == len(costs) else None


def _log_ratio_influence(costs: Sequence[float], passes: Sequence[int]) -> list[float] | None:
    """Return what each case adds to the log of the ratio; None without a ratio or a variance."""
    cases, spent, passed = len(costs), math.fsum(costs), sum(passes)
    if cases < 2 or spent == 0 or passed == 0:
        return None
    return [
        cases * (cost / spent - count / passed) for cost, count in zip(costs, passes, strict=True)
    ]


def _log_ends(value: float, influence: Sequence[float], conf: float) -> tuple[float, float]:
    """Bound a ratio by its log and the variance of the mean influence, which is 0."""
    cases = len(influence)
    variance = math.fsum(part * part for part in influence) / (cases - 1) / cases
    factor = math.exp(student_quantile(conf, cases - 1) * math.sqrt(variance))
    return value / factor, value * factor
