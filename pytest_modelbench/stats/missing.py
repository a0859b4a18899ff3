"""Bounds for cells without a verdict: what they could change, had they all passed or failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_modelbench.stats.family import Decision, decide
from pytest_modelbench.stats.paired import pair_counts, sign_flip


class Bounds(NamedTuple):
    """Hold the least and the most that a number could be with every verdict in."""

    low: float
    high: float


class PairBounds(NamedTuple):
    """Hold a difference (A minus B) and a decision at either extreme of what is missing."""

    difference: Bounds
    worst_for_a: Decision
    best_for_a: Decision

    @property
    def holds_either_way(self) -> bool:
        """Say whether the decision is the same whatever the missing verdicts are."""
        return self.worst_for_a == self.best_for_a


def rate_bounds(
    passes: Sequence[int], verdicts: Sequence[int], attempts: Sequence[int]
) -> Bounds | None:
    """Return the pass rate had all missing attempts failed, and had all passed.

    One number per case: passes, verdicts that exist, attempts declared. Cases weigh equally. None
    without cases.
    """
    if not attempts:
        return None
    low = high = 0.0
    rows = zip(passes, verdicts, attempts, strict=True)
    for position, (passed, judged, declared) in enumerate(rows):
        if not (0 <= passed <= judged <= declared and declared > 0):
            raise ValueError(
                f"case {position} has {passed} passes of {judged} verdicts of {declared} attempts"
            )
        low += passed / declared
        high += (passed + declared - judged) / declared
    return Bounds(low / len(attempts), high / len(attempts))


def pair_bounds(
    a_passes: Sequence[int],
    a_verdicts: Sequence[int],
    b_passes: Sequence[int],
    b_verdicts: Sequence[int],
    attempts: int,
    *,
    comparisons: int = 1,
    alpha: float = 0.05,
) -> PairBounds | None:
    """Compare A and B with every missing attempt against A, and with every one for A.

    ``attempts`` is the declared number for each case and candidate. p is multiplied by the number
    of comparisons (Bonferroni: the other pairs are not known here). None without cases.
    """
    cases = len(a_passes)
    for passes, verdicts in ((a_passes, a_verdicts), (b_passes, b_verdicts)):
        rate_bounds(passes, verdicts, [attempts] * cases)
    if cases == 0:
        return None
    rows = list(zip(a_passes, a_verdicts, b_passes, b_verdicts, strict=True))
    worst = [a - (b + attempts - judged) for a, _, b, judged in rows]
    best = [a + attempts - judged - b for a, judged, b, _ in rows]
    decisions = []
    for differences in (worst, best):
        counts = pair_counts(differences)
        p = min(sign_flip(differences).p * comparisons, 1.0)
        decisions.append(decide(p, counts.net, counts.disagreements, alpha))
    scale = attempts * cases
    return PairBounds(Bounds(sum(worst) / scale, sum(best) / scale), decisions[0], decisions[1])
