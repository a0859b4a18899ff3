"""Many worlds of one seed at a moment (FR27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


@pytest.mark.parametrize(
    ("locked", "workers", "cells"),
    [(False, 16, 64), (True, 4, 12)],
    ids=["clean", "with-locks-left-behind"],
)
def test_many_workers_and_cells_of_one_seed(
    project: Project, locked: bool, workers: int, cells: int
) -> None:
    project.certified("one").scripted("right")
    project.environ["MODELBENCH_CACHE"] = str(project.temporary / "cache")
    if locked:
        # The seed's repository, whose locks a killed git would leave.
        assert project.run("--models", "right").exit == 0
        repositories = [path.parent for path in (project.temporary / "cache").rglob("HEAD")]
        assert repositories
        for repository in repositories:
            for name in ("index.lock", "config.lock", "HEAD.lock"):
                (repository / name).touch()
    grid = ("--modelbench-repeats", str(cells), "-n", str(workers))
    ran = project.run("--models", "right", *grid, "-q")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": cells}
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", cells)}
    assert project.faulted("right") == {}
    assert project.leftovers() == []
    assert project.processes() == []
