"""``modelbench probe CANDIDATE``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.probe.finding import Finding, Probe
from pytest_modelbench.probe.matrix import heading, remedies, row
from pytest_modelbench.probe.probing import keep, probe
from pytest_modelbench.probe.speed import WIDTHS
from pytest_modelbench.records import Candidate
from pytest_modelbench.settings import RESULTS, in_project, project_root

NOT_ALIVE = 1


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "probe", help="ask a candidate's server what it can do; some twenty short calls"
    )
    parser.add_argument("candidate", metavar="CANDIDATE")
    parser.add_argument("--note", default="", help="how it is served; kept with what is found")
    parser.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    parser.add_argument(
        "--in-flight",
        type=_widths,
        default=WIDTHS,
        metavar="N[,N...]",
        help="requests at once when speed is measured (default: 1,2,4,8)",
    )
    parser.add_argument("--json", action="store_true", help="print what is kept, as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Probe a candidate; exit status 1 when it does not answer."""
    candidate = candidate_named(options.candidate)
    found = probe_and_keep(
        candidate, options.note, options.results, options.in_flight, quiet=options.json
    )
    if options.json:
        print(json.dumps(found.model_dump(mode="json", by_alias=True), indent=1))
    return 0 if found.alive else NOT_ALIVE


def candidate_named(name: str) -> Candidate:
    """Return a candidate of the project in this folder that has a model to ask."""
    (candidate,) = Registry.read(project_root()).resolve([name])
    if not candidate.calls_model or candidate.script:
        raise UsageProblem(f"candidate {name} has no server that could be asked")
    return candidate


def probe_and_keep(
    candidate: Candidate,
    note: str,
    results: Path,
    widths: tuple[int, ...] = WIDTHS,
    *,
    quiet: bool = False,
) -> Probe:
    """Probe a candidate, print each finding as it comes, and keep all of it with the results."""
    utf8 = "utf" in (sys.stdout.encoding or "").lower()
    width = shutil.get_terminal_size().columns

    def said(finding: Finding) -> None:
        if not quiet:
            print("\n".join(row(finding, width, utf8=utf8)), flush=True)

    if not quiet:
        print(heading(candidate.name, candidate.model, candidate.api_base, utf8=utf8), flush=True)
    found = probe(candidate, note=note, widths=widths, said=said)
    path = keep(found, results)
    if not quiet:
        print("\n".join(remedies(found.findings, width, utf8=utf8)))
        print(f"\nkept in {path}")
    return found


def _widths(text: str) -> tuple[int, ...]:
    try:
        widths = tuple(int(part) for part in text.split(","))
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of counts such as 1,2,4")
    return widths
