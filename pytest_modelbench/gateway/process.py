"""The controller's side: start the gateway process, keep it alive, end it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pytest_modelbench.errors import Fault
from pytest_modelbench.gateway.address import Address
from pytest_modelbench.gateway.windows import Used
from pytest_modelbench.gateway.wire import FAILURE, SERVED, GatewayConfig, end_seconds
from pytest_modelbench.records import Candidate, Server

PREFIX = "mb-gw-"
SOCKET_CHARS = 100
"""Longest path of a socket: 108 bytes with the ending zero, 104 on macOS."""

QUICK_SECONDS = 2.0
QUICK_DEATHS = 5
CLOSE_SECONDS = 5.0

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from pytest_modelbench.gateway.server import main; main(int(sys.argv[2]))"
)


class GatewayProcess:
    """The running gateway. The socket is listening from the start, so clients need not wait."""

    def __init__(self, config: GatewayConfig, listener: socket.socket, lock: int) -> None:
        self._config = config
        self._listener = listener
        self._lock = lock
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        self.failure = ""
        self._spawn()
        self._watchdog = threading.Thread(target=self._watch, name="gateway-watchdog", daemon=True)
        self._watchdog.start()

    @classmethod
    def start(
        cls,
        candidates: Sequence[Candidate],
        servers: Sequence[Server] = (),
        *,
        retries: int = 4,
        max_wait: float = 300.0,
        call_seconds: float = 600.0,
        usage_pause_threshold: float = 0.8,
        usage_allowance: float | None = None,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        used: Sequence[Used] = (),
        root: Path | None = None,
        log: Path | None = None,
    ) -> GatewayProcess:
        """Bind and listen in a short private folder, then start the process on that socket.

        The limits are those of ``Patience``, the budgets those of the run, ``used`` is what older
        runs used within declared windows; servers' commands are run in ``root``, and what they
        print is kept in the folder ``log``. Folders left by controllers that were killed are
        swept first.
        """
        place = _root()
        sweep(place)
        folder, lock = _locked_folder(place)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(folder / "s"))
            (folder / "s").chmod(0o600)
            listener.listen(1024)
            config = GatewayConfig(
                candidates=tuple(candidates),
                servers=tuple(servers),
                secret=secrets.token_urlsafe(32),
                folder=str(folder),
                retries=retries,
                max_wait=max_wait,
                call_seconds=call_seconds,
                usage_pause_threshold=usage_pause_threshold,
                usage_allowance=usage_allowance,
                budget_usd=budget_usd,
                budget_tokens=budget_tokens,
                used=tuple(used),
                root=str(root) if root is not None else "",
                log=str(log) if log is not None else "",
            )
            return cls(config, listener, lock)
        except BaseException:
            listener.close()
            os.close(lock)
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @property
    def address(self) -> Address:
        """Return where workers find the gateway, and the secret that lets them in."""
        return Address(str(Path(self._config.folder) / "s"), self._config.secret)

    @property
    def pid(self) -> int:
        """Return the id of the process that serves now."""
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        """End the process and remove its folder. Calls in flight become faults."""
        self._closing.set()
        process = self._process
        if process is not None:
            _close_stdin(process)
            try:
                process.wait(CLOSE_SECONDS + end_seconds(self._config.servers))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._watchdog.join(CLOSE_SECONDS)
        self._listener.close()
        shutil.rmtree(self._config.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def __enter__(self) -> GatewayProcess:
        """Return the running gateway."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def _spawn(self) -> None:
        self._file(SERVED).unlink(missing_ok=True)
        package_root = Path(__file__).resolve().parents[2]
        log = os.open(
            Path(self._config.folder) / "log",
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        descriptor = self._listener.fileno()
        try:
            process = subprocess.Popen(
                # -P: a file of the user's project must not pass for a module of ours.
                [sys.executable, "-P", "-c", _PROGRAM, str(package_root), str(descriptor)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        finally:
            os.close(log)
        self._process = process
        assert process.stdin is not None
        try:
            # What it is told comes by its input: no argument, no file, no variable shows it.
            process.stdin.write(self._config.model_dump_json().encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it is dead already, which the watchdog sees

    def _watch(self) -> None:
        quick = 0
        while True:
            process = self._process
            assert process is not None
            began = time.monotonic()
            process.wait()
            if self._closing.is_set():
                return
            _close_stdin(process)
            # However long a slow machine takes: one that never answered died at its start.
            lived = self._file(SERVED).exists() and time.monotonic() - began >= QUICK_SECONDS
            quick = 0 if lived else quick + 1
            if quick >= QUICK_DEATHS:
                self._give_up(f"the gateway died {quick} times at its start: {self._log_tail()}")
                return
            self.restarts += 1
            try:
                self._spawn()
            except OSError as error:
                self._give_up(f"the gateway cannot be started again: {error}")
                return
            if self._closing.is_set():
                # close() saw the process before this one.
                _close_stdin(self._process)

    def _give_up(self, failure: str) -> None:
        """Say to everybody why nobody will answer; then nobody listens."""
        self.failure = failure
        with contextlib.suppress(OSError):
            self._file(FAILURE).write_text(failure, encoding="utf-8")
        self._listener.close()

    def _file(self, name: str) -> Path:
        return Path(self._config.folder) / name

    def _log_tail(self) -> str:
        try:
            text = self._file("log").read_text(errors="replace")
        except OSError:
            return ""
        return " ".join(text[-600:].split())

    def check(self) -> None:
        """Raise a Fault with the last words of the log when the gateway is gone for good."""
        if self.failure:
            raise Fault("gateway", self.failure)


def _locked_folder(place: Path) -> tuple[Path, int]:
    """Make a private folder; return it with the lock that says that its controller lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder, lock
        os.close(lock)  # another start came between the two lines, and swept it


def sweep(root: Path | None = None) -> list[Path]:
    """Remove the folders of gateways whose controller is gone; return those removed."""
    root = root or _root()
    removed: list[Path] = []
    for folder in root.glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its controller lives
        else:
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
        finally:
            os.close(lock)
    return removed


def _root() -> Path:
    """Return a folder for temporary files whose path is short enough for a socket in it."""
    for place in (Path(tempfile.gettempdir()), Path("/tmp")):
        if len(str(place)) + len(PREFIX) + 12 <= SOCKET_CHARS and os.access(place, os.W_OK):
            return place
    return Path("/tmp")


def _close_stdin(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None and process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
