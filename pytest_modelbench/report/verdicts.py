"""Results in words: what a pair rests on, why it is decided or not, and what to look at next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from pytest_modelbench.report.numbers import plural
from pytest_modelbench.report.pairs import OnReward, Pair
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.stats import (
    Decision,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
)
from pytest_modelbench.words import BUILT_IN


def verdict_notes(pair: Pair, names: tuple[str, str], alpha: float, *, complete: bool) -> list[str]:
    """Return notes on a pair that has cases; ``names`` as they are shown."""
    a, b = names
    cases = plural(pair.cases, "case")
    if pair.both is not None:
        counts = f"of {cases} both pass {pair.both}, only {a} {pair.a_more}, "
        counts += f"only {b} {pair.b_more}, neither {pair.neither}"
    else:
        counts = f"of {cases} {a} is better on {pair.a_more}, {b} on {pair.b_more}, "
        counts += f"alike {pair.alike}"
    notes = [counts, *_why(pair, alpha, complete=complete)]
    if pair.on_reward is not None:
        notes.append(on_reward(pair.on_reward, pair.level))
    return notes


def why_not_yet(pair: Pair, alpha: float, *, complete: bool) -> str:
    """Return why a p below the level of a declared grid decides nothing at this look."""
    if not complete:
        return f"below {alpha:g}, but the grid is not complete: no verdict before it is"
    return f"below {alpha:g}, but not below {pair.level:.2g}, the level since the grid was resized"


def next_commands(card: Scorecard, *, compared: bool = False) -> list[str]:
    """Return what to look at next: the two that lead (not if ``compared``), and one that failed."""
    rows = [row for row in card.rows if row.candidate not in BUILT_IN and row.verdicts]
    commands = []
    if card.pairs and len(rows) > 1 and not compared:
        names = " ".join(shlex.quote(row.candidate) for row in rows[:2])
        commands.append(f"modelbench compare {names}")
    solved = set(card.solved_by_none)
    failed = [
        (case in solved, case, row.candidate)
        for row in rows
        for case, (passed, judged) in row.by_case.items()
        if passed == 0 < judged
    ]
    if failed:
        _, case, name = min(failed)
        commands.append(f"modelbench show {shlex.quote(f'{case}:{name}:1')}")
    return commands


def interval_methods(card: Scorecard, names: Mapping[str, str]) -> str:
    """Return how the rates' intervals were come by, and whose is which where they differ."""
    by_method: dict[str, list[str]] = {}
    for row in card.rows:
        if row.interval is not None:
            by_method.setdefault(row.interval.method, []).append(names[row.candidate])
    if len(by_method) < 2:
        return "".join(by_method)
    rarer = sorted(by_method, key=lambda method: (len(by_method[method]), method))
    told = [f"{method} ({', '.join(by_method[method])})" for method in rarer[:-1]]
    others = "the other" if len(by_method[rarer[-1]]) == 1 else "the others"
    return ", ".join([*told, f"{rarer[-1]} ({others})"])


def on_reward(found: OnReward, level: float) -> str:
    """Return what a pair comes to on mean reward, in points of a hundredth."""
    apart = f"{format_points(found.difference.value)} pt"
    ends = format_points_interval(found.difference.interval)
    p = format_p(found.adjusted_p, level)
    return f"on mean reward {apart} {ends}, p {p}; the verdict is on passes"


def _why(pair: Pair, alpha: float, *, complete: bool) -> list[str]:
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
    elif pair.is_close(alpha):
        notes.append(why_not_yet(pair, alpha, complete=complete))
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
