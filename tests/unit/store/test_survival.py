"""Results after kills and merges: real processes, real signals, real git."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_modelbench.records import AttemptRecord
from pytest_modelbench.store.reader import read
from pytest_modelbench.store.writer import RunInfo

Store = Callable[..., Path]
MakeRecord = Callable[..., AttemptRecord]

WRITE_FOR_EVER = """
import itertools, sys
from pathlib import Path
from pytest_modelbench.records import AttemptRecord
from pytest_modelbench.store.writer import RunInfo, Writer
root, name = Path(sys.argv[1]), sys.argv[2]
run = RunInfo(run="run-1", started="2026-01-09T09:00:00.000Z")
with Writer(root, run) as writer:
    for number in itertools.count():
        writer.append(AttemptRecord(id=f"{name}-{number}", run="run-1", pack="p", case=f"c{number}",
            candidate="a", repeat=1, identity={"task": "t", "check": "c", "candidate": "m"},
            outcome="passed", verdict={"passed": True, "reward": 1.0}, seconds=1.0,
            started="2026-01-09T09:20:00.000Z", harvest={"big.txt": "x" * 200_000}))
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def test_kills_at_any_moment_lose_no_result_that_was_reported(tmp_path: Path) -> None:
    chance = random.Random(20260109)
    reported: set[str] = set()
    for generation in range(3):
        names = [f"g{generation}{letter}" for letter in "ab"]
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path), name], stdout=subprocess.PIPE
            )
            for name in names
        ]
        for name, writer in zip(names, writers, strict=True):
            assert writer.stdout is not None
            for _ in range(chance.randint(1, 12)):  # then a kill, wherever the writer is
                reported.add(f"{name}-{int(writer.stdout.readline())}")
        for name, writer in zip(names, writers, strict=True):
            writer.kill()
            rest, _ = writer.communicate()
            reported |= {f"{name}-{int(line)}" for line in rest.splitlines(keepends=True)}

    index = read(tmp_path)

    stored = {entry.id for entry in index.entries()}
    assert reported <= stored
    assert len(stored - reported) <= 6  # at most the line that each was about to report
    assert index.duplicates == 0
    assert all(damage.torn for damage in index.damages)
    assert len(index.damages) <= 6
    for entry in list(index.entries())[:: max(1, len(stored) // 20)]:
        assert index.record(entry).id == entry.id


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def two_machines(tmp_path: Path, store: Store, make_record: MakeRecord) -> tuple[Path, Path]:
    """Return two clones of a repository in which one run is committed."""
    one, two = tmp_path / "one", tmp_path / "two"
    git(tmp_path, "init", "-q", "-b", "main", str(one))
    store(make_record(id="shared"), root=one / "results")
    git(one, "add", "results")
    git(one, "commit", "-qm", "a run")
    git(tmp_path, "clone", "-q", str(one), str(two))
    return one, two


def test_runs_of_two_machines_merge_to_their_union(
    two_machines: tuple[Path, Path], store: Store, make_record: MakeRecord
) -> None:
    one, two = two_machines
    for machine, name in ((one, "run-2"), (two, "run-3")):
        info = RunInfo(run=name, started="2026-02-01T00:00:00.000Z")
        store(make_record(id=name, repeat=2, run=name), run=info, root=machine / "results")
        git(machine, "add", "results")
        git(machine, "commit", "-qm", name)

    git(two, "pull", "-q", "--no-rebase", "origin", "main")

    index = read(two / "results")
    assert {entry.id for entry in index.entries()} == {"shared", "run-2", "run-3"}
    assert (index.duplicates, index.damages) == (0, [])


def test_one_run_committed_twice_merges_to_its_union(
    two_machines: tuple[Path, Path], store: Store, make_record: MakeRecord
) -> None:
    one, two = two_machines
    more = [make_record(id=f"more-{n}", repeat=n + 2) for n in range(4)]
    store(*more[:1], root=one / "results")
    store(*more, root=two / "results")
    for machine in (one, two):
        git(machine, "commit", "-qam", "what was there at the time")

    git(two, "pull", "-q", "--no-rebase", "origin", "main")

    index = read(two / "results")
    assert {entry.id for entry in index.entries()} == {"shared", *(r.id for r in more)}
    assert index.damages == []
