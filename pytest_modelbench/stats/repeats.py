"""Case scores: pass rates over repeats, rewards, pass@k and pass^k, with one honest interval.

The case is the unit: each has one score in [0, 1], all weigh equally, and the variance between
them already contains the noise of the attempts within them. Pooled attempts are never a sample.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from pytest_modelbench.stats.proportion import (
    Interval,
    confidence_label,
    normal_quantile,
    score_ends,
    student_quantile,
)

# Below so many cases with some failure (or some pass) the variance between cases is far too small
# to be believed; 0, 5, 8 and 10 were tried by simulation.
LEAST_VARIED = 8

# Fewer groups than this make any interval over groups doubtful; a report says so.
FEW_GROUPS = 20

_DECIMALS = 12


@dataclass(frozen=True)
class CaseScores:
    """Hold one score per case as an exact fraction over a common denominator.

    ``attempts`` is the total number of attempts where the scores are pass rates, and None where
    they are anything else (rewards, pass@k, pass^k): it bounds the effective number of cases.
    """

    numerators: tuple[int, ...]
    denominator: int
    attempts: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a score outside [0, 1]."""
        for position, numerator in enumerate(self.numerators):
            if not 0 <= numerator <= self.denominator:
                score = Fraction(numerator, self.denominator)
                raise ValueError(
                    f"the score of case {position} is {float(score)!r}, not within 0 and 1"
                )

    @classmethod
    def of_passes(cls, passes: Sequence[int], attempts: Sequence[int]) -> CaseScores:
        """Make pass rates of the passes and attempts of each case."""
        for position, (passed, tried) in enumerate(zip(passes, attempts, strict=True)):
            if not (tried > 0 and 0 <= passed <= tried):
                raise ValueError(f"case {position} has {passed} passes of {tried} attempts")
        common = math.lcm(*set(attempts)) if attempts else 1
        numerators = tuple([k * (common // n) for k, n in zip(passes, attempts, strict=True)])
        return cls(numerators, common, sum(attempts))

    @classmethod
    def of_rewards(cls, rewards: Sequence[Sequence[float | Fraction]]) -> CaseScores:
        """Make mean rewards of the rewards of each case's attempts, each in [0, 1]."""
        means = []
        for position, attempts in enumerate(rewards):
            if not attempts:
                raise ValueError(f"case {position} has no attempt")
            exact = [exact_fraction(reward) for reward in attempts]
            if not all(0 <= reward <= 1 for reward in exact):
                raise ValueError(f"case {position} has a reward outside 0 and 1: {attempts!r}")
            means.append(sum(exact, Fraction(0)) / len(exact))
        return cls.of_values(means)

    @classmethod
    def of_values(cls, values: Sequence[float | Fraction]) -> CaseScores:
        """Make scores of one number in [0, 1] for each case."""
        exact = [exact_fraction(value) for value in values]
        common = math.lcm(*(value.denominator for value in exact)) if exact else 1
        # Many unlike fractions have no common denominator worth having: one grid for all then.
        common = min(common, 10**_DECIMALS)
        return cls(tuple(round(value * common) for value in exact), common)

    def __len__(self) -> int:
        """Count the cases."""
        return len(self.numerators)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Return the score of each case."""
        return tuple(numerator / self.denominator for numerator in self.numerators)

    @cached_property
    def mean(self) -> float | None:
        """Return the mean over cases; None without cases."""
        if not self.numerators:
            return None
        return sum(self.numerators) / (self.denominator * len(self))

    @cached_property
    def variance(self) -> float:
        """Return the sample variance over cases (n - 1), exactly 0 where all scores are equal."""
        cases = len(self)
        if cases < 2:
            return 0.0
        total = sum(self.numerators)
        squares = sum(numerator * numerator for numerator in self.numerators)
        return (cases * squares - total * total) / (cases * (cases - 1) * self.denominator**2)

    @cached_property
    def binary(self) -> bool:
        """Say whether every score is 0 or 1, so that repeats have added nothing."""
        return all(numerator in (0, self.denominator) for numerator in self.numerators)


@dataclass(frozen=True)
class CaseScore:
    """Hold the mean over cases, its interval, and the effective number of cases."""

    mean: float
    interval: Interval
    cases: int
    effective_cases: float


def case_score(scores: CaseScores, conf: float = 0.95) -> CaseScore | None:
    """Return mean and case score interval; None without cases.

    Wilson's formula at the mean and at an effective number of cases, mean (1 - mean) over the
    variance of the mean: at least the number of cases, at most the attempts. With one attempt
    per case it is Wilson's interval; so it is where fewer than ``LEAST_VARIED`` cases differ from
    1, or from 0, since the variance is not to be trusted there.
    """
    cases = len(scores)
    mean = scores.mean
    if mean is None:
        return None
    effective = _effective_cases(scores, mean)
    if effective == cases:
        quantile, method = normal_quantile(conf), "Wilson"
    else:
        quantile, method = student_quantile(conf, cases - 1), "case score"
    low, high = score_ends(mean, effective, quantile)
    interval = Interval(low, high, f"{confidence_label(conf)} {method}")
    return CaseScore(mean, interval, cases, effective)


def case_score_interval(scores: CaseScores, conf: float = 0.95) -> Interval | None:
    """Return the interval of :func:`case_score` alone."""
    score = case_score(scores, conf)
    return None if score is None else score.interval


def case_mean_t(scores: CaseScores, conf: float = 0.95) -> Interval | None:
    """Return Student's interval of the case means, for comparison with harnesses that print it.

    It may leave [0, 1], and covers 64 to 77 of 100 at a pass rate of 95% and 20 cases: no report
    of ours uses it. None below two cases.
    """
    mean = scores.mean
    if mean is None or len(scores) < 2:
        return None
    half = student_quantile(conf, len(scores) - 1) * math.sqrt(scores.variance / len(scores))
    return Interval(mean - half, mean + half, f"{confidence_label(conf)} t over case means")


@dataclass(frozen=True)
class VarianceSplit:
    """Hold the variance of a case's score: ``between`` cases, and by attempts ``within`` them.

    The variance over cases of the printed scores is their sum. More attempts shrink ``within``
    only.
    """

    within: float
    between: float


def variance_split(passes: Sequence[int], attempts: Sequence[int]) -> VarianceSplit | None:
    """Split the variance of the pass rates; None below two cases or two attempts of any case."""
    scores = CaseScores.of_passes(passes, attempts)
    if len(scores) < 2 or min(attempts) < 2:
        return None
    noise = (rate * (1 - rate) / (n - 1) for rate, n in zip(scores.values, attempts, strict=True))
    within = math.fsum(noise) / len(scores)
    return VarianceSplit(within, max(scores.variance - within, 0.0))


def group_means(scores: CaseScores, groups: Sequence[Hashable]) -> CaseScores:
    """Average within groups of cases that share a source, in order of first appearance.

    The group is then the unit (Miller, 2024); groups weigh equally. Below ``FEW_GROUPS`` groups a
    report warns.
    """
    members: dict[Hashable, list[int]] = {}
    for numerator, group in zip(scores.numerators, groups, strict=True):
        members.setdefault(group, []).append(numerator)
    common = math.lcm(*(len(group) for group in members.values())) if members else 1
    numerators = tuple(sum(group) * (common // len(group)) for group in members.values())
    return CaseScores(numerators, scores.denominator * common, scores.attempts)


def pass_at_k(attempts: int, passes: int, k: int) -> Fraction | None:
    """Return the chance that at least one of k attempts passes (Chen et al., 2021).

    Unbiased: k of the attempts are drawn without replacement. None where fewer than k attempts
    were made; k is never lowered to them.
    """
    _check_draw(attempts, passes, k)
    if k > attempts:
        return None
    return 1 - Fraction(math.comb(attempts - passes, k), math.comb(attempts, k))


def pass_hat_k(attempts: int, passes: int, k: int) -> Fraction | None:
    """Return the chance that all of k attempts pass, pass^k (Yao et al., 2024).

    Drawn as in :func:`pass_at_k`; None where fewer than k attempts were made.
    """
    _check_draw(attempts, passes, k)
    if k > attempts:
        return None
    return Fraction(math.comb(passes, k), math.comb(attempts, k))


@lru_cache(maxsize=65_536)
def exact_fraction(value: float | Fraction) -> Fraction:
    """Read a float as the short fraction that it stands for.

    0.1 + 0.2 is 3/10 and 0.3333333333333333 is 1/3, so that ties between sums are ties. A number
    that is near no fraction with a denominator up to 10,000 is rounded to 12 decimal digits.
    """
    if isinstance(value, (Fraction, int)):
        return Fraction(value)
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not a score")
    short = Fraction(value).limit_denominator(10_000)
    if abs(float(short) - value) <= 10.0**-_DECIMALS:
        return short
    return Fraction(round(value * 10**_DECIMALS), 10**_DECIMALS)


def _effective_cases(scores: CaseScores, mean: float) -> float:
    cases = len(scores)
    not_full = sum(numerator != scores.denominator for numerator in scores.numerators)
    not_empty = sum(numerator != 0 for numerator in scores.numerators)
    if scores.variance == 0 or min(not_full, not_empty) < LEAST_VARIED:
        return cases
    effective = mean * (1 - mean) / (scores.variance / cases)
    if scores.attempts is not None:
        effective = min(effective, scores.attempts)
    return max(effective, cases)


def _check_draw(attempts: int, passes: int, k: int) -> None:
    if not (0 <= passes <= attempts and k >= 1):
        raise ValueError(f"no draw of {k} from {passes} passes of {attempts} attempts")
