"""The container level: Docker or Podman, behind the contract of the other boxes; by name only.

The root is that of the other levels, named read-only folders of the host, so the image holds no
more than the system's links and is made here: nothing is pulled from anywhere. Process 1 of a
container is the reaper. Command, variables and pipes come to it by a socket, so none of them is in
the arguments or the environment of a container, nor goes through a daemon. Decisions and figures:
``docs/design/box.md``.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import select
import socket
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds import ownership
from pytest_modelbench.worlds.box import HOME, INTERPRETER, TEMPORARY, BoxSpec, Mount, variables
from pytest_modelbench.worlds.doors import listen_at
from pytest_modelbench.worlds.layout import (
    FROM_HOST,
    PROGRAMS,
    SHARED_MEMORY_BYTES,
    etc,
    hidden_folders,
    program_folders,
)
from pytest_modelbench.worlds.reaping import GRACE_SECONDS, REAPER, Held, ReapedBox, limits
from pytest_modelbench.worlds.removal import remove
from pytest_modelbench.worlds.runs import SCRATCH, runs_root

DOCKER, PODMAN = "docker", "podman"

START_SECONDS = 120.0
ASK_SECONDS = 60.0
_ABANDON_SECONDS = 5.0

_IMAGE = "pytest-modelbench-root"
_REAPER = "/opt/modelbench/reaper.py"
_DOOR = "/opt/modelbench/start"
_HANDED = ("PATH", "HOME", "USER", "DBUS_SESSION_BUS_ADDRESS")
_HANDED_STARTS = ("DOCKER_", "CONTAINER", "XDG_", "STORAGE_")
_PROCESSES = 2**15  # of one uid, over all containers; those of one are counted by --pids-limit
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
_NAME = re.compile(r"modelbench-(\d+)-(\d+)-(\d+)-(\d+)-[0-9a-f]+")


class ContainerBox(ReapedBox):
    """Run commands in containers of Docker or Podman, without network, power or the user's home."""

    own_root = True

    def __init__(self, program: str) -> None:
        """``program`` is the name of the level and of the command to call."""
        super().__init__(owner=ownership.owner())
        self.level = program
        self._image = ""
        # No key of the harness goes to a program that hands variables on to containers.
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name in _HANDED or name.startswith(_HANDED_STARTS)
        }

    def prepare(self) -> None:
        """Make the image where it is missing, remove containers that dead processes left.

        Fault when the program or its daemon does not answer, in its own words.
        """
        links = {name: str(Path(name).readlink()) for name in PROGRAMS if Path(name).is_symlink()}
        digest = hashlib.sha256(json.dumps(links).encode()).hexdigest()[:12]
        image = f"{_IMAGE}:{digest}"
        if not self._ask("images", "--quiet", image).strip():
            self._ask("import", "-", image, given=_archive(links))
        self._image = image
        for name in self._ask("ps", "--all", "--format", "{{.Names}}").split():
            if _is_left(name):
                with contextlib.suppress(Fault):  # its own end may remove it at this moment
                    self.remove(name)

    def remove(self, name: str) -> None:
        """End a container and all in it."""
        self._ask("rm", "--force", name)

    def _ask(self, *arguments: str, given: bytes = b"") -> str:
        try:
            done = subprocess.run(
                [self.level, *arguments],
                input=given,
                capture_output=True,
                timeout=ASK_SECONDS,
                check=False,
                env=self._environment,
            )
        except subprocess.TimeoutExpired:
            raise Fault(
                "box", f"{self.level} {arguments[0]} does not answer within {ASK_SECONDS:.0f} s"
            ) from None
        except OSError as error:
            raise Fault("box", f"{self.level} cannot be started: {error}") from error
        if done.returncode != 0:
            raise Fault("box", f"{self.level} {arguments[0]} failed: {_words(done.stderr)}")
        return done.stdout.decode(errors="replace")

    def _launch(
        self,
        argv: Sequence[str],
        spec: BoxSpec,
        *,
        stdin: int,
        stderr: int,
        pass_fds: Sequence[int] = (),
    ) -> Held:
        scratch = runs_root() / f"{SCRATCH}-{os.getpid()}-{secrets.token_hex(8)}"
        name = _name()
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            ours.callback(remove, scratch)
            try:
                waiting = theirs.enter_context(_furnished(scratch))
                log = theirs.enter_context((scratch / "log").open("w+b"))
                process = subprocess.Popen(
                    self._command(spec, scratch, name),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise Fault("box", f"{self.level} cannot start a container: {error}") from error
            ours.callback(self._abandon, process, name)
            control_read, control_write = _pipe(theirs, ours, kept=1)
            report_read, report_write = _pipe(theirs, ours, kept=0)
            out_read, out_write = _pipe(theirs, ours, kept=0)
            null = theirs.enter_context(Path(os.devnull).open("r+b", buffering=0)).fileno()
            given, in_write = null, -1
            if stdin == subprocess.PIPE:
                given, in_write = _pipe(theirs, ours, kept=1)
            told = out_write if stderr == subprocess.STDOUT else null
            # Control and report may have any number that none of the command's own has.
            first = max((2, *pass_fds)) + 1
            below = [str(first), str(first + 1), str(GRACE_SECONDS), limits(spec), "", *argv]
            order = {
                "arguments": below,
                "descriptors": [0, 1, 2, *pass_fds, first, first + 1],
                "environment": variables(spec),
                "workdir": spec.workdir,
            }
            sent = [given, out_write, told, *pass_fds, control_read, report_write]
            if problem := _hand_in(process, waiting, json.dumps(order).encode(), sent):
                log.seek(0)
                said = _words(log.read()) if process.poll() is not None else ""
                raise Fault("box", f"{self.level} run failed: {said or problem}")
            ours.pop_all()
        process.stdout = os.fdopen(out_read, "rb")
        process.stdin = os.fdopen(in_write, "wb") if in_write >= 0 else None
        return _Contained(process, control_write, report_read, scratch, box=self, name=name)

    def _abandon(self, process: subprocess.Popen[bytes], name: str) -> None:
        """End what was started and never got its command."""
        try:
            process.wait(_ABANDON_SECONDS)  # most have ended, and are being removed
        except subprocess.TimeoutExpired:
            with contextlib.suppress(Fault):
                self.remove(name)
            process.kill()
            process.wait()

    def _command(self, spec: BoxSpec, scratch: Path, name: str) -> list[str]:
        """Return the command that makes a container and sees it to its end."""
        user, group = (self.owner,) * 2 if self.owner is not None else (os.geteuid(), os.getegid())
        command = [self.level, "run", "--rm", "--name", name, "--pull", "never"]
        command += ["--network", "none", "--hostname", "box", "--user", f"{user}:{group}"]
        command += ["--read-only", "--cap-drop", "ALL", "--log-driver", "none"]
        # Labels of SELinux would have to be changed on the host's own folders to be read.
        for option in ("no-new-privileges", "label=disable"):
            command += ["--security-opt", option]
        command += ["--pids-limit", str(spec.processes + 1)]
        command += ["--ulimit", f"nofile={spec.open_files}:{spec.open_files}"]
        command += ["--shm-size", str(SHARED_MEMORY_BYTES)]
        if spec.memory_bytes is not None:
            memory = str(spec.memory_bytes + 2 * spec.scratch_bytes)
            command += ["--memory", memory, "--memory-swap", memory]
        if self.level == PODMAN:
            command += ["--read-only-tmpfs=false", "--http-proxy=false"]
            # Its default is more than it may give where nobody has the power to raise a limit.
            command += ["--ulimit", f"nproc={_PROCESSES}:{_PROCESSES}"]
            if os.geteuid() != 0:
                command += ["--userns", "keep-id"]
        for variable in _PROXIES:  # a user's configuration would set them, with what is in them
            command += ["--env", f"{variable}=", "--env", f"{variable.upper()}="]
        given = {mount.target for mount in spec.mounts}
        for place in (TEMPORARY, HOME):
            if place not in given:
                options = f"rw,exec,nosuid,nodev,mode=1777,size={spec.scratch_bytes}"
                command += ["--tmpfs", f"{place}:{options}"]
        for mount in _mounts(spec, scratch, user):
            command += ["--mount", _row(mount)]
        return [*command, self._image, INTERPRETER, "-I", "-S", _REAPER, _DOOR]


@dataclass(eq=False, kw_only=True)
class _Contained(Held):
    """A command below a reaper that is process 1 of a container."""

    box: ContainerBox
    name: str

    def force(self) -> None:
        """End the container from outside."""
        self.box.remove(self.name)

    def sweep(self) -> None:
        """Do nothing: when process 1 has ended, the kernel has ended all others."""

    def close(self) -> None:
        """End all, let go of the descriptors, remove the scratch folder."""
        try:
            super().close()
        finally:
            if self.process.poll() is None:
                self.force()


def _mounts(spec: BoxSpec, scratch: Path, user: int) -> list[Mount]:
    """Return all that is mounted, a deeper place after what it lies in, each place once."""
    programs = program_folders()
    mounts = [Mount(Path(folder), folder) for folder in programs]
    mounts += [Mount(scratch / "empty", folder) for folder in hidden_folders(programs)]
    mounts.append(Mount(etc(user, laid_over=("resolv.conf",)), "/etc"))
    names = [Path("/etc", name) for name in FROM_HOST]
    mounts += [Mount(path, str(path)) for path in names if path.exists()]
    mounts += [Mount(REAPER, _REAPER), Mount(scratch / "door", _DOOR)]
    for mount in spec.mounts:
        over = PurePosixPath(mount.target)
        mounts = [one for one in mounts if not PurePosixPath(one.target).is_relative_to(over)]
        mounts.append(mount)
    return mounts


def _row(mount: Mount) -> str:
    """Return a mount as the programs read it: a line of CSV."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if not mount.writable:
        fields.append("readonly")
    if any("\0" in one or "\n" in one for one in fields):
        raise ValueError("a mount of a box holds a NUL character or the end of a line")
    quoted = (one.replace('"', '""') for one in fields)
    return ",".join(f'"{one}"' if "," in one or '"' in one else one for one in quoted)


def _archive(links: Mapping[str, str]) -> bytes:
    """Return the image's one layer: the links of the system's root."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, target in links.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        folder = tarfile.TarInfo("usr")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
    return made.getvalue()


@contextlib.contextmanager
def _furnished(scratch: Path) -> Iterator[socket.socket]:
    """Make the folder of one container; yield the socket that its process 1 asks at."""
    scratch.mkdir(mode=0o700)
    (scratch / "empty").mkdir()
    (scratch / "empty").chmod(0o755)
    with listen_at(scratch, "door") as waiting:
        yield waiting


def _pipe(
    theirs: contextlib.ExitStack, ours: contextlib.ExitStack, *, kept: int
) -> tuple[int, int]:
    """Return a pipe; the end that is kept is closed with ``ours``, the other with ``theirs``."""
    ends = os.pipe()
    ours.callback(os.close, ends[kept])
    theirs.callback(os.close, ends[1 - kept])
    return ends


def _hand_in(
    process: subprocess.Popen[bytes],
    waiting: socket.socket,
    order: bytes,
    descriptors: Sequence[int],
) -> str:
    """Give process 1 of a container its order when it asks; return why that failed, or ''."""
    ended = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([waiting.fileno(), ended], [], [], START_SECONDS)
    finally:
        os.close(ended)
    if waiting.fileno() not in ready:
        return "it ended at once" if ready else f"no container within {START_SECONDS:.0f} s"
    connection, _ = waiting.accept()
    with connection:
        connection.settimeout(START_SECONDS)
        try:
            socket.send_fds(connection, [b"%08x" % len(order)], descriptors)
            connection.sendall(order)
            answer = connection.recv(4096)
        except OSError as error:
            return f"process 1 of the container takes no command: {error}"
    if answer != b"ok":
        return answer.decode(errors="replace").removeprefix("no: ") or "process 1 ended at once"
    return ""


def _name() -> str:
    """Return a container's name: whose it is, its process of the harness, and chance."""
    return f"modelbench-{os.geteuid()}-{_process(os.getpid())}-{secrets.token_hex(8)}"


def _process(pid: int) -> str:
    """Return what only this process is, ever: its namespace of processes, number and start."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return f"{namespace}-{pid}-0"
    return f"{namespace}-{pid}-{int(fields[19])}"


def _is_left(name: str) -> bool:
    """Tell whether a container is of this user, and of a process that is no more."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) != os.geteuid():
        return False
    seen = _process(int(found[3]))
    return seen.partition("-")[0] == found[2] and seen != "-".join(found.group(2, 3, 4))


def _words(output: bytes) -> str:
    """Return what a program said last; the line that only names its help is left out."""
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("See '")]
    return lines[-1].strip()[:500] if lines else "it said nothing"
