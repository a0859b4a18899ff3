"""FR06: an account is exhausted in the middle of a run; and a gateway is killed in one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

Servers = Callable[..., "ModelServer"]

QUOTA = {
    "status": 429,
    "json": {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}},
}


@pytest.mark.slow
def test_a_quota_error_stops_its_candidate_and_the_other_finishes(
    project: Project, model: Model, model_server: Servers
) -> None:
    """2 candidates x 40 cells, -n 8."""
    server = model_server(model)
    project.certified(*(f"c{n:02}" for n in range(10))).served("poor", server.url).scripted("rich")
    told: dict[str, int] = {}

    def exhausted(case: str) -> dict[str, Any] | None:
        if len(model.asked) <= 12:
            return None
        told.setdefault("at", len(model.asked))
        return QUOTA

    model.behaviour = exhausted
    args = ("--models", "poor,rich", "--modelbench-repeats", "4", "-n", "8")
    ran = project.run(*args)
    assert ran.exit == 1, ran.out
    assert len(model.asked) - told["at"] <= 8, "after the first such reply"
    assert len(project.verdicts("rich")) == 40
    poor = project.verdicts("poor")
    assert len(poor) == 12
    counts = ran.outcomes()
    assert counts["passed"] == 40 + 12
    assert counts["error"] + counts["skipped"] == 28
    assert 1 <= counts["error"] <= 8
    skipped = [one for found in ran.junit.values() for one in found if one.outcome == "skipped"]
    why = {one.message for one in skipped}
    assert all("poor was stopped: " in text and "quota-exhausted" in text for text in why), why
    assert all(text.count("stopped") == 1 for text in why), why
    before = len(model.asked)
    model.behaviour = lambda case: None
    again = project.run(*args)
    assert again.exit == 0, again.out
    assert len(model.asked) - before == 28, "what had a verdict is not run again"
    assert project.verdicts("poor") == {cell: [True] for cell in project.cells("poor", 4)}


@pytest.mark.slow
def test_a_killed_gateway_costs_the_cells_in_flight_one_try(
    project: Project, model: Model, model_server: Servers
) -> None:
    server = model_server(model, gated=True)
    assert server.gate is not None
    server.gate.set()
    project.certified(*(f"c{n}" for n in range(6))).served("served", server.url)
    reached = []

    def hold(case: str) -> None:
        # Two have ended, and the next two wait for an answer that never comes to this gateway.
        if len(model.asked) == 2 and server.gate is not None:
            server.gate.clear()
            reached.append(case)

    model.behaviour = hold
    run = project.start("--models", "served", "-n", "2", "-v")
    run.until(lambda: reached and server.in_flight == 2)
    (gateway,) = _gateways(project)
    os.kill(gateway, signal.SIGKILL)
    run.until(lambda: any(r.fault is not None for r in project.tries("served")))
    server.gate.set()
    ran = run.wait()
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 6}
    assert project.verdicts("served") == {cell: [True] for cell in project.cells("served")}
    faults = [r.fault for r in project.tries("served") if r.fault is not None]
    assert [fault.kind for fault in faults] == ["gateway"] * len(faults)
    assert 1 <= len(faults) <= 2
    assert len(model.asked) == 6 + len(faults)
    assert project.processes() == []


def _gateways(project: Project) -> list[int]:
    """Return the pids of gateways that were started with the project's TMPDIR."""
    mark = f"TMPDIR={project.temporary}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            mine = mark in (folder / "environ").read_bytes().split(b"\0")
            if mine and b"gateway.server" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
