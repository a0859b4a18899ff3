"""The environment: the virtual environment of ``[environment]``, built once for each lock.

It holds the pinned packages and nothing of ours, is read-only in a box, and works there through the
interpreter below it, which every box mounts at its own path. The lock is the list of pins, the
interpreter and the platform; the folder is named by it and shared by all runs of the user.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from filelock import FileLock

from pytest_modelbench.errors import UsageProblem
from pytest_modelbench.packs.model import EnvironmentSpec
from pytest_modelbench.worlds.box import INTERPRETER
from pytest_modelbench.worlds.removal import remove

CACHE_VARIABLE = "MODELBENCH_CACHE"

_FORMAT = 2  # counts up when what is built of the same pins changes
_COMPLETE = "complete"
_SYSTEM_CACHE = Path("/var/cache/modelbench")
_PIN = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?==[A-Za-z0-9][A-Za-z0-9._+!-]*"
)
_SECONDS = 1800.0


def environment(spec: EnvironmentSpec) -> Path | None:
    """Return the environment of a spec, built when it is new; None when no packages are asked for.

    UsageProblem when a package is not pinned, cannot be installed, or the set does not fit
    together; its text names the packages and the command that fills the cache.
    """
    if not spec.packages:
        return None
    for package in spec.packages:
        if not _PIN.fullmatch(package):
            raise UsageProblem(
                f"[environment] packages: {package!r} is not pinned; write it as name==version"
            )
    folder = cache_folder("env") / _key(spec)
    if is_built(spec):
        return folder
    try:
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not (folder / _COMPLETE).is_file():
                _build(spec, folder)
    except (OSError, UsageProblem) as error:
        if isinstance(error, UsageProblem) and "No space left" not in str(error):
            raise
        raise UsageProblem(
            f"[environment] cannot be built in {folder}: {error}; make room there, or let "
            f"{CACHE_VARIABLE} name another place"
        ) from error
    return folder


def is_built(spec: EnvironmentSpec) -> bool:
    """Tell whether the environment of a spec is there, so that asking for it takes no time."""
    return not spec.packages or (cache_folder("env") / _key(spec) / _COMPLETE).is_file()


def cache_folder(name: str) -> Path:
    """Return one of the user's cache folders, in a place that the user of a box can reach, too.

    A box made by root runs as another user, and root's home is closed to that.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        cache = Path(named).absolute()
    elif os.geteuid() == 0:
        cache = _SYSTEM_CACHE
    else:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        cache = Path(home) / "modelbench"
    cache = cache / name
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageProblem(
            f"{cache}: no place for what is built once ({error.strerror}); set {CACHE_VARIABLE}"
        ) from error
    return cache


def _key(spec: EnvironmentSpec) -> str:
    """Return the lock's digest. The interpreter counts by version, build and place."""
    lock = [
        str(_FORMAT),
        sys.implementation.cache_tag or sys.implementation.name,
        platform.python_version(),
        sysconfig.get_platform(),
        platform.libc_ver()[0],
        INTERPRETER,
        *sorted(spec.packages),
    ]
    return hashlib.sha256("\0".join(lock).encode()).hexdigest()[:24]


def _build(spec: EnvironmentSpec, folder: Path) -> None:
    """Build in place, since an environment holds its own path; the marker is written last."""
    remove(folder)
    python = folder / "bin" / "python"
    try:
        pip = [*_pip(), "--python", str(python), "--disable-pip-version-check", "--no-input"]
        _run([INTERPRETER, "-I", "-m", "venv", "--without-pip", str(folder)], "is Python whole?")
        packages = " ".join(spec.packages)
        _run(
            [*pip, "install", "--no-deps", "--no-compile", *spec.packages],
            f"cannot install {packages}; without a package index at hand, do where there is one: "
            f"python -m pip download --no-deps --dest wheels {packages}, and run here with "
            "PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels (an absolute path)",
        )
        _run([*pip, "check"], "packages is a whole lock, dependencies among it: pin these as well")
        compiled = [str(python), "-I", "-m", "compileall", "-q", "-j", "0", str(folder / "lib")]
        # A package may ship files for another Python; they are left as they are.
        subprocess.run(compiled, capture_output=True, timeout=_SECONDS, check=False)
        _make_movable(folder / "bin", str(python))
        _open_to_all(folder)
        (folder / _COMPLETE).write_text("\n".join(sorted(spec.packages)) + "\n")
        (folder / _COMPLETE).chmod(0o644)
    except BaseException:
        remove(folder)
        raise


def _pip() -> list[str]:
    """Return a pip that can install into another environment: ours, or the interpreter's own."""
    for python in (sys.executable, INTERPRETER):
        probe = [python, "-m", "pip", "--version"]
        with contextlib.suppress(OSError):
            done = subprocess.run(probe, capture_output=True, timeout=60, check=False)
            if done.returncode == 0:
                return [python, "-m", "pip"]
    raise UsageProblem(
        f"[environment] needs pip, and {sys.executable} has none; install it there: "
        f"{sys.executable} -m ensurepip (or: uv pip install pip)"
    )


def _run(command: list[str], remedy: str) -> None:
    # pip keeps its configuration (a proxy, an index of the company); what acts on Python goes.
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") and name not in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER")
    }
    done = subprocess.run(
        command, capture_output=True, timeout=_SECONDS, check=False, env=variables
    )
    if done.returncode != 0:
        told = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        errors = [line for line in told if "ERROR" in line or "requires" in line] or told[-3:]
        raise UsageProblem(f"[environment] {remedy}: {' '.join(errors)[-800:]}")


def _make_movable(scripts: Path, python: str) -> None:
    """Let scripts find the interpreter beside them: a box has the environment at another place.

    The first two lines are a shell's program and, in triple quotes, a string of Python's.
    """
    head = b"""#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
    for script in scripts.iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        lines = script.read_bytes().split(b"\n")
        if lines[0].startswith(b"#!") and python.encode() in lines[0]:
            script.write_bytes(head + b"\n".join(lines[1:]))
        elif lines[0] == b"#!/bin/sh" and python.encode() in lines[1]:  # a path too long for #!
            script.write_bytes(head + b"\n".join(lines[3:]))


def _open_to_all(folder: Path) -> None:
    """Let every user read, whatever the umask was: the user of a box may be another one."""
    folder.chmod(0o755)
    for _, folders, files, descriptor in os.fwalk(folder):
        for name in (*folders, *files):
            mode = os.lstat(name, dir_fd=descriptor).st_mode
            if (mode & 0o170000) in (0o040000, 0o100000):
                readable = mode & 0o7777 | 0o444 | (0o111 if mode & 0o100 else 0)
                os.chmod(name, readable, dir_fd=descriptor)
