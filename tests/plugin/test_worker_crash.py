"""A worker that dies (FR25) costs the cell that it was at, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

CRASH = """
import os
import signal
import threading
from pathlib import Path

import pytest

HERE = "test_case[two:right:3]"


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def doomed(item, when):
    return item.name == HERE and os.environ.get("CRASH") == when


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if doomed(item, "before"):
        die()
    if doomed(item, "while"):
        threading.Timer(0.5, die).start()


def pytest_runtest_teardown(item):
    if doomed(item, "after"):
        die()
"""
CRASHED = Cell("tiny", "two", "right", 3)
ARGS = ("--models", "right", "--modelbench-repeats", "5")


@pytest.fixture
def crashing(project: Project) -> Project:
    project.certified("one", "two").scripted("right", delay_s=1.0)
    project.write("conftest.py", CRASH)
    return project


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_worker_that_dies_leaves_one_fault(crashing: Project, when: str) -> None:
    ran = crashing.run(*ARGS, "-n", "3", environ={"CRASH": when})
    assert ran.exit == 1, ran.out
    assert ran.outcomes() == {"passed": 9, "error": 1}
    assert "INTERNALERROR" not in ran.out
    assert "FAULT" in ran.out
    (crash,) = [r for r in crashing.tries("right") if r.fault is not None]
    assert crash.fault is not None
    assert crash.cell == CRASHED
    assert (crash.fault.kind, crash.fault.stage) == ("worker-crash", "work")
    others = [cell for cell in crashing.cells("right", 5) if cell != CRASHED]
    assert crashing.verdicts("right") == {cell: [True] for cell in others}
    assert {name: len(found) for name, found in ran.junit.items() if len(found) != 1} == {}
    assert ran.junit["test_case[two:right:3]"][0].outcome == "error"
    assert ran.out.count("replacing crashed worker") == 1, "it is not tried for ever"
    assert crashing.leftovers() == []

    again = crashing.run("--lf", "-n", "2")
    assert again.exit == 0, again.out
    assert list(again.junit) == ["test_case[two:right:3]"]
    assert crashing.verdicts("right")[CRASHED] == [True]
    assert len(crashing.tries("right")) == 11


def test_a_worker_that_dies_after_its_verdict_loses_nothing(crashing: Project) -> None:
    ran = crashing.run(*ARGS, "-n", "3", environ={"CRASH": "after"})
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 10}
    assert crashing.verdicts("right") == {cell: [True] for cell in crashing.cells("right", 5)}
    assert len(crashing.tries("right")) == 10


def test_a_cell_that_kills_every_worker_does_not_end_the_run(crashing: Project) -> None:
    crashing.run(*ARGS, "-n", "2", environ={"CRASH": "before"})
    ran = crashing.run(*ARGS, "-n", "2", environ={"CRASH": "before"})
    assert ran.exit == 1, ran.out
    assert ran.outcomes() == {"passed": 9, "error": 1}
    assert [r.fault.kind for r in crashing.tries("right") if r.fault] == ["worker-crash"] * 2
