"""``modelbench compare A B``: two candidates case by case, from all that is stored of them."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

from pytest_modelbench.commands import damages
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.report.data import as_data
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.rows import CaseFigures, Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.report.stored import card_of
from pytest_modelbench.report.terminal import render
from pytest_modelbench.settings import RESULTS, in_project, project_root
from pytest_modelbench.stats import CostRatio, Interval, TimeQuantile, cost_ratio, time_ratio
from pytest_modelbench.store.layout import require_stored, stored_candidates
from pytest_modelbench.store.reader import read
from pytest_modelbench.today import identities

MOST_CASES = 12
"""Cases named in a line; the others are counted."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("compare", help="compare two candidates case by case")
    parser.add_argument("a", metavar="A")
    parser.add_argument("b", metavar="B")
    parser.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--json", action="store_true", help="unrounded, with methods named")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the comparison; exit status 0. It counts as no look: those are of test runs."""
    a, b = options.a, options.b
    if a == b:
        raise UsageProblem(f"{a} cannot be compared with itself")
    require_stored(options.results, options.packs)
    identify = identities(project_root())
    stored = stored_candidates(options.results)
    cards = []
    for pack in dict.fromkeys(pack for pack, _ in stored):
        if {(pack, a), (pack, b)} <= {*stored} and pack in (options.packs or [pack]):
            index = read(options.results, {pack}, {a, b}, details=True)
            damages.tell(index.damages)
            card = card_of(index, pack, [a, b], identify)
            cards += [card] if card is not None else []
    if not cards:
        raise UsageProblem(
            f"{options.results}: no pack has results of both {a} and {b} on the same case; "
            "`modelbench log` lists what is stored"
        )
    if options.json:
        print(json.dumps([as_data(card) | _data(card, a, b) for card in cards], indent=2))
        return 0
    utf8 = "utf" in (sys.stdout.encoding or "").lower()
    width = shutil.get_terminal_size().columns
    for card in cards:
        lines = [
            *render(card, width, utf8, compared=True),
            *comparison_lines(card, a, b, width, utf8=utf8),
        ]
        print("\n".join(lines), end="\n\n")
    return 0


def comparison_lines(
    card: Scorecard, a: str, b: str, width: int = 80, *, utf8: bool = True
) -> list[str]:
    """Return which cases the two differ on, and their ratios of cost and time."""
    first, second = _row(card, a), _row(card, b)
    better, worse = differing(card, first, second)
    lines = []
    for label, name, cases in (("better", a, better), ("better", b, worse)):
        told = f"{name} on {len(cases)}: {_named(cases)}" if cases else f"{name} on no case"
        lines += _folded(label, escape(told, utf8=utf8), width)
    cost, time = ratios(card, first, second)
    for label, found in (("cost", cost), ("time", time)):
        unit = "a pass" if label == "cost" else "an attempt, median over cases"
        told = "not known of both" if found is None else f"{_times(found)} {unit}"
        lines += _folded(label, escape(f"{a} / {b}: {told}", utf8=utf8), width)
    return lines


def differing(card: Scorecard, a: Row, b: Row) -> tuple[list[str], list[str]]:
    """Return the cases that A passed more often, and those that B did, of those both finished."""
    better: list[str] = []
    worse: list[str] = []
    for case in _finished(card, a, b):
        difference = a.by_case[case][0] - b.by_case[case][0]
        if difference:
            (better if difference > 0 else worse).append(case)
    return better, worse


def ratios(card: Scorecard, a: Row, b: Row) -> tuple[CostRatio | None, TimeQuantile | None]:
    """Return A over B of the cost per pass and of the time of an attempt, of what both finished."""
    finished = _finished(card, a, b)
    mine, theirs = ([row.figures[case] for case in finished] for row in (a, b))
    cost = cost_ratio(_costs(mine), _passes(mine), _costs(theirs), _passes(theirs))
    times = [
        (one.seconds, other.seconds)
        for one, other in zip(mine, theirs, strict=True)
        if one.seconds is not None and other.seconds is not None
    ]
    timed = [(x, y) for x, y in times if x > 0 and y > 0]
    return cost, time_ratio([x for x, _ in timed], [y for _, y in timed])


def _finished(card: Scorecard, a: Row, b: Row) -> list[str]:
    """Return the cases of which both have every verdict: those that the pairs are made of."""
    return [
        case
        for case in card.cases
        if all(row.by_case.get(case, (0, 0))[1] == card.grid.repeats for row in (a, b))
    ]


def _costs(figures: Iterable[CaseFigures]) -> list[float | None]:
    return [one.list_usd for one in figures]


def _passes(figures: Iterable[CaseFigures]) -> list[int]:
    return [one.passes for one in figures]


def _row(card: Scorecard, name: str) -> Row:
    return next(row for row in card.rows if row.candidate == name)


def _times(found: CostRatio | TimeQuantile) -> str:
    if found.interval is None:
        return f"{found.value:.2f} times (too few cases for an interval)"
    low, high, method = found.interval
    return f"{found.value:.2f} times [{low:.2f} to {high:.2f}] ({method})"


def _named(cases: list[str]) -> str:
    rest = len(cases) - MOST_CASES
    return ", ".join(cases[:MOST_CASES]) + (f" and {rest} more" if rest > 0 else "")


# Any of JSON: object, since json.dumps takes what it knows
def _data(card: Scorecard, a: str, b: str) -> dict[str, object]:
    first, second = _row(card, a), _row(card, b)
    better, worse = differing(card, first, second)
    cost, time = ratios(card, first, second)
    return {
        "a_better_on": better,
        "b_better_on": worse,
        "cost_per_pass_ratio": _ratio(cost),
        "time_ratio": _ratio(time),
    }


def _ratio(found: CostRatio | TimeQuantile | None) -> dict[str, object] | None:
    if found is None:
        return None
    interval: Interval | None = found.interval
    return {
        "value": found.value,
        "interval": None
        if interval is None
        else {"low": interval.low, "high": interval.high, "method": interval.method},
    }


def _folded(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        f"{label:9}{text}", max(width, 40), subsequent_indent=" " * 11, break_on_hyphens=False
    )
