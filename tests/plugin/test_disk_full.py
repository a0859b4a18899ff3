"""The disk fills up (FR21): said with file and cause, nothing more begins, all stored is whole."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import ModelServer
    from tests.plugin.conftest import Model, Project

pytestmark = pytest.mark.slow  # each test is several runs of pytest

ROOM = 24_000
"""Bytes that one file may have: some results fit into it, forty do not."""


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_results_that_do_not_fit_end_the_run_and_lose_nothing(
    project: Project, workers: str
) -> None:
    project.certified("one", "two").scripted("right")
    args = ("--models", "right", "--modelbench-repeats", "20", "-n", workers, "-q")
    full = project.start(*args, before=no_room, junit=False).wait()
    assert full.exit not in (0, 5), full.out
    assert "the result was not stored: File too large" in full.out
    (path,) = (project.results / "tiny/right").glob("*.jsonl")
    assert str(path) in full.out
    assert "make room" in full.out
    assert "INTERNALERROR" not in full.out
    index = project.index()
    assert index.damages == [], "no half record"
    done = {cell for cell in project.verdicts("right")}
    assert 5 <= len(done) < 40
    assert project.faulted("right") == {}, "a full disk says nothing about a candidate"
    assert full.out.count("the result was not stored") <= 4 * max(1, int(workers)), "no more began"
    assert project.leftovers() == []
    stored = {entry.id for entry in index.entries()}

    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    assert stored <= {entry.id for entry in project.index().entries()}
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 20)}


@pytest.fixture
def small(project: Project) -> Iterator[Path]:
    """A TMPDIR of 64 MiB, and a file in it that takes all of the room when it is filled."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "none", project.temporary],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted: {made.stderr.strip()}")
    yield project.temporary / "filler"
    project.close()
    subprocess.run(["umount", "--lazy", project.temporary], check=True)


def fill(path: Path) -> None:
    status = os.statvfs(path.parent)
    path.write_bytes(bytes(status.f_bavail * status.f_frsize - 2**16))


def test_a_full_tmpdir_is_no_verdict(
    project: Project, small: Path, model: Model, model_server: Callable[..., ModelServer]
) -> None:
    """It is told at the start; and what a candidate cannot write later says nothing of it."""
    server = model_server(model, gated=True)
    assert server.gate is not None
    project.certified("one").served("right", server.url)
    fill(small)
    full = project.start("--models", "right").wait()
    assert full.exit == 4, full.out
    assert f"MiB are left in {project.temporary}" in full.out
    assert "make room there, or let TMPDIR name another place" in full.out
    assert project.tries("right") == []
    small.unlink()
    going = project.start("--models", "right", "--modelbench-fault-retries", "0")
    going.until(lambda: server.in_flight)
    fill(small)
    server.gate.set()
    ran = going.wait()
    assert ran.exit == 1, ran.out
    (tried,) = project.tries("right")
    assert tried.fault is not None
    assert f"MiB are left in {project.temporary}" in tried.fault.text
    assert "let TMPDIR name another place" in tried.fault.text
    assert project.verdicts("right") == {}
    small.unlink()
    ran = project.run("--models", "right")
    assert ran.exit == 0, ran.out
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right")}


def test_a_disk_that_is_full_while_graded_gives_no_verdict_and_keeps_the_work(
    project: Project, small: Path
) -> None:
    project.pack("one").scripted("right")
    begin = project.path / "begin"
    # A check is code of the pack's, in no box: it stands for whatever else fills the disk.
    project.write(
        "cases/tiny/one/hidden/test_answer.py",
        "import os\n\n\ndef test_answer(solution):\n"
        "    assert solution.files['answer.txt'] == b'one\\n'\n"
        f"    if os.path.exists({str(begin)!r}):\n"
        f"        with open({str(small)!r}, 'wb') as file:\n"
        f"            status = os.statvfs({str(small.parent)!r})\n"
        "            file.write(bytes(status.f_bavail * status.f_frsize - 2**16))\n"
        "        assert False, 'what else it needs cannot be written'\n",
    )
    assert project.run("--models", "right").exit == 0
    begin.touch()
    args = ("--models", "right", "--modelbench-repeats", "2", "--modelbench-fault-retries", "0")
    full = project.run(*args)
    assert full.exit == 1, full.out
    _, tried = project.tries("right")
    assert tried.fault is not None
    assert (tried.fault.kind, tried.fault.stage) == ("disk", "grade")
    assert "let TMPDIR name another place" in tried.fault.text
    assert tried.harvest is not None
    begin.unlink()
    small.unlink()
    ran = project.run(*args)
    assert ran.exit == 0, ran.out
    assert project.verdicts("right") == {cell: [True] for cell in project.cells("right", 2)}
    assert project.tries("right")[-1].grades == tried.id, "the candidate worked once"
