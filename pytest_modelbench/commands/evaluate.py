"""``modelbench evaluate CANDIDATE``: probe it, run the packs with it alone, compare with all."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.reading import find_packs, read_pack
from pytest_modelbench.probe.command import NOT_ALIVE, candidate_named, probe_and_keep
from pytest_modelbench.records import BUILT_IN
from pytest_modelbench.report.stored import card_of
from pytest_modelbench.report.terminal import render
from pytest_modelbench.settings import CASES, REFERENCES, RESULTS, in_project, project_root
from pytest_modelbench.store.reader import read
from pytest_modelbench.today import identities


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "evaluate",
        help="probe a candidate, run the packs with it, and report it beside all measured before",
    )
    parser.add_argument("candidate", metavar="CANDIDATE")
    parser.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    parser.add_argument("--note", required=True, help="how the model is served")
    parser.add_argument("--repeats", type=int, default=1, metavar="N")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    parser.add_argument(
        "--workers", type=int, default=0, metavar="N", help="cells at once (default: one)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do all of it; the exit status is the test run's, or 1 when the candidate does not answer."""
    candidate = candidate_named(options.candidate)
    packs = find_packs([options.cases])
    for name in options.packs:
        if name not in [folder.name for folder in packs]:
            there = ", ".join(folder.name for folder in packs) or "no pack at all"
            raise UsageProblem(f"{options.cases} has no pack {name!r}, but {there}")
    if not probe_and_keep(candidate, options.note, options.results).alive:
        return NOT_ALIVE
    folders = [folder for folder in packs if not options.packs or folder.name in options.packs]
    print(flush=True)
    # A program of its own, as the user would start it: nothing of this process can colour it.
    command = [sys.executable, "-m", "pytest", "--models", candidate.name]
    command += ["--modelbench-note", options.note, "--modelbench-repeats", str(options.repeats)]
    command += ["--modelbench-results", str(options.results)]
    command += ["-n", str(options.workers)] if options.workers else []
    status = subprocess.run([*command, *map(str, folders)], check=False).returncode
    for name in (read_pack(folder, in_project(REFERENCES)).name for folder in folders):
        print("\n".join(_beside_all(name, candidate.name, options.results)), end="\n\n")
    return status


def _beside_all(pack: str, candidate: str, results: Path) -> list[str]:
    """Return the scorecard of a candidate beside all that were tried on each case that it was.

    Whatever notes the runs had: the question is which model is better, as it is served.
    """
    index = read(results, packs=[pack], details=True)
    cases = {cell.case for cell in index.cells(pack, candidate)}
    names = [
        name
        for name in index.candidates(pack)
        if not _certifies(name) and cases <= {cell.case for cell in index.cells(pack, name)}
    ]
    card = card_of(index, pack, names, identities(project_root())) if cases else None
    if card is None:
        return [f"{pack}: nothing is stored of {candidate}"]
    utf8 = "utf" in (sys.stdout.encoding or "").lower()
    return render(card, shutil.get_terminal_size().columns, utf8)


def _certifies(name: str) -> bool:
    return name.partition("+")[0] in BUILT_IN
