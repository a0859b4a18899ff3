"""The box of Linux: namespaces made by bubblewrap, a root of named read-only folders.

Decisions and figures: ``docs/design/box.md``.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds import ownership, seccomp
from pytest_modelbench.worlds.box import BoxSpec, Completed, ending, variables
from pytest_modelbench.worlds.disk import DiskWatch
from pytest_modelbench.worlds.layout import layout
from pytest_modelbench.worlds.supervision import END_SECONDS, close_pipes, wait_gone, watch

FILTERED = "bubblewrap+seccomp"
"""The level with a filter of system calls; taken by name only."""

_PATH = "/usr/local/bin:/usr/bin:/bin"


class BubblewrapBox:
    """Run commands in namespaces of their own, without network, home, keys or power.

    Process 1 of the box is bubblewrap's; when it ends, the kernel ends all others of the box. A
    descriptor of it is taken before the command may start, so its end is waited for, not hoped for.
    """

    level = "bubblewrap"
    own_root = True

    def __init__(self, program: str = "bwrap", *, filtered: bool = False) -> None:
        self.owner = ownership.owner()
        self._filter = seccomp.program() if filtered else b""
        if filtered:
            self.level = FILTERED
        self._program = program
        self._running: WeakKeyDictionary[subprocess.Popen[bytes], _Inside] = WeakKeyDictionary()

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
        inside = self._launch(
            argv,
            spec,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        with contextlib.closing(inside):
            seen = watch(
                inside.process,
                stdin=stdin,
                seconds=seconds,
                output_bytes=output_bytes,
                end=inside.end,
                over=DiskWatch(spec.written, spec.tree_bytes).over,
            )
            code = inside.exit_code()
        status: int | None = None
        ended_by: int | None = None
        if seen.over:
            ended_by = signal.SIGKILL.value
        elif not seen.timed_out:
            if code is None:
                raise Fault("box", f"bubblewrap failed: {_last_line(seen.output)}")
            status, ended_by = ending(code)
        return Completed(status, ended_by, seen.output, seen.total, seen.timed_out, seen.seconds)

    def start(
        self, argv: Sequence[str], spec: BoxSpec, *, pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start a command that is talked to by its stdin and stdout; end it with ``stop``."""
        inside = self._launch(
            argv, spec, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=pass_fds
        )
        self._running[inside.process] = inside
        return inside.process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End a started command and every descendant of it; pipes are closed."""
        inside = self._running.pop(process, None)
        if inside is not None:
            inside.close()
        close_pipes(process)

    def _launch(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> _Inside:
        try:
            options, command, passed = self._arguments(argv, spec)
        except OSError as error:
            raise Fault("box", f"a box cannot be laid out: {error}") from error
        arguments = _memory_file(b"".join(os.fsencode(option) + b"\0" for option in options))
        own = [arguments]
        gate_read, gate_write = os.pipe()
        status_read, status_write = os.pipe()
        fixed = ["--args", str(arguments), "--block-fd", str(gate_read)]
        fixed += ["--json-status-fd", str(status_write)]
        if self._filter:
            own.append(_memory_file(self._filter))
            fixed += ["--seccomp", str(own[-1])]
        try:
            process = subprocess.Popen(
                [self._program, *fixed, "--", *command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                # What bubblewrap itself is started with can be read in the box.
                env={"PATH": _PATH, "LC_ALL": "C"},
                pass_fds=[*pass_fds, *passed, *own, gate_read, status_write],
                start_new_session=True,
            )
        except OSError as error:
            os.close(gate_write)
            os.close(status_read)
            raise Fault("box", f"{self._program} cannot be started: {error}") from error
        finally:
            for descriptor in (*own, gate_read, status_write):
                os.close(descriptor)
        return _admit(process, status_read, gate_write)

    def _arguments(
        self, argv: Sequence[str], spec: BoxSpec
    ) -> tuple[list[str], list[str], list[int]]:
        """Return bubblewrap's options, the command, and the descriptors that the options name."""
        options = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
        options += ["--unshare-cgroup-try", "--die-with-parent", "--new-session"]
        options += ["--hostname", "box", "--clearenv", "--cap-drop", "ALL"]
        before, after = _split(variables(spec))
        command = _limited(argv, spec, after)
        passed = []
        if self.owner is None:
            options += ["--unshare-user", "--disable-userns"]
            options += ["--uid", str(ownership.INSIDE), "--gid", str(ownership.INSIDE)]
        else:
            namespace = ownership.user_namespace(self.owner)
            passed.append(namespace)
            options += ["--userns2", str(namespace)]
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
                options += ["--cap-add", capability]
            command = [*_drop(), *command]
        for name, value in before.items():
            options += ["--setenv", name, value]
        options += layout(spec)
        if any("\0" in option for option in options):
            raise ValueError("a mount or a variable of a box holds a NUL character")
        return options, command, passed


@dataclass(eq=False)
class _Inside:
    """A box that runs: bubblewrap's outer process, and a hold on the box's process 1."""

    process: subprocess.Popen[bytes]
    first: int
    status: int

    def end(self) -> None:
        """End all of the box; return when nothing of it is left. Again: do nothing."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
        poll = select.poll()
        poll.register(self.first, select.POLLIN)
        if not poll.poll(END_SECONDS * 1000):
            self.process.kill()
            raise Fault("box", f"a box is still there {END_SECONDS:.0f} s after it was killed")
        wait_gone(self.process)

    def exit_code(self) -> int | None:
        """Return the command's exit code; None when it was never run or did not end by itself."""
        os.set_blocking(self.status, False)
        try:
            told = os.read(self.status, 4096)
        except BlockingIOError:
            return None
        found = re.search(rb'"exit-code"\s*:\s*(\d+)', told)
        return int(found[1]) if found else None

    def close(self) -> None:
        """End all of the box and let go of its descriptors."""
        if self.first < 0:
            return
        try:
            self.end()
        finally:
            os.close(self.first)
            os.close(self.status)
            self.first = self.status = -1
            close_pipes(self.process)


def _admit(process: subprocess.Popen[bytes], status: int, gate: int) -> _Inside:
    """Take hold of process 1 of a box, which waits at the gate until then, and let it go on."""
    first = -1
    try:
        told = b""
        while not told.endswith(b"\n") and (more := os.read(status, 4096)):
            told += more
        if told:
            first = os.pidfd_open(json.loads(told.splitlines()[0])["child-pid"])
            os.write(gate, b"\n")
            return _Inside(process, first, status)
    except (OSError, ValueError, KeyError) as error:
        told = str(error).encode()
    finally:
        os.close(gate)
    # Its process 1 dies with it (--die-with-parent), and was never let past the gate.
    if process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    process.kill()
    output = b"" if process.stdout is None else process.stdout.read(2**16)
    wait_gone(process)
    close_pipes(process)
    for descriptor in (first, status):
        if descriptor >= 0:
            os.close(descriptor)
    raise Fault("box", f"bubblewrap failed: {_last_line(output or told)}")


def _split(values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Part the variables that act on the dynamic loader: they are set after power was dropped."""
    after = {name for name in values if name.startswith(("LD_", "GLIBC_", "GCONV_", "LOCPATH"))}
    return (
        {name: value for name, value in values.items() if name not in after},
        {name: value for name, value in values.items() if name in after},
    )


def _limited(argv: Sequence[str], spec: BoxSpec, exports: Mapping[str, str]) -> list[str]:
    """Return a command that sets limits and becomes ``argv``.

    A shell's ``ulimit`` costs one exec. A ``preexec_fn`` would fork all of a worker's memory, and
    may deadlock where threads are.
    """
    limits = [
        ("-c", 0),
        ("-f", _at_most(spec.file_bytes, resource.RLIMIT_FSIZE) // 512),
        ("-n", _at_most(spec.open_files, resource.RLIMIT_NOFILE)),
    ]
    if spec.memory_bytes is not None:
        limits.append(("-v", _at_most(spec.memory_bytes, resource.RLIMIT_AS) // 1024))
    script = [f"ulimit {option} {value}" for option, value in limits]
    if _counts_processes_by_namespace():
        processes = _at_most(spec.processes, resource.RLIMIT_NPROC)
        script.append(f"{{ ulimit -u {processes} || ulimit -p {processes}; }} 2>/dev/null")
    for name, value in exports.items():
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a variable")
        script.append(f"export {name}={shlex.quote(value)}")
    script.append('exec "$@"')
    return ["/bin/sh", "-c", " && ".join(script), "sh", *argv]


def _at_most(wanted: int, which: int) -> int:
    hard = resource.getrlimit(which)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _counts_processes_by_namespace() -> bool:
    """Tell whether the limit counts the box's processes, not all that its user has (Linux 5.14)."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return found is not None and (int(found[1]), int(found[2])) >= (5, 14)


def _drop() -> list[str]:
    program = shutil.which("setpriv", path=f"{_PATH}:/usr/sbin:/sbin")
    if program is None:
        raise Fault("box", "a box made by root needs setpriv (package util-linux)")
    inside = str(ownership.INSIDE)
    return [
        program,
        *("--reuid", inside, "--regid", inside, "--clear-groups"),
        *("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"),
    ]


def _memory_file(content: bytes) -> int:
    """Return a descriptor to read something from; it stays off the process list."""
    descriptor = os.memfd_create("options")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "it said nothing"
