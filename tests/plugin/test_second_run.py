"""One run at a time measures into a results folder; what a killed one left is swept."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_second_run_is_refused_with_the_pid_of_the_first(project: Project, workers: str) -> None:
    project.certified("one").scripted("slow", delay_s=200).scripted("quick")
    first = project.start("--models", "slow", "-n", workers)
    first.until(project.worlds)
    second = project.run("--models", "quick")
    assert second.exit == 4, second.out
    assert f"another run is measuring into this folder: pid {first.pid}, started 20" in second.out
    assert "--modelbench-results" in second.out
    assert "INTERNALERROR" not in second.out
    assert project.verdicts("quick") == {}

    elsewhere = project.run("--models", "quick", "--modelbench-results", "elsewhere")
    assert elsewhere.exit == 0, elsewhere.out

    planned = project.run("--models", "quick", "--modelbench-plan")
    assert planned.exit == 0, planned.out
    assert "run 1" in planned.out


def test_the_refused_run_leaves_the_first_one_alone(
    project: Project, model: Model, model_server: Callable[..., ModelServer]
) -> None:
    server = model_server(model, gated=True)
    assert server.gate is not None
    project.certified("one", "two").served("slow", server.url)
    first = project.start("--models", "slow", "-n", "2")
    first.until(lambda: server.in_flight)
    assert project.run("--models", "slow").exit == 4
    server.gate.set()
    ran = first.wait()
    assert ran.exit == 0, ran.out
    assert project.verdicts("slow") == {cell: [True] for cell in project.cells("slow")}
    assert project.leftovers() == []


def test_what_a_killed_run_left_is_swept_by_the_next(project: Project) -> None:
    project.certified("one").scripted("slow", delay_s=200).scripted("quick")
    killed = project.start("--models", "slow", "-n", "2")
    killed.until(project.worlds)
    killed.kill()
    left = project.leftovers()
    assert any(name.startswith("mb-gw-") for name in left)
    assert any(name.endswith(".lock") for name in left)
    ran = project.run("--models", "quick", "-n", "2")
    assert ran.exit == 0, ran.out
    assert project.leftovers() == []
    assert project.processes() == []


def test_workers_of_a_killed_controller_are_waited_for(project: Project) -> None:
    project.certified("one").scripted("slow", delay_s=200).scripted("quick")
    killed = project.start("--models", "slow", "-n", "1")
    killed.until(project.worlds)
    (worker,) = killed.workers()
    os.kill(worker, signal.SIGSTOP)
    killed.process.kill()
    killed.process.wait()
    waiting = project.start("--models", "quick")
    waiting.until(lambda: "waiting up to 60 s for workers" in waiting.out)
    assert f"(pid {worker})" in waiting.out
    os.kill(worker, signal.SIGCONT)
    ran = waiting.wait()
    assert ran.exit == 0, ran.out
    assert project.verdicts("quick") == {cell: [True] for cell in project.cells("quick")}
    assert project.processes() == []
