from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.records import AttemptRecord, Candidate, Cell
from pytest_modelbench.store import writer as writer_module
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import Grid, RunInfo, Writer, facts

Store = Callable[..., Path]
MakeRecord = Callable[..., AttemptRecord]

APPEND_MANY = """
import contextlib, sys
from pathlib import Path
from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.records import AttemptRecord
from pytest_modelbench.store.writer import RunInfo, Writer
root, name, count, lock = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
run = RunInfo(run="run-1", started="2026-01-09T09:00:00.000Z")
verdict = {"passed": True, "reward": 1.0}
with Writer(root, run, lock=contextlib.nullcontext() if lock == "no-op" else None) as writer:
    for number in range(count):
        writer.append(AttemptRecord(id=f"{name}-{number}", run="run-1", pack="p", case=f"c{number}",
            candidate="a", repeat=1, identity={"task": "t", "check": "c", "candidate": "m"},
            outcome="passed", verdict=verdict, started="2026-01-09T09:20:00.000Z", seconds=1.0,
            note="x" * 700))
        print(number, flush=True)
"""


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines() if line]


def only_file(root: Path) -> Path:
    (path,) = root.glob("*/*/*.jsonl")
    return path


def test_a_file_begins_with_its_run(tmp_path: Path, make_record: MakeRecord) -> None:
    run = RunInfo(
        run="run-1",
        started="2026-01-09T09:00:00.000Z",
        note="at home",
        grid=Grid(cases={"executor": ("fix-bug", "add")}, candidates=("local-coder",), repeats=3),
        candidates={"local-coder": {"model": "qwen"}},
        versions={"litellm": "1.80"},
        fresh=(Cell("executor", "fix-bug", "local-coder", 2), Cell("executor", "add", "other", 1)),
    )
    with Writer(tmp_path, run) as writer:
        writer.append(make_record())
        writer.append(make_record(repeat=2))

    header, first, second = lines(only_file(tmp_path))

    assert header == {
        "schema": 1,
        "kind": "run",
        "run": "run-1",
        "started": "2026-01-09T09:00:00.000Z",
        "pack": "executor",
        "candidate": "local-coder",
        "note": "at home",
        "grid": {"cases": ["fix-bug", "add"], "candidates": ["local-coder"], "repeats": 3},
        "facts": {"model": "qwen"},
        "versions": {"litellm": "1.80"},
        "fresh": {"fix-bug": [2]},
    }
    assert (first["repeat"], second["repeat"]) == (1, 2)
    stored = read(tmp_path).headers[0]
    assert (stored.note, stored.repeats, stored.fresh) == ("at home", 3, {"fix-bug": (2,)})


def test_facts_of_a_candidate_name_neither_key_nor_folder() -> None:
    candidate = Candidate(
        name="a", model="m", api_key_env="SECRET_KEY", script="/home/someone/play.json"
    )

    assert facts(candidate) == {"name": "a", "model": "m", "script": "play.json"}


def test_a_second_writer_of_the_run_adds_no_second_header(
    store: Store, make_record: MakeRecord
) -> None:
    store(make_record())
    root = store(make_record(repeat=2))

    assert [line["kind"] for line in lines(only_file(root))] == ["run", "attempt", "attempt"]


def test_declare_writes_the_header_before_any_try(tmp_path: Path, run: RunInfo) -> None:
    with Writer(tmp_path, run) as writer:
        writer.declare("executor", "local-coder")

    assert [line["kind"] for line in lines(only_file(tmp_path))] == ["run"]


@pytest.mark.parametrize("cut", [1, 2, 40, 300])
def test_after_a_killed_writer_the_next_line_is_whole(
    store: Store, make_record: MakeRecord, cut: int
) -> None:
    root = store(make_record(), make_record(repeat=2))
    path = only_file(root)
    os.truncate(path, path.stat().st_size - cut)

    store(make_record(repeat=3))

    index = read(root)
    kept = {1, 3} | ({2} if cut == 1 else set())  # only the newline is gone: the try counts
    assert {entry.repeat for entry in index.entries()} == kept
    assert [damage.line for damage in index.damages] == ([] if cut == 1 else [3])
    assert all(damage.torn for damage in index.damages)


def test_half_a_header_costs_no_header(store: Store, make_record: MakeRecord) -> None:
    root = store(make_record())
    path = only_file(root)
    header = path.read_bytes().splitlines()[0]
    path.write_bytes(header[:50])

    store(make_record())

    index = read(root)
    assert [header.run for header in index.headers] == ["run-1"]
    assert len(index) == 1


def test_a_deleted_file_is_begun_again(tmp_path: Path, run: RunInfo, make_record: Any) -> None:
    with Writer(tmp_path, run) as writer:
        writer.append(make_record())
        only_file(tmp_path).unlink()
        writer.append(make_record(repeat=2))

    assert [line["kind"] for line in lines(only_file(tmp_path))] == ["run", "attempt"]


def test_half_a_surrogate_pair_survives(store: Store, make_record: MakeRecord) -> None:
    root = store(make_record(served_model="a\ud83db", harvest={"a.txt": "\udc00 é"}))

    index = read(root)

    (entry,) = index.entries()
    assert index.record(entry).harvest == {"a.txt": "\udc00 é"}
    assert index.record(entry).served_model == "a\ud83db"
    assert index.damages == []
    assert only_file(root).read_bytes().isascii()


def test_a_full_disk_is_an_error_that_names_file_and_cause(tmp_path: Path) -> None:
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
    script = limited + APPEND_MANY

    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "a", "200", "real"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    problem = done.stderr.strip().splitlines()[-1]
    assert "StoreProblem" in problem
    assert f"{only_file(tmp_path)}: the result was not stored: File too large" in problem
    stored = len(done.stdout.splitlines())
    assert 0 < stored < 200
    index = read(tmp_path)
    assert (len(index), index.damages) == (stored, [])  # all that was said to be stored, whole
    assert only_file(tmp_path).read_bytes().endswith(b"\n")

    again = subprocess.run(
        [sys.executable, "-c", APPEND_MANY, str(tmp_path), "b", "3", "real"], capture_output=True
    )
    assert again.returncode == 0  # after room was made
    assert len(read(tmp_path)) == stored + 3


@pytest.mark.parametrize("lock", ["no-op", "real"])
def test_two_processes_at_once_write_whole_lines(tmp_path: Path, lock: str) -> None:
    count = 500 if lock == "no-op" else 150
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND_MANY, str(tmp_path), name, str(count), lock],
            stdout=subprocess.DEVNULL,
        )
        for name in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]

    index = read(tmp_path)

    assert len(index) == 2 * count
    assert index.damages == []


def test_a_lock_of_a_killed_process_holds_nobody_up(tmp_path: Path) -> None:
    script = """
import sys, time
from pathlib import Path
from pytest_modelbench.store import writer
lock = writer._file_lock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""
    (tmp_path / ".locks").mkdir()
    lock = tmp_path / ".locks" / "append-run-1.lock"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        holder.wait()

    done = subprocess.run(
        [sys.executable, "-c", APPEND_MANY, str(tmp_path), "a", "2", "real"],
        timeout=writer_module.LOCK_SECONDS,
        stdout=subprocess.DEVNULL,
    )

    assert done.returncode == 0
    assert len(read(tmp_path)) == 2


def test_a_lock_that_a_living_process_keeps_is_an_error_that_names_it(
    tmp_path: Path, run: RunInfo, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "LOCK_SECONDS", 0.05)
    path = tmp_path / ".locks" / "append-run-1.lock"
    path.parent.mkdir()
    held = writer_module._file_lock(path)
    with (
        Writer(tmp_path, run) as writer,
        held,
        pytest.raises(StoreProblem, match=r"append-run-1\.lock: another process"),
    ):
        writer.append(make_record())

    with Writer(tmp_path, run, lock=contextlib.nullcontext()) as writer:
        writer.append(make_record())
    assert len(read(tmp_path)) == 1
