"""The trusted process: started once a worker, it forks a child for each grading.

It has pytest and the grader in memory, so that a fork is ready at once, and it never imports the
candidate's code, nor does a child of it. It lives as long as the socket that it was given.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import json
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any  # Any: what JSON gives; its form is that of ``grader.py``'s own messages

import pytest

from pytest_modelbench.checks.failures import GraderBroken
from pytest_modelbench.checks.judge import Judge, Seat
from pytest_modelbench.checks.recorder import Event, Recorder
from pytest_modelbench.checks.solution import Grading
from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import Box

GRACE_SECONDS = 10.0
"""What a grading may take past its time to end its box and to say its last rows."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# Built-in plugins that a hidden check has no use for; what they cost is paid once a grading.
_WITHOUT = (
    "cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "setuponly",
    "setupplan", "stepwise", "subtests", "threadexception", "unittest", "unraisableexception",
    "warnings",
)  # fmt: skip


def main(descriptor: int) -> None:
    """Serve gradings until the socket's other end is closed."""
    # A worker may ignore it, and a program in a box must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _adopt_orphans()
    connection = Connection(descriptor)
    start = json.loads(connection.recv_bytes())
    scratch = Path(tempfile.mkdtemp(prefix="grading-", dir=start["scratch"]))
    scratch.chmod(0o711)  # a box may have to pass through it as another user
    try:
        box: Box = pickle.loads(bytes.fromhex(start["box"]))
        _warm_up(scratch)
        trouble = _try_box(box, scratch)
        gc.freeze()
        ready = {"trouble": trouble, "pytest": pytest.__version__}
        connection.send_bytes(json.dumps(ready).encode())
        while True:
            request = json.loads(connection.recv_bytes())
            answer = _serve(request, box, scratch, connection)
            connection.send_bytes(json.dumps(answer).encode())
    except (EOFError, ConnectionError):
        pass
    finally:
        _end_orphans()
        shutil.rmtree(scratch, ignore_errors=True)


def _serve(
    request: Mapping[str, Any], box: Box, scratch: Path, connection: Connection
) -> dict[str, object]:
    """Fork a child for one request and gather what it says, until its end or its deadline."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    folder.chmod(0o711)
    begin = time.monotonic()
    reader, writer = os.pipe()
    sys.stdout.flush()
    parent = os.getpid()
    child = os.fork()
    if not child:
        connection.close()  # else its other end would not see that we are gone
        os.close(reader)
        _die_with(parent)
        _child(request, box, folder, scratch, lambda event: _write(writer, event))
    os.close(writer)
    try:
        events, timed_out = _gather(
            reader, begin + request["seconds"] + GRACE_SECONDS, connection.fileno()
        )
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        _end_orphans()
        log = _tail(folder / "log")
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "events": events,
        "timed_out": timed_out,
        "seconds": round(time.monotonic() - begin, 6),
        "died": "" if not status or timed_out else f"wait status {status}; {log}",
        "log": log,
    }


def _child(
    request: Mapping[str, Any],
    box: Box,
    folder: Path,
    scratch: Path,
    emit: Callable[[Event], None],
) -> None:
    """Run pytest on the hidden checks in this fork; never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        gc.disable()
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        hidden = Path(request["hidden"])
        sys.pycache_prefix = str(scratch / "pycache" / _state(hidden))
        grading = None
        if request["verb"] == "observe":
            environment, seat = request["environment"], request["judge"]
            grading = Grading(
                box,
                Path(request["harvest"]),
                hidden,
                None if environment is None else Path(environment),
                folder,
                request["seconds"],
                request["seed"],
                lambda seconds: emit({"late": seconds}),
            )
            if seat is not None:
                grading.judge = Judge(Seat.model_validate(seat), emit, grading.excuse)
        recorder = Recorder(hidden, grading, emit)
        try:
            exit_code = pytest.main(_arguments(hidden, folder, grading is None), [recorder])
        finally:
            if grading is not None:
                grading.close()
        emit({"end": {"exit": int(exit_code)}})
        code = 0
    except BaseException as error:
        emit({"fault": f"the grader itself failed: {type(error).__name__}: {error}"[:2000]})
    finally:
        os._exit(code)


def _arguments(hidden: Path, folder: Path, only_collect: bool) -> list[str]:
    """Return pytest's arguments: nothing outside the hidden folder decides how checks run."""
    ini = folder / "grading.ini"
    ini.write_text("[pytest]\n")
    return [
        *(word for name in _WITHOUT for word in ("-p", f"no:{name}")),
        *("-c", str(ini), "--rootdir", str(hidden), "--confcutdir", str(hidden)),
        *("--basetemp", str(folder / "tmp"), "--import-mode=importlib", "--capture=no"),
        *("-o", f"pythonpath={hidden}", "-q", "--no-header", "--no-summary", "--tb=short"),
        *(("--collect-only",) if only_collect else ()),
        str(hidden),
    ]


def _gather(reader: int, deadline: float, other_end: int) -> tuple[list[Event], bool]:
    """Read events until the child closes its end, or the deadline, or our own caller is gone."""
    events: list[Event] = []
    rest = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(other_end, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        ready = {fd for fd, _ in poll.poll(max(0.0, left) * 1000)}
        if other_end in ready:
            raise EOFError  # nobody asks while we work: this is the end of our caller
        if reader not in ready:
            return events, True
        piece = os.read(reader, 2**16)
        if not piece:
            return events, False
        *lines, rest = (rest + piece).split(b"\n")
        for event in map(json.loads, lines):
            deadline += event.get("late", 0.0)  # it waited for a box: that is not its own time
            events.append(event)


def _write(writer: int, event: Event) -> None:
    data = json.dumps(event).encode() + b"\n"
    while data:
        data = data[os.write(writer, data) :]


def _state(folder: Path) -> str:
    """Return a name for what a folder holds now, so that no byte code outlives its source."""
    state = hashlib.sha256(os.fsencode(folder))
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 (pathlib is slower here)
            state.update(
                f"{parent}/{name} {found.st_mtime_ns} {found.st_size}".encode(
                    "utf-8", "surrogateescape"
                )
            )
    return state.hexdigest()[:32]


def _warm_up(scratch: Path) -> None:
    """Let pytest run once on one check, so that a fork finds all modules in memory."""
    folder = scratch / "warm"
    hidden = folder / "hidden"
    hidden.mkdir(parents=True)
    (hidden / "test_warm.py").write_text("def test_warm(tmp_path):\n    assert 1 == int('1')\n")
    out = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(null, 1)
    try:
        pytest.main(_arguments(hidden, folder, False), [Recorder(hidden, None, lambda event: None)])
    finally:
        sys.stdout.flush()
        os.dup2(out, 1)
        os.close(out)
        os.close(null)
        shutil.rmtree(folder)


def _try_box(box: Box, scratch: Path) -> str:
    """Start one worker, so that a box's own first-time work is done; return what went wrong."""
    folder = scratch / "try"
    folder.mkdir()
    try:
        grading = Grading(box, folder, folder, None, scratch, 60.0, 0, lambda seconds: None)
        grading.worker()
        grading.close()
    except (GraderBroken, Fault) as error:
        return str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return ""


def _tail(path: Path, size: int = 4000) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - size))
            return file.read(size).decode(errors="replace")
    except OSError:
        return ""


def _die_with(parent: int) -> None:
    """Be killed when the parent is gone (Linux), also if it is gone by now."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(70)


def _adopt_orphans() -> None:
    """Become the parent of what a child leaves behind (Linux; elsewhere a group is all)."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans() -> None:
    """Kill and reap every child that is left, and those that its end leaves to us, to the last."""
    while True:
        children = _children()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, _ = os.waitpid(-1, 0 if children else os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return


def _children() -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            text = (task / "children").read_text()
            found += [int(pid) for pid in text.split()]
    return found
