"""What a hostile solution may try at grade time: each is a fail, never a pass, never a fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify

Grade = Callable[..., Observation]
Outcome = Callable[[Observation], dict[str, str]]

CHECK = """
    import pytest

    @pytest.mark.parametrize("a, b, expected", [(2, 3, 5), (-7, 7, 0), (0.5, 0.25, 0.75)])
    def test_sum(solution, a, b, expected):
        got = solution.load("calc").add(a, b)
        assert got == expected
        assert type(got) is type(expected)

    def test_arity(solution):
        calc = solution.load("calc")
        with pytest.raises(TypeError):
            calc.add(1)
"""

ALWAYS_EQUAL = """
    class {name}({base}):
        def __eq__(self, other): return True
        def __ne__(self, other): return False
        def __bool__(self): return True
        def __hash__(self): return 0
        def __len__(self): return 1
        def __contains__(self, item): return True
        {extra}
    def add(a, b): return {name}()
"""
SAME_CLASS = "__class__ = property(lambda self: int)"

# Finds the pipes to the trusted side and writes to them.
FIND = """
    import os
    def pipes():
        for name in os.listdir("/proc/self/fd"):
            try:
                if int(name) > 2 and os.readlink("/proc/self/fd/" + name).startswith("pipe:"):
                    yield int(name)
            except OSError:
                pass
    def shout(data):
        for fd in pipes():
            try:
                os.write(fd, data)
            except OSError:
                pass
"""

ATTACKS = {
    "always-equal": ALWAYS_EQUAL.format(name="Same", base="object", extra=""),
    "claims-to-be-int": ALWAYS_EQUAL.format(name="Same", base="object", extra=SAME_CLASS),
    "rigged-int": ALWAYS_EQUAL.format(name="Same", base="int", extra=""),
    "rigged-float": ALWAYS_EQUAL.format(name="Same", base="float", extra=""),
    "rigged-str": ALWAYS_EQUAL.format(name="Same", base="str", extra=""),
    "exit-at-import": "import os; os._exit(0)",
    "exit-in-call": "import os\n    def add(a, b): os._exit(0)",
    "sys-exit": "import sys\n    def add(a, b): sys.exit(0)",
    "sys-exit-at-import": "import sys; sys.exit(0)",
    "killed": "import os\n    def add(a, b): os.kill(os.getpid(), 9)",
    "keyboard-interrupt": "def add(a, b): raise KeyboardInterrupt",
    "generator-exit": "def add(a, b): raise GeneratorExit",
    "stop-iteration": "def add(a, b): raise StopIteration",
    "skip": """
    class Skipped(BaseException): pass
    Skipped.__module__ = "builtins"
    def add(a, b): raise Skipped("not here")
    """,
    "unittest-skip": "import unittest\n    def add(a, b): raise unittest.SkipTest('no')",
    "exception-named-like-ours": """
    class GraderBroken(BaseException): reason = "grader"
    class Exit(GraderBroken): pass
    def add(a, b): raise Exit("a fault, please")
    """,
    "exception-group": "def add(a, b): raise ExceptionGroup('x', [ValueError()])",
    "rigged-exception": """
    class Odd(Exception):
        def __str__(self): raise SystemExit
        args = property(lambda self: 1 / 0)
    def add(a, b): raise Odd
    """,
    "metaclass": """
    class Meta(type):
        __name__ = property(lambda cls: 1 / 0)
        __mro__ = property(lambda cls: (int, object))
        def mro(cls): return [cls, object]
        def __eq__(cls, other): return True
        def __hash__(cls): return hash(int)
    class Odd(metaclass=Meta): pass
    def add(a, b): return Odd()
    """,
    "frame-peek": """
    import sys
    def add(a, b):
        frame = sys._getframe()
        while frame:
            for name in ("expected", "want"):
                if name in frame.f_locals: return frame.f_locals[name]
            frame = frame.f_back
        return 3
    """,
    "patched-worker": """
    import __main__, builtins, sys, json
    json.dumps = json.loads = lambda *a, **k: "forged"
    builtins.isinstance = lambda *a: True
    class Yes:
        def __eq__(self, other): return True
    builtins.type = builtins.int = builtins.tuple = Yes
    def add(a, b): return Yes()
    """,
    "patched-encoder": """
    import __main__
    __main__._Encoder.value = lambda self, value, depth=100: self.out.extend(b"T")
    def add(a, b): return 3
    """,
    "garbage": FIND
    + """
    def add(a, b):
        shout(b"garbage" * 1000)
        return 3
    """,
    "garbage-at-import": FIND
    + """
    shout(b"\\xff" * 65)
    def add(a, b): return a + b
    """,
    "endless-message": FIND
    + """
    def add(a, b):
        shout(b"\\x00\\x80\\x00\\x00L\\x00\\x01\\x00\\x00")
        os._exit(0)
    """,
    "forged-answer-and-the-true-one": FIND
    + """
    import struct
    def add(a, b):
        for number in range(1, 20):
            n = b"I" + struct.pack(">I", 1) + bytes([number])
            body = b"U" + struct.pack(">I", 3) + n + b"S\\x00\\x00\\x00\\x02okT"
            shout(struct.pack(">I", len(body)) + body)
        return 3
    """,
    "closed-pipes": FIND
    + """
    def add(a, b):
        for fd in list(pipes()):
            os.close(fd)
        return 5
    """,
    "recursion": "def add(a, b): return add(a, b)",
    "deep": """
    def add(a, b):
        value = 5
        for _ in range(100_000):
            value = [value]
        return value
    """,
    "cyclic": """
    def add(a, b):
        value = []
        value.append(value)
        return value
    """,
    "huge": "def add(a, b): return 'x' * 50_000_000",
    "huge-number": "def add(a, b): return 1 << 20_000_000",
    "endless-text": "def add(a, b): raise ValueError('x' * 50_000_000)",
    "flood": """
    import os
    def add(a, b):
        for _ in range(2000):
            os.write(1, b"PASSED " * 10_000)
            os.write(2, b"PASSED " * 10_000)
        return 3
    """,
    "none": "def add(a, b): return None",
    "module-is-a-number": "import sys; sys.modules['calc'] = 5",
    "module-is-a-list": "import sys; sys.modules['calc'] = [1]",
    "no-such-module-error": "import something_that_is_not_there",
    "syntax-error": "def add(a, b) return",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_a_fail(name: str, grade: Grade, outcome: Outcome) -> None:
    seen = grade(CHECK, ATTACKS[name])
    verdict = verify(seen)
    assert not verdict.passed
    assert verdict.reward == 0
    found = outcome(seen)
    assert list(found) == list(seen.expected)
    # A rigged number is its base value by now, and 0 is one of the answers.
    assert {name for name in found if found[name] == "passed"} <= {"test_sum[-7-7-0]", "test_arity"}
    assert seen.ended
    assert seen.exit == 1


def test_a_second_answer_is_a_bad_answer_even_beside_the_right_one(
    grade: Grade, outcome: Outcome
) -> None:
    # A well-formed answer to request 99 that says 5, before the true one to the request made.
    number = "b'I' + struct.pack('>I', 1) + bytes([99])"
    body = f"b'U' + struct.pack('>I', 3) + {number} + b'S' + struct.pack('>I', 2) + b'ok' + five"
    forge = f"""
    import struct
    five = b"I" + struct.pack(">I", 1) + bytes([5])
    def add(a, b):
        body = {body}
        shout(struct.pack(">I", len(body)) + body)
        return a + b
    """
    seen = grade(
        """
        def test_sum(solution):
            assert solution.load("calc").add(2, 3) == 5
        """,
        FIND + forge,
    )
    assert outcome(seen) == {"test_sum": "failed: bad answer"}


def test_an_answer_without_a_request_is_a_bad_answer(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        import time

        def test_later(solution):
            calc = solution.load("calc")
            calc.later()
            while not calc.said():
                time.sleep(0.01)

        def test_before(solution):
            calc = solution.load("calc")
            assert calc.add(2, 3) == 5
        """,
        FIND
        + """
    import threading
    def later(): threading.Timer(0.1, shout, [b"N"]).start()
    def said(): return False
    def add(a, b): return a + b
    """,
    )
    assert outcome(seen) == {"test_later": "failed: bad answer", "test_before": "passed"}


def test_an_honest_solution_passes_the_same_check(grade: Grade) -> None:
    assert verify(grade(CHECK, "def add(a, b): return a + b")).passed


@pytest.mark.parametrize(
    "ask",
    [
        "bool(thing)",
        "thing == 5",
        "5 == thing",
        "thing != 5",
        "thing < 5",
        "5 >= thing",
        "len(thing)",
        "hash(thing)",
        "{thing}",
        "5 in thing",
        "thing in [1, 2]",
        "str(thing)",
        "f'{thing}'",
        "not thing",
        "sorted([thing, thing])",
        "max(thing, 1)",
        "any([thing])",
    ],
)
def test_a_handle_is_no_plain_data(ask: str, grade: Grade, outcome: Outcome) -> None:
    work = ALWAYS_EQUAL.format(name="Same", base="object", extra="")
    check = f"""
        def test_ask(solution):
            thing = solution.load("calc").add(1, 2)
            {ask}
            assert True

        def test_swallow(solution):
            thing = solution.load("calc").add(1, 2)
            try:
                {ask}
            except Exception:
                raise AssertionError("an Exception, that checks swallow")
    """
    reason = "NoLength" if ask == "len(thing)" else "not plain"
    found = outcome(grade(check, work))
    assert found["test_ask"] == "failed: not plain"
    if reason == "not plain":
        assert found["test_swallow"] == "failed: not plain"


def test_what_ends_a_worker_cannot_satisfy_an_expected_exception(
    grade: Grade, outcome: Outcome
) -> None:
    seen = grade(
        """
        import pytest

        def test_raises(solution):
            with pytest.raises(Exception):
                solution.load("calc").leave()

        def test_swallowed(solution):
            try:
                solution.load("calc").leave()
            except BaseException:
                pass

        def test_next_worker(solution):
            assert solution.load("calc").add(2, 3) == 5
        """,
        """
        import os
        def leave(): os._exit(0)
        def add(a, b): return a + b
        """,
    )
    assert outcome(seen) == {
        "test_raises": "failed: worker ended",
        "test_swallowed": "failed: worker ended",
        "test_next_worker": "passed",
    }


def test_what_ends_a_worker_in_a_fixture_fails_that_check_and_no_other(
    grade: Grade, outcome: Outcome
) -> None:
    seen = grade(
        """
        import pytest

        @pytest.fixture
        def calc(solution):
            return solution.load("calc")

        @pytest.fixture(params=[0, 1, 1, 0])
        def left(request, calc):
            if request.param:
                calc.leave()

        def test_it(calc, left):
            assert calc.add(2, 3) == 5

        def test_after(calc):
            assert calc.add(2, 3) == 5
        """,
        """
        import os
        def leave(): os._exit(0)
        def add(a, b): return a + b
        """,
    )
    assert outcome(seen) == {
        "test_it[0_0]": "passed",
        "test_it[1_0]": "failed: worker ended",
        "test_it[1_1]": "failed: worker ended",
        "test_it[0_1]": "passed",
        "test_after": "passed",
    }


def test_a_worker_that_ends_between_two_checks_costs_the_second_nothing(
    grade: Grade, outcome: Outcome
) -> None:
    seen = grade(
        """
        import time

        def test_first(solution):
            assert solution.load("calc").later() is None
            while solution._grading._worker.alive():
                time.sleep(0.01)

        def test_second(solution):
            assert solution.load("calc").later() is None
        """,
        """
        import os, threading
        def later(): threading.Timer(1.0, os._exit, [0]).start()
        """,
    )
    assert outcome(seen) == {"test_first": "passed", "test_second": "passed"}


def test_a_handle_of_an_ended_worker_is_stale(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        import pytest
        kept = []

        def test_end(solution):
            calc = solution.load("calc")
            kept.append(calc)
            calc.leave()

        def test_stale(solution):
            kept[0].add(1, 2)

        def test_stale_argument(solution):
            calc = solution.load("calc")
            assert calc.add(1, 2) == 3
            calc.add(kept[0], 2)
        """,
        "import os\ndef leave(): os._exit(0)\ndef add(a, b): return a + b",
    )
    assert outcome(seen) == {
        "test_end": "failed: worker ended",
        "test_stale": "failed: stale",
        "test_stale_argument": "failed: stale",
    }


def test_an_endless_loop_and_an_endless_iterator_are_ended(grade: Grade, outcome: Outcome) -> None:
    seen = grade(
        """
        def test_loop(solution):
            solution.call_seconds = 0.3
            solution.load("calc").loop()

        def test_list(solution):
            solution.call_seconds = 60
            list(solution.load("calc").naturals())
        """,
        """
        import signal
        def loop():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True: pass
        def naturals():
            while True: yield 1
        """,
    )
    assert outcome(seen) == {"test_loop": "failed: timed out", "test_list": "failed: too much"}


def test_a_stop_iteration_does_not_shorten_a_checks_own_loop(
    grade: Grade, outcome: Outcome
) -> None:
    seen = grade(
        """
        def test_all(solution):
            calc = solution.load("calc")
            for got in map(calc.add, [1, 2], [3, 4]):
                assert got > 0
        """,
        "def add(a, b): raise StopIteration",
    )
    assert outcome(seen) == {"test_all": "failed: StopIteration"}


def test_reasons_and_names_from_a_candidate_are_short_words(grade: Grade) -> None:
    seen = grade(
        """
        def test_it(solution):
            assert solution.load("calc").add(1, 2) == 4711
        """,
        """
        Odd = type("\\x1b[31m" + "x" * 5000, (Exception,), {})
        def add(a, b): raise Odd("\\x1b]0;title\\x07" * 10_000)
        """,
    )
    [check] = verify(seen).checks
    assert check.reason == "Exception"
    assert "4711" not in verify(seen).model_dump_json()
    assert len(seen.rows[0].text) <= 8000


def test_nothing_of_ours_is_visible_in_the_box(grade: Grade) -> None:
    seen = grade(
        """
        import os

        def test_look(solution):
            box_os = solution.load("os")
            found = solution.load("calc").look()
            assert found == [], found
            here = os.path.dirname(__file__)
            assert box_os.path.exists("/proc/self/status") is True
            assert box_os.path.exists(here) is False
        """,
        """
        import glob, os, sys
        def look():
            found = [m for m in sys.modules if "modelbench" in m or "pytest" in m]
            with open("/proc/self/cmdline") as file:
                found += [w for w in file.read().split("\\0") if "hidden" in w or "modelbench" in w]
            for pattern in ("/proc/*/environ", "/proc/*/cmdline"):
                for path in glob.glob(pattern):
                    try:
                        text = open(path, "rb").read()
                    except OSError:
                        continue
                    found += [path for word in (b"test_hidden", b"SECRET") if word in text]
            return found
        """,
    )
    assert verify(seen).passed, seen.rows
