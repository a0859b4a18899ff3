"""A Python function as candidate: measured without a model or a gateway, and again when changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

SOLVER = """
def solve(task, tools):
    word = task.prompt.split()[1]
    tools.write_file(path="answer.txt", content=word + "\\n" if word == "one" else "no\\n")
"""


@pytest.mark.slow
def test_it_is_measured_replayed_and_measured_again_when_its_source_changes(
    project: Project,
) -> None:
    project.certified("one", "two").candidate("f", agent="function", function="solver:solve")
    project.write("solver.py", SOLVER)
    first = project.run("--models", "f")
    assert first.exit == 0, first.out
    assert {cell.case: passed for cell, passed in project.verdicts("f").items()} == {
        "one": [True],
        "two": [False],
    }
    assert all(not one.usage and not one.served_model for one in project.tries("f"))
    assert not (project.results / ".logs").exists()

    again = project.run("--models", "f")
    assert len(project.tries("f")) == 2, again.out

    project.write("solver.py", SOLVER.replace('== "one"', "!= ''"))
    changed = project.run("--models", "f")
    assert changed.exit == 0, changed.out
    assert len(project.tries("f")) == 4
    assert [one.passed for one in (t.verdict for t in project.tries("f")[2:]) if one] == [True] * 2
