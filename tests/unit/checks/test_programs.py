"""Whole programs by ``solution.run``, and the candidate's own tests by ``solution.judge_tests``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import Fault
from pytest_modelbench.records import Trust
from pytest_modelbench.worlds.box import INTERPRETER

Grade = Callable[..., Observation]
Outcome = Callable[[Observation], dict[str, str]]

PROGRAM = """
    import os, sys, time

    def main():
        word = sys.argv[1]
        if word == "echo":
            sys.stdout.write(sys.stdin.read().upper())
            sys.stderr.write("done")
        elif word == "fail":
            sys.exit(3)
        elif word == "kill":
            os.kill(os.getpid(), 9)
        elif word == "hang":
            print("begun", flush=True)
            time.sleep(1000)
        elif word == "flood":
            for _ in range(300):
                os.write(1, b"x" * 2**20)
        elif word == "bytes":
            os.write(1, bytes(range(256)))
        elif word == "write":
            os.makedirs("out")
            open("out/a.txt", "w").write(open("given.txt").read() + open("mine.txt").read())
            os.symlink("/etc/passwd", "out/link")
            os.mkfifo("out/pipe")
        elif word == "leave":
            if not os.fork():
                time.sleep(1000)
        elif word == "environment":
            print(sorted(os.environ))

    if __name__ == "__main__":
        main()
"""


def test_a_program_ends_with_its_status_and_both_streams_apart(grade: Grade) -> None:
    seen = grade(
        r"""
        import pytest

        def run(solution, word, **more):
            return solution.run(["python", "main.py", word], **more)

        def test_echo(solution):
            done = run(solution, "echo", stdin="hello\n")
            assert (done.status, done.stdout, done.stderr) == (0, "HELLO\n", "done")
            assert not done.timed_out

        def test_big_input(solution):
            done = run(solution, "echo", stdin=b"x" * 500_000)
            assert len(done.stdout) == 500_000

        def test_unread_input(solution):
            assert run(solution, "fail", stdin=b"x" * 5_000_000).status == 3

        def test_killed(solution):
            assert run(solution, "kill").status == -9

        def test_hang(solution):
            usual = solution.call_seconds
            for solution.call_seconds in (0.5, 5, 50):  # until it has begun, on a busy machine
                done = run(solution, "hang")
                if done.stdout:
                    break
            solution.call_seconds = usual
            assert (done.status, done.timed_out, done.stdout) == (None, True, "begun\n")

        def test_flood(solution):
            assert run(solution, "flood").stdout == "x" * 2**20

        def test_bytes(solution):
            assert run(solution, "bytes").stdout_bytes == bytes(range(256))

        def test_files(solution):
            done = run(solution, "write", files={"given.txt": "given "})
            assert done.status == 0, done.stderr
            assert done.files["out/a.txt"] == b"given mine"
            assert sorted(done.files) == ["given.txt", "main.py", "mine.txt", "out/a.txt"]
            assert "out/a.txt" not in solution.files
            again = run(solution, "echo")
            assert "out/a.txt" not in again.files and "given.txt" not in again.files

        def test_survivor(solution):
            done = run(solution, "leave")
            assert done.status == 0 and done.seconds < 60

        def test_environment(solution):
            assert "KEY" not in run(solution, "environment").stdout

        def test_no_such_program(solution):
            done = solution.run(["no-such-program"])
            assert done.status == 127 and "no-such-program" in done.stderr
        """,
        {"main.py": PROGRAM, "mine.txt": "mine"},
    )
    assert verify(seen).passed, [row for row in seen.rows if row.outcome != "passed"]


def test_a_program_that_forges_is_only_its_own_output(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        def test_sum(solution):
            assert solution.run(["python", "main.py", "2", "3"]).stdout == "5\\n"
        """,
        {"main.py": "import os\nos.write(1, b'1 passed in 0.01s')\nos._exit(0)"},
    )
    assert outcome(seen) == {"test_sum": "failed: AssertionError"}


def test_a_grading_without_time_left_is_a_fail_and_no_fault(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        def test_slow(solution):
            solution.run(["python", "main.py", "hang"])
            solution.run(["python", "main.py", "hang"])
            solution.run(["python", "main.py", "hang"])
            solution.run(["python", "main.py", "hang"])
            solution.run(["python", "main.py", "hang"])

        def test_program(solution):
            assert solution.run(["python", "main.py", "echo"]).status == 0

        def test_module(solution):
            solution.load("main")
        """,
        {"main.py": PROGRAM},
        seconds=0.6,
    )
    assert outcome(seen) == dict.fromkeys(seen.expected, "failed: timed out")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment as a pack's would be, with pytest in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run(
        [INTERPRETER, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    ours = Path(sysconfig.get_paths()["purelib"])
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    theirs = folder / "lib" / version / "site-packages"
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        shutil.copytree(ours / name, theirs / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ours / "py.py", theirs)
    folder.chmod(0o755)
    (theirs / "given.py").write_text("VALUE = 'from the environment'\n")
    return folder


TESTS = """
    import os
    from calc import add

    def test_add():
        assert add(2, 3) == 5

    def test_negative():
        assert add(-1, -1) == -2
"""

JUDGE = {
    "test_hidden.py": """
    def test_tests(solution):
        found = solution.judge_tests(
            "tests/test_*.py", {"right": "right", "broken-1": "broken-1", "broken-2": "broken-2"}
        )
        assert found == {"right": "passed", "broken-1": "failed", "broken-2": "failed"}

    def test_files(solution):
        assert "tests/test_calc.py" in solution.files
    """,
    "right/calc.py": "def add(a, b): return a + b",
    "broken-1/calc.py": "def add(a, b): return 3",
    "broken-2/calc.py": "def add(a, b): return abs(a + b)",
}


def test_tests_that_tell_right_from_broken_pass_and_are_evident(
    grade: Grade, environment: Path
) -> None:
    conftest = "raise SystemExit(0)"
    files = {"tests/test_calc.py": TESTS, "calc.py": "x", "conftest.py": conftest}
    seen = grade(JUDGE, {**files, "tests/conftest.py": conftest}, environment=environment)
    verdict = verify(seen)
    assert verdict.passed, seen.rows
    assert [check.trust for check in verdict.checks] == [Trust.EVIDENT, Trust.TRUSTED]
    assert verdict.trust is Trust.EVIDENT


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ("def test_nothing(): assert True", "'broken-1': 'passed'"),
        ("def test_wrong(): assert False", "'right': 'failed'"),
        ("x = 1", "'right': 'no-tests'"),
        ("import pytest\n@pytest.mark.skip\ndef test_a(): pass", "'right': 'no-tests'"),
        ("import os; os._exit(0)", "'right': 'broken'"),
        ("import no_such_thing", "'right': 'broken'"),
        ("import time\ndef test_a(): time.sleep(1000)", "'right': 'timed-out'"),
    ],
)
def test_tests_that_do_not_tell_them_apart_fail(
    tests: str, told: str, grade: Grade, environment: Path
) -> None:
    judge = dict(JUDGE)
    if "timed-out" in told:
        judge["test_hidden.py"] = judge["test_hidden.py"].replace(
            "(solution):", "(solution, seconds=1):\n        solution.call_seconds = seconds", 1
        )
    seen = grade(judge, {"tests/test_calc.py": tests}, environment=environment, seconds=240)
    row = seen.rows[0]
    assert row.outcome == "failed"
    assert told in row.text
    assert not verify(seen).passed


def test_no_test_files_is_a_fail(grade: Grade, environment: Path) -> None:
    seen = grade(JUDGE, {"calc.py": TESTS}, environment=environment)
    assert "'right': 'no-tests'" in seen.rows[0].text


def test_a_pack_without_pytest_cannot_judge_tests(grade: Grade) -> None:
    with pytest.raises(Fault, match=r"judge_tests needs pytest in the pack's \[environment\]"):
        grade(JUDGE, {"tests/test_calc.py": TESTS})


def test_an_implementation_that_is_missing_is_a_fault(grade: Grade, environment: Path) -> None:
    some = {name: text for name, text in JUDGE.items() if not name.startswith("broken-2")}
    with pytest.raises(Fault, match="the implementation 'broken-2' is no folder"):
        grade(some, {"tests/test_calc.py": TESTS}, environment=environment)


def test_modules_come_from_the_packs_environment(grade: Grade, environment: Path) -> None:
    seen = grade(
        """
        def test_given(solution):
            assert solution.load("calc").value() == "from the environment"
            assert solution.run(["python", "calc.py"]).stdout == "from the environment\\n"
            assert solution.load("sys").executable == "/env/bin/python"
        """,
        "import given\ndef value(): return given.VALUE\nif __name__ == '__main__': print(value())",
        environment=environment,
    )
    assert verify(seen).passed, seen.rows
