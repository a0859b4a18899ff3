"""``modelbench log``: runs, notes and looks, oldest first."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.records import BUILT_IN
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.numbers import plural
from pytest_modelbench.settings import RESULTS
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.looks import Look, Looks
from pytest_modelbench.store.reader import read


@dataclass
class Run:
    """What one run stored, over all its files."""

    run: str
    started: str
    note: str
    packs: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    draw: str = ""
    gates: tuple[str, ...] = ()
    verdicts: int = 0
    passed: int = 0
    faults: int = 0
    fresh: bool = False


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("log", help="list runs, their notes, and looks")
    parser.add_argument("--results", type=Path, default=Path(RESULTS), metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the log; exit status 0."""
    index = read(options.results)
    looks = Looks.read(options.results)
    runs = runs_of(index)
    if not runs and not looks.looks:
        raise UsageProblem(f"{options.results}: nothing is stored there")
    for damage in (*map(str, index.damages), *looks.damages):
        print(f"modelbench: {damage}", file=sys.stderr)
    if options.json:
        told = {
            "runs": [vars(one) for one in runs],
            "looks": [look.model_dump(mode="json", by_alias=True) for look in looks.looks],
        }
        print(json.dumps(told, indent=2))
        return 0
    for line in log_lines(runs, looks.looks):
        print(line)
    return 0


def runs_of(index: Index) -> list[Run]:
    """Return every run that stored something, oldest first."""
    runs: dict[str, Run] = {}
    for header in index.headers:
        one = runs.setdefault(header.run, Run(header.run, header.started, header.note))
        one.gates = header.gates
        one.draw = json.dumps(header.draw) if header.draw else ""
        one.fresh = one.fresh or bool(header.fresh)
        if header.pack not in one.packs:
            one.packs.append(header.pack)
        one.candidates += [name for name in header.candidates if name not in one.candidates]
    for entry in index.entries():
        one = runs.setdefault(entry.run, Run(entry.run, entry.started, entry.note))
        if entry.pack not in one.packs:
            one.packs.append(entry.pack)
        if entry.candidate not in one.candidates and not entry.cell.certifies:
            one.candidates.append(entry.candidate)
        if entry.candidate in BUILT_IN or entry.cell.variant is not None:
            continue
        one.faults += entry.is_fault
        one.verdicts += not entry.is_fault
        one.passed += entry.passed
    return sorted(runs.values(), key=lambda one: (one.started, one.run))


def log_lines(runs: Iterable[Run], looks: Iterable[Look]) -> list[str]:
    """Return a line a run and a line a look, by their times."""
    told: list[tuple[str, list[str]]] = []
    for one in runs:
        lines = [
            f"{one.started[:19]}Z  run {one.run}  {', '.join(one.packs)}: "
            f"{', '.join(one.candidates) or 'certificates only'}; "
            f"{plural(one.verdicts, 'verdict')} ({one.passed} passed), "
            f"{plural(one.faults, 'fault')}" + ("; afresh" if one.fresh else "")
        ]
        lines += [f"    note: {one.note}"] if one.note else []
        lines += [f"    drawn: {one.draw}"] if one.draw else []
        lines += [f"    gate: {text}" for text in one.gates]
        told.append((one.started, lines))
    for look in looks:
        size = f"{plural(len(look.cases), 'case')} x {plural(look.repeats, 'repeat')}"
        state = "complete" if look.complete else "interim"
        state += ", resized" if look.resized else ""
        state += f", split {look.split}" if look.split else ""
        line = f"{look.at[:19]}Z  look {look.number} at {look.pack}: {size}, "
        line += f"{', '.join(look.candidates)}; {state}; "
        line += f"{len(look.shown)} of {plural(look.verdicts, 'verdict')} new; "
        line += f"decided at p < {look.level:.2g} (run {look.run})"
        told.append((look.at, [line]))
    return [escape(line) for _, lines in sorted(told, key=lambda one: one[0]) for line in lines]
