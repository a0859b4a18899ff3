"""A pack whose checks ask a judge: its cost is apart, and its faults are no verdicts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.records import Outcome, Role, Trust

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Project

Servers = Callable[..., "ModelServer"]
HIDDEN = """
def test_answer(solution):
    found = solution.judge("Is this the word one? Text: " + solution.text("answer.txt"))
    assert found.score >= 0.5, found.why
"""


class JudgeServer:
    """The judge: right, unless it is told to talk."""

    def __init__(self) -> None:
        self.talks = False

    def __call__(self, asked: dict[str, Any]) -> dict[str, Any]:
        score = 1 if asked["messages"][1]["content"].endswith("Text: one\n") else 0
        text = "I think so." if self.talks else json.dumps({"score": score, "why": "as it says"})
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100}
        body = {"model": "judge-model", "choices": [choice], "usage": usage}
        return {"headers": {"content-type": "application/json"}, "json": body}


def modelbench(project: Project, *args: str) -> tuple[int, str]:
    """Run the command in a project; return exit status and what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_modelbench.cli", *args],
        cwd=project.path,
        env=os.environ | project._environ() | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def judged(project: Project, url: str) -> Project:
    project.pack("one")
    manifest = project.path / "cases" / "tiny" / "pack.toml"
    manifest.write_text(manifest.read_text() + 'judge = "wise"\n')
    project.write("cases/tiny/one/hidden/test_answer.py", HIDDEN)
    price = {"input": 1.0, "output": 10.0}
    project.candidate("wise", model="openai/judge-model", api_base=url, price=price)
    return project.scripted("good").scripted("bad", wrong=["one"])


@pytest.mark.slow
def test_a_judge_has_its_own_place(project: Project, model_server: Servers) -> None:
    judge = JudgeServer()
    server = model_server(judge)
    judged(project, server.url)
    ran = project.run("--models", "good,bad", "--modelbench-plan")
    # Two references and two seeds certify the case, and each of the two candidates tries it once.
    assert "wise: judges " in ran.out, ran.out
    assert not server.seen
    ran = project.run("--models", "good,bad")
    assert ran.exit == 0, ran.out
    (good,), (bad,) = project.tries("good"), project.tries("bad")
    assert (good.outcome, bad.outcome) == (Outcome.PASSED, Outcome.UNSOLVED)
    assert good.verdict is not None
    assert good.verdict.trust is Trust.JUDGED
    for record in (good, bad):
        own, judges = record.usage[Role.CANDIDATE], record.usage[Role.JUDGE]
        assert (own.input, judges.calls, judges.input) == (None, 1, 1000)
        assert judges.list_usd == pytest.approx(0.002)
        assert record.versions == {"judge": "judge-model"}
        assert set(record.evidence) == {"observation", "transcript", "judge"}
    assert "judge $0.0040, apart" in ran.out, ran.out
    status, shown = modelbench(project, "show", good.id)
    assert status == 0, shown
    assert "the judge, call 1" in shown
    assert "Is this the word one?" in shown

    status, found = modelbench(project, "audit")
    assert (status, "findings: 0" in found) == (0, True), found

    # A judge that talks: a fault, no verdict, paid, and graded again without the candidate.
    judge.talks = True
    project.scripted("later")
    before = len(server.seen)
    ran = project.run("--models", "later", "--modelbench-fault-retries", "0")
    assert ran.exit == 1, ran.out
    assert len(server.seen) - before == 3
    (faulted,) = project.tries("later")
    assert faulted.fault is not None
    assert (faulted.fault.kind, faulted.fault.stage, faulted.verdict) == ("judge", "grade", None)
    assert faulted.usage[Role.JUDGE].list_usd == pytest.approx(0.006)
    judge.talks = False
    planned = project.run("--models", "later", "--modelbench-plan")
    assert "wise: judges 1 cell, about $0.00" in planned.out
    ran = project.run("--models", "later")
    assert ran.exit == 0, ran.out
    _, again = project.tries("later")
    assert (again.kind, again.grades, again.outcome) == ("regrade", faulted.id, Outcome.PASSED)
    assert set(again.usage) == {Role.JUDGE}, "the candidate was not called"

    # A regrade says what the judge may cost, and asks it.
    status, text = modelbench(project, "regrade", "--models", "good", "--plan")
    assert status == 0, text
    told = "1 to judge again; no candidate is called, and the judge wise for 1, at about $0.0020"
    assert told in text
    before = len(server.seen)
    status, text = modelbench(project, "regrade", "--models", "good")
    assert (status, len(server.seen) - before) == (0, 1), text
    assert "same: 1" in text

    # Another judge is another check: stored work is judged again.
    project.candidate("wise", model="openai/judge-model", api_base=server.url, params={"seed": 1})
    planned = project.run("--models", "good", "--modelbench-plan")
    assert "regrade 1: the check changed" in planned.out, planned.out


def test_a_judge_that_nobody_knows_is_said(project: Project) -> None:
    judged(project, "http://127.0.0.1:9/v1")
    project.candidates.pop("wise")
    project._write_registry()
    ran = project.run("--models", "good")
    assert ran.exit == 4, ran.out
    assert "the judge of pack tiny: " in ran.out
    assert "no candidate is named 'wise'" in ran.out
