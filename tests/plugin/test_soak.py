"""Many attempts leave nothing behind, and nor do those that were killed.

A small dose by default; ``MODELBENCH_SOAK=2000`` (``make soak``) takes the whole.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

ATTEMPTS = int(os.environ.get("MODELBENCH_SOAK", "40"))
KILLED = max(20, ATTEMPTS // 10)
CASES = [f"case{number}" for number in range(10)]
SECONDS = 240 + 2.0 * ATTEMPTS


def mounts(project: Project) -> list[str]:
    """Return what is mounted in the places of a project: other tests mount elsewhere."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = (str(project.temporary), str(project.path))
    return [line for line in lines if line.split()[4].startswith(places)]


def temporary(project: Project) -> list[str]:
    """Return what lies in the run's TMPDIR, what is kept for all runs left out."""
    kept = ("home", "cache", "pytest-of-")
    found = [p.name for p in project.temporary.iterdir() if not p.name.startswith(kept)]
    return sorted(found + project.leftovers())


def left(project: Project) -> dict[str, object]:
    """Return all that a run may leave, besides results."""
    runs = f"modelbench-{os.geteuid()}"
    return {
        "temporary": [name for name in temporary(project) if name != runs],
        "processes": project.processes(),
        "mounts": mounts(project),
        "locks": sorted(
            path.name
            for path in (project.results / ".locks").iterdir()
            if path.name not in ("controller", "workers")
        ),
        "torn": project.index().damages,
    }


NOTHING: dict[str, object] = {
    "temporary": [],
    "processes": [],
    "mounts": [],
    "locks": [],
    "torn": [],
}


@pytest.fixture
def soaked(project: Project) -> Project:
    project.certified(*CASES).scripted("right", wrong=CASES[:3])
    # What tests of other runs leave in a shared place would be counted here.
    shutil.rmtree(project.temporary / f"modelbench-{os.geteuid()}", ignore_errors=True)
    return project


@pytest.mark.slow
@pytest.mark.timeout(int(3 * SECONDS))
def test_many_attempts_leave_nothing(soaked: Project) -> None:
    repeats = str(max(1, ATTEMPTS // len(CASES)))
    args = ("--models", "right", "--modelbench-repeats", repeats, "-n", "4", "-q")
    ran = soaked.run(*args, seconds=SECONDS)
    assert ran.exit == 0, ran.out[-3000:]
    found = soaked.verdicts("right")
    assert len(found) == int(repeats) * len(CASES)
    assert all(passed == [cell.case not in CASES[:3]] for cell, passed in found.items())
    assert left(soaked) == NOTHING


@pytest.mark.slow
@pytest.mark.timeout(int(3 * SECONDS))
def test_killed_attempts_are_swept_by_the_next_start(soaked: Project) -> None:
    soaked.scripted("right", wrong=CASES[:3], delay_s=0.5)
    repeats = str(KILLED // len(CASES))
    args = ("--models", "right", "--modelbench-repeats", repeats, "-n", "4", "-q")
    going = soaked.start(*args)
    going.until(lambda: len(soaked.worlds()) >= 3 and len(soaked.tries("right")) >= KILLED // 4)
    going.kill()
    assert soaked.worlds(), "nothing was at work when the run was killed"
    ran = soaked.run(*args, seconds=SECONDS)
    assert ran.exit == 0, ran.out[-3000:]
    found = soaked.verdicts("right")
    assert len(found) == int(repeats) * len(CASES)
    assert all(len(verdicts) == 1 for verdicts in found.values())
    assert left(soaked) == NOTHING
