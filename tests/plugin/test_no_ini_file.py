"""A project without an ini file: pytest takes the arguments' folder for its root, we do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("argument", ["", "cases/pack", "cases/pack/one"])
def test_candidates_and_results_are_where_pytest_was_started(
    project: Project, argument: str, workers: str
) -> None:
    project.certified("one", "two").scripted("right")
    (project.path / "pytest.ini").unlink()
    folder = next((project.path / "cases").iterdir()).name
    arguments = [argument.replace("pack", folder)] if argument else []
    ran = project.run("--models", "right", "-n", workers, *arguments)
    assert ran.exit == 0, ran.out
    assert {cell.case for cell in project.verdicts("right")} == (
        {"one"} if argument.endswith("one") else {"one", "two"}
    )
    assert not list((project.path / "cases").rglob("*.jsonl"))


def test_workers_have_the_controllers_root_when_results_lie_elsewhere(project: Project) -> None:
    """Pytest takes each argument that exists for one that its root must hold."""
    project.certified("one").scripted("right")
    (project.path / "pytest.ini").unlink()
    elsewhere = project.temporary / "elsewhere"
    ran = project.run("--models", "right", "-n", "2", "--modelbench-results", str(elsewhere))
    assert ran.exit == 0, ran.out
    assert list(elsewhere.rglob("*.jsonl"))
    assert "1 case x 1 repeat x 1 candidate = 1 cell     1 verdict" in ran.out
