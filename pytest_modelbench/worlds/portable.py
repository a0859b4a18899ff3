"""The portable baseline: what can be held without help of the kernel.

The command has an environment, HOME and TMPDIR of its own, limits, a deadline, and nothing of it is
left afterwards (Linux; elsewhere nothing of its process group). It runs as the harness's own user:
files, processes and the network of that user are in its reach. Results say so by their level. Where
the harness is root, the command has the uid alone and no power, and on Linux the harness's memory
and environment, so its keys, are closed to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

from pytest_modelbench.errors import Fault
from pytest_modelbench.privacy import close_to_others
from pytest_modelbench.worlds.box import (
    HOME,
    INTERPRETER,
    TEMPORARY,
    BoxSpec,
    Completed,
    ending,
    variables,
)
from pytest_modelbench.worlds.disk import DiskWatch
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.runs import SCRATCH, runs_root
from pytest_modelbench.worlds.supervision import END_SECONDS, close_pipes, wait_gone, watch

_REAPER = Path(__file__).with_name("reaper.py")
_GRACE_SECONDS = 0.5
_SPARE_SECONDS = 15.0  # beyond which a reaper that was told to end all is given up


class PortableBox:
    """Run commands as our own user, at host paths; the weakest level, and there on every machine.

    Targets of mounts are replaced by their sources in the working folder, the arguments and the
    variables, since nothing can be mounted. ``memory_bytes`` holds, ``processes`` does not: that
    limit would count all processes of the user.
    """

    level = "portable"

    def __init__(self) -> None:
        self.owner: int | None = None
        close_to_others()
        self._running: WeakKeyDictionary[subprocess.Popen[bytes], _Held] = WeakKeyDictionary()

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

    def _confinement(self, spec: BoxSpec, places: Mapping[str, str]) -> str:
        """Return what the kernel holds the command to, as the reaper takes it; '' for nothing."""
        return ""

    def _launch(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> _Held:
        scratch = runs_root() / f"{SCRATCH}-{os.getpid()}-{secrets.token_hex(8)}"
        control_read, control_write = os.pipe()
        report_read, report_write = os.pipe()
        try:
            places = _places(spec, scratch)
            for folder in (scratch, scratch / "home", scratch / "tmp"):
                folder.mkdir(mode=0o700)
            process = subprocess.Popen(
                [
                    *(INTERPRETER, "-I", "-S", str(_REAPER)),
                    *(str(control_read), str(report_write), str(_GRACE_SECONDS), _limits(spec)),
                    self._confinement(spec, places),
                    *(_at_host(argument, places) for argument in argv),
                ],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=_at_host(spec.workdir, places),
                env={name: _at_host(value, places) for name, value in variables(spec).items()},
                pass_fds=[*pass_fds, control_read, report_write],
                start_new_session=True,
            )
        except OSError as error:
            os.close(control_write)
            os.close(report_read)
            remove(scratch)
            raise Fault("box", f"a command cannot be started: {error}") from error
        finally:
            os.close(control_read)
            os.close(report_write)
        return _Held(process, control_write, report_read, scratch)


@dataclass(eq=False)
class _Held:
    """A command that runs under its reaper; ``process`` is the reaper."""

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
            self.process.kill()
        wait_gone(self.process)
        self._listen(0)
        rows = self.told.splitlines()
        if not self._is_told():
            # The candidate killed its reaper. What kept its session can still be found.
            if rows:
                _kill_session(int(rows[0]))
        elif int(rows[1].split()[1]) > 0:
            raise Fault("box", "processes of a command would not end")

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


def _places(spec: BoxSpec, scratch: Path) -> dict[str, str]:
    """Return what stands for each path of the box on the host, scratch folders among it."""
    places = {HOME: str(scratch / "home"), TEMPORARY: str(scratch / "tmp")}
    for mount in spec.mounts:
        places[mount.target] = os.path.realpath(mount.source, strict=True)
    return places


def _at_host(text: str, places: Mapping[str, str]) -> str:
    """Replace paths of the box in a text, the longest first; ``/work`` in ``/workshop`` is none."""
    targets = sorted(places, key=len, reverse=True)
    pattern = "|".join(re.escape(target) for target in targets)
    return re.sub(rf"(?<![\w./-])({pattern})(?![\w.-])", lambda found: places[found[1]], text)


def _limits(spec: BoxSpec) -> str:
    limits = {"CORE": 0, "FSIZE": spec.file_bytes, "NOFILE": spec.open_files}
    if spec.memory_bytes is not None:
        limits["AS"] = spec.memory_bytes
    return ",".join(f"{name}={value}" for name, value in limits.items())


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
