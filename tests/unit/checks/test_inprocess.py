"""A repository's own tests, judged in one process with the candidate's code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from pytest_modelbench.checks.inprocess import FORGED, observe_in_process
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import Fault
from pytest_modelbench.records import Trust
from pytest_modelbench.worlds.box import INTERPRETER, Box
from pytest_modelbench.worlds.harvest import Harvest

TESTS = """
import pytest
from calc import Money, add

@pytest.mark.parametrize("a, b, expected", [(2, 3, 5), (-7, 7, 0)])
def test_sum(a, b, expected):
    assert add(a, b) == expected

class TestMoney:
    def test_objects_are_real(self, tmp_path):
        assert isinstance(add(Money(1), Money(2)), Money)
        assert add(Money(1), Money(2)) == Money(3)
"""
RIGHT = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Money:
    cents: int
    def __add__(self, other): return Money(self.cents + other.cents)

def add(a, b): return a + b
"""
WRONG = RIGHT.replace("return a + b", "return 3")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as a pack's would be, with pytest in it."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run(
        [INTERPRETER, "-m", "venv", "--without-pip", "--symlinks", str(folder)], check=True
    )
    theirs = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        spec = find_spec(name)
        assert spec is not None
        ours = Path(str(spec.origin)).parent
        shutil.copytree(ours, theirs / name, ignore=shutil.ignore_patterns("__pycache__"))
    single = find_spec("py")
    assert single is not None
    shutil.copy(str(single.origin), theirs)
    folder.chmod(0o755)
    return folder


Judge = Callable[..., Observation]


@pytest.fixture
def judge(box: Box, environment: Path, tmp_path: Path) -> Judge:
    """Judge the files of a candidate; a text stands for its ``calc.py``."""

    def judge(
        files: str | dict[str, str],
        tests: str = TESTS,
        seconds: float = 240.0,
        environment: Path | None = environment,
        reference: str = RIGHT,
    ) -> Observation:
        hidden = tmp_path / "hidden" / "tests"
        hidden.mkdir(parents=True, exist_ok=True)
        (hidden / "test_calc.py").write_text(tests)
        work = {"calc.py": files} if isinstance(files, str) else {"calc.py": WRONG} | files
        laid = {path: textwrap.dedent(text).encode() for path, text in work.items()}
        harvest = Harvest(laid, dict.fromkeys(laid, 0o644))
        solved = {"calc.py": reference.encode()}
        return observe_in_process(
            box, tmp_path / "hidden", solved, harvest, environment, tmp_path, seconds
        )

    return judge


NAMES = (
    "tests/test_calc.py::test_sum[2-3-5]",
    "tests/test_calc.py::test_sum[-7-7-0]",
    "tests/test_calc.py::TestMoney::test_objects_are_real",
)


def test_real_objects_are_judged_and_the_verdict_is_evident(judge: Judge, tmp_path: Path) -> None:
    seen = judge(RIGHT)
    verdict = verify(seen)
    assert seen.expected == NAMES
    assert [row.name for row in seen.rows] == list(NAMES)
    assert verdict.passed, seen
    assert verdict.trust is Trust.EVIDENT
    assert {check.trust for check in verdict.checks} == {Trust.EVIDENT}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hidden"]


def test_a_wrong_answer_is_told_by_its_test(judge: Judge) -> None:
    verdict = verify(judge(WRONG))
    assert not verdict.passed
    assert verdict.trust is Trust.EVIDENT
    assert [check.name for check in verdict.checks if not check.passed] == list(NAMES)
    assert {check.reason for check in verdict.checks} <= {"assert 3", "failed", "AssertionError"}


ATTACKS: dict[str, dict[str, str]] = {
    "conftest": {
        "conftest.py": "def pytest_sessionfinish(session): session.exitstatus = 0",
        "tests/conftest.py": """
            import pytest
            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_makereport(item, call):
                report = yield
                report.outcome = "passed"
                return report
        """,
    },
    "ini": {"pytest.ini": "[pytest]\naddopts = --co\n", "tox.ini": "[pytest]\naddopts = --co\n"},
    "pyproject": {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--co"\n'},
    "plugin-of-a-dist-info": {
        "easy-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: easy\nVersion: 1\n",
        "easy-1.dist-info/entry_points.txt": "[pytest11]\neasy = easy\n",
        "easy.py": "def pytest_sessionfinish(session): session.exitstatus = 0",
    },
    "start-up": {"sitecustomize.py": "import os; os._exit(0)", "x.pth": "import os; os._exit(0)"},
    "shadowed-pytest": {
        "pytest.py": "import os; os._exit(0)",
        "_pytest.py": "import os; os._exit(0)",
    },
    "shadowed-test": {"tests/test_calc.py": "def test_sum(): pass"},
    "test-folder-is-a-file": {"tests": "x"},
    "exit": {"calc.py": "import os; os._exit(0)"},
    "exit-with-an-end": {
        "calc.py": """
            import os, sys, json
            frame = sys._getframe()
            while frame:
                if "emit" in frame.f_globals:
                    frame.f_globals["emit"](end=1)
                    os._exit(0)
                frame = frame.f_back
            os._exit(0)
        """
    },
    "skips": {
        "calc.py": """
            import pytest
            class Money: pass
            def add(a, b): pytest.skip("no")
        """
    },
    "stops-pytest": {
        "calc.py": """
            import pytest
            class Money: pass
            def add(a, b): pytest.exit("done", returncode=1)
        """
    },
    "all-reports-pass": {
        "calc.py": """
            import sys
            from _pytest.reports import TestReport
            real = TestReport.from_item_and_call.__func__
            def forged(cls, item, call):
                report = real(cls, item, call)
                report.outcome, report.longrepr = "passed", None
                return report
            TestReport.from_item_and_call = classmethod(forged)
            class Money: pass
            def add(a, b): return 3
        """
    },
    "no-test-runs": {
        "calc.py": """
            from _pytest.python import Function
            Function.runtest = lambda self: None
            class Money: pass
            def add(a, b): return 3
        """
    },
    "never-ends": {"calc.py": "import time\nclass Money: pass\ndef add(a, b): time.sleep(99)"},
    "floods": {
        "calc.py": """
            import os
            class Money: pass
            def add(a, b):
                for fd in range(3, 40):
                    try:
                        if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe"):
                            os.write(fd, b"garbage\\n")
                    except OSError: pass
                return a + b
        """
    },
}


@pytest.mark.parametrize("name", ATTACKS)
def test_what_a_candidate_leaves_or_does_is_no_pass(name: str, judge: Judge) -> None:
    seen = judge(ATTACKS[name], seconds=2.0 if name == "never-ends" else 240.0)
    verdict = verify(seen)
    assert not verdict.passed, seen
    assert verdict.trust is Trust.EVIDENT


@pytest.mark.parametrize("name", ["all-reports-pass", "no-test-runs"])
def test_a_blanket_forgery_shows_at_the_sentinels(name: str, judge: Judge) -> None:
    seen = judge(ATTACKS[name])
    assert [row.name for row in seen.rows][-1] == FORGED
    assert "not expected" in {check.reason for check in verify(seen).checks}


def test_a_targeted_forgery_gets_through_and_is_labelled(judge: Judge) -> None:
    """The limit of the mode, shown: hence ``evident``, and never ``trusted``."""
    seen = judge(
        {
            "calc.py": """
            import sys
            from _pytest.reports import TestReport
            real = TestReport.from_item_and_call.__func__
            def forged(cls, item, call):
                report = real(cls, item, call)
                if "test_calc" in item.nodeid:
                    report.outcome, report.longrepr = "passed", None
                return report
            TestReport.from_item_and_call = classmethod(forged)
            class Money: pass
            def add(a, b): return 3
            """
        }
    )
    verdict = verify(seen)
    assert verdict.passed
    assert verdict.trust is Trust.EVIDENT


def test_troubles_of_ours_are_faults(judge: Judge, tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"need pytest in the pack's \[environment\]"):
        judge(RIGHT, environment=None)
    with pytest.raises(Fault, match=r"cannot be collected on the reference: .*ImportError"):
        judge(RIGHT, tests="from calc import not_there\ndef test_x(): pass\n")
    with pytest.raises(Fault, match=r"no test, or two of one name|cannot be collected"):
        judge(RIGHT, tests="x = 1\n")
