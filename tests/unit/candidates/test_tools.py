from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from pytest_modelbench.candidates.tools import (
    ACTIONS,
    LISTED,
    NAMES,
    SCHEMAS,
    Ran,
    Result,
    Tools,
    Workbench,
)
from pytest_modelbench.errors import Fault


def call(bench: Workbench, name: str, /, **arguments: JsonValue) -> Result:
    return Tools(bench, output_chars=200).call(name, arguments, 10.0)


def test_files_are_listed_read_written_and_edited(bench: Workbench) -> None:
    assert call(bench, "list_files").text == "calc.py\npkg/data.bin"
    assert call(bench, "list_files", path=None).text == "calc.py\npkg/data.bin"
    assert call(bench, "list_files", path="pkg").text == "pkg/data.bin"
    assert call(bench, "read_file", path="calc.py").text.startswith("def add(a, b):\n")
    part = call(bench, "read_file", path="calc.py", first_line=2, lines=1)
    assert part.text == "    return a - b\n"
    done = call(bench, "edit_file", path="calc.py", old="a - b", new="a + b")
    assert done == Result("Changed calc.py.", worked=True)
    assert bench.read("calc.py") == b"def add(a, b):\n    return a + b\n\n\nTOTAL = 1\n"
    done = call(bench, "write_file", path="new/x.py", content="X = 1\nY = 2\n")
    assert done == Result("Wrote new/x.py (2 lines).", worked=True)
    assert bench.read("new/x.py") == b"X = 1\nY = 2\n"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        (
            "read_file",
            {"path": "none.py"},
            "Error: none.py does not exist. The files are: calc.py, pkg/data.bin.",
        ),
        ("read_file", {"path": "pkg/data.bin"}, "not text"),
        ("read_file", {"path": "calc.py", "first_line": 9}, "calc.py has only 5 lines"),
        ("read_file", {}, "read_file takes path, first_line, lines; path is missing"),
        ("read_file", {"path": 3}, "path must be text"),
        ("read_file", {"path": "calc.py", "lines": "3"}, "lines must be a whole number"),
        ("read_file", {"path": "calc.py", "lines": True}, "lines must be a whole number"),
        ("write_file", {"path": "x", "text": "x"}, "takes path, content; it has no 'text'"),
        ("edit_file", {"path": "calc.py", "old": "zzz", "new": ""}, "old text is not in calc.py"),
        ("edit_file", {"path": "calc.py", "old": "", "new": "x"}, "old text is not in calc.py"),
        ("edit_file", {"path": "calc.py", "old": "a", "new": "x"}, "is in calc.py 3 times"),
        ("list_files", {"path": "none"}, "Error: none does not exist."),
    ],
)
def test_what_a_model_does_wrong_is_told(
    bench: Workbench, name: str, arguments: dict[str, JsonValue], says: str
) -> None:
    before = bench.read("calc.py")
    result = call(bench, name, **arguments)
    assert says in result.text
    assert (result.worked, result.command) == (False, False)
    assert bench.read("calc.py") == before


def test_a_long_listing_is_cut_and_says_so(bench: Workbench) -> None:
    for number in range(LISTED):
        bench.write(f"{number:03}", b"")
    lines = Tools(bench).call("list_files", {}, 10.0).text.splitlines()
    assert lines[:2] == ["000", "001"]
    assert len(lines) == LISTED + 1
    assert lines[-1] == "[and more files]"


def test_a_command_shows_its_output_and_how_it_ended(bench: Workbench) -> None:
    assert call(bench, "run_command", command="echo out; echo err >&2") == Result(
        "out\nerr\n[exit status 0]", worked=True, command=True
    )
    failed = call(bench, "run_command", command="exit 3")
    assert failed == Result("(no output)\n[exit status 3]", worked=False, command=True)
    killed = call(bench, "run_command", command="kill -9 $$")
    assert killed.text == "(no output)\n[ended by signal 9]"
    tools = Tools(bench, command_seconds=0.2)
    late = tools.call("run_command", {"command": "echo a; sleep 20"}, 10.0)
    assert late.text == "a\n[stopped after 0 seconds]"
    assert not late.worked


def test_a_command_has_the_smaller_of_its_own_time_and_what_is_left(bench: Workbench) -> None:
    asked: list[float] = []

    class Clock(type(bench)):  # type: ignore[misc]  # the fixture's class is not importable
        def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
            asked.append(seconds)
            return Ran(0, None, b"", 0, False)

    tools = Tools(Clock(Path()), command_seconds=30)
    tools.call("run_command", {"command": "x"}, 5.0)
    tools.call("run_command", {"command": "x"}, 50.0)
    assert asked == [5.0, 30]


def test_long_output_keeps_head_and_tail_and_says_what_was_cut(bench: Workbench) -> None:
    result = call(bench, "run_command", command="seq 1 100000")
    head, said, tail = result.text.rsplit("\n[exit", 1)[0].partition("\n[... ")
    assert head == "".join(f"{n}\n" for n in range(1, 100))[:100]
    assert said
    # 588,895 bytes are written; the line says how much of them is missing.
    assert tail.startswith("588695 of 588895 characters cut here")
    assert tail.endswith("99998\n99999\n100000")
    assert len(head) + len(tail.partition("]\n")[2]) < 201


def test_half_a_surrogate_pair_is_written_as_a_question_mark(bench: Workbench) -> None:
    assert call(bench, "write_file", path="x", content="a\ud800b").worked
    assert bench.read("x") == b"a?b"


def test_a_full_disk_is_a_fault_and_no_result() -> None:
    class Full:
        def list(self, path: str, *, limit: int) -> tuple[Sequence[str], bool]:
            return (), False

        def read(self, path: str) -> bytes:
            return b""

        def write(self, path: str, content: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def run(self, command: str, *, seconds: float, output_bytes: int) -> Ran:
            raise Fault("box", "gone")

    with pytest.raises(Fault, match="world: write_file: No space left on device"):
        call(Full(), "write_file", path="x", content="")
    with pytest.raises(Fault, match="box: gone"):
        call(Full(), "run_command", command="x")


def test_every_tool_is_offered_and_its_schema_is_small() -> None:
    assert [schema["function"]["name"] for schema in SCHEMAS] == list(NAMES)  # type: ignore[index,call-overload]  # JSON
    assert set(NAMES) == {*ACTIONS, "finish", "escalate"}
    assert len(str(SCHEMAS)) < 3000
