"""The box: where code that is not ours runs, and what it may reach."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

WORK = "/work"
"""Where a candidate finds its work tree, at every level that can mount."""

REPOSITORY = "/work.git"
"""Where the repository of the work tree is; beside it, so that relative links hold."""

ENVIRONMENT = "/env"
"""Where the virtual environment of ``[environment]`` is."""

HOME = "/home/candidate"
"""HOME in a box; scratch unless a mount takes the place."""

TEMPORARY = "/tmp"
"""TMPDIR in a box; scratch unless a mount takes the place."""

INTERPRETER = str(
    Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
)
"""The interpreter below our own virtual environment; every box has it, at this same path."""


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host at a place in the box."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class BoxSpec:
    """What one box may reach: nothing but these mounts, a scratch HOME and TMPDIR, no network.

    A later mount lies over an earlier one. A writable source belongs to ``Box.owner``.
    ``environment`` is added to the few variables of ``variables``; it is never the harness's own.
    ``scratch_bytes`` bounds HOME and TMPDIR each; ``memory_bytes`` the address space of a process;
    ``tree_bytes`` all writable mounts in sum: a command that ``Box.run`` runs is killed beyond it.
    ``connect`` is a port of this host's loopback that may be connected to all the same, where the
    level holds the host's network; a box with a network of its own takes no note of it.
    """

    mounts: tuple[Mount, ...] = ()
    workdir: str = WORK
    environment: Mapping[str, str] = field(default_factory=dict)
    scratch_bytes: int = 256 * 2**20
    file_bytes: int = 256 * 2**20
    memory_bytes: int | None = 4 * 2**30
    processes: int = 256
    open_files: int = 1024
    tree_bytes: int = 2 * 2**30
    connect: int | None = None

    @property
    def written(self) -> tuple[Path, ...]:
        """Return the sources that a command can write to, for ``DiskWatch``."""
        return tuple(mount.source for mount in self.mounts if mount.writable)


@dataclass(frozen=True)
class Completed:
    """How a command in a box ended. ``output`` is both streams, capped: its head and its tail.

    Either ``status`` or ``signal`` is None; both are after a time-out. A box tells a signal as a
    shell does (128 + n), so a command that *exits* with 129 to 192 is read as ended by a signal, at
    every level. Where bytes were left out, a line between head and tail says how many.
    """

    status: int | None
    signal: int | None
    output: bytes
    output_total: int
    timed_out: bool
    seconds: float


class Box(Protocol):
    """One isolation level of this machine.

    ``owner`` is the uid of the host that the command runs as and that writable mounts must belong
    to; None where that is the harness's own. ``own_root`` tells that the box has its own files and
    its own loopback: targets of mounts are real paths there. Trouble of the box itself is
    ``Fault("box", …)``.
    """

    level: str
    owner: int | None
    own_root: bool

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

        What is returned ends as the command does, which ``ending`` reads. The caller ends it with
        ``stop``. Call from a thread that lives as long as the box: the
        kernel ends the box with the *thread* that started it (PR_SET_PDEATHSIG), not with the
        process.
        """
        ...

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a started command and every descendant of it; pipes are closed."""
        ...


def variables(spec: BoxSpec) -> dict[str, str]:
    """Return the whole environment of a command in a box, with the box's own paths."""
    path = ["/usr/local/bin", "/usr/bin", "/bin"]
    interpreter = str(Path(INTERPRETER).parent)
    if interpreter not in path:
        path.insert(0, interpreter)
    if any(mount.target == ENVIRONMENT for mount in spec.mounts):
        path.insert(0, f"{ENVIRONMENT}/bin")
    return {
        "PATH": ":".join(path),
        "HOME": HOME,
        "TMPDIR": TEMPORARY,
        "USER": "candidate",
        "LOGNAME": "candidate",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        # Byte code in the tree would be harvested, and could outlive the source it was made from.
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        **spec.environment,
    }


def ending(code: int) -> tuple[int | None, int | None]:
    """Return ``(status, signal)`` of an exit code as shells and ``subprocess`` write it."""
    if code < 0:
        return None, -code
    if 128 < code <= 192:
        return None, code - 128
    return code, None
