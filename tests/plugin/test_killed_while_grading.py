"""Killed between the candidate's work and its verdict: the work is graded later, not paid again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_modelbench.records import Stage

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

CHECK = """\
import pathlib, time

def test_answer(solution):
    block, reached = pathlib.Path({block!r}), pathlib.Path({reached!r})
    if block.exists():
        reached.touch()
        while block.exists():
            time.sleep(0.01)
    assert solution.files["answer.txt"].split()[:1] == [b"one"]
"""


def test_work_that_was_not_judged_is_graded_and_not_run_again(project: Project) -> None:
    block, reached = project.path / "block", project.path / "reached"
    project.pack("one").scripted("right").scripted("other", wrong=["one"])
    hidden = next((project.path / "cases").glob("*/one/hidden/test_answer.py"))
    hidden.write_text(CHECK.format(block=str(block), reached=str(reached)))
    assert project.run("--models", "other").exit == 0
    block.touch()
    going = project.start("--models", "right", "-n", "2")
    going.until(reached.exists)
    going.kill()
    block.unlink()
    assert project.tries("right") == []

    ran = project.run("--models", "right")
    assert ran.exit == 0, ran.out
    assert "found the work of 1 attempt that ended before its verdict" in ran.out
    worked, graded = project.tries("right")
    assert worked.fault is not None
    assert (worked.fault.kind, worked.fault.stage) == ("interrupted", Stage.GRADE)
    assert worked.counts["turns"] > 0
    assert (graded.kind, graded.grades, graded.outcome) == ("regrade", worked.id, "passed")
    assert project.leftovers() == []

    again = project.run("--models", "right")
    assert len(project.tries("right")) == 2
    assert "found the work" not in again.out
