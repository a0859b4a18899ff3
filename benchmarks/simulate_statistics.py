"""Simulate how often our intervals hold the truth and our tests err; compare with a study.

The study chose the methods of ``pytest_modelbench.stats``; its tables are written out below. Each
is simulated again with our functions and shown beside the study's value. The exit status is 1 if
any is outside Monte Carlo error. About a minute on two cores:

    python benchmarks/simulate_statistics.py
    python benchmarks/simulate_statistics.py --runs 20000

What the study does not say was inferred from its own tables: 4,000 runs a value; for its paired
tests case rates of mean 0.7 and intra-case correlation 0.4, correlated 0.8 between the candidates;
for its intervals of a difference and its gates passes on three of four cases on which both agree;
for its looks 300 cases at 20% disagreement. Its power with repeats depends on more than that, and
is left out.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from pytest_modelbench import stats
from pytest_modelbench.stats.difference import newcombe_ends
from pytest_modelbench.stats.proportion import normal_quantile

STUDY_RUNS = 4000
ATTEMPTS = 5
INTRA_CASE = 0.4
AGREED_PASS_RATE = 0.75

# With some 140 values, one beyond 3.5 standard errors is expected in fifteen simulations.
WIDEST = 3.5


@dataclass(frozen=True)
class Row:
    """Hold one simulated percentage beside the study's, or beside its range of values."""

    table: str
    setting: str
    measure: str
    study: tuple[float, float]
    decimals: int
    hits: int
    runs: int

    @property
    def ours(self) -> float:
        """Return our percentage."""
        return 100 * self.hits / self.runs

    @property
    def errors(self) -> float:
        """Return the distance from the study, beyond its rounding, in standard errors of both."""
        low, high = self.study
        distance = max(low - self.ours, self.ours - high, 0.0)
        distance = max(distance - 0.5 * 10.0**-self.decimals, 0.0) / 100
        chance = min(max((low + high) / 200, 0.002), 0.998)
        return distance / math.sqrt(chance * (1 - chance) * (1 / self.runs + 1 / STUDY_RUNS))

    @property
    def agrees(self) -> bool:
        """Say whether the two differ by no more than Monte Carlo error."""
        return self.errors <= WIDEST


Generator = np.random.Generator
Task = Callable[[Generator, int], list[Row]]


def rows(
    table: str,
    setting: str,
    measures: tuple[str, ...],
    study: tuple[float, ...],
    hits: NDArray[np.int64],
    runs: int,
    decimals: tuple[int, ...] | int = 1,
) -> list[Row]:
    """Pair each measure of one setting with the study's value."""
    places = (decimals,) * len(study) if isinstance(decimals, int) else decimals
    return [
        Row(table, setting, measure, (value, value), place, int(count), runs)
        for measure, value, place, count in zip(measures, study, places, hits, strict=True)
    ]


def case_rates(generator: Generator, cases: int, mean: float, icc: float) -> NDArray[np.float64]:
    """Draw the pass probabilities of cases: Beta with a mean and an intra-case correlation."""
    if icc == 0:
        return np.full(cases, mean)
    if icc == 1:
        return (generator.random(cases) < mean).astype(np.float64)
    size = 1 / icc - 1
    return generator.beta(mean * size, (1 - mean) * size, cases)


@dataclass(frozen=True)
class PooledCoverage:
    """Cover the pass rate with pooled attempts, and with Student's interval of case means."""

    cases: int
    mean: float
    icc: float
    study: tuple[float, float, float]

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate."""
        hits = np.zeros(3, dtype=np.int64)
        for _ in range(runs):
            rates = case_rates(generator, self.cases, self.mean, self.icc)
            passes = generator.binomial(ATTEMPTS, rates).tolist()
            scores = stats.CaseScores(tuple(passes), ATTEMPTS, ATTEMPTS * self.cases)
            pooled = sum(passes), ATTEMPTS * self.cases
            hits += [
                holds(stats.wilson(*pooled), self.mean),
                holds(stats.jeffreys(*pooled), self.mean),
                holds(stats.case_mean_t(scores), self.mean),
            ]
        setting = f"n={self.cases} rate={self.mean:g} icc={self.icc:g}"
        measures = ("Wilson, pooled", "Jeffreys, pooled", "t over case means")
        return rows("coverage, 5 repeats", setting, measures, self.study, hits, runs)


@dataclass(frozen=True)
class CaseScoreCoverage:
    """Cover pass rate, pass@3 and pass^3 with the case score interval."""

    cases: int
    mean: float
    study: tuple[float, float, float]

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate."""
        size = 1 / INTRA_CASE - 1
        a, b = self.mean * size, (1 - self.mean) * size
        thrice = size * (size + 1) * (size + 2)
        truth = (
            self.mean,
            1 - b * (b + 1) * (b + 2) / thrice,
            a * (a + 1) * (a + 2) / thrice,
        )
        # Both are tenths with five attempts and three drawn.
        some = [int(10 * (stats.pass_at_k(ATTEMPTS, c, 3) or 0)) for c in range(ATTEMPTS + 1)]
        every = [int(10 * (stats.pass_hat_k(ATTEMPTS, c, 3) or 0)) for c in range(ATTEMPTS + 1)]
        hits = np.zeros(3, dtype=np.int64)
        for _ in range(runs):
            passes = generator.binomial(ATTEMPTS, generator.beta(a, b, self.cases)).tolist()
            scores = (
                stats.CaseScores(tuple(passes), ATTEMPTS, ATTEMPTS * self.cases),
                stats.CaseScores(tuple(some[c] for c in passes), 10),
                stats.CaseScores(tuple(every[c] for c in passes), 10),
            )
            hits += [
                holds(stats.case_score_interval(score), true)
                for score, true in zip(scores, truth, strict=True)
            ]
        setting = f"n={self.cases} rate={self.mean:g} icc={INTRA_CASE:g}"
        measures = ("pass rate", "pass@3", "pass^3")
        return rows("coverage, case score", setting, measures, self.study, hits, runs)


@dataclass(frozen=True)
class PairedErrors:
    """Test two candidates of the same mean whose case rates are correlated."""

    cases: int
    correlation: float
    study: tuple[tuple[float, float], ...]
    table: str

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate."""
        mean, size = 0.7, 1 / INTRA_CASE - 1
        chances = np.linspace(0, 1, 20_001)
        quantiles = betaincinv(mean * size, (1 - mean) * size, chances)
        hits = np.zeros(3, dtype=np.int64)
        own = math.sqrt(1 - self.correlation)
        for _ in range(runs):
            shared = math.sqrt(self.correlation) * generator.standard_normal(self.cases)
            hard = shared + own * generator.standard_normal((2, self.cases))
            rates = np.interp(ndtr(hard), chances, quantiles)
            a, b = generator.random((ATTEMPTS, 2, self.cases)).transpose(1, 0, 2) < rates[:, None]
            a_only, b_only = int(np.sum(a[0] & ~b[0])), int(np.sum(b[0] & ~a[0]))
            differences = (a.sum(axis=0) - b.sum(axis=0)).tolist()
            p_values = (
                stats.mcnemar_exact(a_only, b_only),
                stats.mcnemar_midp(a_only, b_only),
                stats.sign_flip(differences).p,
            )
            hits += [p < 0.05 for p in p_values]
        measures = ("exact, 1 attempt", "mid-p, 1 attempt", "sign-flip, 5 attempts")
        return [
            Row(self.table, f"n={self.cases}", measure, study, 1, int(count), runs)
            for measure, study, count in zip(measures, self.study, hits, strict=True)
        ]


def tables_of_pairs(
    generator: Generator, runs: int, cases: int, disagreement: float, difference: float
) -> Iterator[NDArray[np.float64]]:
    """Draw counts of both, A only, B only and neither."""
    both = (1 - disagreement) * AGREED_PASS_RATE
    a_only, b_only = (disagreement + difference) / 2, (disagreement - difference) / 2
    chances = [both, a_only, b_only, 1 - disagreement - both]
    yield from generator.multinomial(cases, chances, size=runs).astype(np.float64).T


@dataclass(frozen=True)
class DifferenceCoverage:
    """Cover a paired difference with Newcombe's interval."""

    cases: int
    disagreement: float
    difference: float
    study: float
    decimals: int

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate."""
        many = 10 * runs
        both, a_only, b_only, neither = tables_of_pairs(
            generator, many, self.cases, self.disagreement, self.difference
        )
        low, high = newcombe_ends(both, a_only, b_only, neither, normal_quantile(0.95))
        hits = np.sum((low <= self.difference) & (self.difference <= high))
        setting = f"n={self.cases} disagree={self.disagreement:g} diff={self.difference:g}"
        study = (self.study, self.study)
        table = "coverage, difference"
        return [Row(table, setting, "Newcombe 10", study, self.decimals, int(hits), many)]


@dataclass(frozen=True)
class GatePasses:
    """Pass a gate of five points at a true difference of -5, 0 and +3 points."""

    cases: int
    disagreement: float
    study: tuple[float, float, float]
    decimals: tuple[int, int, int]

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate, and put the planned chance beside it."""
        many = 10 * runs
        hits = []
        planned = []
        for difference in (-0.05, 0.0, 0.03):
            both, a_only, b_only, neither = tables_of_pairs(
                generator, many, self.cases, self.disagreement, difference
            )
            low, _ = newcombe_ends(both, a_only, b_only, neither, normal_quantile(0.9))
            hits.append(np.sum(low > -0.05))
            chance = stats.gate_pass_chance(
                self.cases,
                self.disagreement,
                0.05,
                difference=difference,
                agreed_pass_rate=AGREED_PASS_RATE,
            )
            planned.append(round(chance * many))
        setting = f"n={self.cases} disagree={self.disagreement:g}"
        found = []
        for name, counts in (("", hits), (", planned", planned)):
            measures = tuple(f"true {points}{name}" for points in ("-5", "0", "+3"))
            found += rows(
                "passes a 5-point gate",
                setting,
                measures,
                self.study,
                np.array(counts, dtype=np.int64),
                many,
                self.decimals,
            )
        return found


@dataclass(frozen=True)
class Looks:
    """Look several times at a growing grid of two candidates, equal or 7 points apart."""

    looks: int
    study: tuple[float, ...]
    power: tuple[float, ...]

    def __call__(self, generator: Generator, runs: int) -> list[Row]:
        """Simulate."""
        setting = f"looks={self.looks}"
        measures = ("0.05 at each", "mid-p at each", "0.05/looks", "0.001, last 0.05", "e >= 20")
        errors = self._decided(generator, runs, 0.0)
        found = rows("type I error, looks", setting, measures, self.study, errors, runs)
        decided = self._decided(generator, runs, 0.07)[[3, 2, 4]]
        kept = (measures[3], measures[2], measures[4])
        return found + rows("power at +7, looks", setting, kept, self.power, decided, runs, 0)

    def _decided(self, generator: Generator, runs: int, difference: float) -> NDArray[np.int64]:
        cases, disagreement = 300, 0.2
        at = np.round(np.arange(1, self.looks + 1) * cases / self.looks).astype(np.int64) - 1
        single = stats.look_alpha(stats.Stage.EXTENDED, self.looks)
        levels = [stats.look_alpha(stats.Stage.INTERIM, look + 1) for look in range(self.looks)]
        levels[-1] = stats.look_alpha(stats.Stage.DECLARED, self.looks)
        hits = np.zeros(5, dtype=np.int64)
        for _ in range(runs):
            drawn = generator.random(cases)
            better: list[int] = np.cumsum(drawn < (disagreement + difference) / 2)[at].tolist()
            either: list[int] = np.cumsum(drawn < disagreement)[at].tolist()
            pairs = [(one, total - one) for one, total in zip(better, either, strict=True)]
            exact = [stats.mcnemar_exact(*pair) for pair in pairs]
            hits += [
                any(p < 0.05 for p in exact),
                any(stats.mcnemar_midp(*pair) < 0.05 for pair in pairs),
                any(p < single for p in exact),
                any(p < level for p, level in zip(exact, levels, strict=True)),
                any(stats.e_process(*pair).decided for pair in pairs),
            ]
        return hits


def holds(interval: stats.Interval | None, truth: float) -> bool:
    """Say whether an interval holds the truth."""
    return interval is not None and interval.low <= truth <= interval.high


def exactly(*values: float) -> tuple[tuple[float, float], ...]:
    """Make ranges of a single value each."""
    return tuple((value, value) for value in values)


FIRST = "type I error, same mean"
SECOND = "type I error, cases differ"
SECOND_STUDY = ((2.2, 4.2), (4.0, 5.2), (3.7, 5.1))

TASKS: list[Task] = [
    PooledCoverage(20, 0.8, 0, (94.2, 95.6, 94.6)),
    PooledCoverage(20, 0.8, 0.4, (75.4, 78.0, 92.9)),
    PooledCoverage(20, 0.95, 0.4, (81.6, 72.1, 77.4)),
    PooledCoverage(50, 0.95, 0.4, (79.9, 75.5, 89.0)),
    PooledCoverage(100, 0.8, 1, (62.2, 62.2, 94.3)),
    PooledCoverage(300, 0.8, 0.4, (77.9, 77.9, 94.4)),
    CaseScoreCoverage(10, 0.8, (98.8, 97.4, 97.8)),
    CaseScoreCoverage(20, 0.8, (97.3, 97.3, 96.6)),
    CaseScoreCoverage(50, 0.8, (95.1, 96.5, 95.9)),
    CaseScoreCoverage(50, 0.95, (97.0, 96.9, 96.6)),
    CaseScoreCoverage(100, 0.8, (95.0, 94.1, 95.1)),
    CaseScoreCoverage(100, 0.95, (96.1, 97.3, 96.4)),
    CaseScoreCoverage(300, 0.8, (94.9, 94.6, 94.9)),
    CaseScoreCoverage(300, 0.95, (95.2, 95.2, 95.3)),
    PairedErrors(20, 0.8, exactly(1.1, 3.0, 3.0), FIRST),
    PairedErrors(50, 0.8, exactly(2.6, 4.6, 3.6), FIRST),
    PairedErrors(100, 0.8, exactly(2.9, 4.2, 4.5), FIRST),
    PairedErrors(300, 0.8, exactly(4.2, 5.1, 4.1), FIRST),
    PairedErrors(20, 0.0, SECOND_STUDY, SECOND),
    PairedErrors(50, 0.0, SECOND_STUDY, SECOND),
    PairedErrors(100, 0.0, SECOND_STUDY, SECOND),
    PairedErrors(300, 0.0, SECOND_STUDY, SECOND),
    DifferenceCoverage(20, 0.06, 0.05, 100, 0),
    DifferenceCoverage(20, 0.2, 0.05, 97.0, 1),
    DifferenceCoverage(50, 0.3, 0.15, 95.1, 1),
    DifferenceCoverage(100, 0.06, 0.05, 96.4, 1),
    DifferenceCoverage(300, 0.1, 0.0, 95.2, 1),
    GatePasses(50, 0.1, (6.1, 29, 54), (1, 0, 0)),
    GatePasses(100, 0.1, (4.9, 45, 79), (1, 0, 0)),
    GatePasses(300, 0.1, (5.4, 86, 99.8), (1, 0, 1)),
    GatePasses(300, 0.2, (4.9, 61, 93), (1, 0, 0)),
    GatePasses(1000, 0.2, (4.5, 97, 100), (1, 0, 0)),
    Looks(1, (4.0, 5.2, 4.0, 4.0, 0.1), (75, 75, 30)),
    Looks(2, (6.1, 8.1, 3.1, 4.0, 0.2), (75, 67, 32)),
    Looks(5, (9.4, 13.2, 2.0, 3.7, 0.8), (75, 57, 36)),
    Looks(10, (12.2, 17.6, 1.3, 3.8, 1.3), (75, 50, 40)),
    Looks(30, (15.4, 22.6, 0.5, 3.8, 2.0), (75, 38, 42)),
]


def simulate(number: int, runs: int) -> list[Row]:
    """Simulate one task with a seed of its own, so that the number of processes is no matter."""
    return TASKS[number](np.random.default_rng([2025, number]), runs)


def main() -> int:
    """Print all tables; return 1 if a value is outside Monte Carlo error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000, help="simulated runs a value")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    start = time.perf_counter()
    numbers = range(len(TASKS))
    with ProcessPoolExecutor(options.processes) as pool:
        found = [
            row for part in pool.map(simulate, numbers, [options.runs] * len(TASKS)) for row in part
        ]
    print(f"{'table':27}{'setting':32}{'measure':24}{'study %':>10}{'ours %':>9}{'errors':>8}")
    for row in found:
        low, high = (f"{value:.{row.decimals}f}" for value in row.study)
        study = low if low == high else f"{low}-{high}"
        remark = "" if row.agrees else "  OUTSIDE"
        print(
            f"{row.table:27}{row.setting:32}{row.measure:24}{study:>10}{row.ours:>9.2f}"
            f"{row.errors:>8.1f}{remark}"
        )
    outside = sum(not row.agrees for row in found)
    seconds = time.perf_counter() - start
    print(f"{len(found)} values, {outside} outside Monte Carlo error ({WIDEST} standard errors of")
    print(f"{options.runs:,} runs of ours and {STUDY_RUNS:,} of the study), {seconds:.0f} s")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
