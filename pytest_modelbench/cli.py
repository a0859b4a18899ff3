"""The ``modelbench`` command: what is not a test run."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_modelbench.errors import ModelbenchError
from pytest_modelbench.settings import CASES, REFERENCES, RESULTS, in_project, project_root

if TYPE_CHECKING:
    from pytest_modelbench.records import Identity

USAGE_ERROR = 4
"""The exit status of bad usage; pytest's."""

MODULES = {
    "import": "benchmarks.tables.importing",
    "fetch-data": "benchmarks.fetching",
    "show": "commands.show",
    "probe": "probe.command",
    "evaluate": "commands.evaluate",
    "compare": "commands.comparison",
    "power": "commands.power",
    "log": "commands.log",
    "regrade": "commands.regrading",
    "audit": "commands.auditing",
    "doctor": "commands.doctor",
}
"""Which module adds a command. Only that of the command that is given is imported."""

INTERRUPTED = 130
"""The exit status after Ctrl-C; a shell's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    try:
        options = _parse(sys.argv[1:] if arguments is None else arguments)
        status: int = options.run(options)
    except ModelbenchError as error:
        print(f"modelbench: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("modelbench: interrupted; what it had written stays", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # of a file that a user named or laid: its name says which
        where = f"{error.filename}: " if error.filename else ""
        print(f"modelbench: {where}{error.strerror or error}", file=sys.stderr)
        return USAGE_ERROR
    return status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = _parser(arguments[0] if arguments else "")
    options, rest = parser.parse_known_args(arguments)
    # Argparse looks for all names where the first one stands; packs may stand behind options, too.
    if rest and not (hasattr(options, "packs") and not any(word[:1] == "-" for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.packs = [*options.packs, *rest]
    return options


def _parser(command: str) -> argparse.ArgumentParser:
    """Return a parser that knows one command; all of them for a word that is none."""
    parser = argparse.ArgumentParser(
        prog="modelbench", description="Work with packs and results; pytest runs them."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    report = commands.add_parser("report", help="print the report over all stored runs")
    report.add_argument("packs", nargs="*", metavar="PACK", help="names of packs (default: all)")
    report.add_argument(
        "--models", default="", metavar="NAME[,NAME...]", help="default: all stored"
    )
    report.add_argument("--results", type=Path, default=in_project(RESULTS), metavar="DIR")
    report.add_argument(
        "--baseline", default=None, metavar="NAME", help="compare each with this one"
    )
    report.add_argument("--interval", choices=["wilson", "jeffreys"], default="wilson")
    report.add_argument("--format", choices=["text", "markdown", "json"], default="text")
    report.set_defaults(run=_report)

    new_pack = commands.add_parser("new-pack", help="write a small sound pack to start from")
    new_pack.add_argument("name", metavar="NAME")
    new_pack.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    new_pack.add_argument("--references", type=Path, default=in_project(REFERENCES), metavar="DIR")
    new_pack.set_defaults(run=_new_pack)

    if command not in commands.choices:
        for name in [command] if command in MODULES else MODULES:
            import_module(f"pytest_modelbench.{MODULES[name]}").add_parser(commands)
    return parser


def _report(options: argparse.Namespace) -> int:
    """Print what is stored, grouped by note; results of an older version of a case are marked."""
    from pytest_modelbench.commands import damages
    from pytest_modelbench.report.data import as_data
    from pytest_modelbench.report.markdown import markdown
    from pytest_modelbench.report.stored import report_all
    from pytest_modelbench.report.terminal import render
    from pytest_modelbench.store.layout import require_stored

    @cache  # asked when all is counted: what counts needs neither packs nor what reads them
    def today() -> Callable[[str, str, str], Identity | None]:
        from pytest_modelbench.today import identities

        return identities(project_root())

    if not options.results.is_dir():
        print(f"modelbench: {options.results} is no folder of results", file=sys.stderr)
        return USAGE_ERROR
    models = [name for name in options.models.split(",") if name]
    require_stored(options.results, options.packs, models)
    report = report_all(
        options.results,
        packs=options.packs or None,
        candidates=models or None,
        identify=lambda pack, case, candidate: today()(pack, case, candidate),
        interval=options.interval,
        baseline=options.baseline,
    )
    damages.tell(report.damages)
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
