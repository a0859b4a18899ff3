"""The box: where code that is not ours runs, and what it may reach."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host at a place in the box."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class BoxSpec:
    """What one box may reach: nothing but these mounts, a scratch HOME and TMPDIR, no network."""

    mounts: tuple[Mount, ...] = ()
    workdir: str = "/work"
    environment: Mapping[str, str] = field(default_factory=dict)
    scratch_bytes: int = 256 * 2**20
    file_bytes: int = 256 * 2**20
    memory_bytes: int | None = 4 * 2**30
    processes: int = 256


@dataclass(frozen=True)
class Completed:
    """How a command in a box ended. ``output`` is both streams, capped: its head and its tail."""

    status: int | None
    signal: int | None
    output: bytes
    output_total: int
    timed_out: bool
    seconds: float


class Box(Protocol):
    """One isolation level of this machine."""

    level: str

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
        ...

    def start(
        self, argv: Sequence[str], spec: BoxSpec, *, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a command that is talked to by its stdin and stdout; stderr is drained to null.

        The caller ends it with ``stop``. Call from a thread that lives as long as the box.
        """
        ...

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a started command and every descendant of it."""
        ...
