"""The ``modelbench`` command: what is not a test run."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_modelbench.benchmarks import fetching
from pytest_modelbench.benchmarks.tables import importing
from pytest_modelbench.commands import (
    auditing,
    comparison,
    doctor,
    evaluate,
    log,
    power,
    regrading,
    show,
)
from pytest_modelbench.errors import ModelbenchError
from pytest_modelbench.probe import command as probing
from pytest_modelbench.settings import CASES, REFERENCES, RESULTS

USAGE_ERROR = 4
"""The exit status of bad usage; pytest's."""

INTERRUPTED = 130
"""The exit status after Ctrl-C; a shell's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parse(arguments)
    try:
        status: int = options.run(options)
    except ModelbenchError as error:
        print(f"modelbench: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("modelbench: interrupted; what it had written stays", file=sys.stderr)
        return INTERRUPTED
    return status


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # Argparse looks for all names where the first one stands; packs may stand behind options, too.
    if rest and not (hasattr(options, "packs") and not any(word[:1] == "-" for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.packs = [*options.packs, *rest]
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="modelbench", description="Work with packs and results; pytest runs them."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    report = commands.add_parser("report", help="print the report over all stored runs")
    report.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    report.add_argument(
        "--models", default="", metavar="NAME[,NAME...]", help="default: all stored"
    )
    report.add_argument("--results", type=Path, default=Path(RESULTS), metavar="DIR")
    report.add_argument(
        "--baseline", default=None, metavar="NAME", help="compare each with this one"
    )
    report.add_argument("--interval", choices=["wilson", "jeffreys"], default="wilson")
    report.add_argument("--format", choices=["text", "markdown", "json"], default="text")
    report.set_defaults(run=_report)

    new_pack = commands.add_parser("new-pack", help="write a small sound pack to start from")
    new_pack.add_argument("name", metavar="NAME")
    new_pack.add_argument("--cases", type=Path, default=Path(CASES), metavar="DIR")
    new_pack.add_argument("--references", type=Path, default=Path(REFERENCES), metavar="DIR")
    new_pack.set_defaults(run=_new_pack)

    importing.add_parser(commands)
    fetching.add_parser(commands)
    show.add_parser(commands)
    probing.add_parser(commands)
    evaluate.add_parser(commands)
    comparison.add_parser(commands)
    power.add_parser(commands)
    log.add_parser(commands)
    regrading.add_parser(commands)
    auditing.add_parser(commands)
    doctor.add_parser(commands)
    return parser


def _report(options: argparse.Namespace) -> int:
    """Print what is stored, grouped by note; results of an older version of a case are marked."""
    from pytest_modelbench.report.data import as_data
    from pytest_modelbench.report.markdown import markdown
    from pytest_modelbench.report.stored import report_all
    from pytest_modelbench.report.terminal import render
    from pytest_modelbench.store.layout import require_stored
    from pytest_modelbench.today import identities

    if not options.results.is_dir():
        print(f"modelbench: {options.results} is no folder of results", file=sys.stderr)
        return USAGE_ERROR
    models = [name for name in options.models.split(",") if name]
    require_stored(options.results, options.packs, models)
    report = report_all(
        options.results,
        packs=options.packs or None,
        candidates=models or None,
        identify=identities(Path.cwd()),
        interval=options.interval,
        baseline=options.baseline,
    )
    for damage in report.damages:
        print(f"modelbench: {damage}", file=sys.stderr)
    if not report.cards:
        print("modelbench: no results of candidates are stored there", file=sys.stderr)
        return USAGE_ERROR
    if options.format == "json":
        print(json.dumps([as_data(card) for card in report.cards], indent=2))
        return 0
    for card in report.cards:
        if options.format == "markdown":
            print(markdown(card))
            continue
        utf8 = "utf" in (sys.stdout.encoding or "").lower()
        width = shutil.get_terminal_size().columns
        print("\n".join(render(card, width, utf8)), end="\n\n")
    return 0


def _new_pack(options: argparse.Namespace) -> int:
    """Write a pack and say what to do with it."""
    from pytest_modelbench.packs.writing import new_pack

    for path in new_pack(options.name, options.cases, options.references):
        print(path)
    print(f"\nIs it sound?  pytest --models reference,seed {options.cases / options.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
