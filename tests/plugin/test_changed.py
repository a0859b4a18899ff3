"""What changed runs again or is graded again, what cannot matter is reused (FR19)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

ONE, TWO = Cell("tiny", "one", "served", 1), Cell("tiny", "two", "served", 1)


@pytest.fixture
def served(project: Project, model: Model, model_server: Callable[..., ModelServer]) -> Project:
    """Two verdicts of ``served``; what the model was asked since then is counted anew."""
    server = model_server(model)
    project.certified("one", "two").served("served", server.url, params={"temperature": 0.5})
    ran = project.run("--models", "served")
    assert ran.exit == 0, ran.out
    model.asked.clear()
    return project


def change(project: Project, name: str, old: str, new: str) -> None:
    path = project.path / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_changed_check_is_judged_again_from_the_kept_harvest(
    served: Project, model: Model
) -> None:
    change(served, "cases/tiny/two/hidden/test_answer.py", "== 1", "== 2")
    (served.path / "reference_solutions/tiny/two/answer.txt").write_text("two\nlines\n")
    plan = served.run("--models", "served", "--modelbench-plan")
    assert "1 replayed, 1 to grade again" in plan.out
    assert "the check changed" in plan.out
    ran = served.run("--models", "served", "-v")
    assert ran.exit == 0, ran.out
    assert model.asked == [], "the candidate is not called"
    assert ran.outcomes()["unsolved"] == 1
    assert served.verdicts("served") == {ONE: [True], TWO: [True, False]}
    again = served.run("--models", "served")
    assert "2 replayed" in again.out
    assert again.outcomes() == {"passed": 1, "unsolved": 1}


@pytest.mark.parametrize("what", ["prompt", "seed"])
def test_a_changed_task_runs_again(served: Project, model: Model, what: str) -> None:
    if what == "prompt":
        change(served, "cases/tiny/two/case.toml", "answer.txt.", "answer.txt!")
    else:
        (served.path / "cases/tiny/two/seed/more.txt").write_text("more\n")
    ran = served.run("--models", "served")
    assert ran.exit == 0, ran.out
    assert "1 replayed, 1 to run" in ran.out
    assert model.asked == ["two"]
    assert served.verdicts("served") == {ONE: [True], TWO: [True, True]}


def test_a_changed_parameter_runs_again(served: Project, model: Model) -> None:
    keys = served.candidates["served"]
    served.candidate("served", **(keys | {"params": {"temperature": 0.6}}))
    ran = served.run("--models", "served")
    assert ran.exit == 0, ran.out
    assert "2 to run" in ran.out
    assert model.asked == ["one", "two"]


def test_a_changed_address_runs_again_unless_it_is_the_same_service(
    served: Project, model: Model, model_server: Callable[..., ModelServer]
) -> None:
    keys = served.candidates["served"]
    moved = keys | {"api_base": model_server(model).url}
    served.candidate("served", **moved, same_as=keys["api_base"])
    same = served.run("--models", "served")
    assert same.exit == 0, same.out
    assert "2 replayed" in same.out
    assert model.asked == []
    served.candidate("served", **moved)
    other = served.run("--models", "served")
    assert other.exit == 0, other.out
    assert model.asked == ["one", "two"]


def test_what_cannot_matter_is_reused_and_counted(served: Project, model: Model) -> None:
    registry = served.path / "modelbench.toml"
    head, *keys = registry.read_text().splitlines()
    registry.write_text("\n".join([head, "# a comment", *reversed(keys), 'note = "new"']) + "\n")
    case = served.path / "cases/tiny/two/case.toml"
    title, prompt = case.read_text().splitlines()
    case.write_text(f"# a comment\n{prompt}\n\n{title}\n")
    (served.path / "cases/tiny/one/seed/answer.txt").touch()
    ran = served.run("--models", "served")
    assert ran.exit == 0, ran.out
    assert "2 replayed" in ran.out
    assert model.asked == []


def test_lf_counts_no_verdict_of_another_task(project: Project) -> None:
    """What --lf does not run may be outdated all the same: it stands under old, and is missing."""
    project.certified("one", "two").declare("gateway", retries=0)
    project.scripted("x", error={"status": 500, "times": 99}, failing=["two"])
    first = project.run("--models", "reference,x", "--modelbench-fault-retries", "0")
    assert first.outcomes()["error"] == 1, first.out
    change(project, "cases/tiny/pack.toml", "turns = 5", "turns = 6")
    project.scripted("x")  # what answers is part of the candidate
    ran = project.run("--lf")
    assert ran.exit == 0, ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["x", "1/1", "100"] in [words[:3] for words in lines]
    assert ["missing", "x:", "run", "on", "another", "version", "only", "1"] in lines
    assert "old      not counted above: one (task and candidate changed) 1 of 1 passed" in ran.out
    assert "pytest with the same arguments, without --lf, -k, -m and single cases" in ran.out
