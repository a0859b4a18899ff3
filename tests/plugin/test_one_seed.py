"""Many worlds of one seed at a moment (FR27)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


@pytest.mark.parametrize("locked", [False, True], ids=["clean", "with-locks-left-behind"])
def test_sixteen_workers_and_64_cells_of_one_seed(project: Project, locked: bool) -> None:
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
    ran = project.run("--models", "right", "--modelbench-repeats", "64", "-n", "16", "-q")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 64}
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 64)}
    assert project.faulted("right") == {}
    assert project.leftovers() == []
    assert project.processes() == []
