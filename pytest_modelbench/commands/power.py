"""``modelbench power``: how many cases show which difference, before anything is run."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Sequence

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.report.numbers import plural
from pytest_modelbench.stats import (
    cases_needed,
    gate_pass_chance,
    least_detectable_difference,
    min_disagreements,
    power,
)

DIFFERENCES = (3.0, 5.0, 10.0, 15.0)
DISAGREEMENTS = (10.0, 20.0, 30.0)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("power", help="how many cases show which difference")
    parser.add_argument("--cases", type=int, metavar="N", help="what so many cases can show")
    parser.add_argument(
        "--difference", type=float, metavar="POINTS", help="what it takes to show so many points"
    )
    parser.add_argument(
        "--disagreement",
        type=float,
        metavar="PERCENT",
        help="share of cases on which the two differ (default: 10, 20 and 30)",
    )
    parser.add_argument("--margin", type=float, metavar="POINTS", help="of a not-worse-by gate")
    parser.add_argument(
        "--comparisons", type=int, default=1, metavar="M", help="in the family (default: 1)"
    )
    parser.add_argument("--chance", type=float, default=80.0, metavar="PERCENT", help="default: 80")
    parser.add_argument("--alpha", type=float, default=0.05, help="default: 0.05")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table; exit status 0."""
    for name, value, high in (
        ("--cases", options.cases, 1_000_000),
        ("--difference", options.difference, 100),
        ("--disagreement", options.disagreement, 100),
        ("--margin", options.margin, 100),
        ("--comparisons", options.comparisons, 1_000_000),
        ("--chance", options.chance, 99.9),
        ("--alpha", options.alpha, 0.5),
    ):
        if value is not None and not 0 < value <= high:
            raise UsageProblem(f"{name} {value:g} is not above 0 and at most {high}")
    shares = (options.disagreement,) if options.disagreement else DISAGREEMENTS
    for line in plan_lines(
        shares,
        differences=(options.difference,) if options.difference else DIFFERENCES,
        cases=options.cases,
        margin=options.margin,
        comparisons=options.comparisons,
        chance=options.chance / 100,
        alpha=options.alpha,
    ):
        for folded in fold(line, shutil.get_terminal_size().columns):
            print(folded)
    return 0


def fold(line: str, width: int) -> list[str]:
    """Fold a line of the plan; what is folded stands deeper than it."""
    indent = " " * (len(line) - len(line.lstrip()))
    wrapped = textwrap.wrap(
        line, max(width, 40), subsequent_indent=indent + "    ", break_on_hyphens=False
    )
    return wrapped or [""]


def plan_lines(
    disagreements: Sequence[float],
    *,
    differences: Sequence[float] = DIFFERENCES,
    cases: int | None = None,
    margin: float | None = None,
    comparisons: int = 1,
    chance: float = 0.8,
    alpha: float = 0.05,
) -> list[str]:
    """Return what a grid of one attempt a case shows; points and percents, not shares.

    For a family of m comparisons the strictest step of Holm, alpha / m, is planned for.
    """
    level = alpha / comparisons
    among = f", {comparisons} comparisons (alpha {level:.2g} each)" if comparisons > 1 else ""
    lines = [
        f"exact McNemar test, alpha {alpha:g}{among}, a chance of {chance * 100:g} in 100; "
        "one attempt of each case"
    ]
    for percent in disagreements:
        share = percent / 100
        lines += ["", f"the two differ on {percent:g}% of cases:"]
        if cases is not None:
            least = least_detectable_difference(cases, share, chance=chance, alpha=level)
            shown = f"no difference is shown in {chance * 100:g} of 100 runs"
            if least is not None:
                shown = f"{least * 100:.1f} points are shown in {chance * 100:g} of 100 runs"
            lines.append(f"    at {plural(cases, 'case')} {shown}")
            if margin is not None:
                equal = gate_pass_chance(cases, share, margin / 100, conf=1 - 2 * alpha)
                lines.append(
                    f"    a not-worse-by gate of {margin:g} points passes an equally good "
                    f"candidate in {equal * 100:.0f} of 100 runs"
                )
        for points in differences:
            if points > percent:
                lines.append(
                    f"    {points:g} points cannot be: those that differ on {percent:g}% of cases "
                    f"are at most {percent:g} points apart"
                )
                continue
            needed = cases_needed(share, points / 100, chance=chance, alpha=level)
            told = f"    {points:g} points need "
            told += "more than ten million cases" if needed is None else plural(needed, "case")
            if cases is not None:
                now = power(cases, share, points / 100, level)
                told += (
                    f"; at {plural(cases, 'case')} they are shown in {now * 100:.0f} of 100 runs"
                )
            lines.append(told)
    least_cases = min_disagreements(comparisons, alpha)
    lines += ["", f"below {least_cases} cases that differ, not even a clean sweep decides"]
    return lines
