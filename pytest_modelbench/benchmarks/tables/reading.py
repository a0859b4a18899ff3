"""A table as rows of text: CSV, TSV, JSON lines or XLSX; each row knows its record and its line."""

from __future__ import annotations

import csv
import datetime
import io
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pytest_modelbench.errors import PackProblem, UsageProblem
from pytest_modelbench.parsing import is_of_characters, parse

if TYPE_CHECKING:
    from openpyxl import Workbook

DELIMITERS = ",;\t"
MOST_FIELD = 2**24
"""Characters of one cell."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its number from 1, the line on which it begins, its cells.

    ``found`` is how many cells it has where they are more than the header's; 0 where they are not.
    ``broken`` are the cells of a workbook without a value, by column from 1: a formula that was
    never calculated (``""``), or the error that stands for a value.
    """

    record: int
    line: int
    cells: Sequence[str]
    found: int = 0
    broken: Mapping[int, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return where it stands, in words."""
        return f"record {self.record}, line {self.line}"


@dataclass(frozen=True)
class TableFile:
    """A table that was read; ``columns`` may hold a name more than once."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]

    def numbers(self, name: str) -> list[int]:
        """Return where a column stands, from 1; several where its name is repeated."""
        return [at for at, column in enumerate(self.columns, 1) if column == name]


def read_table(path: Path, encoding: str = "") -> TableFile:
    """Read a table by its ending; PackProblem names file and line of what cannot be read.

    ``encoding`` is that of a text file; by default UTF-8, or UTF-16 where its mark says so.
    """
    kind = path.suffix.lower()
    if kind == ".xlsx":
        return _read_workbook(path)
    text = _text(path, encoding)
    if kind in (".jsonl", ".ndjson"):
        return _read_json_lines(path, text)
    if kind in (".csv", ".tsv", ".txt"):
        return _read_separated(path, text, "\t" if kind == ".tsv" else "")
    raise UsageProblem(f"{path}: a table is .csv, .tsv, .jsonl or .xlsx")


def _text(path: Path, encoding: str) -> str:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise OSError("it is no file")
        data = path.read_bytes()
    except OSError as error:
        raise PackProblem(
            f"cannot be read: {error.strerror or error}", path=path, remedy="name another file"
        ) from error
    if not encoding:
        marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        encoding = "utf-16" if marked else "utf-8-sig"
    try:
        return data.decode(encoding)
    except LookupError:
        raise UsageProblem(f"there is no encoding {encoding!r}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PackProblem(
            f"is not {encoding.removesuffix('-sig')} text",
            path=path,
            line=line,
            remedy="say what it is, --encoding cp1252, or save it as UTF-8",
        ) from error


def _read_separated(path: Path, text: str, delimiter: str) -> TableFile:
    first = text.split("\n", 1)[0]
    delimiter = delimiter or max(DELIMITERS, key=first.count)
    csv.field_size_limit(MOST_FIELD)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    columns: tuple[str, ...] | None = None
    begins = 1
    try:
        for cells in lines:
            if columns is None:
                if cells:
                    columns = tuple(cell.strip() for cell in cells)
            elif cells:
                rows.append(_row(len(rows) + 1, begins, cells, len(columns)))
            begins = lines.line_num + 1
    except csv.Error as error:
        raise PackProblem(
            f"record {len(rows) + 1} cannot be read: {error}",
            path=path,
            line=begins,
            remedy="close its quotes, and write a quote within quotes twice",
        ) from error
    if columns is None:
        raise PackProblem("is empty", path=path, remedy="write a header and a row a case")
    return TableFile(path, columns, rows)


def _row(record: int, line: int, cells: list[str], width: int) -> Row:
    """Return a row of the header's width: a short one is filled with empty cells."""
    found = len(cells) if any(cells[width:]) else 0
    cells = cells[:width] + [""] * (width - len(cells))
    # A line end within a cell is one whatever the system was that wrote the file.
    return Row(record, line, tuple(cell.replace("\r\n", "\n") for cell in cells), found)


def _read_json_lines(path: Path, text: str) -> TableFile:
    found: list[tuple[int, dict[str, object]]] = []
    columns: dict[str, None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            raw = parse(line)
        except ValueError as error:
            raise PackProblem(
                f"is not JSON: {error}", path=path, line=number, remedy="mend the line"
            ) from error
        if not isinstance(raw, dict):
            raise PackProblem("is no object", path=path, line=number, remedy="write {…}")
        if not is_of_characters(line, raw):
            what = "has half of a surrogate pair, which is no character"
            raise PackProblem(what, path=path, line=number, remedy="mend the line")
        columns.update(dict.fromkeys(raw))
        found.append((number, raw))
    rows = [
        Row(record, number, tuple(_cell(raw.get(column)) for column in columns))
        for record, (number, raw) in enumerate(found, 1)
    ]
    if not columns:
        raise PackProblem("is empty", path=path, remedy="write an object a line")
    return TableFile(path, tuple(columns), rows)


def _read_workbook(path: Path) -> TableFile:
    """Read the first sheet; its first row that is not empty is the header."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UsageProblem(
            f"{path}: workbooks need openpyxl; install pytest-modelbench[spreadsheet]"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts of a workbook that hold no values
        try:
            # One reader gives the stored values, the other says which cells are formulas.
            with (
                closing(load_workbook(path, read_only=True, data_only=True)) as values,
                closing(load_workbook(path, read_only=True)) as formulas,
            ):
                return _sheet(path, _cells(values), _cells(formulas))
        except PackProblem:
            raise
        except Exception as error:  # whatever a reader of files says of a harmed one
            raise PackProblem(
                f"cannot be read as a workbook: {error}", path=path, remedy="save it as .xlsx"
            ) from error


class _WorkbookCell(Protocol):
    @property
    def value(self) -> object: ...
    @property
    def data_type(self) -> str: ...


def _cells(book: Workbook) -> Iterator[Sequence[_WorkbookCell]]:
    """Yield the rows of the first sheet, each as long as its cells go."""
    sheet = book.worksheets[0]
    sheet.reset_dimensions()  # what a file says of its size may be wrong, and would cut it
    return sheet.iter_rows()


def _sheet(
    path: Path,
    lines: Iterable[Sequence[_WorkbookCell]],
    formulas: Iterator[Sequence[_WorkbookCell]],
) -> TableFile:
    from openpyxl.cell.read_only import ReadOnlyCell

    columns: tuple[str, ...] | None = None
    rows: list[Row] = []
    asked = 0  # rows of the formulas
    for number, line in enumerate(lines, 1):
        cells = [_cell(one.value) for one in line]
        broken = {at: str(one.value) for at, one in enumerate(line, 1) if one.data_type == "e"}
        # A formula whose value is the empty text has the type of a text.
        empty = [
            at
            for at, one in enumerate(line, 1)
            if isinstance(one, ReadOnlyCell) and one.value is None and one.data_type == "n"
        ]
        if empty:
            told = next(islice(formulas, number - 1 - asked, None))
            asked = number
            broken |= {at: "" for at in empty if told[at - 1].data_type == "f"}
        if not any(cells) and not broken:
            continue
        if columns is None:
            while cells and not cells[-1]:
                cells.pop()
            columns = tuple(cell.strip() for cell in cells)
        else:
            row = _row(len(rows) + 1, number, cells, len(columns))
            rows.append(replace(row, broken=broken) if broken else row)
    if columns is None:
        raise PackProblem("its first sheet is empty", path=path, remedy="write a header and rows")
    return TableFile(path, columns, rows)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, list):
        return "; ".join(_cell(one) for one in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
