"""A database that can only be read: one SELECT a query, on a connection of its own, within a time.

SQLite itself decides what a statement would do; no parser of ours has to be right about SQL.
"""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

SECONDS = 30.0
"""The time that upstream gives a prediction and its gold together."""
MOST_ROWS = 1_000_000
STEPS = 1000
"""Steps of SQLite's machine between two looks at the clock."""

Row = tuple[object, ...]


class Status(StrEnum):
    """How a query ended."""

    ROWS = "rows"
    FORBIDDEN = "forbidden"
    ERROR = "error"
    TIMEOUT = "timeout"
    TOO_LARGE = "too-large"


@dataclass(frozen=True)
class Answer:
    """What a query came to: ``rows``, each distinct one once in first-seen order, or why not.

    ``columns`` are the names of the result's columns. ``message`` tells whoever wrote the query.
    """

    status: Status
    rows: tuple[Row, ...] = ()
    columns: tuple[str, ...] = ()
    message: str = ""
    seconds: float = 0.0
    """How long the query ran, its rows read; 0 where it gave none."""


def query(
    database: Path, sql: str, *, seconds: float = SECONDS, most_rows: int = MOST_ROWS
) -> Answer:
    """Run one SELECT or WITH on a database file; never write, never raise for what the SQL is.

    Raises:
        OSError: the file is not there.
        sqlite3.DatabaseError: the file is no database.
    """
    if not database.is_file():
        raise FileNotFoundError(f"there is no database {database}")
    keyword = first_keyword(sql)
    if keyword not in ("SELECT", "WITH"):
        if not keyword:
            return Answer(Status.ERROR, message="there is no SQL statement")
        return Answer(Status.FORBIDDEN, message=f"{keyword}: only one SELECT or WITH is allowed")
    with closing(_connect(database)) as connection:
        guard = _Guard(time.monotonic() + seconds)
        connection.set_authorizer(guard.authorize)
        connection.set_progress_handler(guard.is_late, STEPS)
        try:
            return _read(connection, sql, most_rows)
        except (sqlite3.Error, sqlite3.Warning) as error:
            return guard.explain(error, seconds)
        except (OverflowError, ValueError) as error:  # an integer, or a NUL, that SQLite refuses
            return Answer(Status.ERROR, message=str(error))


def schema(database: Path) -> str:
    """Return the statements that created the tables and views, in the order of their creation."""
    found = query(
        database,
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY rowid",
    )
    if found.status is not Status.ROWS:
        raise sqlite3.DatabaseError(f"{database}: the schema cannot be read: {found.message}")
    return "\n\n".join(f"{row[0]};" for row in found.rows)


def first_keyword(sql: str) -> str:
    """Return the first word of a statement in capitals, comments before it skipped; '' for none."""
    found = re.match(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$)|;)*(\w+|\S)?", sql, re.DOTALL)
    return (found[1] or "").upper() if found else ""


def _connect(database: Path) -> sqlite3.Connection:
    """Open a file read-only; immutable, so that nothing is written beside it either."""
    address = f"file:{quote(str(database.resolve()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True, isolation_level=None)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def _read(connection: sqlite3.Connection, sql: str, most_rows: int) -> Answer:
    began = time.perf_counter()
    cursor = connection.execute(sql)
    columns = tuple(str(column[0]) for column in cursor.description or ())
    rows: dict[Row, None] = {}
    for row in cursor:
        rows[row] = None
        if len(rows) > most_rows:
            message = f"the query gives more than {most_rows} different rows"
            return Answer(Status.TOO_LARGE, columns=columns, message=message)
    took = time.perf_counter() - began
    return Answer(Status.ROWS, tuple(rows), columns, seconds=took)


_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_NAMES = {
    getattr(sqlite3, name): name.removeprefix("SQLITE_").replace("_", " ")
    for name in (
        "SQLITE_INSERT",
        "SQLITE_UPDATE",
        "SQLITE_DELETE",
        "SQLITE_PRAGMA",
        "SQLITE_ATTACH",
        "SQLITE_DETACH",
        "SQLITE_TRANSACTION",
    )
}


@dataclass
class _Guard:
    """What one query may do, and for how long."""

    deadline: float
    denied: str = ""
    late: bool = False

    def authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        """Allow reading; note the first other thing that a statement wants."""
        loads = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
        # SQLite asks so when it first meets a table-valued function such as json_each; a statement
        # cannot write that table, whatever is answered here.
        declares = action == sqlite3.SQLITE_UPDATE and first == "sqlite_master"
        if declares or (action in _ALLOWED and not loads):
            return sqlite3.SQLITE_OK
        self.denied = self.denied or (
            "load_extension" if loads else _NAMES.get(action, f"{first or 'this'}")
        )
        return sqlite3.SQLITE_DENY

    def is_late(self) -> bool:
        """Tell SQLite to stop once the time is up."""
        self.late = self.late or time.monotonic() > self.deadline
        return self.late

    def explain(self, error: Exception, seconds: float) -> Answer:
        """Return what an exception of the query means."""
        if self.denied:
            return Answer(Status.FORBIDDEN, message=f"{self.denied}: only reading is allowed")
        if self.late:
            return Answer(Status.TIMEOUT, message=f"the query took more than {seconds:g} s")
        if "one statement at a time" in str(error):
            return Answer(Status.FORBIDDEN, message="only one statement is allowed")
        if "may not be modified" in str(error):
            return Answer(Status.FORBIDDEN, message=str(error))
        return Answer(Status.ERROR, message=str(error))
