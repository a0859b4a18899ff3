"""Which rows of a table can be cases, and why the others cannot."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pytest_modelbench.benchmarks.tables.comparing import Rule, best_guess, folded
from pytest_modelbench.benchmarks.tables.reading import Row, TableFile
from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.shape import LONGEST_ID

NO_ID = "no-id"
DUPLICATE_ID = "duplicate-id"
UNFIT_ID = "unfit-id"
UNLABELLED = "unlabelled"
MISSING_ATTACHMENT = "missing-attachment"
CONFLICTING = "conflicting-outcomes"
NOT_GRADABLE = "outcome-not-gradable"
EMPTY = "empty-input"
GOLD_IN_INPUT = "gold-in-input"
REPEATED = "repeated"
TOO_MANY = "too-many-cells"
UNCALCULATED = "uncalculated"


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are for. A repeated one is joined where ``join`` names it."""

    id: str
    input: tuple[str, ...]
    expected: Mapping[str, Rule]
    attachments: tuple[str, ...] = ()
    time: str = ""
    group: str = ""
    join: tuple[str, ...] = ()


@dataclass
class Candidate:
    """A row on its way to be a case. ``reasons`` are those why it cannot, each with what it is."""

    row: Row
    id: str
    input: dict[str, str]
    expected: dict[str, str]
    attachments: dict[str, str]
    time: str = ""
    group: str = ""
    reasons: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def certified(self) -> bool:
        """Tell whether it is a case."""
        return not self.reasons


def certify(table: TableFile, columns: Columns) -> list[Candidate]:
    """Return every row, with all the reasons that it has; PackProblem where a column is missing.

    Inputs are the same where they are equal with their spaces folded; capitals count. Of rows with
    equal inputs and equal outcomes the first is the case.
    """
    where = _places(table, columns)
    found = [_candidate(row, where, columns) for row in table.rows]
    _check_ids(found)
    for one in found:
        if one.row.found:
            told = f"{one.row.found}, and the header {len(table.columns)}: quote the delimiter"
            one.reasons.append((TOO_MANY, told))
        without = _without_value(one.row, where, columns)
        if without:
            remedy = "open and save the workbook in a spreadsheet program, or write a value"
            one.reasons.append((UNCALCULATED, f"{', '.join(without.values())}: {remedy}"))
        _check_row(one, table.path.parent, columns, without)
    # Of a row with too many nobody knows which cell is which, and of others not what they hold.
    held = [one for one in found if not one.row.found and UNCALCULATED not in dict(one.reasons)]
    _check_conflicts(held)
    _note_capitals(found)
    return found


def counted(found: Sequence[Candidate]) -> Counter[str]:
    """Return how many rows have each reason."""
    return Counter(reason for one in found for reason in dict.fromkeys(r for r, _ in one.reasons))


def majority(
    found: Sequence[Candidate], fields: Mapping[str, Rule]
) -> dict[str, tuple[str, float]]:
    """Return, a field, the outcome that is right most often and its share: what guessing gets."""
    cases = [one for one in found if one.certified]
    shares = {}
    for name, rule in fields.items() if cases else ():
        golds = [one.expected[name] for one in cases]
        guess = best_guess(rule, golds)
        shares[name] = (folded(guess), sum(rule.right(gold, guess) for gold in golds) / len(golds))
    return shares


def _places(table: TableFile, columns: Columns) -> dict[str, list[int]]:
    wanted = dict.fromkeys(
        name
        for name in (
            columns.id,
            *columns.input,
            *columns.expected,
            *columns.attachments,
            columns.time,
            columns.group,
        )
        if name
    )
    places = {}
    for name in wanted:
        numbers = table.numbers(name)
        if not numbers:
            known = ", ".join(dict.fromkeys(table.columns))
            raise PackProblem(
                f"there is no column {name!r}", path=table.path, line=1, remedy=f"it has {known}"
            )
        if len(numbers) > 1 and name not in columns.join:
            listed = ", ".join(map(str, numbers))
            raise PackProblem(
                f"the column {name!r} is there {len(numbers)} times, as columns {listed}",
                path=table.path,
                line=1,
                remedy=f"rename them, or join them in their order with --join {name!r}",
            )
        places[name] = numbers
    return places


def _candidate(row: Row, where: Mapping[str, list[int]], columns: Columns) -> Candidate:
    def cell(name: str) -> str:
        """Return a cell; of a repeated column those that are not empty, a line each."""
        if not name:
            return ""
        cells = [row.cells[number - 1] for number in where[name]]
        return cells[0] if len(cells) == 1 else "\n".join(one for one in cells if one.strip())

    return Candidate(
        row,
        cell(columns.id).strip(),
        {name: cell(name) for name in columns.input},
        {name: cell(name) for name in columns.expected},
        {name: cell(name).strip() for name in columns.attachments},
        cell(columns.time).strip(),
        cell(columns.group).strip(),
    )


def _check_ids(found: Sequence[Candidate]) -> None:
    by_id: dict[str, list[Candidate]] = defaultdict(list)
    for one in found:
        if not one.id:
            one.reasons.append((NO_ID, ""))
        else:
            by_id[one.id.casefold()].append(one)
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", one.id) or len(one.id) > LONGEST_ID:
                one.reasons.append((UNFIT_ID, "letters, digits, '.', '_' and '-' only"))
    for same in by_id.values():
        if len(same) > 1:
            for one in same:
                others = _told(other.row.place for other in same if other is not one)
                one.reasons.append((DUPLICATE_ID, f"also {others}"))


def _without_value(
    row: Row, where: Mapping[str, Sequence[int]], columns: Columns
) -> dict[str, str]:
    """Return the columns whose cell has no value, in words; an error counts where it is a gold."""
    told = {}
    for name, numbers in where.items() if row.broken else ():
        for error in (row.broken[at] for at in numbers if at in row.broken):
            if not error:
                told[name] = name
            elif name in columns.expected:
                told[name] = f"{name} ({error})"
    return told


def _check_row(one: Candidate, folder: Path, columns: Columns, without: Mapping[str, str]) -> None:
    """Note what is wrong with a row by itself, but for the cells that are ``without`` a value."""
    empty = [name for name, value in one.expected.items() if not folded(value) or name in without]
    unlabelled = [name for name in empty if name not in without]
    if unlabelled:
        one.reasons.append((UNLABELLED, ", ".join(unlabelled)))
    shows = any(map(folded, one.input.values())) or any(one.attachments.values())
    if not shows and not without:
        one.reasons.append((EMPTY, ", ".join(one.input)))
    missing = [
        name for name, value in one.attachments.items() if value and not _is_below(folder, value)
    ]
    if missing:
        one.reasons.append((MISSING_ATTACHMENT, ", ".join(missing)))
    odd = [
        name
        for name, rule in columns.expected.items()
        if name not in empty and not _gradable(rule, one.expected[name])
    ]
    if odd:
        one.reasons.append((NOT_GRADABLE, ", ".join(odd)))
    inputs = {folded(value) for value in one.input.values()}
    shown = [
        name
        for name, value in one.expected.items()
        if name not in empty and folded(value) in inputs
    ]
    if shown:
        one.reasons.append((GOLD_IN_INPUT, ", ".join(shown)))


def _gradable(rule: Rule, gold: str) -> bool:
    """Tell whether a rule takes a gold for right, and another answer for wrong."""
    return rule.gradable(gold) and rule.right(gold, gold) and not rule.right(gold, rule.wrong(gold))


def _is_below(folder: Path, name: str) -> bool:
    try:
        path = (folder / name).resolve()
        return path.is_file() and path.is_relative_to(folder.resolve())
    except (OSError, ValueError):  # no file can have that name: too long, or a zero byte
        return False


def _check_conflicts(found: Sequence[Candidate]) -> None:
    same: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for one in found:
        if all(folded(value) for value in one.expected.values()):
            same[tuple(folded(value) for value in one.input.values())].append(one)
    for rows in same.values():
        if len(rows) < 2:
            continue
        outcomes = {tuple(folded(value) for value in one.expected.values()) for one in rows}
        if len(outcomes) > 1:
            for one in rows:
                others = ", ".join(
                    f"{other.id or 'no id'} ({other.row.place})"
                    for other in rows
                    if other is not one
                )
                one.reasons.append((CONFLICTING, f"with {others}"))
            continue
        first = next((one for one in rows if one.certified), None)
        for one in rows:
            if first is not None and one is not first and one.certified:
                one.reasons.append((REPEATED, f"the same as {first.id} ({first.row.place})"))
                first.notes.append(f"stands for {one.id} ({one.row.place}) as well")


def _note_capitals(found: Sequence[Candidate]) -> None:
    """Say which cases have the inputs of another but for capitals: each is a case of its own."""
    first: dict[tuple[str, ...], Candidate] = {}
    for one in found:
        if one.certified:
            key = tuple(folded(value).casefold() for value in one.input.values())
            other = first.setdefault(key, one)
            if other is not one:
                where = f"{other.id} ({other.row.place})"
                one.notes.append(f"differs from {where} in capitals only, and is a case of its own")


TOLD = 3
"""Of the rows that one row is like."""


def _told(places: Iterable[str]) -> str:
    """Return the first of some places, and that there are more."""
    first = list(islice(places, TOLD + 1))
    return "; ".join(first[:TOLD]) + (" and more" if len(first) > TOLD else "")
