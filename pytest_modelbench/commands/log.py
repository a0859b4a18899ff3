"""``modelbench log``: runs, notes and looks, oldest first."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pytest_modelbench.commands import damages
from pytest_modelbench.errors import INTERRUPTED, UsageProblem
from pytest_modelbench.records import Cell
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.numbers import plural
from pytest_modelbench.settings import RESULTS, in_project
from pytest_modelbench.store.entry import Entry
from pytest_modelbench.store.index import Index
from pytest_modelbench.store.looks import Look, Looks
from pytest_modelbench.store.reader import read


@dataclass
class Run:
    """What one run stored, over all its files; verdicts and faults count cells, not tries."""

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
    interrupted: int = 0
    """Cells whose work was done when the run ended, and had no verdict yet: no fault of theirs."""
    certificates: int = 0
    """Attempts that certify cases, beside the cells that the run asked for."""
    fresh: bool = False
    regrades: bool = False
    """Stored work was judged again, and nothing else done."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("log", help="list runs, their notes, and looks")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the log; exit status 0."""
    index = read(options.results)
    looks = Looks.read(options.results)
    runs = runs_of(index)
    if not runs and not looks.looks:
        raise UsageProblem(f"{options.results}: nothing is stored there")
    damages.tell((*index.damages, *looks.damages))
    if options.json:
        told = {
            "runs": [vars(one) for one in runs],
            "looks": [look.model_dump(mode="json", by_alias=True) for look in looks.looks],
        }
        print(json.dumps(told, indent=2))
        return 0
    for line in log_lines(runs, looks.looks, shutil.get_terminal_size().columns):
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
    declared = {
        (header.run, header.pack, name): header.repeats
        for header in index.headers
        for name in header.candidates
    }
    kinds: dict[str, set[bool]] = {}
    ended: dict[tuple[str, Cell], Entry] = {}
    for entry in sorted(index.entries(), key=lambda entry: (entry.started, entry.id)):
        one = runs.setdefault(entry.run, Run(entry.run, entry.started, entry.note))
        if entry.pack not in one.packs:
            one.packs.append(entry.pack)
        kinds.setdefault(entry.run, set()).add(bool(entry.grades))
        asked_for = declared.get((entry.run, entry.pack, entry.candidate), 0)
        if entry.cell.certifies and entry.repeat > asked_for:
            one.certificates += 1
            continue
        if entry.candidate not in one.candidates:
            one.candidates.append(entry.candidate)
        last = ended.get((entry.run, entry.cell))
        if last is None or last.is_fault:  # a verdict beats a fault, and the first one counts
            ended[entry.run, entry.cell] = entry
    for (run, _), entry in ended.items():
        one = runs[run]
        cut_off = entry.is_fault and entry.reason == INTERRUPTED
        one.interrupted += cut_off
        one.faults += entry.is_fault and not cut_off
        one.verdicts += not entry.is_fault
        one.passed += entry.passed
    for run, judged_again in kinds.items():
        runs[run].regrades = judged_again == {True}
    return sorted(runs.values(), key=lambda one: (one.started, one.run))


def log_lines(runs: Iterable[Run], looks: Iterable[Look], width: int = 80) -> list[str]:
    """Return each run and each look, by their times, folded to a width."""
    told: list[tuple[str, list[str]]] = []
    for one in runs:
        lines = [
            f"{one.started[:19]}Z  {'regrade' if one.regrades else 'run'} {one.run}  "
            f"{', '.join(one.packs)}: "
            f"{', '.join(one.candidates) or 'certificates only'}; "
            f"{plural(one.verdicts, 'verdict')} ({one.passed} passed), "
            f"{plural(one.faults, 'fault')}"
            + (f", {one.interrupted} interrupted" if one.interrupted else "")
            + (f"; {plural(one.certificates, 'attempt')} to certify" if one.certificates else "")
            + ("; afresh" if one.fresh else "")
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
    return [
        folded
        for _, lines in sorted(told, key=lambda one: one[0])
        for line in lines
        for folded in textwrap.wrap(
            escape(line),
            max(width, 40),
            subsequent_indent=" " * 6,
            replace_whitespace=False,
            break_on_hyphens=False,
        )
    ]
