"""A pack demands a least trust: what is weaker is refused, or counts as no pass and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.records import Outcome, Trust

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

pytestmark = pytest.mark.slow  # a run of pytest each, with certificates

EXECUTOR = Path(__file__).parents[2] / "cases" / "executor" / "pack.toml"
ADD = "def add(a, b):\n    return a + b\n"
TESTS = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
SEPARATE = """
def test_sum(solution):
    assert solution.load("calc").add(2, 3) == 5


def test_tests(solution):
    if "tests/test_calc.py" in solution.files:
        found = solution.judge_tests("tests/test_*.py", {"right": "right", "broken": "broken"})
        assert found == {"right": "passed", "broken": "failed"}
"""
IN_PROCESS = "from calc import add\n\n\ndef test_sum():\n    assert add(2, 3) == 5\n"


def write(project: Project, mode: str, least_trust: str, hidden: str) -> Project:
    # The packages of a shipped pack: an environment is built once for all that have the same.
    environment = EXECUTOR.read_text().partition("[environment]")[2].partition("]\n")[0] + "]\n"
    project.write(
        "cases/tiny/pack.toml",
        f'[pack]\nname = "tiny"\n\n[limits]\nturns = 5\nseconds = 60\n\n[check]\nmode = "{mode}"\n'
        f'least_trust = "{least_trust}"\nseconds = 60\n\n[environment]{environment}',
    )
    project.write("cases/tiny/sum/case.toml", 'title = "Sum"\nprompt = "Write add in calc.py."\n')
    project.write("cases/tiny/sum/seed/calc.py", "def add(a, b):\n    return 0\n")
    project.write("cases/tiny/sum/hidden/test_hidden.py", hidden)
    project.write("cases/tiny/sum/hidden/right/calc.py", ADD)
    project.write("cases/tiny/sum/hidden/broken/calc.py", "def add(a, b):\n    return 3\n")
    project.write("reference_solutions/tiny/sum/calc.py", ADD)
    for name, files in {
        "right": {"calc.py": ADD},
        "tester": {"calc.py": ADD, "tests/test_calc.py": TESTS},
    }.items():
        calls = [
            f'{{ name = "write_file", arguments = {{ path = "{path}", '
            f"content = {json.dumps(text)} }} }}"
            for path, text in files.items()
        ]
        script = f'[[default.steps]]\ncalls = [{", ".join(calls)}, {{ name = "finish" }}]\n'
        project.write(f"scripts/{name}.toml", script)
        project.candidate(name, agent="scripted", script=f"scripts/{name}.toml")
    return project


def test_a_pass_with_less_trust_than_demanded_is_none(project: Project) -> None:
    """Both are right; one's pass rests on tests that run beside its own code."""
    write(project, "separate", "trusted", SEPARATE)
    ran = project.run("--models", "right,tester", "-rA")
    assert ran.exit == 0, ran.out
    (right,), (tester,) = project.tries("right"), project.tries("tester")
    assert right.verdict is not None
    assert tester.verdict is not None
    assert (right.outcome, right.verdict.trust) == (Outcome.PASSED, Trust.TRUSTED)
    assert (tester.outcome, tester.verdict.trust) == (Outcome.UNSOLVED, Trust.EVIDENT)
    assert (tester.verdict.reward, tester.verdict.reason) == (0.0, "too-little-trust")
    assert all(check.passed for check in tester.verdict.checks)
    assert "too-little-trust" in ran.out


def test_in_process_verdicts_are_evident_and_never_trusted(project: Project) -> None:
    write(project, "in-process", "trusted", IN_PROCESS)
    refused = project.start("--models", "right", junit=False).wait()
    assert refused.exit == 4, refused.out
    assert "pack.toml:10" in refused.out
    assert "no verdict of mode in-process is trusted" in refused.out
    assert 'write least_trust = "evident", or mode = "separate"' in refused.out
    assert not project.results.exists() or project.tries("right") == []

    write(project, "in-process", "evident", IN_PROCESS)
    ran = project.run("--models", "right")
    assert ran.exit == 0, ran.out
    (right,) = project.tries("right")
    assert right.verdict is not None
    assert (right.outcome, right.verdict.trust) == (Outcome.PASSED, Trust.EVIDENT)
    (line,) = [line for line in ran.out.splitlines() if line.split()[:1] == ["trust"]]
    assert line.split() == ["trust", "evident"], "said beside the score"
