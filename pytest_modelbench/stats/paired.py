"""Exact tests for two candidates on the same cases.

The test is a sign-flip over the differences per case; with one attempt per case it is, to the
last bit, McNemar's exact test. All sums are sums of integers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, NamedTuple

from pytest_modelbench.stats.repeats import CaseScores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = 99_999
LATTICE_CAP = 2_000_000

_SMALLEST = math.ulp(0.0)
# Sums of draws stay well within 64-bit integers.
_LARGEST_TOTAL = 2**60


class SignFlip(NamedTuple):
    """Hold a two-sided p and how it was come by; ``draws`` and ``seed`` are None where exact."""

    p: float
    method: str
    draws: int | None = None
    seed: int | None = None


@dataclass(frozen=True)
class PairCounts:
    """Count the cases on which A did better, B did better, and neither; ``net`` is A minus B.

    ``net`` is the sum of the differences per case, in integer units of the common lattice: only
    its sign has a meaning of its own.
    """

    a_more: int
    b_more: int
    alike: int
    net: int

    @property
    def cases(self) -> int:
        """Return the number of cases compared."""
        return self.a_more + self.b_more + self.alike

    @property
    def disagreements(self) -> int:
        """Return the number of cases with a difference."""
        return self.a_more + self.b_more


def mcnemar_exact(a_only: int, b_only: int) -> float:
    """Return the two-sided p of McNemar's exact test, the smaller tail doubled (McNemar, 1947).

    1 where the counts are equal, none and none included. Exact integers until the last division.
    """
    _check_pair(a_only, b_only)
    return _mcnemar_exact(max(a_only, b_only), min(a_only, b_only))


def mcnemar_midp(a_only: int, b_only: int) -> float:
    """Return the mid-p of McNemar's test, 2 P(X < m) + P(X = m) with m the smaller count.

    1 where the counts are equal (Fagerland, Lydersen and Laake, 2013, print 1 - P(X = m) / 2
    there). More power than the exact test and no guarantee of its level: print its name.
    """
    _check_pair(a_only, b_only)
    if a_only == b_only:
        return 1.0
    total, smaller = a_only + b_only, min(a_only, b_only)
    below = _lower_tail(total, smaller) - math.comb(total, smaller)
    return max((2 * below + math.comb(total, smaller)) / (1 << total), _SMALLEST)


def sign_flip(
    differences: Sequence[int],
    *,
    seed: int = 0,
    draws: int = DRAWS,
    lattice_cap: int = LATTICE_CAP,
) -> SignFlip:
    """Return the share of all sign choices with |sum| at least the observed |sum|.

    Differences are integers, A minus B per case. Exact by convolution; where the lattice of sums
    has more than ``lattice_cap`` points, ``draws`` seeded choices instead, with p = (hits + 1) /
    (draws + 1) (Phipson and Smyth, 2010), and ``method`` says so. Unchanged by zeros, by a
    common factor, by the order of cases and by exchanging A and B.
    """
    try:
        whole = [index(difference) for difference in differences]
    except TypeError:
        raise ValueError("a sign-flip test needs integers: scale the differences first") from None
    sizes = Counter(abs(difference) for difference in whole if difference)
    if not sizes:
        return SignFlip(1.0, "exact sign-flip")
    common = math.gcd(*sizes)
    steps = tuple(sorted((size // common, count) for size, count in sizes.items()))
    net = abs(sum(whole)) // common
    total = sum(size * count for size, count in steps)
    if steps[-1][0] == 1:
        return SignFlip(_mcnemar_exact((total + net) // 2, (total - net) // 2), "exact McNemar")
    if total < lattice_cap:
        return SignFlip(_exact_sign_flip(steps, net), "exact sign-flip")
    p = _drawn_sign_flip(steps, net, seed, draws)
    return SignFlip(p, f"sign-flip, {draws:,} draws, seed {seed}", draws, seed)


def sign_flip_test(
    a: CaseScores, b: CaseScores, *, seed: int = 0, lattice_cap: int = LATTICE_CAP
) -> SignFlip:
    """Run :func:`sign_flip` on two candidates' scores of the same cases in the same order."""
    return sign_flip(case_differences(a, b), seed=seed, lattice_cap=lattice_cap)


def case_differences(a: CaseScores, b: CaseScores) -> list[int]:
    """Return A minus B per case in integer units of the least common lattice."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} cases of A cannot be paired with {len(b)} of B")
    common = math.lcm(a.denominator, b.denominator)
    a_unit, b_unit = common // a.denominator, common // b.denominator
    return [x * a_unit - y * b_unit for x, y in zip(a.numerators, b.numerators, strict=True)]


def pair_counts(differences: Sequence[int]) -> PairCounts:
    """Count who did better on how many cases."""
    a_more = sum(difference > 0 for difference in differences)
    b_more = sum(difference < 0 for difference in differences)
    alike = len(differences) - a_more - b_more
    return PairCounts(a_more, b_more, alike, sum(differences))


@lru_cache(maxsize=4096)
def _mcnemar_exact(larger: int, smaller: int) -> float:
    if larger == smaller:
        return 1.0
    total = larger + smaller
    tail = _lower_tail(total, smaller)
    return max(min(2 * tail, 1 << total) / (1 << total), _SMALLEST)


def _lower_tail(trials: int, most: int) -> int:
    """Count the outcomes of fair tosses with at most so many heads."""
    term = total = 1
    for heads in range(most):
        term = term * (trials - heads) // (heads + 1)
        total += term
    return total


@lru_cache(maxsize=1024)
def _heads(tosses: int) -> NDArray[np.float64]:
    """Return the chances of 0, 1, ... heads in fair tosses."""
    import numpy as np

    ways = [1]
    for heads in range(tosses):
        ways.append(ways[-1] * (tosses - heads) // (heads + 1))
    return np.array([count / 2**tosses for count in ways], dtype=np.float64)


@lru_cache(maxsize=4096)
def _exact_sign_flip(steps: tuple[tuple[int, int], ...], net: int) -> float:
    """Convolve one binomial for each size of difference.

    With every minus counted as a head of that many points, the sum is total - 2 * points: |sum| is
    at least the observed one in two equal tails, and the lower reaches (total - net) / 2 points.
    Only positive numbers are added, so that a small p keeps its digits.
    """
    if net == 0:
        return 1.0
    import numpy as np

    total = sum(size * count for size, count in steps)
    reach = (total - net) // 2
    points = np.ones(1)
    for size, count in steps:
        heads = _heads(count)
        length = min(len(points) + size * count, reach + 1)
        spread = np.zeros(length)
        if count < size:
            for number, chance in enumerate(heads):
                part = points[: max(length - number * size, 0)]
                spread[number * size : number * size + len(part)] += chance * part
        else:
            for start in range(min(size, len(points))):
                part = np.convolve(points[start::size], heads)
                slots = spread[start::size]
                slots[: len(part)] = part[: len(slots)]
        points = spread
    return max(min(2 * float(points[: reach + 1].sum()), 1.0), _SMALLEST)


def _drawn_sign_flip(steps: tuple[tuple[int, int], ...], net: int, seed: int, draws: int) -> float:
    """Draw sign choices, eight cases to a byte: each byte looks its sum up in a table."""
    import numpy as np

    sizes = [size for size, count in steps for _ in range(count)]
    total = sum(sizes)
    # Sums too large for 64 bits lose their last digits, and the comparison gives way by as much.
    unit = max(1, -(-total // _LARGEST_TOTAL))
    slack = 0 if unit == 1 else len(sizes) + 1
    sizes = [round(size / unit) for size in sizes]
    sizes += [0] * (-len(sizes) % 8)
    signs = 1 - 2 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)
    generator = np.random.default_rng(seed)
    sums = np.zeros(draws, dtype=np.int64)
    for start in range(0, len(sizes), 8):
        table = signs @ np.array(sizes[start : start + 8], dtype=np.int64)
        sums += table[generator.integers(0, 256, size=draws, dtype=np.uint8)]
    hits = int(np.count_nonzero(np.abs(sums) >= net // unit - slack))
    return (hits + 1) / (draws + 1)


def _check_pair(a_only: int, b_only: int) -> None:
    if a_only < 0 or b_only < 0:
        raise ValueError(f"{a_only} and {b_only} are not two counts of cases")
