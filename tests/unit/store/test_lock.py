from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.store.lock import RunLock, WorkerLock, holder

STARTED = "2026-01-09T09:00:00.000Z"

CONTROLLER = f"""
import sys
from pathlib import Path
from pytest_modelbench.store.lock import RunLock
lock = RunLock.take(Path(sys.argv[1]), "run-1", "{STARTED}")
print("held", flush=True)
sys.stdin.read()
"""

WORKER = """
import sys
from pathlib import Path
from pytest_modelbench.store.lock import WorkerLock
lock = WorkerLock.share(Path(sys.argv[1]), "run-1")
print("held", flush=True)
sys.stdin.read()
"""

Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a program which holds its lock until its stdin ends."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(script: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def test_a_second_run_is_refused_with_pid_and_start_of_the_first(
    tmp_path: Path, start: Start
) -> None:
    first = start(CONTROLLER)

    with pytest.raises(StoreProblem) as refusal:
        RunLock.take(tmp_path, "run-2", STARTED)

    assert f"pid {first.pid}, started {STARTED}" in str(refusal.value)
    assert "--modelbench-results" in str(refusal.value)
    assert holder(tmp_path) == {"pid": first.pid, "run": "run-1", "started": STARTED}


def test_a_killed_run_leaves_the_folder_free(tmp_path: Path, start: Start) -> None:
    """FR40: the lock of a dead process is free at once, and holds nobody up."""
    first = start(CONTROLLER)
    first.kill()
    first.wait()

    with RunLock.take(tmp_path, "run-2", STARTED):
        assert holder(tmp_path)["run"] == "run-2"
    assert holder(tmp_path) == {}


def test_workers_share_beside_their_controller(tmp_path: Path, start: Start) -> None:
    start(CONTROLLER)
    start(WORKER)
    start(WORKER)

    with pytest.raises(StoreProblem, match="another run is measuring"):
        RunLock.take(tmp_path, "run-2", STARTED)


def test_a_new_run_waits_for_the_workers_of_a_killed_one_then_refuses(
    tmp_path: Path, start: Start
) -> None:
    controller = start(CONTROLLER)
    worker = start(WORKER)
    controller.kill()
    controller.wait()
    said: list[str] = []

    with pytest.raises(StoreProblem) as refusal:
        RunLock.take(tmp_path, "run-2", STARTED, wait_seconds=0.05, say=said.append)

    assert f"still at work after 0 s (pid {worker.pid})" in str(refusal.value)
    assert len(said) == 1
    assert f"pid {worker.pid}" in said[0]

    def end_it(line: str) -> None:
        said.append(line)
        worker.kill()
        worker.wait()

    with RunLock.take(tmp_path, "run-2", STARTED, wait_seconds=30, say=end_it):
        assert len(said) == 2


def test_a_worker_of_a_run_that_lost_the_folder_does_not_go_on(tmp_path: Path) -> None:
    with (
        RunLock.take(tmp_path, "run-2", STARTED),
        pytest.raises(StoreProblem, match=r"run run-1 no longer holds the results folder"),
    ):
        WorkerLock.share(tmp_path, "run-1")


def test_a_worker_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    with RunLock.take(tmp_path, "run-1", STARTED):
        share = WorkerLock.share(tmp_path, "run-1")
        share.release()
    said: list[str] = []

    RunLock.take(tmp_path, "run-2", STARTED, wait_seconds=0, say=said.append).release()

    assert said == []


def test_a_program_that_a_worker_started_holds_nothing(tmp_path: Path) -> None:
    with RunLock.take(tmp_path, "run-1", STARTED):
        share = WorkerLock.share(tmp_path, "run-1")
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
            share.release()
            workers = os.open(tmp_path / ".locks/workers", os.O_RDWR)
            fcntl.flock(workers, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError if cat held it
            os.close(workers)
            assert child.poll() is None


def test_a_file_system_whose_locks_do_nothing_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FR40: where a lock is a no-op nobody writes, and the refusal names the file system."""
    monkeypatch.setattr(fcntl, "flock", lambda descriptor, how: None)

    with pytest.raises(StoreProblem, match=r"the file system \w+ at /.* has no locks that work"):
        RunLock.take(tmp_path, "run-1", STARTED)


def test_a_file_system_without_locks_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(StoreProblem, match=r"No locks available"):
        RunLock.take(tmp_path, "run-1", STARTED)


def test_locks_of_writers_do_not_pile_up(tmp_path: Path) -> None:
    with RunLock.take(tmp_path, "one", "2026-01-09T09:00:00.000Z"):
        (tmp_path / ".locks" / "append-one.lock").touch()
    assert sorted(path.name for path in (tmp_path / ".locks").iterdir()) == [
        "controller",
        "workers",
    ]
    (tmp_path / ".locks" / "append-killed.lock").touch()
    with RunLock.take(tmp_path, "two", "2026-01-09T09:00:00.000Z"):
        assert not (tmp_path / ".locks" / "append-killed.lock").exists()
