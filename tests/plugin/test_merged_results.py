"""Results of two machines, merged by git, are the union of both."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


def git(folder: Path, *args: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *identity, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def machines(project: Project) -> Iterator[tuple[Project, Project]]:
    """Two clones of one project."""
    project.certified("one", "two").scripted("right").scripted("half", wrong=["two"])
    git(project.path, "init", "-q", "-b", "main")
    git(project.path, "add", ".")
    git(project.path, "commit", "-q", "-m", "start")
    other_path = project.path.parent / "other"
    git(project.path, "clone", "-q", ".", str(other_path))
    temporary = project.temporary / "other"
    temporary.mkdir()
    other = type(project)(other_path, temporary, project.certificates)
    yield project, other
    other.close()
    shutil.rmtree(temporary, ignore_errors=True)


def commit(machine: Project, what: str) -> None:
    git(machine.path, "add", "results")
    git(machine.path, "commit", "-q", "-m", what)


def test_the_merge_is_the_union_without_conflict(machines: tuple[Project, Project]) -> None:
    here, there = machines
    assert here.run("--models", "right", "--modelbench-repeats", "2").exit == 0
    commit(here, "here")
    assert there.run("--models", "half,right").exit == 0
    commit(there, "there")
    assert ".evidence" not in git(here.path, "ls-files", "results")
    assert ".locks" not in git(here.path, "ls-files", "results")
    both = {entry.id for machine in machines for entry in machine.index().entries()}

    git(here.path, "pull", "-q", "--no-rebase", "--no-edit", str(there.path), "main")
    merged = here.index()
    assert {entry.id for entry in merged.entries()} == both
    assert merged.damages == []
    ran = here.run("--models", "right,half", "--modelbench-repeats", "2", "-n", "2")
    assert ran.exit == 0, ran.out
    assert "6 replayed, 2 to run" in ran.out
    assert ran.outcomes() == {"passed": 6, "unsolved": 2}
    # Both machines ran two of the cells: the first verdict of each counts, in one vote.
    assert sorted(map(len, here.verdicts("right").values())) == [1, 1, 2, 2]
    assert "4/4" in ran.out


def test_runs_that_wrote_into_one_file_merge_too(machines: tuple[Project, Project]) -> None:
    """One run, carried to two machines before its end and appended to on both."""
    here, there = machines
    assert here.run("--models", "right", "--modelbench-repeats", "3").exit == 0
    (path,) = (here.results / "tiny/right").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    commit(here, "two cells")
    git(there.path, "pull", "-q", str(here.path), "main")
    twin = there.path / path.relative_to(here.path)
    path.write_bytes(b"".join(lines[:5]))
    commit(here, "four cells")
    twin.write_bytes(b"".join([*lines[:3], *lines[5:]]))
    commit(there, "two others")
    git(here.path, "pull", "-q", "--no-rebase", "--no-edit", str(there.path), "main")
    assert here.index().damages == []
    assert here.verdicts("right") == {cell: [True] for cell in here.cells("right", 3)}


def test_a_copied_line_counts_once(machines: tuple[Project, Project]) -> None:
    here, _ = machines
    assert here.run("--models", "right").exit == 0
    (path,) = (here.results / "tiny/right").glob("*.jsonl")
    header, *lines = path.read_bytes().splitlines(keepends=True)
    with path.open("ab") as file:
        file.write(lines[0])
    path.with_name("20200101T000000Z-copied.jsonl").write_bytes(header + b"".join(lines))
    index = here.index()
    assert index.duplicates == 3
    assert index.damages == []
    ran = here.run("--models", "right")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 2}
    assert "2/2" in ran.out
    assert here.verdicts("right") == {cell: [True] for cell in here.cells("right")}
