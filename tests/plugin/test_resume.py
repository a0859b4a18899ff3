"""Run after run (FR18): finished cells are never run again, however the runs before ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


def test_a_run_after_two_killed_ones_runs_what_neither_finished(
    project: Project, model: Model, model_server: Callable[..., ModelServer]
) -> None:
    project.certified("one", "two")
    server = model_server(model)
    project.served("served", server.url)
    args = ("--models", "served", "--modelbench-repeats", "5", "-n", "2", "-q")

    stalled = {"delivery": {"kind": "stall", "after_bytes": 0}, "text": ""}
    # It cannot end, however late it is killed.
    model.behaviour = lambda case: stalled if len(model.asked) > 8 else None
    first = project.start(*args)
    first.until(lambda: len(project.verdicts("served")) >= 6)
    first.kill()
    done = project.verdicts("served")

    model.behaviour = lambda case: stalled
    asked = len(model.asked)
    second = project.start(*args)
    second.until(lambda: len(model.asked) > asked)
    second.kill()
    assert project.verdicts("served") == done, "the second run finished nothing, and lost nothing"

    model.behaviour = lambda case: None
    before = len(model.asked)
    third = project.run(*args)
    assert third.exit == 0, third.out
    # What had been answered when the first run was killed is graded, and not asked for again.
    paid = len(model.asked) - before
    assert paid <= 10 - len(done)
    assert sum(len(found) for found in project.verdicts("served").values()) == 10
    assert project.verdicts("served") == {cell: [True] for cell in project.cells("served", 5)}

    fourth = project.run(*args)
    assert fourth.exit == 0, fourth.out
    assert fourth.outcomes() == {"passed": 10}
    assert len(model.asked) - before == paid, "all is stored; nobody is asked"


def test_a_fresh_start_that_is_killed_goes_on_and_keeps_what_was_stored(
    project: Project, model: Model, model_server: Callable[..., ModelServer]
) -> None:
    project.certified("one", "two").served("served", model_server(model).url)
    assert project.run("--models", "served").exit == 0
    model.behaviour = lambda case: (
        {"delivery": {"kind": "stall", "after_bytes": 0}, "text": ""} if case == "two" else None
    )
    fresh = project.start("--models", "served", "--modelbench-fresh")
    fresh.until(lambda: model.asked == ["one", "two", "one", "two"])
    fresh.kill()
    model.behaviour = lambda case: None
    resumed = project.run("--models", "served")
    assert resumed.exit == 0, resumed.out
    assert model.asked == ["one", "two", "one", "two", "two"], "the fresh start goes on"
    assert "1 replayed, 1 to run" in resumed.out
    found = project.verdicts("served")
    assert found == {cell: [True, True] for cell in project.cells("served")}
    index = project.index()
    assert [index.superseded(cell) for cell in project.cells("served")] == [1, 1]
