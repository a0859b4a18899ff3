"""How often an equally good candidate would pass a gate at this grid: said beside each verdict.

The disagreement, or the variance of the differences, is that of the data; the difference is none
(or the rule's), never the observed one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from pytest_modelbench.report.numbers import plural
from pytest_modelbench.report.rules import Kind, Rule
from pytest_modelbench.stats import (
    CaseScores,
    Interval,
    RepeatPlan,
    case_differences,
    gate_pass_chance,
    gate_pass_chance_repeats,
    pair_counts,
    paired_difference,
    power,
    wilson,
)
from pytest_modelbench.stats.proportion import normal_quantile

OFTEN = 0.8

MOST_CASES = 10_000_000
"""More than this are no answer."""

MOST_COPIED = 100_000
"""At more cases the normal law is as good as the gate's own interval, and quicker."""


@dataclass(frozen=True)
class Chance:
    """``equal`` is the chance of a candidate that is as good as the rule's measure, no better.

    Of a comparison that is the baseline itself, measured again; of a limit, one exactly at it.
    """

    equal: float
    said: str


def chance_of(
    rule: Rule,
    level: float,
    *,
    scores: CaseScores | None = None,
    pair: tuple[CaseScores, CaseScores] | None = None,
    family: int = 1,
) -> Chance | None:
    """Return the chance for a rule at the level of this look; None where there are no cases.

    ``scores`` are those of a floor, ``pair`` those of a comparison.
    """
    if rule.kind is Kind.FLOOR and scores is not None and rule.limit is not None:
        return _at_floor(rule.limit, level, scores)
    if rule.kind.compares and pair is not None and len(pair[0]):
        if rule.kind is Kind.NOT_WORSE_BY and rule.limit is not None:
            return _within_margin(rule.limit, level, *pair)
        return _by_test(rule.kind, level / family, *pair)
    if rule.kind in (Kind.COST_PER_PASS, Kind.MEDIAN_TIME):
        return Chance(
            level,
            f"one exactly at the limit passes in at most about {_of_100(level)} of 100 runs",
        )
    return None


class Enough(NamedTuple):
    """About how many cases like these would decide, most often; and for whom, in words."""

    cases: int
    said: str


def enough_cases(
    rule: Rule,
    level: float,
    cases: int,
    *,
    pair: tuple[CaseScores, CaseScores] | None = None,
    interval: Interval | None = None,
    family: int = 1,
) -> Enough | None:
    """Return at how many cases a candidate worth passing passes in 80 of 100 runs, by normal laws.

    Such a candidate is as good as the baseline, ten points above a floor, or a fifth below a limit:
    never what this run happened to see. None where no number of cases would do.
    """
    reach = normal_quantile(1 - 2 * level) + normal_quantile(2 * OFTEN - 1)
    if rule.kind is Kind.FLOOR and rule.limit is not None:
        good = min(rule.limit + 0.1, 1.0)
        if good <= rule.limit:
            return None
        spread = normal_quantile(1 - 2 * level) * _deviation(rule.limit)
        spread += normal_quantile(2 * OFTEN - 1) * _deviation(good)
        return _enough((spread / (good - rule.limit)) ** 2, f"one that is at {good:.0%}")
    if rule.kind is Kind.NOT_WORSE_BY and pair is not None and len(pair[0]) and rule.limit:
        needed = reach**2 * _plan(*pair).variance / rule.limit**2
        needed = max(needed, _within(rule.limit, level, *pair, start=needed))
        return _enough(needed, "an equally good candidate")
    if rule.kind is Kind.SUPERIORITY and pair is not None and len(pair[0]):
        variance = _plan(*pair).variance
        reach = normal_quantile(1 - level / family) + normal_quantile(2 * OFTEN - 1)
        return _enough(reach**2 * variance / 0.1**2, "one that is 10 points better")
    if interval is not None and interval.low > 0:
        error = math.log(interval.high / interval.low) / 2 / normal_quantile(1 - 2 * level)
        needed = cases * (reach * error / math.log(1.25)) ** 2
        return _enough(needed, "one that is a fifth below the limit")
    return None


def _enough(cases: float, whom: str) -> Enough | None:
    if not 0 < cases <= MOST_CASES:
        return None
    shown = _rounded(cases)
    return Enough(shown, f"{whom} passes in {OFTEN * 100:.0f} of 100 runs at about {shown:,} cases")


def _rounded(cases: float) -> int:
    """Round up to two digits that count: it is about so many."""
    digits = max(math.floor(math.log10(cases)) - 1, 0)
    return math.ceil(cases / 10.0**digits) * int(10.0**digits)


def _deviation(rate: float) -> float:
    return math.sqrt(rate * (1 - rate))


def _at_floor(floor: float, level: float, scores: CaseScores) -> Chance | None:
    from scipy.special import bdtrc

    cases = len(scores)
    if not cases:
        return None
    needed = next(
        (k for k in range(math.ceil(floor * cases), cases + 1) if _low(k, cases, level) >= floor),
        None,
    )
    at = f"at {plural(cases, 'case')}"
    if needed is None:
        return Chance(0.0, f"no candidate can pass it {at}: not even one that passes all")

    def passes(rate: float) -> float:
        return float(bdtrc(needed - 1, cases, rate))

    often = next((n for n in range(math.ceil(floor * 100), 101) if passes(n / 100) >= OFTEN), 100)
    equal = passes(floor)
    return Chance(
        equal,
        f"one exactly at the floor passes in about {_of_100(equal)} of 100 runs {at}, one at "
        f"{often}% in {OFTEN * 100:.0f}",
    )


def _low(passes: int, cases: int, level: float) -> float:
    interval = wilson(passes, cases, 1 - 2 * level)
    return interval.low if interval is not None else 0.0


def _within_margin(margin: float, level: float, a: CaseScores, b: CaseScores) -> Chance:
    confidence = 1 - 2 * level
    if a.binary and b.binary:
        counts = pair_counts(case_differences(a, b))
        both = sum(n != 0 for n in b.numerators) - counts.b_more
        rate = both / counts.alike if counts.alike else 0.5
        equal = gate_pass_chance(
            counts.cases,
            counts.disagreements / counts.cases,
            margin,
            agreed_pass_rate=rate,
            conf=confidence,
        )
    else:
        half = _half(a, b, confidence)
        equal = gate_pass_chance_repeats(_plan(a, b), margin, conf=confidence, half=half)
    return Chance(
        equal,
        f"an equally good candidate passes in about {_of_100(equal)} of 100 runs at "
        f"{plural(len(a), 'case')}",
    )


def _within(margin: float, level: float, a: CaseScores, b: CaseScores, *, start: float) -> float:
    """Return from how many cases like these the gate's interval of an equal is within the margin.

    Where no case differs the law of differences says none, and the interval has a width still.
    """
    first = max(math.ceil(start / len(a)), 1)

    def inside(times: int) -> bool:
        return _half(_times(a, times), _times(b, times), 1 - 2 * level) < margin

    if first * len(a) > MOST_COPIED or inside(first):
        return 0.0
    most = MOST_COPIED // len(a)
    found = bisect_left(range(most), True, lo=first, key=inside)
    return float(found * len(a)) if found < most else math.inf


def _times(scores: CaseScores, times: int) -> CaseScores:
    attempts = None if scores.attempts is None else scores.attempts * times
    return CaseScores(scores.numerators * times, scores.denominator, attempts)


def _half(a: CaseScores, b: CaseScores, confidence: float) -> float:
    """Return half the width of the interval that a margin is held to."""
    found = paired_difference(a, b, confidence)
    return (found.interval.high - found.interval.low) / 2 if found is not None else 0.0


def _by_test(kind: Kind, level: float, a: CaseScores, b: CaseScores) -> Chance:
    """Say what a proof of a difference can miss: ten points that are really there."""
    counts = pair_counts(case_differences(a, b))
    cases, disagreement = counts.cases, counts.disagreements / counts.cases
    if a.binary and b.binary:
        there = min(0.1, disagreement)  # passes differ by no more than they disagree
        found, ten = (power(cases, disagreement, true, level) for true in (0.0, there))
    else:
        there = 0.1
        found, ten = (_plan(a, b).power(true, level) for true in (0.0, there))
    points = f"{there * 100:.3g} points"
    if kind is Kind.REGRESSION:
        said = f"an equally good candidate passes in about {_of_100(1 - found)} of 100 runs"
        said += f", one that is {points} worse in {_of_100(1 - ten)}" if disagreement else ""
        return Chance(1 - found, f"{said} at {plural(cases, 'case')}")
    said = f"an equally good candidate passes in about {_of_100(found)} of 100 runs"
    said += f", one that is {points} better in {_of_100(ten)}" if disagreement else ""
    return Chance(found, f"{said} at {plural(cases, 'case')}")


def _plan(a: CaseScores, b: CaseScores) -> RepeatPlan:
    """Return the variance of the differences per case, about which nothing else is asked."""
    differences = case_differences(a, b)
    unit = math.lcm(a.denominator, b.denominator)
    cases, total = len(differences), sum(differences)
    squares = sum(difference * difference for difference in differences)
    if cases < 2:
        return RepeatPlan(0.0, 0.0, cases)
    variance = Fraction(cases * squares - total * total, cases * (cases - 1) * unit * unit)
    return RepeatPlan(float(variance), 0.0, cases)


def _of_100(share: float) -> str:
    """Return a share as runs of a hundred, never 0 or 100 for one that is neither."""
    runs = round(share * 100)
    if runs == 0 and share > 0:
        return "under 1"
    return "over 99" if runs == 100 and share < 1 else str(runs)
