"""Levels: what isolation this machine offers, found out by running it, and the choice of one."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pytest_modelbench.errors import Fault, UsageProblem
from pytest_modelbench.worlds import landlock, ownership, seccomp
from pytest_modelbench.worlds.box import HOME, INTERPRETER, TEMPORARY, Box, BoxSpec, Mount
from pytest_modelbench.worlds.bubblewrap import FILTERED, BubblewrapBox
from pytest_modelbench.worlds.container import DOCKER, PODMAN, ContainerBox
from pytest_modelbench.worlds.landlock import LandlockBox
from pytest_modelbench.worlds.names import known
from pytest_modelbench.worlds.portable import PortableBox
from pytest_modelbench.worlds.runs import SCRATCH, runs_root

BUBBLEWRAP = BubblewrapBox.level
LANDLOCK = LandlockBox.level
PORTABLE = PortableBox.level

STRICT = (BUBBLEWRAP,)
"""Levels at which others' files, processes and network are absent: what ``strict`` accepts."""

ON_DEMAND = (FILTERED, DOCKER, PODMAN)
"""Levels that are taken by name only, and tried only then: a container takes half a second."""

_PROBE_SECONDS = 30.0
_OLDEST = (0, 8)  # the first with --disable-userns


@dataclass(frozen=True)
class Level:
    """One isolation level on this machine; ``why_not`` says what is missing and the remedy."""

    name: str
    available: bool
    why_not: str = ""


@functools.cache
def probe() -> tuple[Level, ...]:
    """Return the levels, strongest first; each was really run. Done once a process (some 40 ms)."""
    bubblewrap, held = _bubblewrap_problem(), _landlock_problem()
    return (
        Level(BUBBLEWRAP, not bubblewrap, bubblewrap),
        Level(LANDLOCK, not held, held),
        Level(PORTABLE, available=True),
    )


def choose(wanted: str) -> Box:
    """Return a box of a level by name, the strongest for ``auto``, a kernel's for ``strict``.

    UsageProblem when there is none; nothing weaker is taken instead. With ``auto`` the level is
    what the machine offers: ``box.level`` stands on every record.
    """
    known(wanted)
    levels = {level.name: level for level in probe()}
    names = {"auto": tuple(levels), "strict": STRICT}.get(wanted, (wanted,))
    if wanted in ON_DEMAND:
        levels[wanted] = probe_named(wanted)
    for name in names:
        if levels[name].available:
            return _box(name)
    reasons = "; ".join(f"{name}: {levels[name].why_not}" for name in names)
    raise UsageProblem(f"isolation {wanted!r} is not available on this machine: {reasons}")


@functools.cache
def _box(name: str) -> Box:
    if name in (BUBBLEWRAP, FILTERED):
        return BubblewrapBox(filtered=name == FILTERED)
    if name in (DOCKER, PODMAN):
        return _container(name)
    return LandlockBox() if name == LANDLOCK else PortableBox()


@functools.cache
def probe_named(name: str) -> Level:
    """Return one of the levels ``ON_DEMAND``, which was really run. Done once a process."""
    problem = _filter_problem() if name == FILTERED else _container_problem(name)
    return Level(name, not problem, problem)


@functools.cache
def _container(name: str) -> ContainerBox:
    box = ContainerBox(name)
    box.prepare()
    return box


def _container_problem(name: str) -> str:
    """Return why containers of a program do not work here, '' when they do."""
    if sys.platform != "linux":
        return "it is for Linux only: programs and the interpreter in a box are the host's own"
    if shutil.which(name) is None:
        return f"{name} is not on the PATH; install it{_DAEMON[name]}"
    if os.geteuid() == 0 and ownership.owner() is None:
        return "this root has no other user to run a container as; start it as an ordinary user"
    script = 'id -u && cat "$HOME/told" && touch "$HOME/made"'
    script += f' && exec {INTERPRETER} -I -S -c "import os; print(os.getppid())"'
    try:
        box = _container(name)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=runs_root()) as folder:
            home = Path(folder, "home")
            home.mkdir()
            (home / "told").write_text("told\n")
            ownership.give(home, box.owner)
            spec = BoxSpec(mounts=(Mount(home, HOME, writable=True),), workdir=TEMPORARY)
            seen = box.run(["/bin/sh", "-c", script], spec, seconds=_PROBE_SECONDS)
            made = (home / "made").exists()
    except (Fault, OSError) as error:
        return f"{error}{_container_remedy(name, str(error))}"
    user = os.geteuid() if box.owner is None else box.owner
    if seen.status != 0 or seen.output != f"{user}\ntold\n1\n".encode() or not made:
        told = seen.output.decode(errors="replace").strip()[-300:]
        return f"a container does not run as it must (exit {seen.status}): {told}"
    return ""


_DAEMON = {DOCKER: " and start its daemon", PODMAN: ""}


def _container_remedy(name: str, text: str) -> str:
    if "onnect to the Docker daemon" in text:
        return "; start the daemon, or name its socket by DOCKER_HOST"
    if "permission denied" in text and "socket" in text:
        return f"; let this user ask the daemon (group {name})"
    return ""


def _filter_problem() -> str:
    """Return why the filter of system calls does not work here, '' when it does."""
    if not seccomp.supported():
        return f"the numbers of system calls of {platform.machine()} are not known"
    return _bubblewrap_problem(filtered=True)


def _landlock_problem() -> str:
    """Return why Landlock does not work here, '' when it does."""
    if sys.platform != "linux":
        return "it is for Linux only"
    if not seccomp.supported():
        return f"the numbers of system calls of {platform.machine()} are not known"
    found = landlock.version()
    if found < landlock.OLDEST:
        what = f"has version {found} of it" if found else "has it not, or not switched on"
        return (
            f"the kernel ({platform.release()}) {what}; version {landlock.OLDEST} (Linux 6.12) is "
            "needed, with landlock among lsm= of the kernel's command line"
        )
    # The name comes by the input: in an argument, a path below /tmp would become the box's own.
    script = f'read name; cat "$name"; exec {INTERPRETER} -I -S -c "import socket; socket.socket()"'
    try:
        with tempfile.NamedTemporaryFile(prefix=SCRATCH, buffering=0) as secret:
            secret.write(b"readable")
            seen = LandlockBox().run(
                ["/bin/sh", "-c", script],
                BoxSpec(workdir=TEMPORARY),
                stdin=f"{secret.name}\n".encode(),
                seconds=_PROBE_SECONDS,
            )
    except (Fault, OSError) as error:
        return str(error)
    refusals = (b"Permission denied", b"PermissionError")
    if b"readable" in seen.output or not all(text in seen.output for text in refusals):
        told = seen.output.decode(errors="replace").strip()[-300:]
        return f"a command is not held as it must be (exit {seen.status}): {told}"
    return ""


def _bubblewrap_problem(*, filtered: bool = False) -> str:
    """Return why boxes of bubblewrap do not work here, '' when they do."""
    if sys.platform != "linux":
        return "it is for Linux only"
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not on the PATH; install the package bubblewrap (0.8 or newer)"
    try:
        told = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_PROBE_SECONDS, check=False
        ).stdout.decode(errors="replace")
        version = re.search(r"(\d+)\.(\d+)", told)
        if version is None or (int(version[1]), int(version[2])) < _OLDEST:
            return f"{told.strip() or program} is too old; install bubblewrap 0.8 or newer"
        script = f'id -u && exec {INTERPRETER} -I -S -c "import os; print(os.getppid())"'
        seen = BubblewrapBox(program, filtered=filtered).run(
            ["/bin/sh", "-c", script], BoxSpec(workdir=TEMPORARY), seconds=_PROBE_SECONDS
        )
    except (Fault, OSError, subprocess.TimeoutExpired) as error:
        return f"{error}{_remedy(str(error))}"
    expected = f"{ownership.INSIDE}\n1\n".encode()
    if seen.status != 0 or seen.output != expected:
        told = seen.output.decode(errors="replace").strip()[-300:]
        return f"a box does not run as it must (exit {seen.status}): {told}{_remedy(told)}"
    return ""


def _remedy(text: str) -> str:
    if any(word in text for word in ("namespace", "uid map", "RTM_NEWADDR", "not permitted")):
        return (
            "; allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 and "
            "user.max_user_namespaces above 0; in a container, a seccomp profile that permits them)"
        )
    if "Permission denied" in text and INTERPRETER in text:
        return f"; let others read the interpreter's folder ({sys.base_prefix})"
    return ""
