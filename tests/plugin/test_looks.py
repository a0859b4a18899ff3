"""Looks: which runs count, and what a later one is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_modelbench.store.looks import Look, Looks

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


def looks(project: Project) -> list[Look]:
    return list(Looks.read(project.results).looks)


def look_line(out: str) -> str:
    (line,) = [line for line in out.splitlines() if line.startswith("look ")]
    return line


def test_a_look_is_counted_once_and_an_extended_grid_says_so(project: Project) -> None:
    project.certified(*"abcd").scripted("good").scripted("poor", wrong="bcd")
    models = ("--models", "good,poor", "-n", "2")
    first = project.run(*models, "--modelbench-sample", "2", "--modelbench-sample-seed", "7")
    assert first.exit == 0, first.out
    assert "1; the grid is complete; a pair is decided at p < 0.05" in look_line(first.out)
    (one,) = looks(project)
    assert (one.number, one.complete, len(one.cases), len(one.shown)) == (1, True, 2, 4)

    replay = project.run(*models, "--modelbench-sample", "2", "--modelbench-sample-seed", "7")
    assert "1 again, nothing new is shown" in look_line(replay.out)
    planned = project.run(*models, "--modelbench-plan")
    assert planned.exit == 0
    assert len(looks(project)) == 1

    whole = project.run(*models)
    assert whole.exit == 0, whole.out
    told = look_line(whole.out)
    assert "2; the grid is complete; its declared size changed after a look" in told
    assert told.endswith("a pair is decided at p < 0.025")
    assert [look.number for look in looks(project)] == [1, 2]
    assert len(looks(project)[1].shown) == 4  # what the first had not shown

    afresh = project.run(*models, "--modelbench-fresh")
    assert "afresh   good 1 time, poor 1 time: what was stored before is superseded" in afresh.out
    assert look_line(afresh.out).startswith("look     1; the grid is complete")


def test_an_interrupted_grid_is_interim_and_the_last_look_decides_at_005(project: Project) -> None:
    project.certified(*"abcd").scripted("good")
    project.scripted("down", error={"status": 500, "times": 99}, failing="b")
    project.declare("gateway", retries=0)
    first = project.run("--models", "good,down", "--modelbench-fault-retries", "0")
    assert first.exit == 1, first.out
    assert "1; interim: the grid is not complete; a pair is decided at p < 0.001" in first.out
    project.scripted("down")  # the same candidate, whose server is up again
    last = project.run("--lf")
    assert "partial run" in last.out
    assert len(looks(project)) == 1
    done = project.run("--models", "good,down")
    assert done.exit == 0, done.out
    assert "a pair is decided at p < 0.05" in look_line(done.out)


def test_repeats_that_left_the_same_work_are_noted(project: Project) -> None:
    project.certified(*"abcd").scripted("good")
    ran = project.run("--models", "good", "--modelbench-repeats", "2", "-n", "2")
    assert ran.exit == 0, ran.out
    assert "alike    all repeats left the same work: good in 4 of 4 cases" in ran.out
    assert "look     1; the grid is complete\n" in ran.out  # one candidate: no pair to decide
