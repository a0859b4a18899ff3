"""``modelbench import``: make a pack of a table, and say of every row whether it is a case."""

from __future__ import annotations

import argparse
import json
import shutil
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_modelbench.benchmarks.tables.certifying import (
    Candidate,
    Columns,
    certify,
    counted,
    majority,
)
from pytest_modelbench.benchmarks.tables.checking import read_checks
from pytest_modelbench.benchmarks.tables.comparing import Rule, RuleProblem, parse_rule
from pytest_modelbench.benchmarks.tables.reading import read_table
from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.manifest import Problems
from pytest_modelbench.packs.model import PACK_MANIFEST
from pytest_modelbench.packs.shape import check_id
from pytest_modelbench.settings import CASES, in_project

CASES_FILE = "cases.jsonl"
CERTIFICATION_FILE = "certification.jsonl"
SUMMARY_FILE = "summary.json"
ATTACHMENTS = "attachments"
SHARED = "shared"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "import", help="make a pack of a table of past cases; certify every row"
    )
    parser.add_argument("table", type=Path, metavar="TABLE", help=".csv, .tsv, .jsonl or .xlsx")
    parser.add_argument("--id", required=True, metavar="COLUMN", help="column of the cases' ids")
    parser.add_argument(
        "--input", action="append", required=True, metavar="COLUMN", help="shown; can be repeated"
    )
    parser.add_argument(
        "--expected",
        action="append",
        required=True,
        metavar="COLUMN[=RULE]",
        help="asked for and never shown; compared by exact (default), ci, number[:TOLERANCE], set, "
        "date, ordinal:LOW<HIGH or check (a function of the pack's check.py); can be repeated",
    )
    parser.add_argument(
        "--attachment", action="append", default=[], metavar="COLUMN", help="names a file"
    )
    parser.add_argument("--time", default="", metavar="COLUMN", help="when it happened")
    parser.add_argument("--group", default="", metavar="COLUMN", help="cases that belong together")
    parser.add_argument(
        "--join",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a repeated column: join its cells, a line each",
    )
    parser.add_argument("--shared", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--prompt", default="", metavar="TEXT", help="what is to be done")
    parser.add_argument("--encoding", default="", metavar="NAME", help="default: utf-8")
    parser.add_argument("--name", default="", metavar="NAME", help="default: the file's name")
    parser.add_argument("--cases", type=Path, default=in_project(CASES), metavar="DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Import a table, print the summary; exit status 1 where no row is a case."""
    folder = _folder(options)
    kept = _kept_rules(folder / PACK_MANIFEST)
    expected = _expected(options.expected, kept, folder)
    columns = Columns(
        options.id,
        tuple(options.input),
        expected,
        tuple(options.attachment),
        options.time,
        options.group,
        tuple(options.join),
    )
    shown = {*columns.input, *columns.attachments, columns.id}
    leaked = sorted(shown & {*expected})
    if leaked:
        raise UsageProblem(f"the column {leaked[0]!r} is expected, and would be shown as well")
    found = certify(read_table(options.table, options.encoding), columns)
    written = write_pack(folder, options.table, found, columns, options.prompt, options.shared)
    for line in in_words(found, columns):
        print(line)
    for path, state in written.items():
        print(f"{state}: {path}")
    if not any(one.certified for one in found):
        print(f"\nNo row is a case; {folder / CERTIFICATION_FILE} says why")
        return 1
    print(f"\nIs it sound?  pytest --models reference,seed {folder}")
    return 0


def _folder(options: argparse.Namespace) -> Path:
    """Return the pack's folder; PackProblem where its name cannot be a pack's."""
    name: str = options.name or options.table.stem
    folder: Path = options.cases / name
    problems = Problems()
    check_id("pack", name, folder, None, problems)
    problems.check()
    return folder


def _expected(
    asked: Sequence[str], kept: Mapping[str, str] | None, folder: Path
) -> dict[str, Rule]:
    """Return the rules of the columns that are asked for; those of a pack that is there hold.

    UsageProblem where the pack asks for other columns, or compares one otherwise.
    """
    checks = read_checks(folder)
    expected = {}
    for text in asked:
        name, _, rule = text.partition("=")
        try:
            expected[name] = parse_rule(rule or (kept or {}).get(name, "exact"), name, checks)
        except RuleProblem as problem:
            raise UsageProblem(f"--expected {text}: {problem}") from None
    rules = {name: rule.text for name, rule in expected.items()}
    if kept is not None and rules != kept:
        raise UsageProblem(
            f"{folder / PACK_MANIFEST}: compares {_told(kept)}, and --expected asks for "
            f"{_told(rules)}; change [benchmark.fields] there, or --expected here"
        )
    return expected


def _told(rules: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={rule}" for name, rule in rules.items()) or "nothing"


def _kept_rules(manifest: Path) -> dict[str, str] | None:
    """Return the rules of a pack that is there, by column; None where there is none yet."""
    try:
        told = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageProblem(f"{manifest}: cannot be read: {error}; mend it") from None
    benchmark = told.get("benchmark")
    fields = benchmark.get("fields") if isinstance(benchmark, dict) else None
    if not isinstance(benchmark, dict) or benchmark.get("use") != "table":
        raise UsageProblem(f"{manifest}: is the manifest of another pack; use another --name")
    return {name: str(rule) for name, rule in fields.items()} if isinstance(fields, dict) else {}


def write_pack(
    folder: Path,
    table: Path,
    found: Sequence[Candidate],
    columns: Columns,
    prompt: str = "",
    shared: Sequence[Path] = (),
) -> dict[Path, str]:
    """Write a pack, or bring one up to date: its manifest is written once and kept from then on.

    Return what became of each file: written, rewritten or unchanged.
    Splits go by ids and groups, so that no case moves when others come or go.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / PACK_MANIFEST
    states = {}
    if not manifest.exists():
        states[manifest] = _write(manifest, _manifest(folder.name, columns, prompt))
    _copy_files(folder, table, found, shared)
    summary = json.dumps(summarized(found, columns), indent=2, ensure_ascii=False)
    texts = {
        CASES_FILE: _lines(_case_line(one) for one in found if one.certified),
        CERTIFICATION_FILE: _lines(_row_line(one) for one in found),
        SUMMARY_FILE: f"{summary}\n",
    }
    return states | {folder / name: _write(folder / name, text) for name, text in texts.items()}


def summarized(found: Sequence[Candidate], columns: Columns) -> dict[str, object]:
    """Return how many rows are cases, why others are not, and what guessing would get."""
    return {
        "rows": len(found),
        "certified": sum(one.certified for one in found),
        "reasons": dict(sorted(counted(found).items())),
        "majority": {
            name: {"outcome": outcome, "share": round(share, 4)}
            for name, (outcome, share) in majority(found, columns.expected).items()
        },
    }


SHOWN = 20
"""Rows that are named one by one when a table is imported; the file has them all."""


def in_words(found: Sequence[Candidate], columns: Columns) -> list[str]:
    """Return the summary as lines for a terminal."""
    certified = sum(one.certified for one in found)
    lines = [f"{len(found)} rows, {certified} certified"]
    lines += [f"  {number} {reason}" for reason, number in sorted(counted(found).items())]
    refused = [one for one in found if not one.certified]
    for one in refused[:SHOWN]:
        said = "; ".join(f"{why}: {what}" if what else why for why, what in one.reasons)
        lines.append(f"  {one.row.place}, {one.id or 'without id'}: {said}")
    if len(refused) > SHOWN:
        lines.append(f"  and {len(refused) - SHOWN} more, in {CERTIFICATION_FILE}")
    noted = [one for one in found if one.notes]
    lines += [
        f"  {one.id} stands for several rows: {'; '.join(one.notes[:3])}" for one in noted[:5]
    ]
    for name, (outcome, share) in majority(found, columns.expected).items():
        lines.append(f"  always guessing {outcome!r} for {name!r} is right in {share:.1%}")
    return lines


def _manifest(name: str, columns: Columns, prompt: str) -> str:
    rules = "".join(
        f"{_toml(field)} = {_toml(rule.text)}\n" for field, rule in columns.expected.items()
    )
    told = _toml(prompt or "Say what the outcome of this case is.")
    return (
        f"# Made by `modelbench import`, once; edit it as you like.\n\n"
        f"[pack]\ntitle = {_toml(name)}\n\n"
        f'[benchmark]\nuse = "table"\nprompt = {told}\n\n'
        f"[benchmark.fields]   # what is asked for, and how it is compared\n{rules}\n"
        "[limits]\nturns = 12\nseconds = 300\n"
    )


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _case_line(one: Candidate) -> dict[str, object]:
    line: dict[str, object] = {"id": one.id, "input": one.input, "expected": one.expected}
    files = {name: f"{one.id}/{Path(path).name}" for name, path in one.attachments.items() if path}
    line |= {"attachments": files} if files else {}
    line |= {key: value for key, value in (("time", one.time), ("group", one.group)) if value}
    return line


def _row_line(one: Candidate) -> dict[str, object]:
    return {
        "record": one.row.record,
        "line": one.row.line,
        "id": one.id,
        "certified": one.certified,
        "reasons": [{"reason": reason, "what": what} for reason, what in one.reasons],
        "notes": one.notes,
    }


def _lines(lines: Iterable[dict[str, object]]) -> str:
    dumped = (json.dumps(line, ensure_ascii=False) for line in lines)
    return "".join(f"{line}\n" for line in dumped).replace("\x7f", "\\u007f")


def _write(path: Path, text: str) -> str:
    """Write a file; return what became of it."""
    data = text.encode()
    before = path.read_bytes() if path.exists() else None
    if before == data:
        return "unchanged"
    path.write_bytes(data)
    return "written" if before is None else "rewritten"


def _copy_files(
    folder: Path, table: Path, found: Sequence[Candidate], shared: Sequence[Path]
) -> None:
    for source in shared:
        if not source.is_file():
            raise UsageProblem(f"--shared {source}: there is no such file")
        (folder / SHARED).mkdir(exist_ok=True)
        if not (folder / SHARED / source.name).exists() or not source.samefile(
            folder / SHARED / source.name
        ):
            shutil.copyfile(source, folder / SHARED / source.name)
    shutil.rmtree(folder / ATTACHMENTS, ignore_errors=True)
    for one in found:
        for name in one.attachments.values() if one.certified else ():
            if name:
                place = folder / ATTACHMENTS / one.id / Path(name).name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(table.parent / name, place)
