from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TWO_TESTS = """
import pytest

@pytest.mark.modelbench(pack="tiny")
def test_answer_is_short(attempt):
    assert len(attempt.files["answer.txt"]) < 4, "too long"

@pytest.mark.modelbench(pack="tiny", cases=["a"])
def test_of_one_case(attempt, world, case, candidate):
    assert (case.id, candidate.name) == ("a", "asked")
    assert (world / "answer.txt").read_bytes() == attempt.files["answer.txt"]
    assert attempt.case == case and attempt.candidate == candidate
    assert attempt.record.case == "a" and attempt.verdict.passed
    assert {line["kind"] for line in attempt.transcript} == {"request", "reply"}
"""


COUNTED = """
import pathlib
import pytest

@pytest.mark.modelbench(pack="tiny")
def test_answer_is_short(attempt):
    with pathlib.Path("bodies").open("a") as file:
        file.write("x")
    assert len(attempt.files["answer.txt"]) < 4, "too long"
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_all_items_of_a_cell_share_one_attempt(
    project: Any, model: Any, model_server: Callable[..., Any], workers: str
) -> None:
    server = model_server(model)
    project.certified("a", "b").served("asked", server.url)
    project.write("test_mine.py", TWO_TESTS)
    ran = project.run("--models", "asked", "-n", workers, "cases/tiny", "test_mine.py")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 5}
    assert sorted(model.asked) == ["a", "b"]  # once a cell
    assert set(ran.junit) == {
        "test_case[a:asked:1]",
        "test_case[b:asked:1]",
        "test_answer_is_short[tiny:a:asked:1]",
        "test_answer_is_short[tiny:b:asked:1]",
        "test_of_one_case[tiny:a:asked:1]",
    }

    again = project.run("--models", "asked", "-n", workers, "-v", "cases/tiny", "test_mine.py")
    assert again.exit == 0, again.out
    assert again.out.count("PASSED (stored)") == 5 or workers != "0"
    assert again.outcomes() == {"passed": 5}
    assert sorted(model.asked) == ["a", "b"]


def test_assertion_is_a_result_that_replays_until_the_test_changes(project: Any) -> None:
    project.certified("a", "b").scripted("right")
    text = COUNTED
    project.write("test_mine.py", text.replace("< 4", "< 4 and attempt.case.id == 'a'"))
    ran = project.run("--models", "right", "-v", "test_mine.py")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 1, "unsolved": 1}
    assert "::test_answer_is_short[tiny:b:right:1] UNSOLVED (too long)" in ran.out
    assert "\ntest_mine.py::test_answer_is_short[tiny:b:right:1]: too long\n" in ran.out
    shown = subprocess.run(
        [sys.executable, "-m", "pytest_modelbench.cli", "show", "b:right:1"],
        cwd=project.path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        "FAIL  test_mine.py::test_answer_is_short: too long   (a test of your own)" in shown.stdout
    )
    (wrong,) = ran.junit["test_answer_is_short[tiny:b:right:1]"]
    assert wrong.outcome == "passed"
    assert wrong.properties["modelbench_outcome"] == "unsolved"
    assert wrong.properties["modelbench_reason"].startswith("too long")
    checks = sorted(project.index().checks(), key=lambda check: check.case)
    assert [(c.name, c.case, c.passed) for c in checks] == [
        ("test_mine.py::test_answer_is_short", "a", True),
        ("test_mine.py::test_answer_is_short", "b", False),
    ]

    again = project.run("--models", "right", "-v", "test_mine.py")
    assert again.exit == 0, again.out
    assert again.outcomes() == {"passed": 1, "unsolved": 1}
    assert "UNSOLVED (stored)" in again.out
    assert (project.path / "bodies").read_text() == "xx"  # no body ran again

    red = project.run("--models", "right", "--modelbench-fail-unsolved", "test_mine.py")
    assert red.exit == 1
    assert red.outcomes() == {"passed": 1, "failed": 1}

    project.write("test_mine.py", text.replace("< 4", "< 9"))
    changed = project.run("--models", "right", "-v", "test_mine.py")
    assert changed.exit == 0, changed.out
    assert changed.outcomes() == {"passed": 2}
    assert (project.path / "bodies").read_text() == "xxxx"
    assert len(project.tries("right")) == 2


def test_exception_in_a_body_is_an_ordinary_failure_and_pays_nothing(project: Any) -> None:
    project.certified("a").scripted("right")
    project.write(
        "test_mine.py",
        "import pytest\n\n"
        "@pytest.mark.modelbench(pack='tiny')\n"
        "def test_broken(attempt):\n    {}['no such key']\n",
    )
    for _ in range(2):
        ran = project.run("--models", "right", "test_mine.py")
        assert ran.exit == 1
        assert ran.outcomes() == {"failed": 1}
        assert "KeyError: 'no such key'" in ran.out
        assert "attempt = <attempt a:right:1>" in ran.out
    assert len(project.tries("right")) == 1
    assert not project.faulted("right")
    assert not list(project.index().checks())


@pytest.mark.parametrize("workers", ["0", "2"])
def test_fault_is_every_askers_error_and_is_tried_no_oftener(project: Any, workers: str) -> None:
    project.certified("a").scripted("down", error={"status": 400, "message": "no"})
    project.write("test_mine.py", TWO_TESTS.replace('"asked"', '"down"'))
    ran = project.run(
        "--models",
        "down",
        "-n",
        workers,
        "--modelbench-fault-retries",
        "1",
        "cases",
        "test_mine.py",
    )
    assert ran.exit == 1
    assert ran.outcomes() == {"error": 3}, ran.out
    assert 1 <= len(project.tries("down")) <= 2
    assert set(project.faulted("down")) == set(project.cells("down"))


def test_without_candidates_a_users_test_is_skipped_with_the_reason(project: Any) -> None:
    project.pack("a")
    project.write("test_mine.py", TWO_TESTS)
    ran = project.run("-rs", "test_mine.py")
    assert ran.exit == 0
    assert ran.outcomes() == {"skipped": 2}
    assert "no candidate is named to try its cells: --models NAME" in ran.out
    assert set(ran.junit) == {"test_answer_is_short", "test_of_one_case"}
    assert not project.results.exists()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_certificates_come_first_for_users_tests_alone(project: Any, workers: str) -> None:
    project.pack("a").pack("b", name="spare").scripted("asked")
    project.write("test_mine.py", TWO_TESTS + "\ndef test_plain(): pass\n")
    ran = project.run("--models", "asked", "-n", workers, "test_mine.py")
    assert ran.exit == 0, ran.out
    counts = "collected 9 items" if workers == "0" else "[9 items]"
    assert counts in ran.out, "certificates of packs that nobody asked for are in no count"
    assert ran.out.count("[100%]") == 1
    assert ran.outcomes() == {"passed": 3, "certified": 6}
    assert "test_case[a:asked:1]" not in ran.junit  # the command line does not name the pack
    assert len(project.tries("asked")) == 1
    again = project.run("--models", "asked", "-n", workers, "test_mine.py")
    assert "[100%]" in again.out, "percent are of what has a letter, here one"


def test_users_tests_of_an_uncertified_case_are_skipped_and_the_run_fails(project: Any) -> None:
    project.pack("a").scripted("asked")
    project.write("reference_solutions/tiny/a/answer.txt", "wrong\n")
    project.write("test_mine.py", TWO_TESTS)
    ran = project.run("--models", "asked", "-rs", "test_mine.py")
    assert ran.exit == 1
    assert "case a is not certified" in ran.out
    assert ran.outcomes()["skipped"] == 2
    assert not project.tries("asked")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "@pytest.mark.modelbench(pack='tiyn')\ndef test_x(attempt): pass",
            "'tiyn', which this run",
        ),
        (
            "@pytest.mark.modelbench(pack='tiny', cases=['z'])\ndef test_x(attempt): pass",
            "names the case 'z'; pack tiny has a",
        ),
        (
            "@pytest.mark.modelbench(pack='tiny', cases='a')\ndef test_x(attempt): pass",
            'needs a list: cases=["…"]',
        ),
        ("@pytest.mark.modelbench('tiny')\ndef test_x(attempt): pass", "is to be marked @pytest"),
        ("@pytest.mark.modelbench(pack='tiny')\ndef test_x(): pass", "asks for none of attempt"),
        ("def test_x(attempt): pass", "names no pack whose cells it tries"),
    ],
)
def test_wrong_mark_is_told_with_its_place(project: Any, text: str, told: str) -> None:
    project.certified("a").scripted("right")
    project.write("test_mine.py", f"import pytest\n\n{text}\n")
    ran = project.run("--models", "right", "test_mine.py")
    assert ran.exit in (1, 2), ran.out
    assert told in ran.out
    assert "test_mine.py:3" in ran.out
    assert not project.tries("right")


def test_last_failed_runs_a_users_failing_test_of_a_stored_attempt(project: Any) -> None:
    project.certified("a", "b").scripted("right")
    broken = "if attempt.case.id == 'b': raise OSError('disk')\n    "
    text = COUNTED
    project.write("test_mine.py", text.replace("    assert", f"    {broken}assert"))
    assert project.run("--models", "right", "cases", "test_mine.py").exit == 1
    project.write("test_mine.py", text)
    ran = project.run("--models", "right", "--lf", "cases", "test_mine.py")
    assert ran.exit == 0, ran.out
    assert set(ran.junit) == {"test_answer_is_short[tiny:b:right:1]"}
    assert len(project.tries("right")) == 2


def test_example_of_the_documents_runs(project: Any) -> None:
    page = (Path(__file__).parents[2] / "docs/user-tests.md").read_text(encoding="utf-8")
    example = page.partition('title="test_small_changes.py"\n')[2].partition("```")[0]
    project.certified("a", "b").scripted("right").scripted("half", wrong=["b"])
    project.write("test_small_changes.py", example)
    ran = project.run("--models", "right,half", "-n", "2", "cases/tiny", "test_small_changes.py")
    assert ran.exit == 0, ran.out
    assert ran.outcomes() == {"passed": 9, "unsolved": 1}  # 4 cells, 4 + 2 of the page's


def test_class_and_other_parameters_are_part_of_a_checks_name(project: Any) -> None:
    project.certified("a").scripted("right")
    project.write(
        "test_mine.py",
        "import pytest\n\n"
        "@pytest.mark.modelbench(pack='tiny')\n"
        "class TestMine:\n"
        "    @pytest.mark.parametrize('most', [1, 9])\n"
        "    def test_size(self, attempt, most):\n"
        "        assert len(attempt.files['answer.txt']) <= most\n",
    )
    ran = project.run("--models", "right", "-n", "2", "test_mine.py")
    assert ran.outcomes() == {"passed": 1, "unsolved": 1}, ran.out
    assert {c.name: c.passed for c in project.index().checks()} == {
        "test_mine.py::TestMine::test_size[1]": False,
        "test_mine.py::TestMine::test_size[9]": True,
    }
