"""Positions as upstream reads them, right or wrong, and as Excel means them."""

from __future__ import annotations

import pytest

from pytest_modelbench.benchmarks.spreadsheetbench.positions import (
    Area,
    PositionProblem,
    difference,
    read_as_upstream,
    read_strictly,
)


@pytest.mark.parametrize(
    "text", ["C4", "A1:B2", "'My Sheet'!A1:AB12", "Sheet1!B2:B6", "'A'!A1,'B'!B2:C3"]
)
def test_plain_positions_are_read_alike(text: str) -> None:
    assert difference(text) == ""
    assert read_as_upstream(text) == read_strictly(text)


def test_areas() -> None:
    assert read_as_upstream("'My Sheet'!B3:AA7,C4") == (
        Area("My Sheet", 2, 3, 27, 7),
        Area(None, 3, 4, 3, 4),
    )


@pytest.mark.parametrize(
    ("text", "areas"),
    [
        ("'Sheet1!'A2:B19", (Area("Sheet1", 1, 2, 2, 19),)),
        ("Summary'!A1:G12", (Area("Summary", 1, 1, 7, 12),)),
        ("'Invoice List\u2018!A1:B2", (Area("Invoice List\u2018", 1, 1, 2, 2),)),
        ("\xa0'Sheet1'!C2:C3", (Area("\xa0'Sheet1", 3, 2, 3, 3),)),
        ("'Sheet1'!E4:j11", (Area("Sheet1", 5, 4, 42, 11),)),
        ("'Sheet1'!BD2:308", (Area("Sheet1", 56, 2, 0, 308),)),
    ],
)
def test_upstreams_reading_of_odd_positions(text: str, areas: tuple[Area, ...]) -> None:
    assert read_as_upstream(text) == areas
    assert difference(text)


@pytest.mark.parametrize(
    "text",
    [
        "G12\uff1aJ15",
        "A:G",
        "A1:B2, C1:D2",
        "'A'!'B!A1'",
        "A1:B2:C3",
        "",
        "'$A$1:$B$2'",
        "'x'!A1:ZZZZ9",
    ],
)
def test_upstream_cannot_read(text: str) -> None:
    with pytest.raises(PositionProblem):
        read_as_upstream(text)


def test_strict_reading() -> None:
    assert read_strictly("'Costs, 2024'!A1, 'O''Brien'!$b$2:C3") == (
        Area("Costs, 2024", 1, 1, 1, 1),
        Area("O'Brien", 2, 2, 3, 3),
    )
    assert read_strictly("C3:A1") == (Area(None, 1, 1, 3, 3),)
    for text in ("'Sheet1'!BD2:308", "Summary'!A1:G12", "A1;B2", "A1,"):
        with pytest.raises(PositionProblem, match="cannot be read"):
            read_strictly(text)
