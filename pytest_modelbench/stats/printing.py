"""Numbers as text, so that no digit shown contradicts a decision or claims a certainty.

Rounding is ordinary (half away from zero, of the number as it is written). Where it would reach or
cross a threshold that the number itself does not, more digits are shown instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

from pytest_modelbench.stats.proportion import Interval

NO_ESTIMATE = "-"

_LEAST_P = Decimal("0.001")


def format_p(p: float, alpha: float = 0.05) -> str:
    """Format a p-value: "<0.001", or 2 significant digits and more where alpha is near.

    0.0498 stays "0.0498" at an alpha of 0.05, and what is not 1 is not shown as 1.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"{p!r} is not a p-value")
    number, level = Decimal(repr(float(p))), Decimal(repr(float(alpha)))
    least = min(_LEAST_P, level)
    if number < least:
        return f"<{_plain(least)}"
    decimals = 1 - number.adjusted()  # two significant digits
    return _plain(_round_apart(number, decimals, (level, Decimal(1))))


def format_percent(share: float | None, decimals: int = 0) -> str:
    """Format a share as a percentage without its sign; "-" for None.

    Never 0 or 100 for a share that is neither: 0.9991 is "99.9".
    """
    if share is None:
        return NO_ESTIMATE
    if not 0 <= share <= 1:
        raise ValueError(f"{share!r} is not a share between 0 and 1")
    return _fixed(_percent(share), decimals, (Decimal(0), Decimal(100)))


def format_interval(interval: Interval | None, decimals: int = 0) -> str:
    """Format the interval of a share in percent: "[60-84]"; "-" for None."""
    if interval is None:
        return NO_ESTIMATE
    ends = (format_percent(end, decimals) for end in (interval.low, interval.high))
    return f"[{'-'.join(ends)}]"


def format_rate(passes: int, cases: int, interval: Interval | None, decimals: int = 0) -> str:
    """Format a pass rate with its counts and interval: "37/50 74% [60-84]"; "-" without cases."""
    if cases == 0:
        return NO_ESTIMATE
    share = format_percent(passes / cases, decimals)
    return f"{passes}/{cases} {share}% {format_interval(interval, decimals)}"


def format_points(
    difference: float | None, decimals: int = 1, *, apart_from: Iterable[float] = (0.0,)
) -> str:
    """Format a difference of shares in percentage points: "+9.6", "-0.02", "0"; "-" for None.

    ``apart_from`` are differences, in shares, that the text must not reach or cross unless the
    number does: 0, and the negative margin of a gate.
    """
    if difference is None:
        return NO_ESTIMATE
    number = _percent(difference)
    if number == 0:
        return "0"
    text = _fixed(number, decimals, [_percent(threshold) for threshold in apart_from])
    return text if text.startswith("-") else f"+{text}"


def format_points_interval(
    interval: Interval | None, decimals: int = 1, *, apart_from: Iterable[float] = (0.0,)
) -> str:
    """Format the interval of a difference in points: "[+2.1 to +17.0]"; "-" for None."""
    if interval is None:
        return NO_ESTIMATE
    thresholds = tuple(apart_from)
    low = format_points(interval.low, decimals, apart_from=thresholds)
    high = format_points(interval.high, decimals, apart_from=thresholds)
    return f"[{low} to {high}]"


def _percent(share: float) -> Decimal:
    return Decimal(repr(float(share))) * 100


def _round_apart(number: Decimal, decimals: int, thresholds: Iterable[Decimal]) -> Decimal:
    """Round to so many decimals, and to more until no threshold is reached or crossed."""
    limits = [limit for limit in thresholds if limit != number]
    while True:
        rounded = number.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
        if all(rounded != limit and (rounded > limit) == (number > limit) for limit in limits):
            return rounded
        decimals += 1


def _fixed(number: Decimal, decimals: int, thresholds: Iterable[Decimal]) -> str:
    limits = tuple(thresholds)
    if number in limits:
        return _plain(number)
    return f"{_round_apart(number, decimals, limits):f}"


def _plain(number: Decimal) -> str:
    """Write a number without exponent and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
