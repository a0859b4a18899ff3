"""Which folder is the project: pytest takes the arguments' own, or that of an ini file above."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.cli import main

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


def test_a_project_is_found_from_a_folder_below_its_registry(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project.certified("one", "two").scripted("right")
    (project.path / "pytest.ini").unlink()
    project.write("cases/other/pack.toml", '[pack]\nname = "other"\n')
    folder = project.path / "cases" / "tiny"
    ran = project.run("--models", "right", at=folder)
    assert ran.exit == 0, ran.out
    assert "modelbench: uses ../../modelbench.toml, results in ../../results" in ran.out
    assert "modelbench: other" not in ran.out  # the pack where it was started, and no other
    assert len(project.verdicts("right")) == 2
    ran = project.run("--models", "right", ".", at=folder / "one")  # and a case's own folder
    assert ran.outcomes() == {"passed": 1}, ran.out
    monkeypatch.chdir(folder)
    assert main(["show", "one:right:1"]) == 0
    assert main(["show", "one:wrong:1"]) == 4
    told = capsys.readouterr().err
    assert f"{project.results.resolve()}: no stored attempt is 'one:wrong:1'" in told


def test_a_registry_that_is_not_read_is_named(project: Project) -> None:
    project.certified("one").scripted("right")
    mine = project.path.parent / "mine"
    mine.mkdir()
    (mine / "modelbench.toml").write_text("")
    theirs = os.path.relpath(project.path, mine)
    ran = project.run("-q", "--models", "right", f"{theirs}/cases/tiny", at=mine)
    assert ran.exit == 0, ran.out
    assert f"modelbench does not read modelbench.toml: pytest took {project.path} for" in ran.out
    (mine / "pytest.ini").write_text("")  # what it advises
    ran = project.run("--models", "wrong", "-c", "pytest.ini", f"{theirs}/cases/tiny", at=mine)
    assert ran.exit == 4, ran.out
    assert f"{mine}/modelbench.toml: no candidate is named 'wrong'" in ran.out
