"""What stands below a pair: the counts it rests on, and why it is decided or not, in words."""

from __future__ import annotations

from pytest_modelbench.report.numbers import plural
from pytest_modelbench.report.pairs import OnReward, Pair
from pytest_modelbench.stats import (
    Decision,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
)


def verdict_notes(pair: Pair, names: tuple[str, str], alpha: float) -> list[str]:
    """Return notes on a pair that has cases; ``names`` as they are shown."""
    a, b = names
    cases = plural(pair.cases, "case")
    if pair.both is not None:
        counts = f"of {cases} both pass {pair.both}, only {a} {pair.a_more}, "
        counts += f"only {b} {pair.b_more}, neither {pair.neither}"
    else:
        counts = f"of {cases} {a} is better on {pair.a_more}, {b} on {pair.b_more}, "
        counts += f"alike {pair.alike}"
    notes = [counts, *_why(pair, alpha)]
    if pair.on_reward is not None:
        notes.append(on_reward(pair.on_reward, pair.level))
    return notes


def on_reward(found: OnReward, level: float) -> str:
    """Return what a pair comes to on mean reward, in points of a hundredth."""
    apart = f"{format_points(found.difference.value)} pt"
    ends = format_points_interval(found.difference.interval)
    p = format_p(found.adjusted_p, level)
    return f"on mean reward {apart} {ends}, p {p}; the verdict is on passes"


def _why(pair: Pair, alpha: float) -> list[str]:
    notes = []
    if pair.left_out:
        notes.append(f"{plural(pair.left_out, 'case')} left out: not all verdicts are there")
    if pair.decision is Decision.AGREE:
        notes.append(str(Decision.AGREE))
    elif pair.better:
        if pair.bounds and pair.bounds.holds_either_way:
            notes.append("and stays so whichever way the missing cells fall")
        elif pair.bounds:
            notes.append("the missing cells could still change this")
    elif pair.adjusted_p is not None and pair.adjusted_p < alpha:
        notes.append("below 0.05, but the grid is not complete: no verdict before it is")
    else:
        notes.append(str(Decision.UNDECIDED))
        if (
            pair.difference
            and not pair.difference.interval.low <= 0 <= pair.difference.interval.high
        ):
            notes[-1] += " (the interval alone would exclude 0)"
        notes += _reach(pair)
    return notes


def _reach(pair: Pair) -> list[str]:
    """Say what these cases could have shown."""
    if pair.sweep_could_not_decide:
        differ = "1 case differs" if pair.disagreements == 1 else f"{pair.disagreements} differ"
        return [
            f"{differ}: even a clean sweep of {pair.disagreements} could not decide; it takes "
            f"{pair.needed} all one way"
        ]
    least = pair.detectable
    if least is None:
        return ["no difference at all could be shown at this disagreement"]
    return [f"these cases could show about {format_percent(min(least, 1.0))} points"]
