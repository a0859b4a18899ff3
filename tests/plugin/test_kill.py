"""SIGKILL at random moments: what is stored stays, what is not runs again, and nothing twice."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Going, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

KILLS = 50


@pytest.mark.timeout(1500)
def test_fifty_kills_lose_nothing_and_run_nothing_twice(project: Project) -> None:
    project.certified("one", "two")
    # So long that few cells end between two kills, and some do.
    project.scripted("right", delay_s=1.0).scripted("half", wrong=["two"], delay_s=0.8)
    args = ("--models", "right,half", "--modelbench-repeats", "10", "-n", "4", "-q")
    dice = random.Random()
    kept: set[str] = set()
    at_work = 0
    for number in range(KILLS):
        if len(project.verdicts("right", "half")) == 40:
            break  # a quick machine: nothing is left to be killed at
        dead = project.worlds()
        going = project.start(*args)
        if number % 4:  # most kills hit cells, the others whatever comes before
            going.until(partial(_at_work, project, dead))
            at_work += 1
            # Before a cell can end, in most: some must be left for the last kill.
            time.sleep(dice.uniform(0.0, 1.2 if number % 2 else 0.6))
        else:
            time.sleep(dice.uniform(0.0, 2.5))
        _kill(going, dice)
        index = project.index()
        ids = {entry.id for entry in index.entries()}
        assert kept <= ids, "what was stored is gone"
        kept = ids
        assert index.damages == []
    assert at_work >= KILLS // 3
    left = 40 - len(project.verdicts("right", "half"))
    print(f"{at_work} kills while cells ran; {left} cells left for the last run")
    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    wanted = {*project.cells("right", 10), *project.cells("half", 10)}
    verdicts = project.verdicts("right", "half")
    assert len(wanted) == 40
    assert set(verdicts) == wanted
    assert {cell: found for cell, found in verdicts.items() if len(found) != 1} == {}
    for cell, found in verdicts.items():
        assert found == [not (cell.candidate == "half" and cell.case == "two")]
    assert project.index().damages == []
    assert project.index().duplicates == 0
    assert project.leftovers() == []
    assert project.processes() == []


def _at_work(project: Project, dead: set[Path]) -> bool:
    return bool(project.worlds() - dead)


def _kill(going: Going, dice: random.Random) -> None:
    """Kill the controller, a worker and then the controller, or all at once."""
    whom = dice.choice(["controller", "worker", "all", "all"])
    if whom == "worker" and (workers := going.workers()):
        os.kill(dice.choice(workers), signal.SIGKILL)
        time.sleep(dice.uniform(0.0, 0.5))
    if whom == "all":
        going.kill()
    else:
        going.process.kill()
        going.process.wait()
