"""A plan is made from what is stored once nobody else can write any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

# Grading goes on only when a file in the user's home is gone: the test says when.
WAITS = """
import time
from pathlib import Path

while (Path.home() / "hold").exists():
    (Path.home() / "reached").touch()
    time.sleep(0.01)

"""


def test_a_verdict_stored_while_the_next_run_waits_is_not_run_again(project: Project) -> None:
    project.pack("one").scripted("right")
    check = project.path / "cases/tiny/one/hidden/test_answer.py"
    check.write_text(WAITS + check.read_text())
    assert project.run("--models", "reference,seed", "--modelbench-repeats", "3").exit == 0
    home = project.temporary / "home"
    home.mkdir(exist_ok=True)
    (home / "hold").touch()
    killed = project.start("--models", "right", "-n", "1")
    killed.until((home / "reached").exists)
    killed.process.kill()
    killed.process.wait()
    following = project.start("--models", "right", "-n", "1")
    following.until(lambda: "waiting up to 60 s for workers" in following.out)
    assert project.verdicts("right") == {}
    (home / "hold").unlink()
    ran = following.wait()
    assert ran.exit == 0, ran.out
    assert project.verdicts("right") == {Cell("tiny", "one", "right", 1): [True]}
    assert len(project.tries("right")) == 1, "what the orphan stored counts, and is not run again"
    assert "1 replayed" in ran.out
