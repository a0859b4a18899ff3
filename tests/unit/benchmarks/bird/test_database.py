"""A query reads and does nothing else, whatever its text tries."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.bird.database import Status, query, schema


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of one table with three rows, in a folder with a name that URIs have to quote."""
    folder = tmp_path / "data #1?mode=rwc"
    folder.mkdir()
    path = folder / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE item (name TEXT, price REAL)")
        connection.executemany(
            "INSERT INTO item VALUES (?, ?)", [("pen", 1.0), ("ink", 2.5), ("pen", 1.0)]
        )
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT name, price FROM item", (("pen", 1.0), ("ink", 2.5))),
        ("  -- why\n/* and */ select count(*) from item; -- done", ((3,),)),
        ("WITH n AS (SELECT name FROM item) SELECT * FROM n WHERE name LIKE 'i%'", (("ink",),)),
        ("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 3) SELECT x FROM c",
         ((1,), (2,), (3,))),
        ("SELECT value FROM json_each('[1,2]')", ((1,), (2,))),
        ("SELECT name FROM sqlite_master", (("item",),)),
        ("SELECT 'DROP TABLE item; ATTACH'", (("DROP TABLE item; ATTACH",),)),
    ],
)  # fmt: skip
def test_reading_is_allowed(database: Path, sql: str, rows: tuple[object, ...]) -> None:
    answer = query(database, sql)
    assert (answer.status, answer.rows) == (Status.ROWS, rows), answer.message


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM item",
        "WITH d AS (SELECT 1) DELETE FROM item",
        "WITH d AS (SELECT 1) INSERT INTO item SELECT 'x', 1 FROM d",
        "WITH d AS (SELECT 1) UPDATE sqlite_master SET sql = ''",
        "/* SELECT */ UPDATE item SET price = 0",
        "-- SELECT\nDROP TABLE item",
        "CREATE TEMP VIEW item AS SELECT 1",
        "ATTACH DATABASE ':memory:' AS other",
        "PRAGMA table_info(item)",
        "SELECT * FROM pragma_table_info('item')",
        "EXPLAIN SELECT 1",
        "VACUUM INTO 'copy.sqlite'",
        "BEGIN",
        "VALUES (1)",
        "REINDEX",
        "SELECT load_extension('x')",
        "SELECT 1; SELECT 2",
        "SELECT 1; DELETE FROM item",
        "```sql\nSELECT 1\n```",
    ],
)
def test_all_else_is_forbidden(database: Path, sql: str) -> None:
    before = database.read_bytes()
    answer = query(database, sql)
    assert (answer.status, answer.rows) == (Status.FORBIDDEN, ()), answer
    assert answer.message
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize(
    "sql", ["SELECT nope FROM item", "SELECT FROM", "", "  -- nothing", "SELECT 'a\0b'", "SELECT ("]
)
def test_wrong_sql_is_an_error_and_not_forbidden(database: Path, sql: str) -> None:
    answer = query(database, sql)
    assert answer.status is Status.ERROR
    assert answer.message


def test_time_ends_a_query(database: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c"
    answer = query(database, endless, seconds=0.05)
    assert answer.status is Status.TIMEOUT
    assert "0.05 s" in answer.message


def test_rows_are_bounded(database: Path) -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c"
    assert query(database, many, most_rows=100).status is Status.TOO_LARGE


def test_schema_is_what_made_the_tables(database: Path) -> None:
    assert schema(database) == "CREATE TABLE item (name TEXT, price REAL);"


def test_what_is_no_database_is_not_the_querys_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        query(tmp_path / "none.sqlite", "SELECT 1")
    (tmp_path / "text.sqlite").write_text("no database, however long this text may be" * 99)
    with pytest.raises(sqlite3.DatabaseError):
        query(tmp_path / "text.sqlite", "SELECT 1")
