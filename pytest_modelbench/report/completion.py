"""What would complete a grid, and what of stored runs stands apart from it, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from pytest_modelbench.report.numbers import plural
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.words import BUILT_IN

GRADER = "grader"
"""The kind of a fault in a hidden check, or in what judges by it: trying again does not mend it."""


def what_to_run(card: Scorecard) -> str:
    """Return the command for the cells without a verdict; what it replays costs nothing."""
    kinds = {kind for row in card.rows for kind in row.faults}
    if card.faults == card.cells - card.verdicts and kinds == {GRADER}:
        return f"mend what the faults name, then {_command(card)}"
    return _command(card)


def _command(card: Scorecard) -> str:
    if card.stored:
        names = [row.candidate for row in card.rows if row.missing]
        command = f"pytest --models {_named(names)}"
        if card.grid.repeats > 1:
            command += f" --modelbench-repeats {card.grid.repeats}"
        if card.note:
            command += f" --modelbench-note {shlex.quote(card.note)}"
        return f"{command} with the folder of {card.grid.pack}"
    if card.faults == card.cells - card.verdicts:
        return "pytest --lf"
    told = "pytest with the same arguments"
    return told + (", without --lf, -k, -m and single cases" if card.partial else "")


def whole_without(card: Scorecard) -> str:
    """Return who is complete in a grid that is not, and the command for their scorecard."""
    rows = [row for row in card.rows if row.cells and row.candidate not in BUILT_IN]
    whole = sorted(row.candidate for row in rows if not row.missing)
    if not whole or card.complete:
        return ""
    command = f"modelbench report {shlex.quote(card.grid.pack)} --models {_named(whole)}"
    return f"{', '.join(whole)}: {command}"


def asked_otherwise(card: Scorecard) -> str:
    """Return which candidates stored runs asked something else of, and how to compare them."""
    here = [row.candidate for row in card.rows]
    sizes: dict[tuple[bool, tuple[int, int]], list[str]] = {}
    for name, size in card.others.items():
        if name not in BUILT_IN:
            sizes.setdefault((name in here, size), []).append(name)
    told = []
    for (mine, (cases, repeats)), names in sorted(sizes.items(), reverse=True):
        have = "has" if len(names) == 1 else "have"
        many = f"{plural(cases, 'case')} x {plural(repeats, 'repeat')}"
        told.append(f"{', '.join(names)} {have} {many}")
        told[-1] += ", of which what all have counts" if mine else ""
    measured = [name for name in here if name not in BUILT_IN]
    outside = [name for name in card.others if name not in BUILT_IN and name not in here]
    if measured and outside:
        both = _named([measured[0], outside[0]])
        told.append(f"to compare: modelbench report {shlex.quote(card.grid.pack)} --models {both}")
    return "; ".join(told)


def _named(names: Iterable[str]) -> str:
    return shlex.quote(",".join(names))
