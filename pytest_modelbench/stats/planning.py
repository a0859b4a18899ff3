"""Planning: what a grid of this size can show, and what would show more.

The disagreement rate comes from data or experience, the difference from the configuration. The
observed difference is never put in: "observed power" only says p again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from pytest_modelbench.stats.difference import newcombe_ends
from pytest_modelbench.stats.paired import case_differences
from pytest_modelbench.stats.proportion import normal_quantile
from pytest_modelbench.stats.repeats import CaseScores, variance_split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Counts less likely than this are left out of a sum over all counts.
_NEGLIGIBLE = 1e-12

_LARGEST_GRID = 10_000_000


def power(cases: int, disagreement: float, difference: float, alpha: float = 0.05) -> float:
    """Return the chance that McNemar's exact test decides for the candidate that is better.

    ``disagreement`` is the share of cases on which the two differ, ``difference`` the true
    difference of their pass rates; both are shares.
    """
    _check_rates(disagreement, difference)
    if disagreement == 0:
        return 0.0
    import numpy as np
    from scipy.special import bdtr, bdtrik

    # Only the likely numbers of disagreements; the rest of the sum is negligible.
    spread = 8 * math.sqrt(cases * disagreement * (1 - disagreement)) + 8
    middle = cases * disagreement
    first = max(0, math.floor(middle - spread))
    totals = np.arange(first, min(cases, math.ceil(middle + spread)) + 1)
    weights = _binomial(totals, cases, disagreement)
    guess = np.floor(np.nan_to_num(bdtrik(alpha / 2, totals, 0.5), nan=-1.0))
    critical = np.full(totals.shape, -1.0)
    for near in (guess - 1, guess, guess + 1):
        tail = bdtr(np.clip(near, 0, totals), totals, 0.5)
        decided = (near >= 0) & (near <= totals) & (2 * tail < alpha)
        critical = np.where(decided, np.maximum(critical, near), critical)
    share = min((disagreement + difference) / (2 * disagreement), 1.0)
    reached = bdtr(np.maximum(critical, 0), totals, 1 - share)
    return float(np.sum(weights * np.where(critical >= 0, reached, 0.0)))


def least_detectable_difference(
    cases: int, disagreement: float, *, chance: float = 0.8, alpha: float = 0.05
) -> float | None:
    """Return the least true difference that is decided with the given chance, as a share.

    Exact test, one attempt per case. None where not even a difference as large as the
    disagreement (all of it one way) is.
    """
    _check_rates(disagreement, 0.0)
    if power(cases, disagreement, disagreement, alpha) < chance:
        return None
    low, high = 0.0, disagreement
    while high - low > 1e-6:
        middle = (low + high) / 2
        if power(cases, disagreement, middle, alpha) < chance:
            low = middle
        else:
            high = middle
    return high


def cases_needed(
    disagreement: float, difference: float, *, chance: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Return how many cases decide a true difference with the given chance, by the exact test.

    None where the difference is 0, or needs more than ten million cases.
    """
    _check_rates(disagreement, difference)
    if difference <= 0:
        return None
    # Start from the closed form (Connor, 1987), always too low, and grow to a bracket.
    spread = normal_quantile(1 - alpha) * math.sqrt(disagreement) + _power_quantile(
        chance
    ) * math.sqrt(max(disagreement - difference**2, 0.0))
    enough = max(math.ceil((spread / difference) ** 2), 1)
    while power(enough, disagreement, difference, alpha) < chance:
        enough = math.ceil(enough * 1.1) + 1
        if enough > _LARGEST_GRID:
            return None
    short = 0
    while enough - short > 1:
        middle = (short + enough) // 2
        if power(middle, disagreement, difference, alpha) < chance:
            short = middle
        else:
            enough = middle
    return enough


class RepeatPlan(NamedTuple):
    """Hold the variance of a difference per case with repeats, and what it can show.

    ``variance`` is that of the difference of two case scores; ``within`` is the part that more
    attempts shrink. Differences are shares.
    """

    variance: float
    within: float
    cases: int

    @property
    def between(self) -> float:
        """Return the part of the variance that no number of attempts shrinks."""
        return self.variance - self.within

    def with_attempts_times(self, factor: float) -> RepeatPlan:
        """Plan for so many times the attempts per case; 2 for twice as many."""
        within = self.within / factor
        return RepeatPlan(self.between + within, within, self.cases)

    def gain(self) -> float:
        """Return by which factor twice the attempts shrink the variance (0.5 to 1).

        The same factor on the number of cases would have the same effect.
        """
        return 1.0 if self.variance == 0 else self.with_attempts_times(2).variance / self.variance

    def least_detectable_difference(self, *, chance: float = 0.8, alpha: float = 0.05) -> float:
        """Return the least true difference that is decided with the given chance."""
        reach = normal_quantile(1 - alpha) + _power_quantile(chance)
        return reach * math.sqrt(self.variance / self.cases)

    def power(self, difference: float, alpha: float = 0.05) -> float:
        """Return the chance to decide for the one that is better by ``difference``, a normal law's.

        At 0 that is the chance to decide for it by mistake: half of ``alpha``.
        """
        if self.variance == 0:
            return float(difference > 0)
        from scipy.special import ndtr

        error = math.sqrt(self.variance / self.cases)
        return float(ndtr(difference / error - normal_quantile(1 - alpha)))

    def cases_needed(
        self, difference: float, *, chance: float = 0.8, alpha: float = 0.05
    ) -> int | None:
        """Return how many cases decide a true difference; None where the difference is 0."""
        if difference <= 0:
            return None
        reach = normal_quantile(1 - alpha) + _power_quantile(chance)
        return max(math.ceil(reach**2 * self.variance / difference**2), 1)


def repeat_plan(
    a_passes: Sequence[int],
    b_passes: Sequence[int],
    a_attempts: Sequence[int],
    b_attempts: Sequence[int],
) -> RepeatPlan | None:
    """Split the variance of the differences per case (Miller, 2024).

    None below two cases, or with one attempt of any case: use :func:`power` there.
    """
    a_split, b_split = variance_split(a_passes, a_attempts), variance_split(b_passes, b_attempts)
    if a_split is None or b_split is None:
        return None
    a = CaseScores.of_passes(a_passes, a_attempts)
    b = CaseScores.of_passes(b_passes, b_attempts)
    differences = case_differences(a, b)
    cases, unit = len(differences), math.lcm(a.denominator, b.denominator)
    total = sum(differences)
    squares = sum(difference * difference for difference in differences)
    variance = (cases * squares - total * total) / (cases * (cases - 1) * unit * unit)
    within = min(a_split.within + b_split.within, variance)
    return RepeatPlan(variance, within, cases)


@lru_cache(maxsize=256)
def gate_pass_chance(
    cases: int,
    disagreement: float,
    margin: float,
    *,
    difference: float = 0.0,
    agreed_pass_rate: float = 0.7,
    conf: float = 0.9,
) -> float:
    """Return how often a candidate passes a not-worse-by gate, one attempt per case.

    The gate passes where the low end of Newcombe's interval (two-sided ``conf``) of candidate
    minus baseline is above ``-margin``; ``difference`` is the true one, 0 for an equally good
    candidate. ``agreed_pass_rate`` is the share of passes among the cases on which both agree.
    """
    _check_rates(disagreement, abs(difference))
    import numpy as np

    better_rate = (disagreement + difference) / 2
    worse_rate = (disagreement - difference) / 2
    better, worse = np.meshgrid(_likely(cases, better_rate), _likely(cases, worse_rate))
    possible = better + worse <= cases
    better, worse = better[possible], worse[possible]
    weights = _binomial(better, cases, better_rate)
    conditional = worse_rate / (1 - better_rate) if better_rate < 1 else 0.0
    weights = weights * _binomial(worse, cases - better, conditional)
    # The split of the agreed cases moves the interval little: its expected value stands for it.
    agreed = cases - better - worse
    both = np.rint(agreed * agreed_pass_rate)
    low, _ = newcombe_ends(both, better, worse, agreed - both, normal_quantile(conf))
    return float(np.sum(weights[low > -margin]) / np.sum(weights))


def gate_pass_chance_repeats(
    plan: RepeatPlan,
    margin: float,
    *,
    difference: float = 0.0,
    conf: float = 0.9,
    half: float | None = None,
) -> float:
    """Return how often a candidate passes a not-worse-by gate with repeats, by the normal law.

    ``half`` is half the width of the gate's own interval, where it is known: an interval made of
    two rates has a width even where no case differs.
    """
    from scipy.special import ndtr

    error = math.sqrt(plan.variance / plan.cases)
    room = margin + difference - (normal_quantile(conf) * error if half is None else half)
    return float(ndtr(room / error)) if error else float(room > 0)


def _likely(cases: int, rate: float) -> NDArray[np.float64]:
    import numpy as np

    counts = np.arange(cases + 1, dtype=np.float64)
    return counts[_binomial(counts, cases, rate) > _NEGLIGIBLE]


def _binomial(
    counts: NDArray[np.float64] | NDArray[np.int64],
    trials: int | NDArray[np.float64],
    rate: float,
) -> NDArray[np.float64]:
    """Return binomial probabilities; counts above the trials are not asked for."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy

    others = trials - counts
    ways = gammaln(trials + 1.0) - gammaln(counts + 1.0) - gammaln(others + 1.0)
    return np.asarray(np.exp(ways + xlogy(counts, rate) + xlog1py(others, -rate)))


def _power_quantile(chance: float) -> float:
    if not 0 < chance < 1:
        raise ValueError(f"a chance of {chance!r} is not between 0 and 1 (0.8 is usual)")
    return NormalDist().inv_cdf(chance)


def _check_rates(disagreement: float, difference: float) -> None:
    if not 0 <= disagreement <= 1:
        raise ValueError(f"a disagreement of {disagreement!r} is not a share of cases")
    if not 0 <= difference <= disagreement:
        raise ValueError(
            f"a difference of {difference!r} cannot come of a disagreement of {disagreement!r}"
        )
