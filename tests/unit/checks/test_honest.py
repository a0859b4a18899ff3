"""What an honest solution may return, raise and do, and what a check sees of it."""

from __future__ import annotations

import re
from collections.abc import Callable

from pytest_modelbench.checks.observation import Observation
from pytest_modelbench.checks.verify import verify
from pytest_modelbench.records import Trust

Grade = Callable[..., Observation]

WORK = """
    import collections, enum

    class Colour(enum.IntEnum):
        RED = 1

    Point = collections.namedtuple("Point", "x y")

    class ParseError(ValueError):
        def __init__(self, text, line):
            super().__init__(text)
            self.line = line

    class Stack:
        def __init__(self):
            self.items = []
        def push(self, item):
            self.items.append(item)
            return self
        def __iter__(self):
            return iter(self.items)
        def __getitem__(self, at):
            return self.items[at]

    def count(text): return collections.Counter(text)
    def group():
        found = collections.defaultdict(list)
        found["a"].append(1)
        return found
    def point(): return Point(1, 2)
    def colour(): return Colour.RED
    def letters(text): return set(text)
    def parse(text): raise ParseError("bad: " + text, 3)
    def decode(data): return data.decode()
    def missing(): return {}["key"]
    def naturals():
        number = 0
        while True:
            yield number
            number += 1
    def half():
        yield 1
        yield 2
        raise ParseError("later", 9)
    def double(number): return 2 * number
    def add(a, b=0): return a + b
"""


def test_subclasses_of_plain_types_are_equal_to_plain_data(grade: Grade) -> None:
    seen = grade(
        """
        def test_values(solution):
            calc = solution.load("calc")
            counted = calc.count("abca")
            assert counted == {"a": 2, "b": 1, "c": 1} and type(counted) is dict
            assert solution.type_of(counted) == "Counter"
            assert calc.group() == {"a": [1]}
            assert calc.point() == (1, 2)
            assert solution.type_of(calc.point()) == "Point"
            colour = calc.colour()
            assert colour == 1 and type(colour) is int
            assert solution.type_of(colour) == "Colour"
            assert calc.letters("aab") == {"a", "b"}
            assert calc.add(1, b=2) == 3
            assert solution.type_of(calc.Stack()) == "Stack"
        """,
        WORK,
    )
    assert verify(seen).passed, seen.rows
    assert verify(seen).trust is Trust.TRUSTED


def test_exceptions_arrive_as_their_builtin_base(grade: Grade) -> None:
    seen = grade(
        """
        import pytest

        def test_raises(solution):
            calc = solution.load("calc")
            with pytest.raises(ValueError, match="bad: x") as caught:
                calc.parse("x")
            assert caught.value.args == ("bad: x",)
            with pytest.raises(KeyError) as caught:
                calc.missing()
            assert caught.value.args == ("key",)
            with pytest.raises(TypeError):
                calc.double()
            with pytest.raises(FileNotFoundError) as caught:
                solution.load("builtins").open("/nowhere/at/all")
            assert caught.value.errno == 2
            with pytest.raises(UnicodeDecodeError) as caught:
                calc.decode(b"\\xff")
            assert caught.value.start == 0 and "invalid start byte" in str(caught.value)
            with pytest.raises(SystemExit) as caught:
                solution.load("sys").exit(3)
            assert caught.value.code == 3
            with pytest.raises(ModuleNotFoundError):
                solution.load("no_such_module")
            with pytest.raises(AttributeError):
                calc.no_such_name
            assert not hasattr(calc, "no_such_name") and hasattr(calc, "add")

        def test_own(solution):
            calc = solution.load("calc")
            with solution.raises(calc.ParseError) as caught:
                calc.parse("x")
            assert caught.text == "bad: x" and caught.type_name == "ParseError"
            assert caught.value.line == 3
            with solution.raises(ValueError):
                calc.parse("y")
            with pytest.raises(AssertionError, match="did not raise"):
                with solution.raises(calc.ParseError):
                    calc.double(1)
            with pytest.raises(TypeError):
                with solution.raises(calc.ParseError):
                    calc.double()
        """,
        WORK,
    )
    assert verify(seen).passed, seen.rows


def test_handles_reach_attributes_items_and_iteration(grade: Grade) -> None:
    seen = grade(
        """
        import itertools
        import pytest

        def test_stack(solution):
            calc = solution.load("calc")
            stack = calc.Stack().push(1).push("b")
            assert stack.items == [1, "b"] and stack[1] == "b" and list(stack) == [1, "b"]
            stack.items = [5]
            assert list(stack) == [5]
            assert stack.push(6) is stack
            assert calc.__name__ == "calc"

        def test_iterators(solution):
            calc = solution.load("calc")
            numbers = calc.naturals()
            assert list(itertools.islice(numbers, 100)) == list(range(100))
            fresh = calc.naturals()
            assert [next(fresh), next(fresh)] == [0, 1]
            got = []
            with solution.raises(calc.ParseError):
                for number in calc.half():
                    got.append(number)
            assert got == [1, 2]
            ended = solution.load("builtins").iter([])
            with pytest.raises(StopIteration):
                next(ended)

        def test_map(solution):
            calc = solution.load("calc")
            assert solution.map(calc.double, range(1000)) == [2 * n for n in range(1000)]
            assert solution.starmap(calc.add, [(1, 2), (3, 4)]) == [3, 7]
            big = solution.map(calc.double, ["x" * 200_000] * 20)
            assert big == ["x" * 400_000] * 20
            with pytest.raises(TypeError):
                solution.map(calc.double, [1, None])

        def test_asking_in_the_box(solution):
            calc, box = solution.load("calc"), solution.load("builtins")
            assert solution.load("operator").eq(calc.Stack, calc.Stack) is True
            assert box.len(calc.Stack().push(1).items) == 1
        """,
        WORK,
    )
    assert verify(seen).passed, seen.rows


def test_a_program_that_prints_and_changes_its_folder_is_served(grade: Grade) -> None:
    seen = grade(
        """
        def test_noisy(solution):
            mine = solution.load("json")
            assert solution.load("calc").add(2, 3) == 5
            assert mine.loads("[1]") == "mine"
        """,
        {
            "calc.py": r"""
            import builtins, os, sys
            for fd in (1, 2):
                os.write(fd, b"\xff\xfe \x00 \x1b[31m" * 100_000)
            print("x" * 1_000_000)
            os.chdir("/")
            sys.stdin.read()
            builtins.len = builtins.isinstance = builtins.type = builtins.str = None
            sys.setrecursionlimit(10_000)
            def add(a, b): return a + b
            """,
            "json.py": "def loads(text): return 'mine'",
        },
    )
    assert verify(seen).passed, seen.rows


def test_inputs_are_drawn_from_the_recorded_seed(grade: Grade) -> None:
    check = """
        def test_a(solution):
            calc, drawn = solution.load("calc"), solution.random.random()
            assert drawn == calc.add(2)
    """
    first = grade(check, WORK, seed=1)
    again = grade(check, WORK, seed=1)
    other = grade(check, WORK, seed=2)
    texts = [seen.rows[0].text for seen in (first, again, other)]
    drawn = [re.search(r"assert (0\.\d+) == 2", text) for text in texts]
    numbers = [found[1] for found in drawn if found]
    assert len(numbers) == 3
    assert numbers[0] == numbers[1] != numbers[2]
    assert [first.seed, other.seed] == [1, 2]


def test_files_are_seen_as_they_were_harvested(grade: Grade) -> None:
    seen = grade(
        """
        import pytest

        def test_files(solution):
            assert sorted(solution.files) == ["calc.py", "notes/a.txt"]
            solution.load("calc")
            assert solution.text("notes/a.txt") == "as harvested"
            with pytest.raises(TypeError):
                solution.files["x"] = b""

        def test_missing(solution):
            solution.text("no.txt")
        """,
        {
            "notes/a.txt": "as harvested",
            "calc.py": """
            import os
            os.unlink("notes/a.txt")
            os.symlink("/etc/passwd", "notes/a.txt")
            """,
        },
    )
    assert [row.outcome for row in seen.rows] == ["passed", "failed"]
    assert seen.rows[1].reason == "AssertionError"


def test_what_a_check_says_is_its_own_lines_and_none_of_ours(grade: Grade) -> None:
    seen = grade(
        """
        def test_missing(solution):
            solution.load("no_such_module")

        def test_compared(solution):
            assert list(solution.load("calc").Stack().push(1)) == 2

        def test_truth(solution):
            solution.load("calc").parse("x")
        """,
        {"calc.py": WORK},
    )
    for row, line in zip(seen.rows, ("no_such_module", "== 2", 'parse("x")'), strict=True):
        assert line in row.text
        assert "E   " in row.text
        assert not re.search(r"checks/\w+\.py:\d+: in", row.text)
