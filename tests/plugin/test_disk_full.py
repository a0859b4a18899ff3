"""The disk fills up (FR21): said with file and cause, nothing more begins, all stored is whole."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

ROOM = 24_000
"""Bytes that one file may have: some results fit into it, forty do not."""


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_results_that_do_not_fit_end_the_run_and_lose_nothing(
    project: Project, workers: str
) -> None:
    project.certified("one", "two").scripted("right")
    args = ("--models", "right", "--modelbench-repeats", "20", "-n", workers, "-q")
    full = project.start(*args, before=no_room, junit=False).wait()
    assert full.exit not in (0, 5), full.out
    assert "the result was not stored: File too large" in full.out
    (path,) = (project.results / "tiny/right").glob("*.jsonl")
    assert str(path) in full.out
    assert "make room" in full.out
    assert "INTERNALERROR" not in full.out
    index = project.index()
    assert index.damages == [], "no half record"
    done = {cell for cell in project.verdicts("right")}
    assert 5 <= len(done) < 40
    assert project.faulted("right") == {}, "a full disk says nothing about a candidate"
    assert full.out.count("the result was not stored") <= 4 * max(1, int(workers)), "no more began"
    assert project.leftovers() == []
    stored = {entry.id for entry in index.entries()}

    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    assert stored <= {entry.id for entry in project.index().entries()}
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 20)}
