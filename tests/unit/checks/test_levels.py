"""Grading on the portable baseline: no kernel holds the candidate, the verdicts are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.worlds.levels import choose

CHECK = """
import pytest

def test_sum(solution):
    assert solution.load("calc").add(2, 3) == 5

def test_program(solution):
    done = solution.run(["python", "calc.py"], stdin="4", files={"b.txt": "1"})
    assert (done.status, done.stdout, done.stderr) == (0, "5", "end")
    assert done.files["made.txt"] == b"x"
"""

HONEST = """
import sys
def add(a, b): return a + b
if __name__ == "__main__":
    open("made.txt", "w").write("x")
    sys.stdout.write(str(add(int(sys.stdin.read()), int(open("b.txt").read()))))
    sys.stderr.write("end")
"""


@pytest.fixture(scope="module")
def grader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grader]:
    """A grader without a kernel's box."""
    grader = Grader(choose("portable"), scratch=tmp_path_factory.mktemp("grader"))
    yield grader
    grader.close()


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (HONEST, ["", ""]),
        ("import os; os._exit(0)", ["worker ended", "AssertionError"]),
        ("import os\ndef add(a, b): os.kill(0, 9)", ["worker ended", "AssertionError"]),
        ("def add(a, b): return type('S', (), {'__eq__': lambda *_: True})()", None),
        ("import time\ndef add(a, b): time.sleep(60)", ["timed out", "AssertionError"]),
    ],
)
def test_the_portable_level_gives_the_same_verdicts(
    text: str, reasons: list[str] | None, grader: Grader, tmp_path: Path
) -> None:
    for name, content in {"hidden/test_it.py": CHECK, "harvest/calc.py": text}.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text(content)
    seconds = 4 if "sleep" in text else 240
    seen = grader.observe(tmp_path / "hidden", tmp_path / "harvest", None, seconds, 1)
    verdict = verify(seen)
    assert seen.by["box"] == "portable"
    assert verdict.passed == (text is HONEST), seen.rows
    expected = reasons or ["not plain", "AssertionError"]
    assert [check.reason for check in verdict.checks] == expected
