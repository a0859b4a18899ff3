"""SIGINT and SIGTERM: a clean stop with the summary, exit 2, and no process left."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Going, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


def to_group(going: Going, number: signal.Signals) -> None:
    """What a terminal does for Ctrl-C: everybody gets it."""
    os.killpg(going.pid, number)


def to_controller(going: Going, number: signal.Signals) -> None:
    """What ``kill`` and a scheduler of jobs do."""
    os.kill(going.pid, number)


@pytest.mark.parametrize("workers", ["0", "4"])
@pytest.mark.parametrize(
    ("number", "send"),
    [
        (signal.SIGINT, to_group),
        (signal.SIGINT, to_controller),
        (signal.SIGTERM, to_controller),
        (signal.SIGTERM, to_group),
    ],
    ids=["ctrl-c", "int-to-controller", "term-to-controller", "term-to-all"],
)
def test_a_signal_stops_cleanly_and_the_next_run_finishes(
    project: Project,
    number: signal.Signals,
    send: Callable[[Going, signal.Signals], None],
    workers: str,
) -> None:
    project.certified("one", "two").scripted("right", delay_s=0.8)
    args = ("--models", "right", "--modelbench-repeats", "4", "-n", workers, "-q")
    going = project.start(*args)
    going.until(project.worlds)
    time.sleep(random.Random().uniform(0.0, 0.4))
    send(going, number)
    stopped = going.wait(120)
    assert stopped.exit == 2, stopped.out
    assert "Interrupted" in stopped.out or "KeyboardInterrupt" in stopped.out
    assert "INTERIM" in stopped.out, "the summary is shown"
    assert "INTERNALERROR" not in stopped.out
    assert project.processes() == []
    assert project.leftovers() == []
    done = project.verdicts("right")
    # What was under way may end well, and is told; what a worker held beside it never began.
    assert len(done) <= max(1, int(workers))
    missing = 8 - len(done)
    assert f"{missing} of 8 cells have no verdict" in stopped.out
    assert project.faulted("right") == {}, "a stop is no fault of anybody"
    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 4)}
    assert project.index().damages == []


SENDS_ITSELF = """
import os, signal
import pytest

def at(config):
    if not hasattr(config, "workerinput"):
        os.kill(os.getpid(), signal.{number})

{hook}
"""
MOMENTS = {
    "after the loop": """
@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    at(session.config)
    return (yield)
""",
    "after our end": """
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    at(session.config)
""",
    "in the summary": """
@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(config):
    at(config)
""",
    "at the very end": """
def pytest_unconfigure(config):
    at(config)
""",
}


@pytest.mark.parametrize(
    ("moment", "number", "workers"),
    [
        ("after the loop", "SIGTERM", "0"),
        ("after the loop", "SIGINT", "2"),
        ("after our end", "SIGINT", "0"),
        ("in the summary", "SIGTERM", "2"),
        ("at the very end", "SIGTERM", "0"),
    ],
)
def test_a_signal_when_all_has_run_costs_nothing_but_the_status(
    project: Project, moment: str, number: str, workers: str
) -> None:
    project.certified("one").scripted("right")
    conftest = SENDS_ITSELF.format(number=number, hook=MOMENTS[moment])
    (project.path / "conftest.py").write_text(conftest, encoding="utf-8")
    ran = project.run("--models", "right", "-n", workers)
    assert ran.exit == 2, ran.out
    assert "Traceback" not in ran.out
    assert ran.outcomes() == {"passed": 1}
    assert "the grid is complete" in ran.out, "the report is whole"
    assert [one.outcome for [one] in ran.junit.values()] == ["passed"]
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 1)}
    if moment != "at the very end":
        assert f"{number} came when the run was ending: nothing is missing for it" in ran.out
    assert project.leftovers() == []


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_cell_that_would_take_long_is_not_waited_for(project: Project, workers: str) -> None:
    project.certified("one", "two").scripted("slow", delay_s=120)
    going = project.start("--models", "slow", "-n", workers)
    going.until(project.worlds)
    to_controller(going, signal.SIGTERM)
    stopped = going.wait(120)
    assert stopped.exit == 2, stopped.out
    assert "2 of 2 cells have no verdict" in stopped.out
    assert project.tries("slow") == []
    assert project.processes() == []
    assert project.leftovers() == []


def test_signals_at_random_moments_lose_nothing_and_run_nothing_twice(project: Project) -> None:
    project.certified("one", "two")
    project.scripted("right", delay_s=0.4).scripted("half", wrong=["two"], delay_s=0.2)
    repeats = 24  # more than ten runs of at most 0.8 s can finish: each has cells to be stopped in
    args = ("--models", "right,half", "--modelbench-repeats", str(repeats), "-n", "4", "-q")
    dice = random.Random()
    for _ in range(10):
        going = project.start(*args)
        going.until(project.worlds)
        time.sleep(dice.uniform(0.0, 0.8))
        send = dice.choice([to_group, to_controller])
        send(going, dice.choice([signal.SIGINT, signal.SIGTERM]))
        stopped = going.wait(120)
        assert stopped.exit == 2, stopped.out
        assert project.processes() == []
        assert project.leftovers() == []
    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    cells = [*project.cells("right", repeats), *project.cells("half", repeats)]
    found = project.verdicts("right", "half")
    assert len(cells) == 4 * repeats
    assert set(found) == set(cells)
    assert {cell: verdicts for cell, verdicts in found.items() if len(verdicts) != 1} == {}
    assert project.faulted("right") == project.faulted("half") == {}
    assert project.index().damages == []
