"""The path to the model, or our own machinery, fails: no verdict, in no rate, and tried again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_modelbench.records import Cell

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

Servers = Callable[..., "ModelServer"]
ERROR = {"status": 500, "json": {"error": {"message": "out of memory"}}}
DENIED = {"status": 401, "json": {"error": {"message": "wrong key"}}}


def failing(*cases: str) -> Callable[[str], dict[str, Any] | None]:
    """A behaviour that answers 500 to some cases."""
    return lambda case: ERROR if case in cases else None


@pytest.fixture
def served(project: Project, model: Model, model_server: Servers) -> Project:
    """Two certified cases and the candidate ``served``, whose calls are tried once more."""
    project.certified("one", "two").served("served", model_server(model).url)
    return project.declare("gateway", retries=1, max_wait=5)


ONE, TWO = Cell("tiny", "one", "served", 1), Cell("tiny", "two", "served", 1)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_server_that_is_down_leaves_faults_until_it_is_up(
    project: Project, model: Model, model_server: Servers, quiet_port: int, workers: str
) -> None:
    project.certified("one", "two").served("served", f"http://127.0.0.1:{quiet_port}/v1")
    project.declare("gateway", retries=0)
    down = project.run("--models", "served", "-n", workers)
    assert down.exit == 1, down.out
    assert down.outcomes() == {"error": 2}
    assert project.faulted("served") == {ONE: "connection-refused", TWO: "connection-refused"}
    assert project.verdicts("served") == {}
    assert {name: [one.outcome for one in found] for name, found in down.junit.items()} == {
        "test_case[one:served:1]": ["error"],
        "test_case[two:served:1]": ["error"],
    }
    model_server(model, port=quiet_port)
    up = project.run("--models", "served", "-n", workers)
    assert up.exit == 0, up.out
    assert project.verdicts("served") == {ONE: [True], TWO: [True]}
    assert project.faulted("served") == {}


def test_errors_for_ever_end_in_one_fault_after_bounded_retries(
    served: Project, model: Model
) -> None:
    model.behaviour = failing("two")
    ran = served.run("--models", "served")
    assert ran.exit == 1, ran.out
    assert ran.outcomes() == {"passed": 1, "error": 1}
    assert "0/1" not in ran.out, "a fault is in no rate"
    assert "1/1" in ran.out
    assert served.faulted("served") == {TWO: "server-error"}
    # One cell, tried twice in the run, each time with one request and one retry.
    assert sorted(model.asked) == ["one", "two", "two", "two", "two"]
    fault = served.tries("served")[-1].fault
    assert fault is not None
    assert (fault.status, fault.stage) == (500, "work")
    assert "out of memory" in fault.text


@pytest.mark.parametrize("how", [("--lf",), ("--lf", "-n", "2"), ("--models", "served")])
def test_lf_and_a_plain_rerun_run_the_faulted_cells_and_no_other(
    served: Project, model: Model, how: tuple[str, ...]
) -> None:
    model.behaviour = failing("two")
    served.run("--models", "served", "--modelbench-fault-retries", "0")
    model.behaviour = failing()
    model.asked.clear()
    ran = served.run(*how)
    assert ran.exit == 0, ran.out
    assert model.asked == ["two"]
    assert served.verdicts("served") == {ONE: [True], TWO: [True]}
    if "--lf" in how:
        assert list(ran.junit) == ["test_case[two:served:1]"]
    else:
        assert len(ran.junit) == 2, "what is stored is reported too"


def test_lf_finds_the_fault_after_another_run_and_after_a_kill(
    served: Project, model: Model
) -> None:
    served.scripted("right").scripted("slow", delay_s=200)
    model.behaviour = failing("two")
    served.run("--models", "served", "--modelbench-fault-retries", "0")
    assert served.run("--models", "right").exit == 0
    killed = served.start("--models", "slow", "-n", "2")
    killed.until(served.worlds)
    killed.kill()
    model.behaviour = failing()
    model.asked.clear()
    served.pack("three", name="spare")
    ran = served.run("--lf", "-n", "2")
    assert ran.exit == 0, ran.out
    assert "spare" not in ran.out, "nothing of that pack was asked for"
    assert list(ran.junit) == ["test_case[two:served:1]"]
    assert model.asked == ["two"]

    none = served.run("--lf")
    assert none.junit == {}, "the cells of slow have never run, and no fault is left"
    assert "no cell ended in a fault" in none.out
    assert model.asked == ["two"]
    assert served.tries("slow") == []


def test_models_narrows_lf(served: Project, model: Model, model_server: Servers) -> None:
    served.served("other", served_url(served))
    model.behaviour = failing("one", "two")
    served.run("--models", "served,other", "--modelbench-fault-retries", "0")
    model.behaviour = failing()
    ran = served.run("--lf", "--models", "other")
    assert ran.exit == 0, ran.out
    assert sorted(ran.junit) == ["test_case[one:other:1]", "test_case[two:other:1]"]
    assert served.verdicts("served") == {}


def served_url(project: Project) -> str:
    return str(project.candidates["served"]["api_base"])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_x_stops_at_a_fault(served: Project, model: Model, workers: str) -> None:
    model.behaviour = failing("one", "two")
    stopped = served.run(
        *("--models", "served", "--modelbench-repeats", "4", "-x", "-n", workers),
        *("--modelbench-fault-retries", "0"),
    )
    assert stopped.exit in (1, 2), stopped.out
    assert "stopping after 1 failures" in stopped.out
    assert 1 <= len(served.tries("served")) <= 2 * max(1, int(workers))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_x_does_not_stop_at_a_wrong_answer(served: Project, workers: str) -> None:
    served.scripted("wrong", wrong=["one", "two"])
    ran = served.run("--models", "wrong", "--modelbench-repeats", "3", "-x", "-n", workers)
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"unsolved": 6}
    assert served.verdicts("wrong") == {cell: [False] for cell in served.cells("wrong", 3)}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_fault_is_tried_again_at_the_end_and_counts_once(
    served: Project, model: Model, workers: str
) -> None:
    served.declare("gateway", retries=0)
    faults = {"left": 2}

    def twice(case: str) -> dict[str, Any] | None:
        if case == "one" and faults["left"]:
            faults["left"] -= 1
            return ERROR
        return None

    model.behaviour = twice
    ran = served.run(
        *("--models", "served", "--modelbench-fault-retries", "2", "-n", workers, "-v")
    )
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 2}
    assert {name: [one.outcome for one in found] for name, found in ran.junit.items()} == {
        "test_case[one:served:1]": ["passed"],
        "test_case[two:served:1]": ["passed"],
    }
    tries = [r for r in served.tries("served") if r.case == "one"]
    assert [(r.tries, r.outcome.value) for r in tries] == [
        (1, "fault"),
        (2, "fault"),
        (3, "passed"),
    ]
    if workers == "0":
        assert model.asked == ["one", "two", "one", "one"]
    assert "FAULT" not in ran.out


def test_retries_of_faults_can_be_turned_off(served: Project, model: Model) -> None:
    model.behaviour = failing("one")
    ran = served.run("--models", "served", "--modelbench-fault-retries", "0")
    assert ran.exit == 1, ran.out
    assert [r.tries for r in served.tries("served") if r.case == "one"] == [1]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_permanent_fault_stops_its_candidate_and_no_other(
    served: Project, model: Model, workers: str
) -> None:
    served.scripted("right")
    model.behaviour = lambda case: DENIED
    args = ("--models", "served,right", "--modelbench-repeats", "3", "-n", workers)
    ran = served.run(*args)
    assert ran.exit == 1, ran.out
    assert len(served.verdicts("right")) == 6
    assert len(model.asked) <= max(1, int(workers)), "nothing is asked after the refusal"
    skipped = [one for found in ran.junit.values() for one in found if one.outcome == "skipped"]
    assert len(skipped) >= 6 - max(1, int(workers))
    for one in skipped:
        assert "served was stopped: " in one.message
        assert "unauthorised" in one.message
    assert "no key was sent: api_key_env of the candidate names" in ran.out
    model.behaviour = lambda case: None
    again = served.run(*args)
    assert again.exit == 0, again.out
    assert set(served.verdicts("served")) == set(served.cells("served", 3))


# A grader that breaks: a file in the user's home makes the hidden check end its own process.
BREAKABLE = """
import os
from pathlib import Path

if (Path.home() / "broken").exists():
    os._exit(7)

"""


@pytest.fixture
def breakable(project: Project, model: Model, model_server: Servers) -> Project:
    project.pack("one").served("served", model_server(model).url)
    check = project.path / "cases/tiny/one/hidden/test_answer.py"
    check.write_text(BREAKABLE + check.read_text())
    certified = project.run("--models", "reference,seed", "--modelbench-repeats", "3", "-n", "2")
    assert certified.exit == 0, certified.out
    return project


def broken(project: Project, yes: bool) -> None:
    flag = project.temporary / "home/broken"
    flag.parent.mkdir(exist_ok=True)
    flag.touch() if yes else flag.unlink()


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("how", [("--lf",), ("--models", "served")])
def test_a_grader_that_breaks_is_a_fault_that_is_graded_again(
    breakable: Project, model: Model, how: tuple[str, ...], workers: str
) -> None:
    broken(breakable, True)
    ran = breakable.run("--models", "served", "-n", workers)
    assert ran.exit == 1, ran.out
    assert ran.outcomes() == {"error": 1}
    assert model.asked == ["one"], "graded again at the queue's end, and not asked again"
    faults = [r.fault for r in breakable.tries("served")]
    assert [(f.kind, f.stage) for f in faults if f] == [("grader", "grade")] * 2
    broken(breakable, False)
    mended = breakable.run(*how, "-n", workers)
    assert mended.exit == 0, mended.out
    assert mended.outcomes() == {"passed": 1}
    assert model.asked == ["one"]
    assert breakable.verdicts("served") == {ONE: [True]}
    assert [r.kind for r in breakable.tries("served")] == ["attempt", "regrade", "regrade"]
    stored = breakable.run("--models", "served")
    assert stored.exit == 0, stored.out
    assert "1 replayed" in stored.out
    assert model.asked == ["one"]


def test_certificates_of_a_faulted_cell_are_not_counted_as_deselected(project: Any) -> None:
    project.pack("a", "b").scripted("down", error={"status": 400, "message": "no"}, failing=["b"])
    project.run("--models", "down", "-k", "b")
    shutil.rmtree(project.results / "tiny" / "reference")  # another machine made them
    project.scripted("down")
    ran = project.run("--lf")
    assert "deselected" not in ran.out, ran.out
    assert ran.outcomes() == {"certified": 3, "passed": 1}
    none = project.run("--lf")
    assert none.exit == 5
    assert "no cell ended in a fault, so --lf selects none" in none.out
    assert "run-last-failure" not in none.out
