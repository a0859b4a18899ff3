"""What pytest finds in a project of packs without being told a path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

ROOT = Path(__file__).parents[2]

# Stands for an environment without the extra ``dev``.
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"hypothesis", "syrupy", "anthropic"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize(
    ("args", "told", "status"),
    [
        ("--help", "--modelbench-plan", 0),
        ("--models careful-script --modelbench-plan", "executor: ", 0),
        ("--lf --modelbench-plan", "no cell ended in a fault", 5),
        ("", "packs and no candidate to try them: bank-booking, ", 5),
    ],
)
def test_top_of_the_clone_needs_no_tools_of_a_developer(
    tmp_path: Path, args: str, told: str, status: int
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    plugins = ["-p", "no:syrupy", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, f"-ocache_dir={tmp_path}", *args.split()],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, ""), done.stdout + done.stderr
    assert told in done.stdout


def test_make_names_the_tests() -> None:
    given = {"MAKEFLAGS", "TESTS", "ARGS"}  # by a make that runs this test
    done = subprocess.run(
        ["make", "--dry-run", "quick", "tests"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in given},
        capture_output=True,
        text=True,
        check=True,
    )
    ran = [line.split() for line in done.stdout.splitlines() if "bin/pytest" in line]
    assert [words[-1] for words in ran] == ["tests", "tests"]


def test_reference_solutions_are_no_tests_of_the_project(project: Project) -> None:
    project.pack("a")
    project.write("reference_solutions/tiny/a/tests/test_of_the_solution.py", "import no_such\n")
    project.write("reference_solutions/tiny/a/conftest.py", "raise SystemExit('was executed')\n")
    project.write("own/reference_solutions/test_own.py", "def test_own():\n    pass\n")
    project.write("test_mine.py", "def test_mine():\n    pass\n")
    for args in ([], ["--lf", "-n", "1"]):
        ran = project.run(*args)
        assert ran.exit == 0, ran.out
        assert ran.outcomes() == {"passed": 2}, args
