"""What is our trouble, or the check's, is a fault: it names the place and is never a score."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_modelbench.checks.grader import Grader
from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.bubblewrap import BubblewrapBox

Grade = Callable[..., Observation]
Outcome = Callable[[Observation], dict[str, str]]

ADD = "def add(a, b): return a + b"


@pytest.mark.parametrize(
    ("hidden", "told"),
    [
        ("import no_such_library", r"test_hidden\.py:1: .*ModuleNotFoundError.*no_such_library"),
        ("def test_a(solution:", r"test_hidden\.py:1: .*SyntaxError"),
        ("x = 1\nx.y\ndef test_a(): pass", r"test_hidden\.py:2: .*AttributeError"),
        (
            "def test_a(solution):\n    assert nothing_of_this_name",
            r"test_hidden\.py:2: check test_a: NameError.*nothing_of_this_name",
        ),
        (
            "def test_a(solution):\n    solution.load('calc')\n    import no_such_library",
            r"test_hidden\.py:3: check test_a: ModuleNotFoundError",
        ),
        ("def test_a(no_such_fixture): pass", r"test_a: there is no fixture 'no_such_fixture'; a"),
        (
            "import pytest\n@pytest.fixture\ndef broken():\n    return 1 / 0\n"
            "def test_a(solution, broken): pass",
            r"test_hidden\.py:4: check test_a: ZeroDivisionError",
        ),
        ("def test_a(solution):\n    {}['x']", r"test_hidden\.py:2: check test_a: KeyError"),
        (
            "def test_a(solution):\n    solution.load('calc').add(print, 1)",
            r"test_hidden\.py:2: check test_a: .*cannot cross into the box",
        ),
        (
            "def test_a(solution):\n    raise OSError(28, 'No space left on device')",
            r"test_hidden\.py:2: check test_a: OSError",
        ),
        (
            "import pytest\npytest.skip('later', allow_module_level=True)",
            r"test_hidden\.py.*is skipped",
        ),
        ("x = 1", r"no check in .*hidden"),
        ("import os\ndef test_a(solution): os._exit(1)", r"process ended early"),
        ("import os\ndef test_a(solution): os.kill(os.getpid(), 9)", r"process ended early"),
        ("import pytest\ndef test_a(solution): pytest.exit('enough')", r"exit 2|enough"),
        ("def test_a(solution): raise KeyboardInterrupt", r"exit 2"),
        ("import os\ndef test_a(solution): os._exit(0)", r"early: .*status 0 .*as by os\._exit"),
        ("import os\nos._exit(0)", r"not collected: .*status 0 .*as by os\._exit"),
    ],
)
def test_a_broken_check_is_a_fault_that_names_its_place(
    hidden: str, told: str, grade: Grade
) -> None:
    with pytest.raises(Fault, match=told) as caught:
        grade(hidden, ADD)
    assert caught.value.kind == "grader"
    assert caught.value.stage == "grade"


def test_two_checks_of_one_name_are_a_fault_that_names_both_files(
    grader: Grader, grade: Grade, tmp_path: Path
) -> None:
    files = {
        "test_one.py": "def test_same(solution): pass",
        "more/test_two.py": "\n\ndef test_same(solution): pass",
    }
    told = r"two checks are named test_same: .*test_\w+\.py:\d+ and .*test_\w+\.py:\d+"
    with pytest.raises(Fault, match=told):
        grade(files, ADD)
    with pytest.raises(Fault, match=told):
        grader.collect(tmp_path / "hidden")


def test_odd_values_are_the_candidates_doing_and_not_a_broken_check(
    grade: Grade, outcome: Outcome
) -> None:
    seen = grade(
        """
        import pytest

        @pytest.fixture
        def made(solution):
            return solution.load("calc").add(1, 2)["key"]

        def test_item(solution):
            assert solution.load("calc").add(1, 2)[0] == 3

        def test_unbound(solution):
            for got in solution.load("calc").nothing():
                last = got
            assert last

        def test_fixture(made):
            pass
        """,
        "def add(a, b): return None\ndef nothing(): return []",
    )
    assert outcome(seen) == {
        "test_item": "failed: TypeError",
        "test_unbound": "failed: UnboundLocalError",
        "test_fixture": "failed: TypeError",
    }
    assert [row.phase for row in seen.rows] == ["call", "call", "setup"]


def test_skipped_and_expected_failures_are_no_pass(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        import pytest

        def test_fine(solution): pass

        @pytest.mark.skip
        def test_skipped(solution): pass

        @pytest.mark.xfail
        def test_xfailed(solution): assert False

        @pytest.mark.xfail
        def test_xpassed(solution): pass
        """,
        ADD,
    )
    assert outcome(seen) == {
        "test_fine": "passed",
        "test_skipped": "skipped: skipped",
        "test_xfailed": "xfailed: xfailed",
        "test_xpassed": "xpassed: xpassed",
    }
    assert [check.passed for check in verify(seen).checks] == [True, False, False, False]


def test_a_failure_in_teardown_is_a_fail(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        import pytest

        @pytest.fixture
        def calc(solution):
            calc = solution.load("calc")
            yield calc
            assert calc.add(1, 1) == 3

        def test_a(calc): pass
        """,
        ADD,
    )
    assert [(row.phase, row.outcome) for row in seen.rows] == [
        ("call", "passed"),
        ("teardown", "failed"),
    ]
    assert not verify(seen).passed


def test_checks_are_collected_with_their_parameters(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("CASES = [1, 2]\n")
    (tmp_path / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef three(): return 3\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom helper import CASES\n"
        "@pytest.mark.parametrize('n', CASES)\ndef test_n(solution, n, three): pass\n"
        "def test_last(solution): pass\n"
    )
    assert grader.collect(tmp_path) == ("test_n[1]", "test_n[2]", "test_last")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "conftest.py",
        "helper.py",
        "test_it.py",
    ]


def test_a_changed_check_is_read_anew(grade: Grade) -> None:
    assert verify(grade("def test_a(solution): assert 1 == 1", ADD)).passed
    assert not verify(grade("def test_a(solution): assert 1 == 2", ADD)).passed


def test_a_grading_is_ended_at_its_time(grade: Grade, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = grade(
        """
        def test_first(solution): pass
        def test_loop(solution):
            solution.load("calc").loop()
        def test_after(solution):
            solution.load("calc").loop()
        """,
        "def loop():\n        while True: pass",
        seconds=1.2,
    )
    assert seen.ended
    assert not seen.timed_out, "it came to its end by itself"
    verdict = verify(seen)
    assert not verdict.passed
    assert [check.reason for check in verdict.checks] == ["", "timed out", "timed out"]


@pytest.mark.slow
def test_a_check_that_never_ends_is_ended_with_the_rows_it_had(grade: Grade) -> None:
    seen = grade(
        """
        def test_first(solution): pass
        def test_loop(solution):
            solution.load("calc")
            while True: pass
        """,
        ADD,
        seconds=1,
    )
    assert seen.timed_out
    assert not seen.ended
    assert [row.name for row in seen.rows] == ["test_first"]
    assert verify(seen).reason == "grading-time"


def descendants(pid: int) -> list[int]:
    """Return the living processes below one, zombies left out."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if int(parent) == pid and state != "Z":
            child = int(name.split()[0])
            found += [child, *descendants(child)]
    return found


def test_nothing_is_alive_or_left_after_gradings(box: Box, tmp_path: Path) -> None:
    scratch, hidden, harvest = (tmp_path / name for name in ("scratch", "hidden", "harvest"))
    for folder in (scratch, hidden, harvest):
        folder.mkdir()
    (hidden / "test_it.py").write_text(
        "def test_a(solution):\n    solution.load('calc').stay()\n"
        "def test_b(solution):\n    assert solution.run(['python', 'calc.py']).status == 0\n"
    )
    (harvest / "calc.py").write_text(
        "import os, time\n"
        "def stay():\n"
        "    for _ in range(5):\n"
        "        if not os.fork():\n"
        "            os.setsid()\n"
        "            if not os.fork():\n"
        "                time.sleep(1000)\n"
        "            os._exit(0)\n"
        "if __name__ == '__main__':\n    stay()\n"
    )
    grader = Grader(box, scratch=scratch)
    try:
        assert verify(grader.observe(hidden, harvest, None, 240, 1)).passed
        process = grader._process
        assert process is not None
        assert descendants(process.pid) == []
        [folder] = scratch.iterdir()
        assert [path.name for path in folder.iterdir()] == ["pycache"]
    finally:
        grader.close()
    assert list(scratch.iterdir()) == []
    assert process.returncode == 0


def test_a_killed_trusted_process_is_a_fault_and_the_next_grading_has_another(
    box: Box, tmp_path: Path
) -> None:
    hidden, harvest = tmp_path / "hidden", tmp_path / "harvest"
    hidden.mkdir()
    harvest.mkdir()
    (hidden / "test_it.py").write_text(
        "import os, signal, time\n"
        "def test_a(solution):\n"
        f"    if not os.path.exists({str(tmp_path / 'killed')!r}):\n"
        f"        open({str(tmp_path / 'killed')!r}, 'w').close()\n"
        "        os.kill(os.getppid(), signal.SIGKILL)\n"
        "        time.sleep(60)\n"
    )
    grader = Grader(box, scratch=tmp_path)
    try:
        with pytest.raises(Fault, match="the trusted process ended in a grading") as caught:
            grader.observe(hidden, harvest, None, 240, 1)
        assert caught.value.stage == "grade"
        assert verify(grader.observe(hidden, harvest, None, 240, 1)).passed
    finally:
        grader.close()


class DeadBox:
    """A box whose commands end at once."""

    level = "dead"
    owner = None

    def start(self, argv: object, spec: object, **_: object) -> object:
        raise Fault("box", "no box today")


def test_a_box_that_does_not_start_is_a_fault(tmp_path: Path) -> None:
    class Unsendable(DeadBox):
        pass

    grader = Grader(Unsendable(), scratch=tmp_path)  # type: ignore[arg-type]  # half a box
    try:
        with pytest.raises(Fault, match="the box dead cannot be sent"):
            grader.collect(tmp_path)
    finally:
        grader.close()


def test_a_box_without_its_program_is_a_fault(tmp_path: Path, box: Box) -> None:
    grader = Grader(BubblewrapBox(program=str(tmp_path / "no-bwrap")), scratch=tmp_path)
    try:
        with pytest.raises(Fault, match="cannot be started") as caught:
            grader.collect(tmp_path)
        assert caught.value.stage == "grade"
    finally:
        grader.close()
    assert list(tmp_path.iterdir()) == []


def test_the_trusted_process_ends_with_the_worker(tmp_path: Path, box: Box) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test_it.py").write_text("def test_a(solution): pass\n")
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from pytest_modelbench.checks.grader import Grader\n"
        "from pytest_modelbench.worlds.bubblewrap import BubblewrapBox\n"
        f"grader = Grader(BubblewrapBox(), scratch=Path({str(tmp_path)!r}))\n"
        f"grader.collect(Path({str(hidden)!r}))\n"
        "print(grader._process.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ended = poll.poll(60_000)
    os.close(descriptor)
    assert ended


def test_gradings_see_nothing_of_the_environment(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "canary")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    (tmp_path / "harvest").mkdir()
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "test_it.py").write_text(
        "import os\n"
        "def test_ours(solution): assert 'SOME_API_KEY' not in os.environ\n"
        "def test_box(solution):\n"
        "    environment = solution.load('builtins').dict(solution.load('os').environ)\n"
        "    assert 'canary' not in str(environment) and environment['HOME']\n"
    )
    grader = Grader(box, scratch=tmp_path)
    try:
        assert verify(grader.observe(hidden, tmp_path / "harvest", None, 240, 1)).passed
    finally:
        grader.close()


def test_an_observation_says_what_observed(grade: Grade, box: Box) -> None:
    seen = grade("def test_a(solution): pass", ADD)
    assert seen.by["box"] == box.level
    assert set(seen.by) == {"box", "python", "pytest", "grader"}
