"""Reaping: boxes whose command runs below the reaper, and the hold that the harness has on it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import BoxSpec, Completed, ending
from pytest_modelbench.worlds.disk import DiskWatch
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.supervision import END_SECONDS, close_pipes, wait_gone, watch

REAPER = Path(__file__).with_name("reaper.py")
GRACE_SECONDS = 0.5
_SPARE_SECONDS = 15.0  # beyond which a reaper that was told to end all is given up


class ReapedBox(ABC):
    """What is the same for all levels with a reaper; ``_launch`` is what a level is."""

    level: str
    own_root: bool

    def __init__(self, owner: int | None) -> None:
        self.owner = owner
        self._running: WeakKeyDictionary[subprocess.Popen[bytes], Held] = WeakKeyDictionary()

    def run(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: bytes = b"",
        seconds: float,
        output_bytes: int = 2**20,
    ) -> Completed:
        """Run a command to its end or its deadline; nothing of it is alive afterwards."""
        held = self._launch(
            argv,
            spec,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        with contextlib.closing(held):
            seen = watch(
                held.process,
                stdin=stdin,
                seconds=seconds,
                output_bytes=output_bytes,
                end=held.end,
                over=DiskWatch(spec.written, spec.tree_bytes).over,
            )
        status, ended_by = (None, None) if seen.timed_out else ending(held.exit_code())
        if seen.over:
            status, ended_by = None, signal.SIGKILL.value
        return Completed(status, ended_by, seen.output, seen.total, seen.timed_out, seen.seconds)

    def start(
        self, argv: Sequence[str], spec: BoxSpec, *, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a command that is talked to by its stdin and stdout; end it with ``stop``."""
        held = self._launch(
            argv, spec, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=pass_fds
        )
        self._running[held.process] = held
        return held.process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a started command and every descendant of it; pipes are closed."""
        held = self._running.pop(process, None)
        if held is not None:
            held.close()
        close_pipes(process)

    @abstractmethod
    def _launch(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> Held:
        """Start a command below its reaper; ``stdin`` and ``stderr`` are as ``Popen`` takes them.

        Fault where the box itself cannot be had.
        """


@dataclass(eq=False)
class Held:
    """A command that runs below its reaper; ``process`` ends when the reaper has."""

    process: subprocess.Popen[bytes]
    control: int
    report: int
    scratch: Path
    told: bytes = b""

    def end(self) -> None:
        """Tell the reaper to end all, and wait until it has. Again: do nothing."""
        if self.control < 0:
            return
        os.close(self.control)
        self.control = -1
        self._listen(_SPARE_SECONDS)
        if self.process.poll() is None and not self._is_told():
            self.force()
        wait_gone(self.process)
        self._listen(0)
        if not self._is_told():
            self.sweep()
        elif int(self.told.splitlines()[1].split()[1]) > 0:
            raise Fault("box", "processes of a command would not end")

    def force(self) -> None:
        """End a reaper that does not do as it is told."""
        self.process.kill()

    def sweep(self) -> None:
        """End what is left where the candidate killed its reaper: what kept its session."""
        if rows := self.told.splitlines():
            _kill_session(int(rows[0]))

    def exit_code(self) -> int:
        """Return the command's code as ``subprocess`` writes it; -9 when the reaper was killed."""
        if not self._is_told():
            return -signal.SIGKILL.value
        return os.waitstatus_to_exitcode(int(self.told.splitlines()[1].split()[0]))

    def close(self) -> None:
        """End all, let go of the descriptors, remove the scratch folder."""
        if self.report < 0:
            return
        try:
            self.end()
        finally:
            os.close(self.report)
            self.report = -1
            close_pipes(self.process)
            remove(self.scratch)

    def _is_told(self) -> bool:
        return self.told.count(b"\n") >= 2

    def _listen(self, seconds: float) -> None:
        """Read the report until it is whole, its writer is gone, or time is up."""
        until = time.monotonic() + seconds
        while not self._is_told():
            left = max(0.0, until - time.monotonic())
            if not select.select([self.report], [], [], left)[0]:
                return
            more = os.read(self.report, 4096)
            if not more:
                return
            self.told += more


def limits(spec: BoxSpec) -> str:
    """Return the limits of each process of a command, as the reaper takes them."""
    found = {"CORE": 0, "FSIZE": spec.file_bytes, "NOFILE": spec.open_files}
    if spec.memory_bytes is not None:
        found["AS"] = spec.memory_bytes
    return ",".join(f"{name}={value}" for name, value in found.items())


def _kill_session(session: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    until = time.monotonic() + END_SECONDS
    while time.monotonic() < until:
        found = list(_members(session))
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _members(session: int) -> list[int]:
    members = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == session and fields[0] != b"Z":
                members.append(int(entry.parent.name))
    return members
