"""Torn and damaged results (FR16, FR17): at most the damaged record is lost, and it is said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

REPEATS = ("--modelbench-repeats", "3")


@pytest.fixture
def stored(project: Project) -> Project:
    """Six verdicts of ``right``, in one file that the product wrote."""
    project.certified("one", "two").scripted("right")
    ran = project.run("--models", "right", *REPEATS)
    assert ran.exit == 0, ran.out
    return project


def results_file(project: Project) -> Path:
    (path,) = (project.results / "tiny/right").glob("*.jsonl")
    return path


def cell_of_line(project: Project, line: int) -> Cell:
    lines = results_file(project).read_bytes().splitlines()
    (entry,) = [
        entry
        for entry in project.index().entries()
        if entry.candidate == "right"
        and entry.offset == sum(len(one) + 1 for one in lines[: line - 1])
    ]
    return entry.cell


def torn_tail(data: bytes) -> bytes:
    return data[:-40]


def no_final_newline(data: bytes) -> bytes:
    assert data.endswith(b"}\n")
    return data[:-1]


def torn_then_blank(data: bytes) -> bytes:
    return data[:-40] + b"\n\n"


def resumed(project: Project) -> set[Cell]:
    """Run again, by a run that writes into a file of its own; return the cells that it ran."""
    before = {entry.id for entry in project.index().entries()}
    ran = project.run("--models", "right", *REPEATS, "-n", "2", "-q")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 6}
    return {entry.cell for entry in project.index().entries() if entry.id not in before}


@pytest.mark.parametrize("damage", [torn_tail, torn_then_blank])
def test_a_torn_record_costs_its_cell_only(stored: Project, damage: object) -> None:
    assert callable(damage)
    path = results_file(stored)
    last = cell_of_line(stored, 7)
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    said = f"modelbench {path}:7: the line is cut off"

    for reading in (("--modelbench-plan",), ("--co",)):
        listed = stored.run("--models", "right", *REPEATS, *reading)
        assert listed.exit == 0, listed.out
        assert listed.out.count(said) == 1
        assert path.read_bytes() == damaged, "what only reads changes nothing"

    assert resumed(stored) == {last}
    assert set(stored.verdicts("right")) == set(stored.cells("right", 3))
    assert path.read_bytes() == damaged, "the next run writes into a file of its own"


def test_a_torn_record_is_said_once_by_the_run_that_runs_it_again(stored: Project) -> None:
    path = results_file(stored)
    path.write_bytes(torn_tail(path.read_bytes()))
    ran = stored.run("--models", "right", *REPEATS, "-q", "-n", "2")
    assert ran.out.count(f"{path}:7:") == 1


def test_a_whole_record_without_its_newline_counts(stored: Project) -> None:
    path = results_file(stored)
    path.write_bytes(no_final_newline(path.read_bytes()))
    assert resumed(stored) == set()
    assert stored.index().damages == []


def test_a_damaged_line_in_the_middle_is_loud_and_its_cell_runs_again(stored: Project) -> None:
    path = results_file(stored)
    lost = cell_of_line(stored, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:30] + b"\xff#" + lines[2][32:]
    path.write_bytes(b"".join(lines))
    assert lost not in stored.verdicts("right")
    assert len(stored.verdicts("right")) == 5

    planned = stored.run("--models", "right", *REPEATS, "--modelbench-plan")
    assert f"modelbench {path}:3: the line is damaged" in planned.out
    assert "5 replayed, 1 to run" in planned.out
    assert resumed(stored) == {lost}


def test_a_line_of_an_unknown_version_is_refused_by_name(stored: Project) -> None:
    path = results_file(stored)
    path.write_bytes(path.read_bytes().replace(b'{"schema":1,', b'{"schema":99,', 1))
    ran = stored.run("--models", "right", *REPEATS)
    assert ran.exit == 4, ran.out
    assert f"{path}:1: schema version 99 is not known" in ran.out
    assert "upgrade pytest-modelbench" in ran.out
    assert "INTERNALERROR" not in ran.out
