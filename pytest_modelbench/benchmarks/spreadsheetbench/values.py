"""Whether two workbooks hold the same values where the answer stands.

Values are the cached ones: a formula that no spreadsheet program has calculated reads as an empty
cell, so that workbooks written by a library may need to be calculated first.
"""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_modelbench.benchmarks.spreadsheetbench.positions import Area
from pytest_modelbench.errors import UsageProblem

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

RULES_VERSION = "SpreadsheetBench 49b73a9"

MOST_BYTES = 512 * 2**20
"""Of a workbook once it is unpacked; a larger one is not opened."""


@dataclass(frozen=True)
class Comparison:
    """Whether every cell is the same; ``wrong`` says for the host, not for a candidate, why not."""

    passed: bool
    wrong: str = ""


def compare(answer: Path, output: Path, areas: Sequence[Area]) -> Comparison:
    """Compare an output with the answer. What is outside the areas, and all formatting, is free.

    Raises:
        UsageProblem: openpyxl is missing.
        OSError: the answer is missing.
    """
    if not answer.is_file():
        raise FileNotFoundError(f"there is no answer {answer}")
    if not output.is_file():
        return Comparison(False, "there is no output")
    wanted = _load(answer)
    try:
        found = _load(output)
    except UsageProblem:
        raise
    except Exception as error:  # whatever a reader of files says of a harmed one
        return Comparison(False, f"the output cannot be opened: {error}")
    for area in areas:
        wrong = _wrong_in(area, wanted, found)
        if wrong:
            return Comparison(False, wrong)
    return Comparison(True)


def same(wanted: object, found: object) -> bool:
    """Tell whether two values of cells count as equal.

    Numbers, booleans among them, and texts that read as numbers are compared to two decimals (half
    to even on the float), dates with a time to the nearest day, times without their seconds, all
    else exactly. An empty text is an empty cell.
    """
    mine, theirs = _normal(wanted), _normal(found)
    if mine in ("", None) and theirs in ("", None):
        return True
    return type(mine) is type(theirs) and mine == theirs


_EPOCH = datetime.datetime(1899, 12, 30)


def _normal(value: object) -> object:
    if isinstance(value, int | float):
        return round(float(value), 2)
    if isinstance(value, datetime.time):
        return str(value)[:-3]
    if isinstance(value, datetime.datetime):
        since = value - _EPOCH
        return round(since.days + since.seconds / 86400.0, 0)
    if isinstance(value, str):
        try:
            return round(float(value), 2)
        except ValueError:
            return value
    return value


def _wrong_in(area: Area, wanted: Workbook, found: Workbook) -> str:
    name = wanted.sheetnames[0] if area.sheet is None else area.sheet
    if name not in found.sheetnames:
        return f"there is no sheet {name!r}"
    if name not in wanted.sheetnames:
        return f"the answer itself has no sheet {name!r}"
    if area.is_empty:
        return ""
    try:
        for row, (mine, theirs) in enumerate(
            zip(_rows(wanted, name, area), _rows(found, name, area), strict=True), area.first_row
        ):
            for column, (one, other) in enumerate(
                zip(mine, theirs, strict=True), area.first_column
            ):
                if not same(one, other):
                    return f"{name!r}, row {row}, column {column}: {other!r} is not {one!r}"
    except (AttributeError, OverflowError, ValueError) as error:
        return f"{name!r} cannot be compared: {error}"
    return ""


def _rows(book: Workbook, name: str, area: Area) -> Iterable[tuple[object, ...]]:
    sheet = book[name]
    return sheet.iter_rows(
        min_row=area.first_row,
        max_row=area.last_row,
        min_col=area.first_column,
        max_col=area.last_column,
        values_only=True,
    )


def _load(path: Path) -> Workbook:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UsageProblem(
            "workbooks need openpyxl; install pytest-modelbench[spreadsheet]"
        ) from error
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES // 2**20} MiB")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts of a workbook that hold no values
        return load_workbook(path, data_only=True)
