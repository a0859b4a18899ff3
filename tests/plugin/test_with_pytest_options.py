"""The options of pytest and of common plugins mean for cells what they mean for tests."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest


@pytest.mark.parametrize(
    "args",
    [
        ("-p", "no:xdist"),
        ("-p", "no:cacheprovider"),
        ("-n", "0"),
        ("-n", "2"),
        pytest.param(("-n", "8"), marks=pytest.mark.slow),
        ("-n", "2", "--dist", "worksteal"),
        ("-n", "2", "-p", "no:cacheprovider", "-p", "no:terminal"),
    ],
    ids=" ".join,
)
def test_run_and_rerun_are_right(project: Any, args: tuple[str, ...]) -> None:
    project.certified("a", "b", "c").scripted("half", wrong=["b"])
    project.write("test_x.py", "def test_x():\n    pass\n")
    silent = "no:terminal" in args
    for _ in range(2):
        ran = project.run("--models", "half", *args, "test_x.py", "cases")
        assert ran.exit == 0, ran.out
        if not silent:
            assert ran.outcomes() == {"passed": 3, "unsolved": 1}
        assert {name: [one.outcome for one in found] for name, found in ran.junit.items()} == {
            "test_x": ["passed"],
            "test_case[a:half:1]": ["passed"],
            "test_case[b:half:1]": ["passed"],
            "test_case[c:half:1]": ["passed"],
        }
    verdicts = {cell.case: found for cell, found in project.verdicts("half").items()}
    assert verdicts == {"a": [True], "b": [False], "c": [True]}
    assert not project.processes()
    assert not project.leftovers()


def test_no_traceback_is_made_for_a_verdict(project: Any) -> None:
    """It would be thrown away, and takes longer than all else that is done for a small cell."""
    project.certified("a", "b").scripted("half", wrong=["b"])
    project.write("test_x.py", "def test_x():\n    assert 1 == 2\n")
    project.write(
        "conftest.py",
        "from _pytest._code.code import ExceptionInfo\n"
        "plain = ExceptionInfo.getrepr\n"
        "def getrepr(self, *args, **named):\n"
        "    with open('formatted', 'a') as file:\n"
        "        print(type(self.value).__name__, file=file)\n"
        "    return plain(self, *args, **named)\n"
        "ExceptionInfo.getrepr = getrepr\n",
    )
    ran = project.run("--models", "half", "--modelbench-fail-unsolved", "test_x.py", "cases")
    assert ran.exit == 1, ran.out
    assert "unsolved (wrong): test_answer" in ran.out
    assert "assert 1 == 2" in ran.out, "other tests have theirs"
    assert (project.path / "formatted").read_text().split() == ["AssertionError"]


def test_without_the_plugin_its_options_are_unknown(project: Any) -> None:
    project.pack("a")
    project.write("test_x.py", "def test_x():\n    pass\n")
    ran = project.run("-p", "no:modelbench", "test_x.py")
    assert ran.exit == 0
    ran = project.run("-p", "no:modelbench", "--models", "seed")
    assert ran.exit == 4
    assert "unrecognized arguments" in ran.out


@pytest.mark.parametrize("workers", ["0", "2"])
def test_collect_only_touches_nothing(project: Any, workers: str) -> None:
    project.pack("a", "b").scripted("right")
    before = sorted(project.path.rglob("*"))
    ran = project.run("--models", "right", "-n", workers, "--co", "-q", "-p", "no:cacheprovider")
    assert ran.exit == 0, ran.out
    assert "cases/tiny/pack.toml::test_case[a:right:1]" in ran.out
    assert "cases/tiny/pack.toml::test_case[b:right:1]" in ran.out
    assert sorted(project.path.rglob("*")) == before
    assert not project.leftovers()
    assert not project.processes()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_keyword_takes_its_certificates_with_it(project: Any, workers: str) -> None:
    project.pack("a", "b").scripted("right")
    ran = project.run("--models", "right", "-n", workers, "-k", "a:right")
    assert ran.exit == 0, ran.out
    assert ran.outcomes()["certified"] == 6
    assert ran.outcomes()["passed"] == 1
    assert {record.case for record in project.tries("reference")} == {"a"}
    assert set(project.verdicts("right")) == {project.cells("right")[0]}


def test_mark_selects_cells_and_leaves_plain_tests(project: Any) -> None:
    project.certified("a").scripted("right")
    project.write("test_x.py", "def test_x():\n    pass\n")
    ran = project.run("--models", "right", "-m", "modelbench", "test_x.py", "cases")
    assert set(ran.junit) == {"test_case[a:right:1]"}
    assert ran.outcomes()["deselected"] == 1
    ran = project.run("--models", "right", "-m", "not modelbench", "test_x.py", "cases")
    assert ran.exit == 0
    assert set(ran.junit) == {"test_x"}


def test_stepwise_stops_at_a_fault_and_not_at_a_wrong_answer(project: Any) -> None:
    project.certified("a", "b", "c").scripted(
        "shaky", wrong=["a"], error={"status": 400, "message": "no"}, failing=["b"]
    )
    args = ("--models", "shaky", "--sw", "--modelbench-fault-retries", "0")
    ran = project.run(*args)
    assert ran.exit == 2, ran.out
    assert ran.outcomes() == {"unsolved": 1, "error": 1}
    project.scripted("shaky", wrong=["a"])
    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    assert {cell.case for cell in project.verdicts("shaky")} == {"a", "b", "c"}


def test_outer_timeout_does_not_end_an_attempt(project: Any) -> None:
    project.certified("a").scripted("slow", delay_s=1.5)
    project.write("pytest.ini", "[pytest]\ntimeout = 1\n")
    project.write(
        "test_mine.py",
        "import pytest\n\n@pytest.mark.modelbench(pack='tiny')\ndef test_x(attempt):\n    pass\n",
    )
    began = time.monotonic()
    ran = project.run("--models", "slow", "test_mine.py", "cases")
    assert time.monotonic() - began > 1.5
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 2}


def test_junit_has_the_whole_grid_once_with_stored_durations(project: Any) -> None:
    project.certified("a", "b").scripted(
        "shaky", wrong=["b"], delay_s=0.3, error={"status": 503, "times": 30}, failing=["a"]
    )
    project.declare("gateway", retries=0)
    first = project.run("--models", "shaky", "-n", "2")
    assert [len(found) for found in first.junit.values()] == [1, 1]  # a retried cell too
    (fault,) = first.junit["test_case[a:shaky:1]"]
    assert fault.outcome == "error"
    assert fault.properties["modelbench_outcome"] == "fault"
    (wrong,) = first.junit["test_case[b:shaky:1]"]
    assert wrong.outcome == "passed"
    assert wrong.properties["modelbench_outcome"] == "unsolved"
    assert wrong.properties["modelbench_reason"] == "wrong"
    assert wrong.properties["modelbench_lost"] == "test_answer"
    project.scripted("shaky", wrong=["b"], delay_s=0.3)
    fresh = project.run("--models", "shaky")
    last = project.run("--models", "shaky", "-n", "2")
    assert last.exit == 0, last.out
    assert [len(found) for found in last.junit.values()] == [1, 1]
    stored = {r.case: r for r in project.tries("shaky") if r.verdict is not None}
    for case, record in stored.items():
        (one,) = last.junit[f"test_case[{case}:shaky:1]"]
        assert one.seconds == pytest.approx(record.seconds, abs=0.002)
        assert one.seconds > 0.3
        assert one.properties["modelbench_outcome"] == record.outcome.value
        assert one.properties["modelbench_attempt"] == record.id
        assert one.properties == fresh.junit[f"test_case[{case}:shaky:1]"][0].properties


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("models", [(), ("--models", "right,other")])
def test_node_id_runs_one_cell(project: Any, workers: str, models: tuple[str, ...]) -> None:
    project.certified("a", "b").scripted("right").scripted("other")
    nodeid = "cases/tiny/pack.toml::test_case[b:right:2]"
    ran = project.run("-n", workers, *models, "--modelbench-repeats", "2", nodeid)
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {"test_case[b:right:2]"}
    assert set(project.verdicts("right", "other")) == {project.cells("right", 2)[3]}


def test_raw_model_name_with_colons_works_as_node_id(
    project: Any, model: Any, model_server: Any
) -> None:
    project.certified("a", "b")
    server = model_server(model)
    name = "openai/org/model::tag"
    nodeid = f"cases/tiny/pack.toml::test_case[a:{name}:1]"
    environ = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "not-a-key"}
    ran = project.run("-n", "2", nodeid, environ=environ)
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {f"test_case[a:{name}:1]"}
    assert model.asked == ["a"]
    ran = project.run("--models", name, nodeid, environ=environ)
    assert ran.exit == 0, ran.out
    assert model.asked == ["a"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_folder_of_a_case_selects_it(project: Any, workers: str) -> None:
    project.certified("a", "b").scripted("right")
    ran = project.run("--models", "right", "-n", workers, "cases/tiny/b")
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {"test_case[b:right:1]"}


def test_quiet_verbose_and_short_traces(project: Any) -> None:
    project.certified("a", "b").scripted(
        "shaky", wrong=["a"], error={"status": 400, "message": "told so"}, failing=["b"]
    )
    args = ("--models", "shaky", "--modelbench-fault-retries", "0", "--tb=short")
    loud = project.run(*args, "-v")
    assert loud.exit == 1
    assert "test_case[a:shaky:1] UNSOLVED" in loud.out
    assert "test_case[b:shaky:1] FAULT" in loud.out
    assert "told so" in loud.out
    quiet = project.run(*args, "-q")
    assert quiet.exit == 1
    assert "test session starts" not in quiet.out
    letters = [line for line in quiet.out.splitlines() if re.match(r"[.uEFs]+ +\[", line)]
    # What is stored is counted, and has no letter.
    assert [re.sub(" +", " ", line) for line in letters] == ["E [100%]"]
    assert quiet.outcomes() == {"error": 1, "unsolved": 1}


def test_fail_unsolved_makes_wrong_answers_red(project: Any) -> None:
    project.certified("a", "b").scripted("half", wrong=["b"])
    for _ in range(2):  # run, then replayed
        ran = project.run("--models", "half", "--modelbench-fail-unsolved")
        assert ran.exit == 1
        assert ran.outcomes() == {"passed": 1, "failed": 1}
        assert "unsolved (wrong): test_answer\nnext: modelbench show b:half:1\n" in ran.out
    assert project.run("--models", "half").exit == 0


def test_x_ends_with_the_first_stored_failure(project: Any) -> None:
    project.certified("a", "b", "c").scripted("half", wrong=["a", "b"])
    project.run("--models", "half")
    ran = project.run("--models", "half", "--modelbench-fail-unsolved", "-x")
    assert ran.exit == 1
    assert ran.outcomes() == {"failed": 1}
    assert "stopping after 1 failures" in ran.out


def test_x_ends_with_the_first_stored_failure_beside_workers_too(project: Any) -> None:
    project.certified("a", "b", "c").scripted("bad", wrong=["a", "b", "c"])
    assert project.run("--models", "bad", "cases/tiny/a", "cases/tiny/b").exit == 0
    ran = project.run("--models", "bad", "--modelbench-fail-unsolved", "-x", "-n", "2")
    assert ran.outcomes()["failed"] == 1
    assert "stopping after 1 failures" in ran.out
    assert {cell.case for cell in project.verdicts("bad")} == {"a", "b"}
