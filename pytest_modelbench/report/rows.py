"""One candidate's figures on one grid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import fmean
from typing import Any, TypeVar

from pytest_modelbench.report.counts import COUNTS, NOT_RUN, SUMS, CaseTally, Counted, Tally
from pytest_modelbench.report.grid import Grid, Options
from pytest_modelbench.stats import (
    Bounds,
    CaseScores,
    CostPerPass,
    Interval,
    RankInterval,
    TimeQuantile,
    case_score,
    cost_per_pass,
    jeffreys,
    pass_hat_k,
    rate_bounds,
    time_quantile,
)
from pytest_modelbench.words import Cell, Trust

LARGEST_K = 10
"""Largest k of pass^k that a report counts."""


@dataclass(frozen=True)
class Known:
    """A sum over those of ``of`` attempts that know the quantity; unknown is never 0."""

    total: float | None
    known: int
    of: int

    @property
    def complete(self) -> bool:
        """Tell whether every attempt knows it."""
        return self.known == self.of > 0

    @property
    def mean(self) -> float | None:
        """Return the mean over the attempts that know it."""
        return None if self.total is None else self.total / self.known


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """One case of one candidate: what gates and comparisons by case are made of.

    ``list_usd`` is the sum over its verdicts, None where one of them is unknown; ``seconds`` the
    median working time of its attempts, None without any.
    """

    passes: int
    verdicts: int
    rewards: tuple[float, ...]
    list_usd: float | None
    seconds: float | None


@dataclass(frozen=True)
class Row:
    """One candidate. Shares are in [0, 1], money in USD, times in seconds."""

    candidate: str
    cells: int
    verdicts: int
    passes: int
    faults: Mapping[str, int]
    waiting: Mapping[str, int]
    by_case: Mapping[str, tuple[int, int]]
    """Passes and verdicts of each case that counts."""
    rate: float | None
    interval: Interval | None
    effective_cases: float | None
    bounds: Bounds | None
    pass_hat: Mapping[int, float]
    """Chance that all of k attempts pass, for k above 1 that every case has."""
    scored: bool
    """Whether rewards say more than passed or not."""
    mean_reward: float | None
    """Of all verdicts, failures among them."""
    mean_reward_of_passes: float | None
    reward_interval: Interval | None
    list_cost: Known
    billed_cost: Known
    derived_cost: Known
    """Of one's own server, by its hours; an estimate, apart from list and billed."""
    reported_cost: Known
    """What an agent program says that it cost; counted nowhere."""
    cost_per_pass: CostPerPass | None
    tokens: Mapping[str, Known]
    seconds: TimeQuantile | None
    p90_seconds: TimeQuantile | None
    summed_seconds: float
    counts: Mapping[str, float]
    behaviour: Mapping[str, int]
    misbehaved: Mapping[str, int]
    reasons: Mapping[str, int]
    failing: Mapping[tuple[str, str], int]
    own: Mapping[tuple[str, str], int]
    """Users' own tests: (test, why it failed, or empty where it passed) and how often."""
    trust: Trust
    boxes: tuple[str, ...]
    served: tuple[str, ...]
    scripted: bool
    superseded: int
    fresh_starts: int
    elsewhere: Mapping[str, Known]
    rank: RankInterval | None
    figures: Mapping[str, CaseFigures] = field(default_factory=dict)
    """By case that counts, as ``by_case``."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """Verdicts by the note of the run that measured them."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Of the benchmark's own, where every cell has a verdict."""
    measures: Mapping[str, float] = field(default_factory=dict)
    """Means over verdicts of figures that nothing is decided by."""

    @property
    def asks_model(self) -> bool:
        """Tell whether tokens and prices mean anything here, known or not.

        They do not where attempts made no request, or had their answers played from a file.
        """
        known = (self.list_cost, self.billed_cost, self.reported_cost, *self.tokens.values())
        if not self.verdicts or any(sums.known for sums in known):
            return True
        return not self.scripted and self.counts.get("requests", 0) > 0

    @property
    def missing(self) -> int:
        """Return how many cells have no verdict."""
        return self.cells - self.verdicts

    @property
    def cost_per_attempt(self) -> float | None:
        """Return the mean list cost of an attempt; None unless every attempt's is known."""
        return self.list_cost.mean if self.list_cost.complete else None

    @property
    def shown_rank(self) -> str:
        """Return the ranks that are open, ``1-3``; empty where there are none."""
        if self.rank is None or not self.verdicts:
            return ""
        best, worst = self.rank.best, self.rank.worst
        return str(best) if best == worst else f"{best}-{worst}"

    @property
    def billed_per_attempt(self) -> float | None:
        """Return the mean billed cost of an attempt; None unless every attempt's is known."""
        return self.billed_cost.mean if self.billed_cost.complete else None

    @property
    def billed_per_pass(self) -> float | None:
        """Return what was billed over the passes; None without one, or where a bill is unknown."""
        if not self.billed_cost.complete or not self.passes or self.billed_cost.total is None:
            return None
        return self.billed_cost.total / self.passes

    @property
    def own_tests(self) -> dict[str, tuple[int, int]]:
        """Return of each of a user's own tests how many attempts passed it, of how many."""
        found: dict[str, tuple[int, int]] = {}
        for (test, why), count in sorted(self.own.items()):
            passed, of = found.get(test, (0, 0))
            found[test] = (passed + (0 if why else count), of + count)
        return found

    @property
    def failing_checks(self) -> Counter[str]:
        """Return how many attempts lost each check."""
        found: Counter[str] = Counter()
        for (name, _), count in self.failing.items():
            found[name] += count
        return found


def make_row(
    one: Tally, current: Mapping[str, CaseTally | None], grid: Grid, options: Options
) -> Row:
    """Make a row of the counts of each case that counts, at today's version.

    What is estimated of them is added by ``estimated``, when no counts of cases are needed more.
    """
    counted = {case: found or CaseTally() for case, found in current.items()}
    judged = {case: found for case, found in counted.items() if found.verdicts}
    verdicts = sum(found.verdicts for found in judged.values())
    passes = sum(found.passes for found in judged.values())
    return Row(
        candidate=one.candidate,
        cells=len(counted) * grid.repeats,
        verdicts=verdicts,
        passes=passes,
        faults=_total(found.faults for found in counted.values()),
        waiting=_waiting(one.candidate, counted, grid, options.not_run),
        by_case={case: (found.passes, found.verdicts) for case, found in counted.items()},
        rate=None,
        interval=None,
        effective_cases=None,
        bounds=rate_bounds(
            [found.passes for found in counted.values()],
            [found.verdicts for found in counted.values()],
            [grid.repeats] * len(counted),
        ),
        pass_hat=_pass_hat(judged.values()),
        scored=any(found.rewards is not None for found in judged.values()),
        mean_reward=None,
        mean_reward_of_passes=_reward_of_passes(judged.values()),
        reward_interval=None,
        list_cost=_known(judged.values(), "list_usd"),
        billed_cost=_known(judged.values(), "billed_usd"),
        derived_cost=_known(judged.values(), "derived_usd"),
        reported_cost=_known(judged.values(), "reported_usd"),
        cost_per_pass=None,
        tokens={
            name: _known(judged.values(), name)
            for name in ("input", "cached", "output", "reasoning")
        },
        seconds=None,
        p90_seconds=None,
        summed_seconds=sum(found.summed_seconds for found in judged.values()),
        counts=_path(judged.values()),
        behaviour=_total(found.behaviour for found in judged.values()),
        misbehaved=_total(found.misbehaved for found in judged.values()),
        reasons=_total(found.reasons for found in judged.values()),
        failing=_total(found.failing for found in judged.values()),
        own=_total(found.own for found in judged.values()),
        trust=Trust.least(found.trust for found in judged.values()),
        boxes=tuple(sorted({box for found in judged.values() for box in found.boxes if box})),
        served=tuple(sorted({name for found in judged.values() for name in found.served if name})),
        scripted=any(found.scripted for found in judged.values()),
        superseded=one.superseded,
        fresh_starts=one.fresh_starts,
        elsewhere={
            where: Known(found.total if found.known else None, found.known, found.of)
            for where, found in one.elsewhere.items()
        },
        rank=None,
        figures={case: _figures(found) for case, found in counted.items()},
        scores=_own_scores(judged, options) if len(judged) == len(counted) else {},
        measures=_measures(judged.values()),
        notes=_total(found.notes for found in judged.values()),
    )


def estimated(row: Row, grid: Grid, options: Options) -> Row:
    """Return a row with what its counts are evidence of: means, intervals, quantiles."""
    judged = [found for found in row.figures.values() if found.verdicts]
    passes = [found.passes for found in judged]
    verdicts = [found.verdicts for found in judged]
    score = reward = case_score(CaseScores.of_passes(passes, verdicts))
    if row.scored:
        reward = case_score(CaseScores.of_rewards([found.rewards for found in judged]))
    interval = score.interval if score else None
    if options.interval == "jeffreys" and grid.repeats == 1:
        interval = jeffreys(row.passes, row.verdicts)
    times = [found.seconds for found in judged if found.seconds is not None]
    return replace(
        row,
        rate=score.mean if score else None,
        interval=interval,
        effective_cases=score.effective_cases if score else None,
        mean_reward=reward.mean if reward else None,
        reward_interval=reward.interval if reward else None,
        cost_per_pass=cost_per_pass([found.list_usd for found in judged], passes, verdicts),
        seconds=time_quantile(times),
        p90_seconds=time_quantile(times, 0.9),
    )


def _measures(judged: Collection[CaseTally]) -> Mapping[str, float]:
    found: dict[str, list[float]] = {}
    for case in judged:
        for name, values in (case.measures or {}).items():
            found.setdefault(name, []).extend(values)
    return {name: sum(values) / len(values) for name, values in found.items()}


def _own_scores(judged: Mapping[str, CaseTally], options: Options) -> Mapping[str, float]:
    if options.scores is None:
        return {}
    return options.scores({case: found.passes / found.verdicts for case, found in judged.items()})


def _reward_of_passes(judged: Collection[CaseTally]) -> float | None:
    """Return the mean reward of the passes alone."""
    if all(found.rewards is None for found in judged):
        return 1.0 if any(found.passes for found in judged) else None
    won: list[float] = []
    for found in judged:
        if found.rewards is None:
            won += [1.0] * found.passes
        else:
            marked = zip(found.rewards, found.outcomes, strict=True)
            won += [reward for reward, passed in marked if passed]
    return sum(won) / len(won) if won else None


def _figures(found: CaseTally) -> CaseFigures:
    return CaseFigures(
        passes=found.passes,
        verdicts=found.verdicts,
        rewards=found.all_rewards,
        list_usd=found.list_usd,
        seconds=found.seconds,
    )


# Any: comparable, which typing has no word for
_Key = TypeVar("_Key", bound=Any)


def _total(counters: Iterable[Counted[_Key]]) -> dict[_Key, int]:
    """Add counters up, the most frequent first and ties by name."""
    total: dict[_Key, int] = {}
    for counter in counters:
        for key, count in counter:
            total[key] = total.get(key, 0) + count
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def _waiting(
    name: str, counted: Mapping[str, CaseTally], grid: Grid, not_run: Mapping[Cell, str]
) -> dict[str, int]:
    """Count the cells that have neither verdict nor fault, by reason."""
    reasons: Counter[str] = Counter()
    for case, found in counted.items():
        ended = found.repeats
        for repeat in range(1, grid.repeats + 1):
            if repeat not in ended:
                told = not_run.get(Cell(grid.pack, case, name, repeat))
                if told:
                    told = told.removeprefix(f"{name} ")  # it stands in that one's line
                reasons[told or found.waiting.get(repeat, NOT_RUN)] += 1
    return _total([tuple(reasons.items())])


def _known(judged: Iterable[CaseTally], name: str) -> Known:
    at = SUMS.index(name)
    total, known, of = 0.0, 0, 0
    for found in judged:
        of += found.verdicts
        if found.known[at]:
            total += found.totals[at] or 0.0
            known += found.known[at]
    return Known(total if known else None, known, of)


def _path(judged: Iterable[CaseTally]) -> dict[str, float]:
    """Add up what the path to the model came to: requests, retries, waits."""
    columns = zip(*(found.counts for found in judged if found.counts), strict=True)
    return {name: total for name, total in zip(COUNTS, map(sum, columns), strict=False) if total}


def _pass_hat(judged: Iterable[CaseTally]) -> dict[int, float]:
    cases = [(found.verdicts, found.passes) for found in judged]
    largest = min((verdicts for verdicts, _ in cases), default=0)
    found = {}
    for k in range(2, min(largest, LARGEST_K) + 1):
        found[k] = fmean(_pass_hat_k(verdicts, passes, k) for verdicts, passes in cases)
    return found


@lru_cache(maxsize=4096)
def _pass_hat_k(verdicts: int, passes: int, k: int) -> float:
    chance = pass_hat_k(verdicts, passes, k)
    assert chance is not None  # no case has fewer verdicts than k
    return float(chance)
