"""The keeper: a small program between the gateway and a command of ``[servers.NAME]``.

Run as a script, alone in its interpreter: it imports nothing of this package. As a subreaper
(Linux) it inherits every descendant of its command, so that a server which left its group and its
session is still found. It ends all of them when its standard input ends, so however the gateway
ends; with ``once`` when the command ends, too. It writes ``exit STATUS`` on its standard output
when the command itself has ended; the command's own output goes to the keeper's standard error.

Arguments: seconds between SIGTERM and SIGKILL, ``once`` or ``serve``, the shell command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_SUBREAPER = 36
_LAST_SECONDS = 5.0


def main(arguments: list[str]) -> int:
    """Keep one command."""
    grace, once, command = float(arguments[0]), arguments[1] == "once", arguments[2]
    with contextlib.suppress(OSError, AttributeError):  # elsewhere its group has to do
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os.close(0))
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    process = subprocess.Popen(  # kept: let go, it would take the status for itself
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=2,
        stderr=2,
        start_new_session=True,
    )
    child = process.pid
    told = False
    while True:
        status = _reap(child)
        if status is not None and not told:
            told = True
            with contextlib.suppress(OSError):
                os.write(1, b"exit %d\n" % status)
            process.returncode = status
            if once:
                break
        try:
            ready, _, _ = select.select([0, woken], [], [])
        except (OSError, ValueError):
            break  # told to end by a signal
        if woken in ready:
            os.read(woken, 4096)
        if 0 in ready and not os.read(0, 4096):
            break
    _end(child, grace)
    return 0


def _reap(child: int) -> int | None:
    """Reap whatever has ended; return the exit status of the command if it is among it."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = os.waitstatus_to_exitcode(status)


def _end(child: int, grace: float) -> None:
    """Ask all descendants to end, and make them."""
    deadline = time.monotonic() + grace
    _signal(child, signal.SIGTERM)
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)  # descendants that are not our children send us no signal
    deadline = time.monotonic() + _LAST_SECONDS
    while _alive(child) and time.monotonic() < deadline:
        _signal(child, signal.SIGKILL)
        time.sleep(0.02)


def _alive(child: int) -> bool:
    _reap(child)
    if Path("/proc/self/stat").exists():
        return bool(_descendants())
    try:
        os.killpg(child, 0)
    except OSError:
        return False
    return True


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(child, number)
    for pid in _descendants():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
