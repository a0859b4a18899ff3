"""A model that never comes to an end (FR14) has a verdict, and is not tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

READ = [{"name": "read_file", "arguments": {"path": "answer.txt"}}]


def test_one_call_for_ever_is_a_verdict_with_its_reason(
    project: Project,
    model: Model,
    model_server: Callable[..., ModelServer],
    completion: Callable[..., dict[str, object]],
) -> None:
    project.certified("one", "two").served("stuck", model_server(model).url)
    model.behaviour = lambda case: completion(READ) if case == "one" else None
    ran = project.run("--models", "stuck", "--modelbench-fault-retries", "3", "-v")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 1, "unsolved": 1}
    assert model.asked.count("one") == 5, "the pack's limit on turns"
    (stuck,) = [r for r in project.tries("stuck") if r.case == "one"]
    assert stuck.fault is None
    assert stuck.verdict is not None
    assert (stuck.verdict.passed, stuck.verdict.reason) == (False, "step-limit")
    assert [c.name for c in stuck.verdict.checks if not c.passed] == ["test_answer"]
    assert stuck.counts["turns"] == 5
    assert "step-limit" in ran.out
    again = project.run("--models", "stuck")
    assert "2 replayed" in again.out
    assert model.asked.count("one") == 5
