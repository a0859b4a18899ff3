"""Where an answer stands in a workbook: read as upstream does, bug for bug, and strictly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_COLUMNS = 18278
"""ZZZ, behind which openpyxl knows no column."""


class PositionProblem(Exception):
    """A position cannot be read; where upstream cannot read one, whatever was made fails."""


@dataclass(frozen=True)
class Area:
    """A rectangle of cells, counted from 1; ``sheet`` None is the answer's first sheet.

    One whose last row or column is before its first holds no cell.
    """

    sheet: str | None
    first_column: int
    first_row: int
    last_column: int
    last_row: int

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no cell in it."""
        return self.last_column < self.first_column or self.last_row < self.first_row


def read_as_upstream(text: str) -> tuple[Area, ...]:
    """Read an ``answer_position`` as the evaluator of SpreadsheetBench does.

    It splits at every comma, within quotes too; drops quotes at both ends of a sheet's name and of
    a range; counts a lower-case column far to the right; finds no cell, so nothing that could be
    wrong, in ``BD2:308``; and fails for all that it cannot read (a blank before a range, a colon of
    full width, a second ``!``, whole columns).
    """
    return tuple(_upstream_area(part) for part in text.split(","))


def read_strictly(text: str) -> tuple[Area, ...]:
    """Read an ``answer_position`` as Excel writes it.

    A sheet's name stands in quotes where it holds more than letters, digits, ``_`` and ``.``, a
    quote in it twice; columns may be lower case and have ``$``. A range without a sheet is on the
    first one.
    """
    areas, at = [], 0
    while True:
        found = _STRICT.match(text, at)
        if found is None:
            raise PositionProblem(f"{text!r} cannot be read from {text[at:]!r} on")
        areas.append(_strict_area(found))
        at = found.end()
        if at == len(text):
            return tuple(areas)
        if text[at] != ",":
            raise PositionProblem(f"{text!r} cannot be read from {text[at:]!r} on")
        at += 1


def difference(text: str) -> str:
    """Say in which way the two readings of a position differ; '' where they are the same."""
    readings: list[Sequence[Area] | str] = []
    for read in (read_as_upstream, read_strictly):
        try:
            readings.append(read(text))
        except PositionProblem as problem:
            readings.append(str(problem))
    upstream, strict = readings
    if upstream == strict:
        return ""
    return f"upstream: {_in_words(upstream)}; strictly: {_in_words(strict)}"


def _upstream_area(part: str) -> Area:
    sheet = None
    cells = part
    if "!" in part:
        sheet, _, cells = part.partition("!")
        if "!" in cells:
            raise PositionProblem(f"{part!r} has two '!'")
        sheet = sheet.strip("'")
    cells = cells.strip("'")
    first, colon, last = cells.partition(":")
    if not colon:
        if not re.fullmatch(r"\$?[A-Za-z]{1,3}\$?[1-9][0-9]*", cells):
            raise PositionProblem(f"{cells!r} is no cell")
        column, row = _column(cells.replace("$", "").rstrip("0123456789").upper()), _row(cells)
        return Area(sheet, column, row, column, row)
    if ":" in last:
        raise PositionProblem(f"{cells!r} has two ':'")
    area = Area(sheet, _column(_name(first)), _row(first), _column(_name(last)), _row(last))
    if not area.is_empty and (area.first_column < 1 or area.first_row < 1):
        raise PositionProblem(f"{cells!r} begins before the first column or row")
    if not area.is_empty and area.last_column > MOST_COLUMNS:
        raise PositionProblem(f"{cells!r} ends behind the last column")
    return area


def _name(cell: str) -> str:
    return "".join(sign for sign in cell if not sign.isdigit())


def _row(cell: str) -> int:
    digits = "".join(sign for sign in cell if sign.isdigit())
    try:
        return int(digits)
    except ValueError:
        raise PositionProblem(f"{cell!r} has no row") from None


def _column(name: str) -> int:
    number = 0
    for sign in name:
        number = number * 26 + ord(sign) - ord("A") + 1
    return number


_CELL = r"\$?([A-Za-z]{1,3})\$?([1-9][0-9]{0,6})"
_STRICT = re.compile(rf"\s*(?:(?:'((?:[^']|'')+)'|([\w.]+))!)?{_CELL}(?::{_CELL})?\s*")


def _strict_area(found: re.Match[str]) -> Area:
    quoted, plain, first_column, first_row, last_column, last_row = found.groups()
    sheet = plain if quoted is None else quoted.replace("''", "'")
    columns = sorted(
        _column((name or first_column).upper()) for name in (first_column, last_column)
    )
    rows = sorted(int(row or first_row) for row in (first_row, last_row))
    return Area(sheet, columns[0], rows[0], columns[1], rows[1])


def _in_words(reading: Sequence[Area] | str) -> str:
    if isinstance(reading, str):
        return reading
    return ", ".join(
        f"{'first sheet' if one.sheet is None else repr(one.sheet)} rows {one.first_row} to "
        f"{one.last_row}, columns {one.first_column} to {one.last_column}"
        for one in reading
    )
