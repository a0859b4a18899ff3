"""Compare candidates on the cases that both completed: exact tests over one declared family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from pytest_modelbench.stats import (
    CaseScores,
    Decision,
    Difference,
    PairBounds,
    RepeatPlan,
    decide,
    holm,
    least_detectable_difference,
    mcnemar_midp,
    min_disagreements,
    pair_bounds,
    pair_counts,
    paired_difference,
    repeat_plan,
    sign_flip,
)
from pytest_modelbench.stats.paired import SignFlip, case_differences

MIDP = "McNemar mid-p"
"""The method of a pair that is decided by it, and not by the exact test."""

Passes = Mapping[str, tuple[int, int]]
"""Passes and verdicts of each case of the grid that counts."""


Rewards = Mapping[str, Sequence[float]]
"""Rewards of the attempts of each case."""


@dataclass(frozen=True)
class OnReward:
    """A pair's mean rewards, A minus B: beside the verdict, which is on passes.

    ``adjusted_p`` is by Holm over the same family, on rewards.
    """

    difference: Difference
    p: float
    adjusted_p: float
    method: str


@dataclass(frozen=True)
class Pair:
    """A against B. ``both`` to ``neither`` count cases at one repeat, and are None with more.

    ``a_more``, ``b_more`` and ``alike`` count cases at any number of repeats. ``left_out`` cases
    lack a verdict of one of the two. ``p`` is None where no case can be compared.
    """

    a: str
    b: str
    cases: int
    left_out: int
    a_more: int
    b_more: int
    alike: int
    both: int | None
    neither: int | None
    difference: Difference | None
    p: float | None
    adjusted_p: float | None
    midp: float | None
    method: str
    level: float
    """At which this look decides: lower before the grid is complete."""
    decision: Decision
    needed: int
    bounds: PairBounds | None
    repeats: RepeatPlan | None
    on_reward: OnReward | None = None
    """None where rewards say no more than passed or not."""

    @property
    def disagreements(self) -> int:
        """Return the number of cases on which the two differ."""
        return self.a_more + self.b_more

    @property
    def better(self) -> str | None:
        """Return the name of the better one, None where that is not decided."""
        if self.decision is Decision.A_BETTER:
            return self.a
        return self.b if self.decision is Decision.B_BETTER else None

    @property
    def sweep_could_not_decide(self) -> bool:
        """Tell whether disagreements are too few for even a clean sweep of them to decide."""
        return 0 < self.disagreements < self.needed

    def is_close(self, alpha: float) -> bool:
        """Tell whether it would be decided at ``alpha``, but is not at the level of this look."""
        return not self.better and self.adjusted_p is not None and self.adjusted_p < alpha

    @property
    def detectable(self) -> float | None:
        """Return the least true difference that these cases show in 4 of 5 runs, as a share."""
        if not self.cases or not self.disagreements:
            return None
        if self.repeats is not None:
            return self.repeats.least_detectable_difference()
        return _detectable(self.cases, self.disagreements)

    @property
    def in_words(self) -> str:
        """Return the verdict."""
        if not self.cases:
            return "no case to compare yet"
        return f"{self.better} better" if self.better else str(self.decision)


def compare(
    passes: Mapping[str, Passes],
    repeats: int,
    *,
    alpha: float,
    level: float,
    baseline: str | None = None,
    midp: bool = False,
    rewards: Mapping[str, Rewards] | None = None,
) -> tuple[Pair, ...]:
    """Compare all pairs, or each candidate with the baseline; Holm over all that are declared.

    ``level`` is that of this look, ``alpha`` that of the complete grid. With ``midp`` pairs of one
    repeat are decided by the mid-p, which ``method`` then names.

    ``passes`` is by candidate, in the order in which pairs are to be shown; each has the same
    cases. A case enters a pair when both have a verdict of all its repeats. ``rewards`` is given
    where they say more than passed or not.
    """
    names = list(passes)
    if baseline is not None and baseline in passes:
        declared = [(name, baseline) for name in names if name != baseline]
    else:
        declared = list(combinations(names, 2))
    family = len(declared)
    whole = {name: _whole(by_case, repeats) for name, by_case in passes.items()}
    found = [
        _Compared.of(passes[a], passes[b], repeats, (whole[a], whole[b]), midp=midp)
        for a, b in declared
    ]
    tested = [pair for pair in found if pair.cases]
    adjusted = iter(holm([pair.p for pair in tested], family))
    pairs = tuple(
        pair.judged(
            a, b, passes, repeats, next(adjusted) if pair.cases else None, (alpha, level), family
        )
        for (a, b), pair in zip(declared, found, strict=True)
    )
    return pairs if rewards is None else _with_rewards(pairs, passes, repeats, rewards)


def _with_rewards(
    pairs: Sequence[Pair],
    passes: Mapping[str, Passes],
    repeats: int,
    rewards: Mapping[str, Rewards],
) -> tuple[Pair, ...]:
    compared: dict[int, tuple[Difference, SignFlip]] = {}
    for number, pair in enumerate(pairs):
        a, b = passes[pair.a], passes[pair.b]
        shared = [case for case in a if a[case][1] == repeats == b[case][1]]
        scores = [
            CaseScores.of_rewards([rewards[name][case] for case in shared])
            for name in (pair.a, pair.b)
        ]
        difference = paired_difference(scores[0], scores[1])
        if difference is not None:
            compared[number] = difference, sign_flip(case_differences(scores[0], scores[1]))
    adjusted = holm([test.p for _, test in compared.values()], len(pairs))
    found = {
        number: OnReward(difference, test.p, p, test.method)
        for (number, (difference, test)), p in zip(compared.items(), adjusted, strict=True)
    }
    return tuple(replace(pair, on_reward=found.get(n)) for n, pair in enumerate(pairs))


@dataclass(frozen=True)
class _Compared:
    """A pair before the family is known."""

    cases: int
    left_out: int
    a: CaseScores
    b: CaseScores
    differences: Sequence[int]
    p: float
    method: str
    plan: RepeatPlan | None

    @classmethod
    def of(
        cls,
        a: Passes,
        b: Passes,
        repeats: int,
        whole: tuple[CaseScores | None, CaseScores | None],
        *,
        midp: bool = False,
    ) -> _Compared:
        a_scores, b_scores = whole
        if a_scores is None or b_scores is None:
            shared = [case for case in a if a[case][1] == repeats == b[case][1]]
            attempts = [repeats] * len(shared)
            a_scores = CaseScores.of_passes([a[case][0] for case in shared], attempts)
            b_scores = CaseScores.of_passes([b[case][0] for case in shared], attempts)
        a_passes, b_passes = a_scores.numerators, b_scores.numerators
        attempts = [repeats] * len(a_scores)
        differences = case_differences(a_scores, b_scores)
        test = sign_flip(differences)
        plan = repeat_plan(a_passes, b_passes, attempts, attempts) if repeats > 1 else None
        left_out = len(a) - len(a_scores)
        method = test.method
        if (
            test.draws is None
        ):  # by the design, and not by what sizes the differences happen to have
            method = "exact McNemar" if repeats == 1 else "exact sign-flip"
        p = test.p
        if midp and repeats == 1:
            counts = pair_counts(differences)
            p, method = mcnemar_midp(counts.a_more, counts.b_more), MIDP
        return cls(len(a_scores), left_out, a_scores, b_scores, differences, p, method, plan)

    def judged(
        self,
        a: str,
        b: str,
        passes: Mapping[str, Passes],
        repeats: int,
        adjusted_p: float | None,
        levels: tuple[float, float],
        family: int,
    ) -> Pair:
        counts = pair_counts(self.differences)
        alpha, level = levels
        single = repeats == 1
        rows = list(zip(self.a.numerators, self.b.numerators, strict=True))
        bounds = None
        if self.left_out:
            bounds = pair_bounds(
                [passed for passed, _ in passes[a].values()],
                [judged for _, judged in passes[a].values()],
                [passed for passed, _ in passes[b].values()],
                [judged for _, judged in passes[b].values()],
                repeats,
                comparisons=family,
                alpha=alpha,
            )
        return Pair(
            a=a,
            b=b,
            cases=self.cases,
            left_out=self.left_out,
            a_more=counts.a_more,
            b_more=counts.b_more,
            alike=counts.alike,
            both=sum(x == y == 1 for x, y in rows) if single else None,
            neither=sum(x == y == 0 for x, y in rows) if single else None,
            difference=paired_difference(self.a, self.b),
            p=self.p if self.cases else None,
            adjusted_p=adjusted_p,
            midp=mcnemar_midp(counts.a_more, counts.b_more) if single and self.cases else None,
            method=self.method,
            level=level,
            decision=Decision.UNDECIDED
            if adjusted_p is None
            else decide(adjusted_p, counts.net, counts.disagreements, level),
            needed=min_disagreements(family, alpha),
            bounds=bounds,
            repeats=self.plan,
        )


def _whole(by_case: Passes, repeats: int) -> CaseScores | None:
    """Return the scores of one whose cases are all complete: the same in each of its pairs."""
    if any(judged != repeats for _, judged in by_case.values()):
        return None
    return CaseScores.of_passes(
        [passed for passed, _ in by_case.values()], [repeats] * len(by_case)
    )


@lru_cache(maxsize=4096)
def _detectable(cases: int, disagreements: int) -> float | None:
    return least_detectable_difference(cases, disagreements / cases)
